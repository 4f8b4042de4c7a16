"""The windows of a probe are cut as they are sent: the driver holds as many of a long text as of a short one."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.ground.test_engines import FakeRay
from tests.language.samples import THETA, model_folder, texts
from topicscope.ground import engines, serial
from topicscope.ground.engines import Local, tasks
from topicscope.language import (
    Measurement,
    attention as attention_module,
    fit_topics,
    load_model,
    probe_model,
    probing,
    states,
    whole_words,
)
from topicscope.language.vocabulary import windows

MEASUREMENT = Measurement(thresholds=[THETA], bootstrap=5, shuffles=10)
CHUNK, WORKERS = 4, 2


class LiveWindows:
    """Cuts windows as a probe does, and counts those that somebody still holds."""

    def __init__(self) -> None:
        self.alive, self.most, self.cut = 0, 0, 0

    def __call__(self, *arguments: Any) -> Iterator[Any]:
        for window in windows(*arguments):
            self.alive += 1
            self.cut += 1
            self.most = max(self.most, self.alive)
            weakref.finalize(window, self.gone)
            yield window

    def gone(self) -> None:
        self.alive -= 1


class InlinePool:
    """A pool whose worker is this process; it holds nothing that is done."""

    def submit(self, work: Any, common: Any, item: Any) -> Future[Any]:
        done = Future[Any]()
        done.set_result(work(common, item))
        return done


class InlineRay(FakeRay):
    """Ray tasks in this process, done when they are fetched; the oldest comes first."""

    def remote(self, **options: Any) -> Any:
        return lambda work: SimpleNamespace(remote=partial(partial, work))

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Any) -> Any:
        return reference()


@contextmanager
def inline_pool(_workers: int) -> Iterator[InlinePool]:
    yield InlinePool()


@pytest.mark.parametrize("name", ["serial", "local", "ray"])
def test_the_driver_holds_no_more_windows_of_ten_times_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # a worker sets it
    monkeypatch.setattr(engines, "worker_pool", inline_pool)
    monkeypatch.setattr(states, "READ_FIRST", CHUNK)  # windows that are read before the others
    loaded = load_model(model_folder(tmp_path))
    topics = fit_topics(texts(), whole_words(loaded.tokenizer), 4, iterations=5)
    cases: dict[str, Any] = {"serial": serial, "local": Local(WORKERS), "ray": partial(tasks, InlineRay(), 0)}
    peaks, results = [], []
    for count in (40, 400):
        live = LiveWindows()
        with mock.patch.object(attention_module, "CHUNK", CHUNK), mock.patch.object(probing, "windows", live):
            results.append(probe_model(loaded, texts(count, 1), topics, MEASUREMENT, engine=cases[name]))
        assert live.cut > 2 * count  # of the trained and of the random model, and one to see that there are words
        assert live.alive == 0
        peaks.append(live.most)
    # the chunks in flight, the one that is being cut, and the one that was sent last
    assert peaks[1] == peaks[0] <= CHUNK * (2 if name == "serial" else 2 * WORKERS + 2)
    with mock.patch.object(attention_module, "CHUNK", CHUNK):
        plain = probe_model(loaded, texts(400, 1), topics, MEASUREMENT)
    assert plain.as_dict() == results[1].as_dict()
