"""Runs under the eyes of several browsers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from topicscope.explorer.live_room import LiveRoom
from topicscope.explorer.runs import Runs
from topicscope.explorer.workspace import Workspace
from topicscope.ground import METRICS, folders
from topicscope.reading import read
from topicscope.training import RunConfig, train

CONFIG = RunConfig.of(
    topic_model={"topics": 3, "words_per_topic": 2},
    data={"documents": 40, "dev_documents": 20},
    batch_size=5,
    steps=300,
    floors=False,
    device="cpu",
)


def test_browsers_that_look_at_once_read_each_line_once(tmp_path: Path) -> None:
    train(CONFIG, tmp_path / "run")
    lines = (tmp_path / "run" / METRICS).read_bytes().splitlines(keepends=True)
    room = LiveRoom(Runs(Workspace(tmp_path)))
    (place,) = room.workspace.places()
    for written in (100, 200, 301):
        (tmp_path / "run" / METRICS).write_bytes(b"".join(lines[:written]))
        with ThreadPoolExecutor(8) as browsers:
            news = list(browsers.map(lambda _: room.state(place.id, {}), range(8)))
        assert [one["step"] for one in news] == [written - 1] * 8
        assert len({one["curves"] for one in news}) == 1
        steps = room.watches[place.id].run.columns["step"]
        np.testing.assert_array_equal(steps, np.arange(written))


def test_the_end_of_a_run_is_news_though_no_line_is(tmp_path: Path) -> None:
    train(CONFIG, tmp_path / "run")
    about = tmp_path / "run" / folders.ABOUT
    ended = about.read_text()
    about.write_text(ended.replace('"done"', '"running"'))
    room = LiveRoom(Runs(Workspace(tmp_path)))
    (place,) = room.workspace.places()
    assert not room.state(place.id, {})["sentence"].startswith("Over all")
    about.write_text(ended)
    news = room.state(place.id, {})
    assert (news["state"], news["step"]) == ("done", 300)
    assert news["sentence"] == f"Over all 300 steps. {read(tmp_path / 'run').course.sentence}"
