"""Engines: the same work done over many items, in this process, in a pool of processes here, or on a Ray cluster.

with open_engine("local") as engine:
    for number, result in engine(work, common, items): ...     # the item's number and its result, as they come

An engine stores no results and writes nothing; its caller does. Items may be a stream: an engine takes the next one
when a worker is free for it, and holds only those that are not done. On Ray a task takes one core; it is repeated where
a worker or a node is lost.
"""

import logging
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeVar

from topicscope.ground.config import MOST_WORKERS
from topicscope.ground.errors import EngineError, InputError, refuse, refuse_if
from topicscope.ground.machine import require, worker_pool

RETRIES = 3  # times that an item is tried again after its worker has died

Common = TypeVar("Common")
Item = TypeVar("Item")
Output = TypeVar("Output")


class Engine(Protocol):
    """Does the same work for many items, in this process, in others, or on a cluster.

    An engine is called as engine(work, common, items). It yields the number of an item and `work(common, item)`, as
    they come.
    """

    def __call__(
        self, work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
    ) -> Iterator[tuple[int, Output]]: ...


Name = Literal["serial", "local", "ray"]


def open_engine(
    name: Name = "serial", *, workers: int | None = None, address: str | None = None, gpus: float = 0
) -> AbstractContextManager[Engine]:
    check_engine(name, workers=workers, address=address)
    return ENGINES[name].opened(workers, address or "local", gpus)


def check_engine(name: str, *, workers: int | None = None, address: str | None = None) -> None:
    refuse(
        (name not in ENGINES, f"engine {name!r}; expected {', '.join(ENGINES)}"),
        (
            address is not None and name != "ray",
            f"address {address} is for the engine ray, but the engine is {name}; leave the address out",
        ),
        (
            workers is not None and not 1 <= workers <= MOST_WORKERS,
            f"workers {workers}: expected a number from 1 to {MOST_WORKERS}",
        ),
        (
            workers is not None and name == "serial",
            f"workers {workers}: the engine serial has no workers; choose local or ray, or leave workers out",
        ),
    )
    if name == "ray":
        require(["ray"], "the engine ray")


def serial(
    work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
) -> Iterator[tuple[int, Output]]:
    for number, item in enumerate(items):
        yield number, work(common, item)


def in_order(results: Iterator[tuple[int, Output]]) -> Iterator[Output]:
    waiting, following = dict[int, Output](), 0
    for number, result in results:
        waiting[number] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1


class Queue(Generic[Item]):
    """Items with their numbers, taken from a stream one by one. Those that are put back come first, in their order."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.stream, self.first = enumerate(items), list[tuple[int, Item]]()  # `first` has the next one at its end

    def __bool__(self) -> bool:
        if not self.first and (following := next(self.stream, None)) is not None:
            self.first.append(following)
        return bool(self.first)

    def put_back(self, items: Iterable[tuple[int, Item]]) -> None:
        self.first += sorted(items, key=lambda numbered: -numbered[0])


class Local(ExitStack):
    """One process per core, one thread each, started with the first item; leaving the block ends them.

    A worker that dies takes the pool with it; the engine starts another pool and repeats what was running. The stack
    holds the pool; where an error leaves the block, the pool ends what is running, as after Ctrl-C.
    """

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = workers
        self.pool: ProcessPoolExecutor | None = None

    def __call__(
        self, work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
    ) -> Iterator[tuple[int, Output]]:
        queue, deaths = Queue(items), Counter[int]()
        while queue:
            running: dict[Future[Output], tuple[int, Item]] = {}
            try:
                while queue or running:
                    while len(running) < 2 * self.workers and queue:  # each worker has one running and one waiting
                        if self.pool is None:
                            self.pool = self.enter_context(worker_pool(self.workers))
                        number, item = queue.first[-1]
                        running[self.pool.submit(work, common, item)] = number, item
                        queue.first.pop()  # only now: a pool that has just broken takes nothing
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        result = future.result()
                        yield running.pop(future)[0], result
            except BrokenProcessPool:
                self.close()
                self.pool = None
                for number, _ in running.values():
                    deaths[number] += 1
                    if deaths[number] > RETRIES:
                        raise EngineError(
                            f"workers died {deaths[number]} times on the same task; is there too little memory? "
                            "(In a script: is it under if __name__ == '__main__'?)"
                        ) from None
                queue.put_back(running.values())


RAY_PORT = 6379  # the usual port of a Ray head
RAY_INLINE = 50_000  # bytes of common data up to which each task carries its own copy

RAY_ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # leave CUDA_VISIBLE_DEVICES of tasks without a GPU alone
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
}
RAY_OWN = {"RAY_worker_niceness": "0"}  # its workers would let everything else on the machine go first
# something that answers but is no Ray, or wants another token, is reported within ten seconds, not in minutes
RAY_HURRY = {
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": "3",
    "RAY_gcs_rpc_server_connect_timeout_s": "1",
}


@contextmanager
def ray_engine(address: str, workers: int | None, gpus: float) -> Iterator[Engine]:
    """A Ray started here (`local`), one that runs (`auto`, HOST[:PORT]), or the one that this process has joined."""
    os.environ.update(
        RAY_ENVIRONMENT | (RAY_HURRY if address != "local" else RAY_OWN) | os.environ
    )  # what the user has set stays
    import ray

    joined = ray.is_initialized()
    if not joined:
        connect(ray, address, workers)
    try:
        yield partial(tasks, ray, gpus)
    finally:
        if not joined:
            ray.shutdown()


def connect(ray: Any, address: str, workers: int | None) -> None:
    alone = address == "local"
    own = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    if address not in ("local", "auto"):
        address = answering(address)
    with tempfile.TemporaryFile() as said:
        try:
            with complaints_to(said.fileno()), on_loopback(ray) if alone else nullcontext():
                ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **own if alone else {})
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            said.seek(0)
            token = "it requires a token: set RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN"
            reason = token if b"InvalidAuthToken" in said.read() else " ".join(str(error).split())[:200]
            raise InputError(
                f"address {address}: cannot connect to Ray ({reason}); "
                "start it with 'ray start --head', or use the address local"
            ) from None


@contextmanager
def on_loopback(ray: Any) -> Iterator[None]:
    """A Ray that starts here listens on loopback only; one that is joined afterwards is not affected.

    The processes that it starts read the environment. This process has read it where Ray was imported before.
    """
    # Ray takes 127.0.0.1 for another name of the machine and listens on the machine's address, unless it is told that
    # clusters are off, as they are on macOS; then every part of it listens on loopback
    constants, name = ray._private.ray_constants, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    before, clusters = os.environ.get(name), constants.ENABLE_RAY_CLUSTER
    os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = clusters
        del os.environ[name]
        os.environ |= {} if before is None else {name: before}


@contextmanager
def complaints_to(file: int) -> Iterator[None]:
    """Ray's own lines on stderr, which come from outside Python; the one that counts is told by whoever asked."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def answering(address: str) -> str:
    """HOST:RAY_PORT, if something answers there: Ray itself would wait a minute for it."""
    host, _, port = (address if ":" in address else f"{address}:{RAY_PORT}").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return f"{host}:{port}"
    except (OSError, ValueError):
        raise InputError(
            f"address {address}: nothing answers at {host}:{port}; "
            "expected local, auto, or HOST[:PORT] of a running Ray head"
        ) from None


def tasks(
    ray: Any, gpus: float, work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
) -> Iterator[tuple[int, Output]]:
    """The engine hands out at most two tasks per core at a time, so that the driver never holds more results."""
    refuse_if(
        gpus > ray.cluster_resources().get("GPU", 0),  # Ray would wait for one for ever
        "the device is cuda, but this Ray has no GPU; start its nodes with --num-gpus, or choose the device cpu",
    )
    remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(work)
    # what is small travels with the task: a task then needs nothing that another node holds
    shared = common if len(ray.cloudpickle.dumps(common)) < RAY_INLINE else ray.put(common)
    queue, running, losses = Queue(items), dict[Any, tuple[int, Item]](), Counter[int]()
    try:
        while queue or running:
            cores = max(1, int(ray.cluster_resources().get("CPU", 1)))  # nodes come and go
            while len(running) < 2 * cores and queue:
                number, item = queue.first.pop()
                running[remote.remote(shared, item)] = number, item
            [reference], _ = ray.wait(list(running), num_returns=1)
            number, item = running.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
                if not isinstance(cause, ray.exceptions.RayError):
                    raise cause from None  # the work's own
                losses[number] += 1  # Ray's trouble, also where a task met it: a node on its way out
                if losses[number] > RETRIES:
                    reason = f"{type(cause).__name__}: {' '.join(str(cause).split()):.200}"
                    raise EngineError(f"Ray gave up a task after {RETRIES} retries ({reason})") from None
                queue.put_back([(number, item)])
            else:
                yield number, result
    finally:
        for reference in running:  # an interruption: others' cluster is not to go on with what nobody waits for
            ray.cancel(reference, force=True)


@dataclass(frozen=True)
class EngineKind:
    opened: Callable[[int | None, str, float], AbstractContextManager[Engine]]
    place: str  # where the work is done, in a few words


ENGINES = {
    "serial": EngineKind(lambda *_: nullcontext(serial), "this process"),
    "local": EngineKind(lambda workers, *_: Local(workers or os.cpu_count() or 1), "processes on this machine"),
    "ray": EngineKind(lambda workers, address, gpus: ray_engine(address, workers, gpus), "a cluster"),
}
NAMES = tuple(ENGINES)
