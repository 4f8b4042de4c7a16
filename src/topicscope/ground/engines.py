"""Engines: the same work done over many items, in this process, in a pool of processes here, or on a Ray cluster.

with open_engine("local") as engine:
    for number, result in engine(work, common, items): ...     # result of items[number], as they come

An engine keeps no results and writes nothing; whoever asked does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, Protocol, TypeVar

from topicscope.ground.errors import EngineError, InputError
from topicscope.ground.threads import worker_pool

Name = Literal["serial", "local", "ray"]
NAMES: tuple[Name, ...] = ("serial", "local", "ray")

RETRIES = 3
"""Times that an item is tried again after its worker has died."""

Common = TypeVar("Common")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """`work(common, item)` for every item; yields the item's number and the result, as they come."""

    def __call__(
        self, work: Callable[[Common, Item], Result], common: Common, items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]: ...


@contextmanager
def open_engine(
    name: Name = "serial", *, workers: int | None = None, address: str = "local", gpus: float = 0
) -> Iterator[Engine]:
    """Whatever ends the block ends the engine's processes. `address` (of Ray): local, auto, or HOST[:PORT] of a head; `gpus`: of each Ray task."""
    if name not in NAMES:
        raise InputError(f"engine {name!r}; expected {', '.join(NAMES)}")
    if name == "serial":
        yield serial
    elif name == "local":
        with Local(workers or os.cpu_count() or 1) as engine:
            yield engine
    else:
        from topicscope.ground.ray_engine import ray_engine

        with ray_engine(address, workers, gpus) as engine:
            yield engine


def serial(
    work: Callable[[Common, Item], Result], common: Common, items: Sequence[Item]
) -> Iterator[tuple[int, Result]]:
    for number, item in enumerate(items):
        yield number, work(common, item)


def in_order(results: Iterator[tuple[int, Result]]) -> Iterator[Result]:
    """Results in the order of their items, whatever order they come in: sums of numbers depend on it."""
    waiting: dict[int, Result] = {}
    following = 0
    for number, result in results:
        waiting[number] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1


class Local:
    """One process a core, one thread each, started with the first item. A worker that dies takes the pool with it: what was under way is run again."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.held = ExitStack()
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *error: Any) -> None:
        self.held.__exit__(*error)

    def __call__(
        self, work: Callable[[Common, Item], Result], common: Common, items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        queue, deaths = list(reversed(range(len(items)))), [0] * len(items)
        while queue:
            running: dict[Future[Result], int] = {}
            try:
                while queue or running:
                    while queue and len(running) < 2 * self.workers:  # one at work and one in waiting, of each worker
                        number = queue.pop()
                        running[self.started().submit(work, common, items[number])] = number
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        yield running.pop(future), result
            except BrokenProcessPool:
                self.held.close()
                self.pool = None
                for number in running.values():
                    deaths[number] += 1
                    if deaths[number] > RETRIES:
                        raise EngineError(
                            f"workers died {deaths[number]} times over the same work; is memory short? (In a script: is it under if __name__ == '__main__'?)"
                        ) from None
                queue += sorted(running.values(), reverse=True)

    def started(self) -> ProcessPoolExecutor:
        if self.pool is None:
            self.pool = self.held.enter_context(worker_pool(self.workers))
        return self.pool
