"""Runs that the explorer starts, pauses, resumes and shows."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.serving import Served, explorer
from tests.waiting import wait_until
from topicscope.explorer.presets import PRESETS
from topicscope.explorer.rooms import CONTROLS, RUN_SETTINGS
from topicscope.explorer.runs import MOST_AT_ONCE, config_of
from topicscope.explorer.theory_room import Question, question
from topicscope.ground import InputError, flat
from topicscope.reading import read
from topicscope.training import RunConfig, train

SMALL = {
    "topic_model.topics": "3",
    "topic_model.words_per_topic": "2",
    "data.documents": "40",
    "data.dev_documents": "20",
    "batch_size": "5",
    "floors": "false",
    "device": "cpu",
}
LONG = {**SMALL, "steps": "1000000", "snapshots": "[0]", "evaluate_every": "null"}


def test_settings_are_those_of_a_run() -> None:
    config = config_of({**SMALL, "steps": "120", "optimizer.lr": "1e-3", "seed": ""})
    assert (config.topic_model.topics, config.optimizer.lr, config.seed) == (3, 0.001, 0)
    assert config.snapshots == list(range(0, 121, 2))
    assert config_of({"snapshots": "none"}).snapshots == "none"


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


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with explorer(tmp_path / "runs") as one:
        yield one
        for place in one.json("/api/folders"):
            if place["state"] == "running":
                one.ask(f"/api/runs/{place['id']}/pause", method="POST", body={})
        wait_until(lambda: all(place["state"] != "running" for place in one.json("/api/folders")))


def begin(served: Served, settings: dict[str, Any], name: str = "a run") -> str:
    started = served.json("/api/runs", method="POST", body={"settings": settings, "name": name})
    return str(started["id"])


def state(served: Served, identity: str) -> str:
    return next((str(one["state"]) for one in served.json("/api/folders") if one["id"] == identity), "none")


def events(served: Served, identity: str, most: int = 200) -> Iterator[dict[str, Any]]:
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
        connection.request(
            "GET",
            f"/api/live/{identity}/events",
            headers={"Host": f"127.0.0.1:{served.port}", "Authorization": f"Bearer {served.token}"},
        )
        response = connection.getresponse()
        assert response.getheader("content-type", "").startswith("text/event-stream")
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
                most -= 1
                if most == 0:
                    return


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
    assert served.ask(f"/api/view/folder/{identity}")[0] == 200


def test_pause_resume_and_a_new_server(tmp_path: Path) -> None:
    space = tmp_path / "runs"
    with explorer(space) as first:
        identity = begin(first, LONG)
        assert wait_until(lambda: state(first, identity) == "running")
        assert "cannot be resumed" in first.refusal(f"/api/runs/{identity}/resume", method="POST", body={})
        first.process.kill()  # the run goes on
        first.process.wait()
    with explorer(space) as second:
        assert state(second, identity) == "running"
        steps = [news["step"] for news in events(second, identity, most=4)]
        assert steps[-1] > steps[0]
        second.json(f"/api/runs/{identity}/pause", method="POST", body={})
        assert wait_until(lambda: state(second, identity) == "interrupted")
        paused = next(events(second, identity))["step"]
        second.json(f"/api/runs/{identity}/resume", method="POST", body={})
        assert wait_until(lambda: state(second, identity) == "running")
        assert wait_until(lambda: next(events(second, identity))["step"] > paused)
        second.json(f"/api/runs/{identity}/pause", method="POST", body={})
        assert wait_until(lambda: state(second, identity) == "interrupted")


def test_bad_settings_start_nothing(served: Served) -> None:
    why = served.refusal("/api/runs", method="POST", body={"settings": {"steps": "-3"}})
    assert "steps = -3" in why
    assert "expected settings" in served.refusal("/api/runs", method="POST", body={"settings": []})
    assert served.json("/api/folders") == []
    assert (
        not any(path.name != ".explorer" for path in served.workspace.iterdir()) if served.workspace.exists() else True
    )


def test_what_does_not_fit_says_so(served: Served) -> None:
    huge = {"topic_model.topics": "60000", "topic_model.words_per_topic": "1000", "steps": "10"}
    identity = begin(served, huge)
    seen = list(events(served, identity))
    assert seen[-1]["state"] == "gone"
    assert "memory" in seen[-1]["why"]


def test_runs_are_bounded(served: Served) -> None:
    started = [begin(served, LONG) for _ in range(MOST_AT_ONCE)]
    assert len(set(started)) == MOST_AT_ONCE
    why = served.refusal("/api/runs", method="POST", body={"settings": LONG})
    assert f"{MOST_AT_ONCE} runs are going on" in why
    assert wait_until(lambda: all(state(served, one) == "running" for one in started))


def test_read_only_starts_and_changes_nothing(tmp_path: Path) -> None:
    with explorer(tmp_path / "runs", "--read-only") as served:
        for path in ("/api/runs", "/api/runs/x/pause"):
            assert served.ask(path, method="POST", body={"settings": {}})[0] == 400
        assert "read-only" in served.refusal("/api/runs", method="POST", body={"settings": {}})
        assert b"read-only" in served.ask("/live")[1]
        assert served.json("/api/folders") == []
