"""Engines: they take packs of points and hand back results as they come. Serial, a pool of processes here, or Ray, here or on a cluster.

An engine writes nothing: the driver does, so that a cluster needs no shared disk.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from topicscope.errors import InputError
from topicscope.language.corpora import needed
from topicscope.sweep.points import Result
from topicscope.sweep.tasks import Task, compute

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
        pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
        running: dict[Future[list[Result]], Task] = {}
        try:
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
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def on_ray(tasks: Sequence[Task], scratch: str, address: str = "local", workers: int | None = None) -> Iterator[Finished]:
    """Tasks of one core each, retried by Ray where a worker or a node is lost; as many are handed out at a time as keep the cluster busy."""
    ray = connect(address, workers)
    try:
        remote: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(compute)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        queue, running = list(reversed(tasks)), dict[Any, Task]()
        while queue or running:
            while queue and len(running) < 2 * cores:
                task = queue.pop()
                running[remote.remote(task, scratch)] = task
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                results = ray.get(reference)
                yield running.pop(reference), results
    finally:
        ray.shutdown()


def connect(address: str, workers: int | None = None) -> Any:
    """Ray, started here (`local`) or found (`auto`, HOST:PORT); one line where it is not to be had."""
    ray = needed("ray", "ray", "for --engine ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet = {"include_dashboard": False, "logging_level": logging.ERROR, "log_to_driver": False}
    if address == "local":
        return started(ray, {"address": "local", "num_cpus": workers or os.cpu_count(), **quiet}, address)
    if address != "auto" and not reachable(address):
        raise InputError(f"--address {address}: nothing answers there; expected 'local', 'auto' or HOST:PORT of a running Ray head")
    return started(ray, {"address": address, "logging_level": logging.ERROR, "log_to_driver": False}, address)


def started(ray: Any, options: dict[str, Any], address: str) -> Any:
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise InputError(f"--address {address}: Ray is not to be had there ({' '.join(str(error).split())[:200]})") from None
    return ray


def reachable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host or "127.0.0.1", int(port)), timeout=3):
            return True
    except (OSError, ValueError):
        return False
