"""Engines: they take packs of points and hand back results as they come: in this process, or in a pool of processes here.

An engine writes nothing: the driver does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool

from topicscope.errors import InputError
from topicscope.sweep.points import Result
from topicscope.sweep.tasks import Task, compute
from topicscope.threads import worker_pool

RETRIES = 3
"""Times that a task is tried again after its worker has died."""

Finished = tuple[Task, list[Result]]


def serial(tasks: Sequence[Task], scratch: str) -> Iterator[Finished]:
    for task in tasks:
        yield task, compute(task, scratch)


def local(tasks: Sequence[Task], scratch: str, workers: int | None = None) -> Iterator[Finished]:
    """One process a core, one thread each. A worker that dies takes the pool with it: the tasks that were under way are run again."""
    count = workers or os.cpu_count() or 1
    queue, deaths = list(reversed(tasks)), dict.fromkeys((task.number for task in tasks), 0)
    while queue:
        running: dict[Future[list[Result]], Task] = {}
        try:
            with worker_pool(count) as pool:
                while queue or running:
                    while queue and len(running) < 2 * count:
                        task = queue.pop()
                        running[pool.submit(compute, task, scratch)] = task
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        results = future.result()
                        yield running.pop(future), results
        except BrokenProcessPool:
            for task in running.values():
                deaths[task.number] += 1
                if deaths[task.number] > RETRIES:
                    raise InputError(f"workers die on {len(task.points)} points ({task.points[0].name}, ...), {RETRIES} times over; is memory short?") from None
            queue += reversed(running.values())
