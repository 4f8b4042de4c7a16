"""Reproductions from Python: what is computed, stored, read back and summed up; the same bytes, and times beside."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.paper import samples
from topicscope import InputError, read
from topicscope.cli import shell
from topicscope.cli.results import outcome_table, print_outcome
from topicscope.ground import EngineError, read_about, serial
from topicscope.ground.files import sealed, unsealed
from topicscope.pages import Figure, Verdict
from topicscope.paper import EXPERIMENTS, Context, Outcome, Reproduction, chosen, read_reproduction, reproduce
from topicscope.paper.reproduction import (
    FORMAT,
    REPRODUCE,
    compute,
    finite,
    grouped,
    outcome_path,
    read_outcome,
    read_seconds,
    write_outcome,
)

FAST = ["figure7", "figure8"]
pytestmark = pytest.mark.usefixtures("made_up")


def test_every_id_has_its_file_claim_and_rule() -> None:
    for name, experiment in EXPERIMENTS.items():
        assert experiment.id == name
        assert min(len(experiment.claim), len(experiment.rule)) > 20
        assert experiment.seconds > 0
    assert [e.id for e in chosen(["theorem2", "figure7"])] == ["figure7", "theorem2"]
    assert [e.id for e in chosen(None)] == list(EXPERIMENTS)
    with pytest.raises(InputError, match="did you mean 'figure7'"):
        chosen(["figur7"])


def test_finished_outcomes_are_not_computed_again_but_damaged_ones_are(tmp_path: Path) -> None:
    context = Context("quick", 0)
    first = reproduce(chosen(FAST), context, tmp_path)
    stamps = {name: outcome_path(tmp_path, name).stat().st_mtime_ns for name in FAST}
    outcome_path(tmp_path, "figure8").write_text('{"format": 3, "outcome"')
    again = reproduce(chosen(FAST), context, tmp_path)
    assert outcome_path(tmp_path, "figure7").stat().st_mtime_ns == stamps["figure7"]
    assert outcome_path(tmp_path, "figure8").stat().st_mtime_ns != stamps["figure8"]
    for name in FAST:
        assert json.dumps(asdict(first.outcomes[name])) == json.dumps(asdict(again.outcomes[name]))
    assert read_outcome(tmp_path, "figure7", Context("quick", 1)) is None  # another seed is another outcome
    with pytest.raises(
        InputError, match="holds a reproduction of scale quick, seed 0, not of scale full, seed 0; choose another"
    ):
        reproduce(chosen(FAST), Context("full", 0), tmp_path)


def test_outcomes_survive_the_file(tmp_path: Path) -> None:
    for name, good in samples.GOOD.items():
        outcome = EXPERIMENTS[name].judge(good())
        stored = json.dumps(asdict(outcome))
        again = Outcome.from_dict(json.loads(stored))
        assert json.dumps(asdict(again)) == stored
        kinds = [type(panel) for figure in outcome.figures for panel in figure.panels]
        assert [type(panel) for figure in again.figures for panel in figure.panels] == kinds
        write_outcome(tmp_path, name, Context(), outcome)
        from_file = read_outcome(tmp_path, name, Context())
        assert from_file is not None
        assert json.dumps(asdict(from_file)) == stored


@pytest.mark.parametrize(
    "damage", [{"verdict": "maybe"}, {"figures": 3}, {"figures": [{"panels": [{"kind": "pie"}]}]}, {"tables": None}]
)
def test_a_damaged_outcome_is_none(tmp_path: Path, damage: dict[str, Any]) -> None:
    reproduce(chosen(["figure8"]), Context(), tmp_path)
    path = outcome_path(tmp_path, "figure8")
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(sealed(unsealed(stored) | {"outcome": stored["outcome"] | damage})))
    assert read_outcome(tmp_path, "figure8", Context()) is None
    path.write_text(json.dumps(sealed(unsealed(stored) | {"format": stored["format"] + 1})))
    assert read_outcome(tmp_path, "figure8", Context()) is None
    path.write_text(json.dumps(stored))
    assert read_outcome(tmp_path, "figure8", Context()) is not None


def stored_engine(asked: list[list[str]], fail_after: int | None = None) -> Any:
    """An engine that notes its items, works from the last to the first, and fails after some."""

    def engine(work: Any, common: Context, items: Sequence[Sequence[str]]) -> Iterator[tuple[int, Any]]:
        asked.append([name for group in items for name in group])
        for count, number in enumerate(reversed(range(len(items)))):
            if count == fail_after:
                raise EngineError("workers died")
            yield number, work(common, items[number])

    return engine


def test_the_longest_first_and_each_outcome_stored_as_it_comes(tmp_path: Path, made_up: list[str]) -> None:
    asked: list[list[str]] = []
    ids = ["theorem1", "figure7", "two-stage", "figure6"]  # 15, 1, 75 and 6 seconds
    with pytest.raises(EngineError):
        reproduce(chosen(ids), Context(), tmp_path, stored_engine(asked, fail_after=2))
    assert asked == [["two-stage", "theorem1", "figure6", "figure7"]]
    assert made_up == ["figure7", "figure6"]
    assert sorted(path.stem for path in (tmp_path / "outcomes").iterdir()) == ["figure6", "figure7"]
    about = read_about(tmp_path)
    assert about is not None
    assert about.status == "running"
    with pytest.raises(InputError, match="not finished"):
        read_reproduction(tmp_path)
    seen: list[str] = []
    steps: list[tuple[float, float | None, str]] = []

    def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        assert phase == "experiments"
        steps.append((done, total, note))

    reproduction = reproduce(
        chosen(ids), Context(), tmp_path, stored_engine(asked), progress, lambda name, *_: seen.append(name)
    )
    assert asked[1] == ["two-stage", "theorem1"]
    assert made_up == ["figure7", "figure6", "theorem1", "two-stage"]
    assert seen == ["figure6", "figure7", "theorem1", "two-stage"]  # the stored ones at once
    assert steps == [
        (0, 97, "0 of 4 done"),
        (6, 97, "1 of 4 done"),
        (7, 97, "2 of 4 done"),
        (22, 97, "3 of 4 done"),
        (97, 97, "4 of 4 done"),
    ]
    assert list(reproduction.outcomes) == ["figure6", "figure7", "theorem1", "two-stage"]  # in the paper's order


def test_results_hold_all_that_is_in_the_folder(tmp_path: Path, made_up: list[str]) -> None:
    reproduce(chosen(["theorem1"]), Context(), tmp_path)
    second = reproduce(chosen(["figure7"]), Context(), tmp_path)
    assert list(second.outcomes) == list(second.seconds) == ["figure7"]
    results = json.loads((tmp_path / "results.json").read_text())
    assert [entry["id"] for entry in results["results"]] == ["figure7", "theorem1"]
    whole = read(tmp_path)
    assert isinstance(whole, Reproduction)
    assert whole.as_dict() == results
    assert (results["scale"], results["seed"]) == ("quick", 0)
    assert list(results["results"][0]) == [
        *("id", "claim", "paper", "theory", "measured", "verdict", "reason", "rule", "numbers", "number", "sizes")
    ]
    assert made_up == ["theorem1", "figure7"]


def test_seconds_are_those_of_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_up: list[str]
) -> None:
    clock = iter([100.0, 112.3456])
    monkeypatch.setattr("topicscope.paper.reproduction.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    outcome, seconds = compute(Context("full", 4), "theorem1")
    write_outcome(tmp_path, "theorem1", Context("full", 4), outcome)
    assert unsealed(json.loads(outcome_path(tmp_path, "theorem1").read_text())) == {
        "format": FORMAT,
        "context": {"scale": "full", "seed": 4},
        "outcome": json.loads(json.dumps(asdict(samples.judged("theorem1")))),
    }
    assert seconds == 12.35
    assert made_up == ["theorem1"]
    assert (REPRODUCE.format, FORMAT) == (3, 4)


def test_outcomes_of_other_models_are_computed_again(
    tmp_path: Path, made_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "check", lambda _: None)  # these are names only
    mine = Context(models=("a",), corpus=("text",))
    reproduce(chosen(["table1", "figure7"]), mine, tmp_path)
    reproduce(chosen(["table1", "figure7"]), replace(mine, models=("b",)), tmp_path)
    assert made_up == ["table1", "figure7", "table1"]
    assert read_outcome(tmp_path, "table1", mine) is None
    assert read_outcome(tmp_path, "table1", mine, inputs=False) is not None
    assert EXPERIMENTS["table1"].key(mine) == {"scale": "quick", "seed": 0, "models": ["a"], "corpus": ["text"]}


@pytest.mark.parametrize(
    ("name", "models", "corpus", "skipped"),
    [
        ("figure3", (), ("text",), False),
        ("figure3", ("a",), (), False),
        ("table1", ("a",), (), True),
        ("table2", (), ("text",), True),
        ("table5", (), (), False),
        ("table1", (), (), False),
        ("table5", ("a",), ("text",), False),
        ("figure5", (), (), False),
    ],
)
def test_what_is_skipped_is_not_measured(
    made_up: list[str], name: str, models: tuple[str, ...], corpus: tuple[str, ...], skipped: bool
) -> None:
    outcome = EXPERIMENTS[name].run(Context("quick", 0, models, corpus))
    assert (outcome.verdict == "skipped") is skipped
    assert made_up == ([] if skipped else [name])
    if skipped:
        assert outcome.reason.startswith("--model and --corpus must be given together here, and only one is given; ")
        assert f"run: topicscope reproduce {name} --model bert-base-uncased --model albert-base-v2" in outcome.reason
        assert outcome.paper == EXPERIMENTS[name].paper != ""
        assert (outcome.figures, outcome.tables, outcome.numbers) == ([], [], {})


def reproduction() -> Reproduction:
    verdicts: dict[str, Verdict] = {
        "figure7": "reproduced",
        "figure8": "not reproduced",
        "table1": "skipped",
        "table4": "not reproduced",
    }
    outcomes = {
        name: Outcome(f"{name} paper", "theory", "measured", verdict, f"{name} reason", numbers={"x": float("nan")})
        for name, verdict in verdicts.items()
    }
    return Reproduction(Context("full", 7), outcomes, dict.fromkeys(outcomes, 1.5), Path("runs/x"))


def test_a_reproduction_sums_itself_up() -> None:
    found = reproduction()
    assert found.summary() == [
        "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured at scale full, "
        "seed 7: 1 reproduced, 2 not reproduced, 1 skipped.",
        "figure8: figure8 reason",
        "table1: table1 reason",
        "table4: table4 reason",
    ]
    assert repr(found) == "Reproduction(full, seed 7, 1 reproduced, 2 not reproduced, 1 skipped)"
    assert Reproduction(Context(), {}, {}, Path()).counts == "no experiments"
    assert found.regressions() == ["figure8"]
    lost = {name: experiment.lost_at for name, experiment in EXPERIMENTS.items() if experiment.lost_at}
    assert lost == {"table4": ("quick", "full"), "losses": ("full",), "adam-clocks": ("full",)}
    table = found.table()
    assert table.column_names == ["id", "claim", "paper", "theory", "measured", "verdict", "seconds"]
    assert table.to_pylist()[1] == {
        "id": "figure8",
        "claim": EXPERIMENTS["figure8"].claim,
        "paper": "figure8 paper",
        "theory": "theory",
        "measured": "measured",
        "verdict": "not reproduced",
        "seconds": 1.5,
    }

    sections = found.sections()
    assert [section.title for section in sections] == ["figure7", "figure8", "table1", "table4"]
    section = sections[1]
    assert section.command == "topicscope reproduce figure8 --scale full --seed 7 --out runs/x"
    assert section.verdict is not None
    assert (section.verdict.claim, section.verdict.rule) == (EXPERIMENTS["figure8"].claim, EXPERIMENTS["figure8"].rule)
    assert (section.verdict.paper, section.verdict.theory) == ("figure8 paper", "theory")
    assert (section.verdict.measured, section.verdict.verdict) == ("measured", "not reproduced")
    assert (section.verdict.reason, section.verdict.seconds) == ("figure8 reason", 1.5)


def test_figures_of_two_experiments_are_two_files() -> None:
    ratios = Figure("probe-ratios", "Ratios", "Ratios by model.", [])
    outcomes = {name: Outcome("", "", "", "reproduced", "", [ratios]) for name in ("table1", "table5")}
    outcomes["figure7"] = replace(outcomes["table1"], figures=[replace(ratios, name="figure7-path")])
    sections = Reproduction(Context(), outcomes, {}, Path("runs/x")).sections()
    names = [figure.name for section in sections for figure in section.figures]
    assert names == ["table1-probe-ratios", "table5-probe-ratios", "figure7-path"]


def test_numbers_that_are_none_become_null() -> None:
    numbers = {"a": [float("nan"), 1.5], "b": {"c": float("inf")}, "d": "x", "e": (1, float("-inf"), True)}
    assert finite(numbers) == {"a": [None, 1.5], "b": {"c": None}, "d": "x", "e": [1, None, True]}


def test_a_folder_with_a_damaged_config_is_refused(tmp_path: Path, made_up: list[str]) -> None:
    reproduce(chosen(["figure7"]), Context(), tmp_path)
    (tmp_path / "config.yaml").write_text("scale: huge\nseed: 0\n")
    with pytest.raises(InputError, match=r"config\.yaml is damaged: it is not what topicscope wrote"):
        read_reproduction(tmp_path)
    (tmp_path / "config.yaml").write_text("scale: quick\nseed: one\n")
    with pytest.raises(InputError, match="expected scale and seed"):
        reproduce(chosen(["figure7"]), Context(), tmp_path)


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
    shell.print_all(outcome_table(found))
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
