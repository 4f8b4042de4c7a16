"""The folder of a reproduction: the same bytes in every run, and times beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topicscope.cli.reproduce import print_outcome, print_table
from topicscope.ground import EngineError, serial
from topicscope.paper import EXPERIMENTS, Context, chosen, read_reproduction, reproduce
from topicscope.paper.reproduction import grouped, outcome_path, read_outcome, read_seconds

FAST = ["figure7", "figure8"]


def content(folder: Path) -> dict[str, bytes]:
    """What is the same in every run."""
    return {path.name: path.read_bytes() for path in (folder / "results.json", *(folder / "outcomes").iterdir())}


def stored_seconds(folder: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((folder / "environment.json").read_text())["seconds"]
    return found


def set_seconds(folder: Path, seconds: Any) -> None:
    environment = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(environment | {"seconds": seconds}))


def test_two_reproductions_have_the_same_bytes(tmp_path: Path) -> None:
    ids = ["theorem1", "figure7"]
    reproduce(chosen(ids), Context(), tmp_path / "a")
    reproduce(chosen(ids[:1]), Context(), tmp_path / "b")
    reproduce(chosen(ids[1:]), Context(), tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert sorted(content(tmp_path / "a")) == ["figure7.json", "results.json", "theorem1.json"]
    assert b"seconds" not in b"".join(content(tmp_path / "a").values())
    for folder in (tmp_path / "a", tmp_path / "b"):
        found = read_reproduction(folder).seconds
        assert found == stored_seconds(folder)
        assert list(found) == ["figure7", "theorem1"]
        assert all(value >= 0 for value in found.values())
        assert json.loads((folder / "environment.json").read_text())["packages"]["torch"]


def test_seconds_of_earlier_calls_are_kept(tmp_path: Path) -> None:
    reproduce(chosen(["figure7"]), Context(), tmp_path)
    set_seconds(tmp_path, {"figure7": 77.5, "figure99": 1})
    seen: dict[str, float | None] = {}
    second = reproduce(chosen(FAST), Context(), tmp_path, finished=lambda name, _, took: seen.update({name: took}))
    assert second.seconds == seen == stored_seconds(tmp_path) == {"figure7": 77.5, "figure8": seen["figure8"]}
    outcome_path(tmp_path, "figure7").unlink()
    reproduce(chosen(["figure7"]), Context(), tmp_path)
    assert stored_seconds(tmp_path)["figure7"] != 77.5  # those of the run that is stored


def test_seconds_survive_a_command_that_is_killed(tmp_path: Path) -> None:
    def dying(work: Any, common: Any, items: Any) -> Any:
        for done in serial(work, common, items):
            yield done
            raise EngineError("workers died")

    with pytest.raises(EngineError):
        reproduce(chosen(FAST), Context(), tmp_path, dying)
    [name] = stored_seconds(tmp_path)
    assert outcome_path(tmp_path, name).is_file()
    set_seconds(tmp_path, {name: 77.5})
    assert reproduce(chosen(FAST), Context(), tmp_path).seconds[name] == 77.5


@pytest.mark.parametrize(
    "text",
    [
        *("", "3", "[]", "{}", '{"seconds": 3}', '{"seconds": []}', '{"seconds": {"figure8": 1}}'),
        *('{"seconds": {"figure7": "?"}}', '{"seconds": {"figure7": null}}', '{"seconds": {"figure7": NaN}}'),
        '{"seconds": {"figure7": 1' + "0" * 400 + "}}",
        None,
    ],
)
def test_a_time_that_is_not_known_is_a_dash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    reproduce(chosen(["figure7"]), Context(), tmp_path)
    path = tmp_path / "environment.json"
    path.unlink() if text is None else path.write_text(text)
    assert "figure7" not in read_seconds(tmp_path)
    found = read_reproduction(tmp_path)
    assert found.seconds == {}
    assert found.table()["seconds"].to_pylist() == [None]
    [section] = found.sections()
    assert section.verdict is not None
    assert section.verdict.seconds is None
    print_table(found)
    print_outcome("figure7", found.outcomes["figure7"], None)
    shown = capsys.readouterr()
    assert "figure7" in shown.out
    assert shown.err == "figure7: reproduced\n"
    again = reproduce(chosen(["figure7"]), Context(), tmp_path)  # and hinders nothing
    assert again.seconds == {}
    assert "packages" in json.loads(path.read_text())


def test_a_verdict_that_was_changed_by_hand_is_not_believed(tmp_path: Path) -> None:
    reproduce(chosen(FAST), Context(), tmp_path)
    before, path = content(tmp_path), outcome_path(tmp_path, "figure7")
    path.write_text(path.read_text().replace('"verdict": "reproduced"', '"verdict": "not reproduced"'))
    assert content(tmp_path) != before
    assert json.loads(path.read_text())["outcome"]["verdict"] == "not reproduced"
    assert read_outcome(tmp_path, "figure7", Context()) is None
    reproduce(chosen(FAST), Context(), tmp_path)
    assert content(tmp_path) == before


def test_experiments_that_share_a_training_run_together(tmp_path: Path, made_up: list[str]) -> None:
    """Once per reproduction, in one process; and where one of them is missing, it alone is measured again."""
    assert grouped(["figure1", "table1", "theorem1", "table2", "figure3", "table5"]) == [
        ("table1", "table2", "figure3", "table5"),
        ("figure1",),
        ("theorem1",),
    ]
    assert grouped([name for name in EXPERIMENTS if name != "table1"])[-2:] == [("figure7",), ("figure8",)]
    four = ["figure3", "table1", "table2", "table5"]
    reproduce(chosen(four), Context(), tmp_path)
    assert made_up == four
    outcome_path(tmp_path, "table2").unlink()
    reproduce(chosen(four), Context(), tmp_path)
    assert made_up == [*four, "table2"]


def test_what_is_there_is_shown_whenever_an_experiment_is_done(tmp_path: Path, made_up: list[str]) -> None:
    seen: list[list[str]] = []
    reproduce(chosen(["theorem1"]), Context(), tmp_path)
    reproduce(
        chosen(["theorem1", "figure7", "figure6"]), Context(), tmp_path, renewed=lambda r: seen.append(list(r.outcomes))
    )
    assert seen == [["figure6", "theorem1"], ["figure6", "figure7", "theorem1"]]
    reproduce(chosen(["figure7"]), Context(), tmp_path, renewed=lambda r: seen.append(list(r.outcomes)))
    assert len(seen) == 2  # nothing is new
    assert made_up == ["theorem1", "figure6", "figure7"]
