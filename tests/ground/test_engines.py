"""Engines: every result once, whatever is lost on the way; the work's own errors as they are."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from tests.refusals import refused
from topicscope.ground import engines, machine
from topicscope.ground.engines import NAMES, RETRIES, Local, Name, check_engine, in_order, open_engine, serial, tasks
from topicscope.ground.errors import EngineError, InputError


def double(common: int, item: int) -> int:
    if item < 0:
        raise ZeroDivisionError("the work's own")
    return common + 2 * item


def stopped(common: int, item: int) -> int:
    raise KeyboardInterrupt


class FakeRay:
    """As much of Ray as the engine calls; `lost(item, times)` says whether a task that ran so often is lost."""

    cloudpickle = ForkingPickler

    class exceptions:  # noqa: N801
        RayError = type("RayError", (Exception,), {})
        RayTaskError = type("RayTaskError", (RayError,), {})

    def __init__(
        self,
        lost: Callable[[int, int], bool] = lambda _item, _times: False,
        inside: bool = True,
        resources: dict[str, float] | None = None,
    ) -> None:
        self.lost, self.inside, self.times, self.most, self.alive = lost, inside, dict[int, int](), 0, 0
        self.resources = {"CPU": 2.0} if resources is None else resources
        self.options: dict[str, Any] = {}
        self.stored: list[Any] = []
        self.says = "the owner has died"

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def put(self, value: Any) -> Any:
        self.stored.append(value)
        return value

    def remote(self, **options: Any) -> Any:
        self.options = options

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
        trouble: Any = self.exceptions.RayError(self.says)
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
    assert sorted(tasks(ray, 0, double, 1, range(10))) == [(i, 1 + 2 * i) for i in range(10)]
    assert ray.most == 4  # two a core
    hopeless = FakeRay(lambda item, _times: item == 5, inside)
    with pytest.raises(EngineError, match="after 3 retries"):
        list(tasks(hopeless, 0, double, 1, range(10)))
    assert hopeless.times[5] == RETRIES + 1
    assert hopeless.alive == 0  # nothing is left running


def test_errors_of_the_work_are_raised_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError, match="the work's own"):
        list(tasks(FakeRay(), 0, double, 1, [1, -1]))
    with open_engine("serial") as engine, pytest.raises(ZeroDivisionError, match="the work's own"):
        list(engine(double, 1, [1, -1]))


def test_a_ray_task_has_a_core_and_the_gpus_it_needs() -> None:
    refused("has no GPU", list, tasks(FakeRay(), 1, double, 1, [1]))
    ray = FakeRay(resources={"CPU": 2.0, "GPU": 1.0})
    assert list(tasks(ray, 1, double, 1, [1])) == [(0, 3)]
    assert ray.options == {"num_cpus": 1, "num_gpus": 1, "max_retries": RETRIES}


@pytest.mark.parametrize(("resources", "most"), [({}, 2), ({"CPU": 0.5}, 2), ({"CPU": 1.0}, 2), ({"CPU": 3.0}, 6)])
def test_ray_has_two_tasks_per_core_and_never_none(resources: dict[str, float], most: int) -> None:
    ray = FakeRay(resources=resources)
    assert sorted(tasks(ray, 0, double, 0, range(9))) == [(i, 2 * i) for i in range(9)]
    assert ray.most == most


def test_what_tasks_have_in_common_is_stored_once_where_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(ForkingPickler.dumps(7))
    for limit, stored in ((size + 1, []), (size, [7])):
        monkeypatch.setattr(engines, "RAY_INLINE", limit)
        ray = FakeRay()
        assert sorted(tasks(ray, 0, double, 7, [1, 2, 3])) == [(0, 9), (1, 11), (2, 13)]
        assert ray.stored == stored


def test_what_ray_says_of_a_task_it_gives_up_is_one_short_line() -> None:
    ray = FakeRay(lambda _item, _times: True)
    ray.says = "lost\n " * 100
    with pytest.raises(EngineError) as found:
        list(tasks(ray, 0, double, 1, [1]))
    assert str(found.value) == f"Ray gave up a task after 3 retries (RayError: {('lost ' * 40).strip()} )"


class FakePools:
    """Pools of processes in their places: `breaks(item, times)` says whether the item's worker dies.

    `refuses` is an item that a pool which has just broken does not take, once.
    """

    def __init__(self, breaks: Callable[[int, int], bool] = lambda _item, _times: False, refuses: int = -1) -> None:
        self.breaks, self.refuses, self.taken, self.opened, self.closed = breaks, refuses, list[int](), 0, 0
        self.errors: list[BaseException] = []

    @contextmanager
    def __call__(self, workers: int) -> Iterator[FakePools]:
        self.opened += 1
        try:
            yield self
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            self.closed += 1

    def submit(self, work: Callable[[int, int], int], common: int, item: int) -> Future[int]:
        done = Future[int]()
        if item == self.refuses:
            self.refuses = -1
            raise BrokenProcessPool("a worker died while items were handed out")
        if self.breaks(item, self.taken.count(item)):
            done.set_exception(BrokenProcessPool("a worker died"))
        else:
            done.set_result(work(common, item))
        self.taken.append(item)
        return done


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> FakePools:
    found = FakePools()
    monkeypatch.setattr(engines, "worker_pool", found)
    return found


def test_an_item_that_a_broken_pool_did_not_take_is_run_all_the_same(pools: FakePools) -> None:
    pools.refuses = 2
    with open_engine("local", workers=4) as engine:
        assert sorted(engine(double, 1, range(5))) == [(i, 1 + 2 * i) for i in range(5)]
    assert pools.refuses == -1
    assert pools.taken == [0, 1, 0, 1, 2, 3, 4]  # what was running goes first, in its order
    assert (pools.opened, pools.closed) == (2, 2)


def test_ctrl_c_reaches_the_pool_which_ends_its_workers(pools: FakePools) -> None:
    """Without it a command would wait for what is running, and lose it."""
    with open_engine("local", workers=1) as engine:
        assert list(engine(double, 1, [3])) == [(0, 7)]
    assert (pools.errors, pools.closed) == ([], 1)
    with pytest.raises(KeyboardInterrupt), open_engine("local", workers=1) as engine:
        list(engine(stopped, 1, range(9)))
    assert ([type(error) for error in pools.errors], pools.closed) == ([KeyboardInterrupt], 2)


def test_each_worker_has_one_item_running_and_one_waiting(pools: FakePools) -> None:
    with open_engine("local", workers=2) as engine:
        results = engine(double, 1, range(9))
        assert pools.opened == 0  # nothing is started before somebody asks
        found = [next(results)]
        assert pools.taken == [0, 1, 2, 3]
        found += results
        assert sorted(found) == [(i, 1 + 2 * i) for i in range(9)]
        assert list(engine(double, 1, [])) == []
        assert list(engine(double, 1, [7])) == [(0, 15)]
        assert (pools.opened, pools.closed) == (1, 0)  # one pool for all
    assert pools.closed == 1


def test_an_item_is_tried_again_three_times_after_its_worker_has_died(pools: FakePools) -> None:
    pools.breaks = lambda item, times: item == 1 and times < 3
    with open_engine("local", workers=1) as engine:
        assert sorted(engine(double, 1, range(4))) == [(i, 1 + 2 * i) for i in range(4)]
    assert pools.taken.count(1) == 4
    pools.breaks = lambda item, _times: item == 1
    with open_engine("local", workers=1) as engine, pytest.raises(EngineError, match="died 4 times on the same task"):
        list(engine(double, 1, range(4)))
    assert pools.opened == pools.closed


def test_items_are_taken_from_a_stream_as_workers_are_free(pools: FakePools) -> None:
    """Two per worker, and one that is looked at; what a dead worker had is repeated though the stream has gone on."""
    pools.breaks = lambda item, times: item == 5 and times < 2
    ray = FakeRay(lambda item, times: item == 5 and times < 2)
    local = Local(2)
    for engine, ahead in ((serial, 1), (local, 5), (partial(tasks, ray, 0), 5)):
        taken = 0

        def stream() -> Iterator[int]:
            nonlocal taken
            for item in range(50):
                taken += 1
                yield item

        done = []
        for number, result in engine(double, 1, stream()):
            done.append((number, result))
            assert taken <= len(done) + ahead
        assert sorted(done) == [(i, 1 + 2 * i) for i in range(50)]
        assert taken == 50


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
    for cores, given, workers in ((5, 3, 3), (5, None, 5), (None, None, 1)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        with open_engine("local", workers=given) as engine:
            assert isinstance(engine, Local)
            assert (engine.workers, engine.pool) == (workers, None)  # nothing is started before there is work
    ray = pytest.importorskip("ray", reason="needs ray")
    opened: list[tuple[Any, ...]] = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr("topicscope.ground.engines.connect", lambda *given: opened.append(given[1:]))
    monkeypatch.setattr(ray, "shutdown", lambda: opened.append(("closed",)))
    with open_engine("ray", workers=2, address="auto", gpus=1) as engine:
        assert isinstance(engine, partial)
        assert (engine.func, engine.args) == (tasks, (ray, 1))
    assert opened == [("auto", 2), ("closed",)]
    with open_engine("ray") as engine:
        assert isinstance(engine, partial)
        assert engine.args == (ray, 0)
    assert opened[2:] == [("local", None), ("closed",)]
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    with open_engine("ray"):  # the Ray that this process has joined is another's, and stays
        pass
    assert len(opened) == 4


@pytest.mark.parametrize(("address", "own"), [("local", True), ("auto", False), ("head:1", False)])
def test_settings_of_ray_that_the_user_has_made_stay(monkeypatch: pytest.MonkeyPatch, address: str, own: bool) -> None:
    pytest.importorskip("ray", reason="needs ray")
    monkeypatch.setattr(os, "environ", {"RAY_USAGE_STATS_ENABLED": "1"})
    monkeypatch.setattr(engines, "connect", lambda *_: None)
    with open_engine("ray", address=address):
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "1"
        assert os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] == "0"
        assert ("RAY_worker_niceness" in os.environ) == own
        assert ("RAY_gcs_rpc_server_connect_timeout_s" in os.environ) != own  # an address is to answer soon


class FakeStart:
    """ray.init: says something on stderr, from outside Python, and succeeds or does not."""

    def __init__(self, error: Exception | None = None, says: bytes = b"") -> None:
        self.error, self.says, self.options, self.alone = error, says, dict[str, Any](), False
        self._private = SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True))

    def init(self, **options: Any) -> None:
        self.options = options
        self.alone = not self._private.ray_constants.ENABLE_RAY_CLUSTER
        assert (os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER") == "0") == self.alone
        os.write(2, self.says)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("clusters", [None, "1"])
def test_a_ray_of_ones_own_has_the_workers_no_dashboard_and_loopback(
    monkeypatch: pytest.MonkeyPatch, clusters: str | None
) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1", **quiet}
    monkeypatch.setattr(os, "environ", {} if clusters is None else {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": clusters})
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    for given, cores in ((3, 3), (None, 5)):
        engines.connect(ray := FakeStart(), "local", given)
        assert ray.options == {"address": "local", "num_cpus": cores, **own}
        assert ray.alone
        assert ray._private.ray_constants.ENABLE_RAY_CLUSTER  # a cluster that is joined next is not affected
        assert os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER") == clusters
    refused("no room", engines.connect, ray := FakeStart(RuntimeError("no room")), "local", 1)
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER
    assert os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER") == clusters
    engines.connect(ray := FakeStart(), "auto", 3)
    assert ray.options == {"address": "auto", **quiet}
    assert not ray.alone
    monkeypatch.setattr(engines, "answering", lambda address: f"{address}:1")
    engines.connect(ray := FakeStart(), "head", None)
    assert ray.options == {"address": "head:1", **quiet}


def test_a_ray_that_does_not_start_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as found:
        engines.connect(FakeStart(ConnectionError("no\n " + "x" * 300), b"much ado"), "auto", None)
    assert str(found.value) == (
        f"address auto: cannot connect to Ray (no {'x' * 197}); "
        "start it with 'ray start --head', or use the address local"
    )
    with pytest.raises(InputError, match=r"\(it requires a token: set RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN\)"):
        engines.connect(FakeStart(RuntimeError("no"), b"InvalidAuthToken"), "auto", None)
    with pytest.raises(ZeroDivisionError):  # not Ray's
        engines.connect(FakeStart(ZeroDivisionError()), "auto", None)
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards"


def test_an_address_has_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as head:
        host, port = head.getsockname()
        assert engines.answering(f"{host}:{port}") == f"{host}:{port}"
        monkeypatch.setattr(engines, "RAY_PORT", port)
        assert engines.answering(host) == f"{host}:{port}"  # where no port is said
    refused(f"address {host}: nothing answers at {host}:{port}; expected local, auto", engines.answering, host)
    refused("address head:x: nothing answers at head:x", engines.answering, "head:x")


def test_what_an_engine_cannot_take_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refused("engine 'spark'; expected serial, local, ray", check_engine, "spark")
    refused("workers 2: the engine serial has no workers", check_engine, "serial", workers=2)
    refused("address auto is for the engine ray, but the engine is local", check_engine, "local", address="auto")
    check_engine("serial")
    check_engine("local", workers=2)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(machine, "find_spec", lambda _: object())
    check_engine("ray", workers=2, address="auto")
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    check_engine("local")
    refused("the engine ray needs ray, which is not installed", check_engine, "ray", workers=2, address="auto")
