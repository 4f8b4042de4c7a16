"""Runs that the explorer starts, pauses, resumes and shows."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.serving import LONG, SMALL, Served, begin, events, explorer, state
from tests.waiting import wait_until
from topicscope.explorer.app import PRESETS, RUN_SETTINGS
from topicscope.explorer.runs import MOST_AT_ONCE, WITHOUT_A_MESSAGE, Runs, config_of, settings_of
from topicscope.explorer.theory_room import CONTROLS, Question, question
from topicscope.explorer.workspace import Workspace, identity
from topicscope.ground import METRICS, InputError, Kind, flat, folders
from topicscope.reading import read
from topicscope.training import RunConfig, train


def test_settings_are_those_of_a_run() -> None:
    config = config_of({**SMALL, "steps": "120", "optimizer.lr": "1e-3", "seed": ""})
    assert (config.topic_model.topics, config.optimizer.lr, config.seed) == (3, 0.001, 0)
    assert config.snapshots == list(range(0, 121, 2))
    assert config_of({"snapshots": "none"}).snapshots == "none"


def test_more_settings_are_lines_of_name_and_value() -> None:
    given = settings_of(" seed = 3 \n\ndocuments.kind=fixed\nx=a=b")
    assert given == {"seed": "3", "documents.kind": "fixed", "x": "a=b"}
    for line in ("steps", "steps=", "=3", "="):
        with pytest.raises(InputError, match=f"'{line}' is no NAME=VALUE; expected a line such as steps=500"):
            settings_of(f"seed=1\n{line}")


@pytest.mark.parametrize("name", ["data.train_file", "topic_model.matrix", "documents.proportions"])
def test_no_file_is_named_by_a_request(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("0.5,0.5\n0.5,0.5\n")
    more = {"documents.kind": "given"} if name == "documents.proportions" else {}
    with pytest.raises(InputError):
        config_of({name: str(path), **more})


def test_every_preset_is_a_config() -> None:
    for name, (what, settings) in PRESETS.items():
        assert RunConfig.of(settings), name
        assert what.endswith(".")


def test_every_setting_of_the_forms_exists() -> None:
    known = set(flat(RunConfig().as_dict())) | {"documents.topics_per_document"}
    assert {name for name, _, _ in RUN_SETTINGS} <= known
    assert {control.name for control in CONTROLS} == set(Question().as_dict())


def test_a_question_becomes_a_run() -> None:
    asked = question({"topics": "6", "length": "infinite", "optimizer": "adam", "lr": "0.1", "overlap": "0.2"})
    config = RunConfig.of(asked.run)
    assert (config.topic_model.topics, config.topic_model.overlap, config.documents.length) == (6, 0.2, "infinite")
    assert (config.optimizer.name, config.optimizer.lr, config.model.prediction_bias) == ("adam", 0.1, "none")


pytestmark = pytest.mark.process


@pytest.mark.usefixtures("no_run_left")
def test_a_run_is_a_real_run_and_its_stream_ends_with_it(served: Served, tmp_path: Path) -> None:
    identity = begin(served, {**SMALL, "steps": "300"}, "<b>a run</b>")
    seen = list(events(served, identity))
    assert seen[-1]["state"] == "done"
    assert (seen[-1]["step"], seen[-1]["total"]) == (300, 300)
    assert any("curves" in news for news in seen)
    folder = served.workspace / "b-a-run-b-1"
    run = read(folder)
    alone = train(config_of({**SMALL, "steps": "300"}), tmp_path / "alone")
    assert run.results == alone.results
    status, content, _ = served.ask(f"/api/live/{identity}/step/100")
    assert status == 200
    assert "at step 100" in content.decode()
    assert "no weights are kept of step 101" in served.refusal(f"/api/live/{identity}/step/101")
    assert served.ask("/api/keep/live", {"id": identity})[0] == 200


def test_pause_resume_and_a_new_server(tmp_path: Path) -> None:
    space = tmp_path / "runs"
    with explorer(space) as first:
        identity = begin(first, LONG)
        assert wait_until(lambda: state(first, identity) == "running")
        refused = first.refusal(f"/api/runs/{identity}/resume", method="POST", body={})
        assert "cannot be resumed" in refused
        first.process.kill()  # the run goes on
        first.process.wait()
    with explorer(space) as second:
        assert state(second, identity) == "running"
        steps = [news["step"] for news in events(second, identity, most=4)]
        assert steps[-1] > steps[0]
        second.json(f"/api/runs/{identity}/pause", method="POST", body={})
        assert wait_until(lambda: state(second, identity) == "paused")
        news = next(events(second, identity))
        assert news["state"] == "paused"  # the same word in the list and beside the curves
        assert "why" not in news
        paused = news["step"]
        second.json(f"/api/runs/{identity}/resume", method="POST", body={})
        assert wait_until(lambda: state(second, identity) == "running")
        assert wait_until(lambda: next(events(second, identity))["step"] > paused)
        second.json(f"/api/runs/{identity}/pause", method="POST", body={})
        assert wait_until(lambda: state(second, identity) == "paused")


@pytest.mark.usefixtures("no_run_left")
def test_bad_settings_start_nothing(served: Served) -> None:
    before = set(served.workspace.rglob("*"))
    for body, why in (
        ({"settings": {"steps": "-3"}}, "steps = -3"),
        ({"settings": {**SMALL, "steps": "300"}, "more": "seed=3\n\nsteps\n"}, "'steps' is no NAME=VALUE"),
    ):
        assert why in served.refusal("/api/runs", method="POST", body=body)
    assert "expected settings" in served.refusal("/api/runs", method="POST", body={"settings": []})
    assert set(served.workspace.rglob("*")) == before


def test_what_the_system_bars_is_said_in_one_line(served: Served) -> None:
    served.workspace.joinpath(".explorer", "x").mkdir(parents=True, exist_ok=True)
    served.workspace.joinpath(".explorer", "barred-1.yaml").mkdir()
    status, content, _ = served.ask("/api/runs", method="POST", body={"settings": SMALL, "name": "barred"})
    assert status == 500
    assert b"Is a directory" in content
    assert b"fault of topicscope" not in content


@pytest.mark.usefixtures("no_run_left")
def test_what_does_not_fit_says_so(served: Served) -> None:
    huge = {"topic_model.topics": "60000", "topic_model.words_per_topic": "1000", "steps": "10"}
    identity = begin(served, huge)
    seen = list(events(served, identity))
    assert seen[-1]["state"] == "gone"
    assert "memory" in seen[-1]["why"]
    assert "make it smaller" in seen[-1]["why"]
    assert "--yes" not in seen[-1]["why"]  # a page has no such choice


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that do nothing, in place of runs."""
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def stand_in(_: list[str], **how: Any) -> subprocess.Popen[bytes]:
        started.append(real(["sleep", "600"], **how))
        return started[-1]

    monkeypatch.setattr("topicscope.explorer.runs.subprocess.Popen", stand_in)
    yield started
    for process in started:
        process.kill()
        process.wait()


KIND = Kind("train", 4, (), (), resumes="asked")


def test_runs_are_bounded(tmp_path: Path, stand_ins: list[subprocess.Popen[bytes]]) -> None:
    """Those of this server, and those that others started in the workspace."""
    runs = Runs(Workspace(tmp_path / "runs"))
    with folders.open_folder(tmp_path / "runs" / "another", KIND, {"seed": 0}):
        started = [runs.start(LONG) for _ in range(MOST_AT_ONCE - 1)]
        assert len(set(started)) == MOST_AT_ONCE - 1
        with pytest.raises(InputError, match=f"{MOST_AT_ONCE} runs are active"):
            runs.start(LONG)
    assert runs.start(LONG) not in started  # the other one has ended
    with pytest.raises(InputError, match=f"{MOST_AT_ONCE} runs are active"):
        runs.start(LONG)
    stand_ins[0].kill()
    stand_ins[0].wait()
    runs.start(LONG)


def test_two_browsers_that_resume_a_run_start_one_process(
    tmp_path: Path, stand_ins: list[subprocess.Popen[bytes]]
) -> None:
    """It takes seconds until the process holds the folder; until then the run still counts as interrupted."""
    space = Workspace(tmp_path / "runs")
    runs, folder = Runs(space), tmp_path / "runs" / "one"
    with folders.open_folder(folder, KIND, {"seed": 0}):
        pass
    place = space.find(identity(folder))
    runs.resume(place)
    assert space.find(place.id).state == "interrupted"
    with pytest.raises(InputError, match="something is being run in one; wait until it is done"):
        runs.resume(place)
    assert len(stand_ins) == 1


def test_last_words_are_those_of_this_folder_and_of_its_last_process(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "runs")
    runs = Runs(space)
    paths = [tmp_path / "runs" / above / "one" for above in ("a", "b")]
    for path in paths:
        with folders.open_folder(path, KIND, {"seed": 0}):
            (path / METRICS).write_text("{}\n")
    runs.own.mkdir(parents=True)
    runs.log_of(paths[0]).write_text("topicscope: training 10%: loss 1\ntopicscope: no room left; make room\n")
    first, second = (space.find(identity(path)) for path in paths)
    assert runs.why_interrupted(first) == "no room left; make room"
    assert runs.why_interrupted(second) == WITHOUT_A_MESSAGE
    later = runs.log_of(paths[0]).stat().st_mtime + 10
    os.utime(paths[0] / METRICS, (later, later))  # gone on by a command, and killed
    assert runs.why_interrupted(first) == WITHOUT_A_MESSAGE


def test_read_only_starts_and_changes_nothing(tmp_path: Path) -> None:
    with explorer(tmp_path / "runs", "--read-only") as served:
        for path in ("/api/runs", "/api/runs/x/pause"):
            assert served.ask(path, method="POST", body={"settings": {}})[0] == 400
        assert "read-only" in served.refusal("/api/runs", method="POST", body={"settings": {}})
        assert b"read-only" in served.ask("/live")[1]
        assert served.json("/api/folders") == []
