"""Runs under the eyes of several browsers."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.explorer.pretended import pretended_run
from tests.waiting import wait_until
from topicscope.explorer import runs
from topicscope.explorer.runs import LiveRoom, Runs
from topicscope.explorer.workspace import Workspace
from topicscope.ground import METRICS, folders
from topicscope.reading import read
from topicscope.training import RunConfig, train
from topicscope.training.result import TRAIN

CONFIG = RunConfig.of(
    topic_model={"topics": 3, "words_per_topic": 2},
    data={"documents": 40, "dev_documents": 20},
    batch_size=5,
    steps=300,
    floors=False,
    device="cpu",
)


@pytest.fixture
def room(tmp_path: Path) -> LiveRoom:
    return LiveRoom(Runs(Workspace(tmp_path)))


def test_browsers_that_look_at_once_read_each_line_once(room: LiveRoom, tmp_path: Path) -> None:
    train(CONFIG, tmp_path / "run")
    lines = (tmp_path / "run" / METRICS).read_bytes().splitlines(keepends=True)
    (place,) = room.workspace.places()
    for written in (100, 200, 301):
        (tmp_path / "run" / METRICS).write_bytes(b"".join(lines[:written]))
        with ThreadPoolExecutor(8) as browsers:
            news = list(browsers.map(lambda _: room.state(place.id, {}), range(8)))
        assert [one["step"] for one in news] == [written - 1] * 8
        assert len({one["curves"] for one in news}) == 1
        steps = room.watches[place.id].run.columns["step"]
        np.testing.assert_array_equal(steps, np.arange(written))


def test_more_runs_than_are_watched_at_once_under_many_eyes(
    room: LiveRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_WATCHED", 2)
    for number in range(4):
        train(CONFIG.changed({"steps": 20 + number}), tmp_path / f"run-{number}")
    places = room.workspace.places()
    with ThreadPoolExecutor(8) as browsers:
        news = list(browsers.map(lambda number: room.state(places[number % 4].id, {}), range(80)))
    assert [one["step"] for one in news] == [20 + int(places[number % 4].name[-1]) for number in range(80)]
    assert len(room.watches) == 2


def test_the_end_of_a_run_is_drawn_though_it_has_no_more_steps(room: LiveRoom, tmp_path: Path) -> None:
    """Floors and the last weights are written after the last line of metrics."""
    train(CONFIG.changed({"floors": True}), tmp_path / "whole")
    whole = folders.read_results(tmp_path / "whole")
    with folders.open_folder(tmp_path / "run", TRAIN, CONFIG.as_dict()) as home:
        (home.path / METRICS).write_bytes((tmp_path / "whole" / METRICS).read_bytes())
        running = next(place for place in room.workspace.places() if place.name == "run")
        assert "Bayes-optimal" not in room.state(running.id, {})["curves"]
        home.finish(whole)
    done = room.state(running.id, {})
    assert (done["state"], done["step"]) == ("done", 300)
    assert "Bayes-optimal" in done["curves"]


def test_another_run_in_the_same_folder_is_read_anew(room: LiveRoom, tmp_path: Path) -> None:
    for steps in (20, 30):
        train(CONFIG.changed({"steps": steps}), tmp_path / "run", force=True)
        (place,) = room.workspace.places()
        news = room.state(place.id, {})
        assert (news["step"], news["total"]) == (steps, steps)


def test_what_is_kept_has_the_floors_that_are_shown(room: LiveRoom, tmp_path: Path) -> None:
    config = CONFIG.changed({"floors": True})
    with pretended_run(tmp_path / "run", config):
        (place,) = room.workspace.places()
        shown = room.state(place.id, {})
        assert wait_until(lambda: "Bayes-optimal" in shown["curves"] or shown.update(room.state(place.id, {})))
        assert "Bayes-optimal" in room.kept(place).page()


def test_one_stream_has_the_news_of_all_runs_and_ends_with_the_last(room: LiveRoom, tmp_path: Path) -> None:
    for name in ("one", "two"):
        train(CONFIG.changed({"steps": 20}), tmp_path / name)
    ids = [place.id for place in room.workspace.places()]

    async def all_events(identities: list[str]) -> list[dict[str, object]]:
        return [json.loads(text.removeprefix("data: ")) async for text in room.events(identities)]

    seen = asyncio.run(all_events([*ids, "no such run"]))
    assert [(one["id"], one["state"]) for one in seen] == [(ids[0], "done"), (ids[1], "done"), ("no such run", "gone")]
    assert room.streams == 0
    room.streams = runs.MOST_STREAMS
    assert [(one["id"], one["state"]) for one in asyncio.run(all_events(ids))] == [(one, "refused") for one in ids]


def test_the_end_of_a_run_is_news_though_no_line_is(room: LiveRoom, tmp_path: Path) -> None:
    train(CONFIG, tmp_path / "run")
    about = tmp_path / "run" / folders.ABOUT
    ended = about.read_text()
    about.write_text(ended.replace('"done"', '"running"'))
    (place,) = room.workspace.places()
    assert not room.state(place.id, {})["sentence"].startswith("Over all")
    about.write_text(ended)
    news = room.state(place.id, {})
    assert (news["state"], news["step"]) == ("done", 300)
    assert news["sentence"] == f"Over all 300 steps. {read(tmp_path / 'run').course.sentence}"
