"""Engines: the same work done over many items, in this process, in a pool of processes here, or on a Ray cluster.

with open_engine("local") as engine:
    for number, result in engine(work, common, items): ...     # the item's number and its result, as they come

An engine stores no results and writes nothing; its caller does. Items may be a stream: an engine takes the next one
when a worker is free for it, and holds only those that are not done.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeVar

from topicscope.ground.errors import EngineError, InputError
from topicscope.ground.extras import require
from topicscope.ground.ranges import MOST_WORKERS
from topicscope.ground.threads import worker_pool

RETRIES = 3  # times that an item is tried again after its worker has died

Common = TypeVar("Common")
Item = TypeVar("Item")
Output = TypeVar("Output")


class Engine(Protocol):
    """Does the same work for many items, in this process, in others, or on a cluster.

    An engine is called as engine(work, common, items). It yields the number of an item and `work(common, item)`, as
    they come.

    Example:
        See `open_engine`.
    """

    def __call__(
        self, work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
    ) -> Iterator[tuple[int, Output]]: ...


Name = Literal["serial", "local", "ray"]


def open_engine(
    name: Name = "serial", *, workers: int | None = None, address: str | None = None, gpus: float = 0
) -> AbstractContextManager[Engine]:
    """Open an engine; the end of the block ends its processes.

    Args:
        name: 'serial', 'local' or 'ray'.
        workers: Number of workers; None: one per core.
        address: Address of Ray: local, auto, or HOST[:PORT] of a head.
        gpus: GPUs that each Ray task needs.

    Returns:
        A context manager that gives the engine.

    Raises:
        InputError: The name, workers or address are wrong.

    Example:
        >>> with open_engine("serial") as engine:
        ...     list(engine(pow, 2, [1, 2, 3]))  # number of the item, and 2 to the power of it
        [(0, 2), (1, 4), (2, 8)]
    """
    check_engine(name, workers=workers, address=address)
    return ENGINES[name].opened(workers, address or "local", gpus)


def check_engine(name: str, *, workers: int | None = None, address: str | None = None) -> None:
    """Check the name and options of an engine, before anything is loaded or started.

    Args:
        name: 'serial', 'local' or 'ray'.
        workers: Number of workers.
        address: Address of a Ray cluster.

    Raises:
        InputError: One of them is wrong, or does not go with the engine.

    Example:
        >>> check_engine("serial", workers=2)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: workers 2: the engine serial has no workers; ...
    """
    refused = {
        f"engine {name!r}; expected {', '.join(ENGINES)}": name not in ENGINES,
        f"address {address} is for the engine ray, but the engine is {name}; leave the address out": (
            address is not None and name != "ray"
        ),
        f"workers {workers}: expected a number from 1 to {MOST_WORKERS}": (
            workers is not None and not 1 <= workers <= MOST_WORKERS
        ),
        f"workers {workers}: the engine serial has no workers; choose local or ray, or leave workers out": (
            workers is not None and name == "serial"
        ),
    }
    for message, wrong in refused.items():
        if wrong:
            raise InputError(message)
    if name == "ray":
        require(["ray"], "the engine ray")


def serial(
    work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
) -> Iterator[tuple[int, Output]]:
    """The engine of this process: one item after another.

    Args:
        work: A function of two arguments.
        common: Its first argument, the same for all items.
        items: The second.

    Returns:
        Number and result of each item.

    Example:
        >>> list(serial(pow, 2, [1, 2, 3]))
        [(0, 2), (1, 4), (2, 8)]
    """
    for number, item in enumerate(items):
        yield number, work(common, item)


def in_order(results: Iterator[tuple[int, Output]]) -> Iterator[Output]:
    """Results in the order of their items, whatever order they come in.

    Args:
        results: Numbers and results, from an engine.

    Returns:
        The results.

    Example:
        >>> list(in_order(iter([(1, "b"), (0, "a"), (2, "c")])))
        ['a', 'b', 'c']
    """
    waiting: dict[int, Output] = {}
    following = 0
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


class Local:
    """One process per core, one thread each, started with the first item; leaving the block ends them.

    A worker that dies takes the pool with it; the engine starts another pool and repeats what was running.
    """

    def __init__(self, workers: int) -> None:
        self.workers, self.held = workers, ExitStack()
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held.__exit__(kind, error, trace)  # with the error: the pool then ends what is running, as after Ctrl-C

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
                            self.pool = self.held.enter_context(worker_pool(self.workers))
                        number, item = queue.first[-1]
                        running[self.pool.submit(work, common, item)] = number, item
                        queue.first.pop()  # only now: a pool that has just broken takes nothing
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        result = future.result()
                        yield running.pop(future)[0], result
            except BrokenProcessPool:
                self.held.close()
                self.pool = None
                for number, _ in running.values():
                    deaths[number] += 1
                    if deaths[number] > RETRIES:
                        raise EngineError(
                            f"workers died {deaths[number]} times on the same task; is there too little memory? "
                            "(In a script: is it under if __name__ == '__main__'?)"
                        ) from None
                queue.put_back(running.values())


def _ray(workers: int | None, address: str, gpus: float) -> AbstractContextManager[Engine]:
    from topicscope.ground.ray_engine import ray_engine

    return ray_engine(address, workers, gpus)


@dataclass(frozen=True)
class EngineKind:
    """An engine before it is opened: with the number of workers, an address, and the GPUs of a task."""

    opened: Callable[[int | None, str, float], AbstractContextManager[Engine]]
    place: str  # where the work is done, in a few words


ENGINES = {
    "serial": EngineKind(lambda *_: nullcontext(serial), "this process"),
    "local": EngineKind(lambda workers, *_: Local(workers or os.cpu_count() or 1), "processes on this machine"),
    "ray": EngineKind(_ray, "a cluster"),
}
NAMES = tuple(ENGINES)
