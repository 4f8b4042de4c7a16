"""One thread a process: the matrices here are small, and a second thread only waits (and burns a core while it does)."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch and BLAS on one thread inside, the caller's settings again afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def repeatable() -> Iterator[None]:
    """The same bytes every time, on a GPU too, where sums would otherwise be taken in whatever order threads arrive.

    On one CPU thread sums are taken in one order anyway, and the switch would import the compiler (1.5 s) for nothing.
    """
    if not torch.cuda.is_available():
        with one_thread():
            yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order every time
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        with one_thread():
            yield
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes side by side. Whatever ends the block ends them too; Ctrl-C reaches them as well, and is not theirs to answer."""
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
