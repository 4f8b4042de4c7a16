"""Engines: every result once, whatever is lost on the way; the work's own errors as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from multiprocessing.reduction import ForkingPickler
from typing import Any, get_args

import pytest

from topicscope.ground import engines
from topicscope.ground.engines import NAMES, RETRIES, Local, Name, check_engine, in_order, open_engine, serial
from topicscope.ground.errors import EngineError, InputError
from topicscope.ground.ray_engine import Tasks


def double(common: int, item: int) -> int:
    if item < 0:
        raise ZeroDivisionError("the work's own")
    return common + 2 * item


class FakeRay:
    """As much of Ray as the engine calls; `lost(item, times)` says whether a task that ran so often is lost."""

    cloudpickle = ForkingPickler

    class exceptions:  # noqa: N801
        RayError = type("RayError", (Exception,), {})
        RayTaskError = type("RayTaskError", (RayError,), {})

    def __init__(self, lost: Callable[[int, int], bool], inside: bool) -> None:
        self.lost, self.inside, self.times, self.most, self.alive = lost, inside, dict[int, int](), 0, 0

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **_: Any) -> Any:
        def wrap(work: Any) -> Any:
            def start(*arguments: Any) -> Any:
                self.alive += 1
                self.most = max(self.most, self.alive)
                return (work, arguments, object())

            return type("Remote", (), {"remote": staticmethod(start)})

        return wrap

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return references[-num_returns:], references[:-num_returns]  # the last comes first

    def get(self, reference: Any) -> Any:
        work, (common, item), _ = reference
        self.alive -= 1
        self.times[item] = self.times.get(item, 0) + 1
        trouble: Any = self.exceptions.RayError("the owner has died")
        if self.lost(item, self.times[item] - 1):
            if not self.inside:
                raise trouble
            told: Any = self.exceptions.RayTaskError("met in a task")
            told.cause = trouble
            raise told
        try:
            return work(common, item)
        except ZeroDivisionError as error:
            told = self.exceptions.RayTaskError("raised in a task")
            told.cause = error
            raise told from None

    def cancel(self, reference: Any, force: bool) -> None:
        assert force
        self.alive -= 1


@pytest.mark.parametrize("inside", [True, False])
def test_what_ray_loses_is_run_again(inside: bool) -> None:
    ray = FakeRay(lambda item, times: item % 3 == 0 and times < RETRIES, inside)
    assert sorted(Tasks(ray, 0)(double, 1, range(10))) == [(i, 1 + 2 * i) for i in range(10)]
    assert ray.most <= 4  # two a core
    hopeless = FakeRay(lambda item, _times: item == 5, inside)
    with pytest.raises(EngineError, match="after 3 more tries"):
        list(Tasks(hopeless, 0)(double, 1, range(10)))
    assert hopeless.times[5] == RETRIES + 1
    assert hopeless.alive == 0  # nothing is left running


def test_errors_of_the_work_are_raised_as_they_are() -> None:
    ray = FakeRay(lambda _item, _times: False, inside=True)
    with pytest.raises(ZeroDivisionError, match="the work's own"):
        list(Tasks(ray, 0)(double, 1, [1, -1]))
    with pytest.raises(InputError, match="has no GPU"):
        list(Tasks(ray, 1)(double, 1, [1]))


def test_an_item_that_a_broken_pool_did_not_take_is_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[int] = []

    class Pool:
        def submit(self, work: Callable[[int, int], int], common: int, item: int) -> Future[int]:
            if item == 2 and not refused:
                refused.append(item)
                raise BrokenProcessPool("a worker died while items were handed out")
            done = Future[int]()
            done.set_result(work(common, item))
            return done

    monkeypatch.setattr(engines, "worker_pool", lambda _: nullcontext(Pool()))
    with open_engine("local", workers=4) as engine:
        assert sorted(engine(double, 1, range(5))) == [(i, 1 + 2 * i) for i in range(5)]
    assert refused == [2]


def test_results_come_in_the_order_of_their_items() -> None:
    def shuffled() -> Iterator[tuple[int, str]]:
        yield from [(2, "c"), (0, "a"), (3, "d"), (1, "b")]

    assert list(in_order(shuffled())) == ["a", "b", "c", "d"]
    assert list(serial(double, 1, [3, 4])) == [(0, 7), (1, 9)]
    with pytest.raises(InputError, match="expected serial, local, ray"), open_engine("spark"):  # type: ignore[arg-type]
        pass


def test_a_name_opens_its_own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_args(Name) == NAMES == ("serial", "local", "ray")
    with open_engine("serial") as engine:
        assert engine is serial
    with open_engine("local", workers=3) as engine:
        assert isinstance(engine, Local)
        assert (engine.workers, engine.pool) == (3, None)  # nothing is started before there is work
    ray = pytest.importorskip("ray", reason="needs ray")
    opened: list[tuple[Any, ...]] = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr("topicscope.ground.ray_engine.connect", lambda *given: opened.append(given[1:]))
    monkeypatch.setattr(ray, "shutdown", lambda: opened.append(("closed",)))
    with open_engine("ray", workers=2, address="auto", gpus=1) as engine:
        assert isinstance(engine, Tasks)
        assert engine.gpus == 1
    assert opened == [("auto", 2), ("closed",)]


def test_what_an_engine_cannot_take_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="engine 'spark'; expected serial, local, ray"):
        check_engine("spark")
    with pytest.raises(InputError, match="workers 2: the engine serial has none"):
        check_engine("serial", workers=2)
    with pytest.raises(InputError, match="address auto is for the engine ray, but the engine is local"):
        check_engine("local", address="auto")
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="the engine ray needs ray, which is not installed"):
        check_engine("ray", workers=2, address="auto")
