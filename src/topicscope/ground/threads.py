"""Where and how to compute: on which device, and on one thread per process.

The matrices here are small, and a second thread only waits and burns a core.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Literal, get_args

from threadpoolctl import threadpool_limits

from topicscope.ground.errors import InputError

Device = Literal["auto", "cpu", "cuda"]
CUBLAS_ORDER = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order every time


def usable_device(name: str, *, worth_it: bool = True) -> Literal["cpu", "cuda"]:
    """Where to compute: 'auto' takes a GPU where there is one.

    Args:
        name: 'auto', 'cpu' or 'cuda'.
        worth_it: Whether 'auto' may take a GPU.

    Returns:
        'cpu' or 'cuda'.

    Raises:
        InputError: 'cuda' without a GPU, or another name.

    Example:
        >>> usable_device("cpu"), usable_device("auto", worth_it=False)
        ('cpu', 'cpu')
    """
    if name not in get_args(Device):
        raise InputError(f"device {name!r}: expected auto, cpu or cuda")
    if name == "cpu":
        return "cpu"
    import torch

    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InputError("device 'cuda', but PyTorch finds no usable GPU here; choose cpu or auto")
    if not there or (name == "auto" and not worth_it):
        return "cpu"
    os.environ.setdefault(*CUBLAS_ORDER)
    return "cuda"


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch and BLAS on one thread inside, the caller's settings again afterwards.

    Numbers below 1e-38 count as zero: a saturated softmax is full of them, and the processor takes them one by one (8.6
    ms per step instead of 1.4).

    Returns:
        A context manager.

    Example:
        >>> import torch
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    import scipy.linalg.cython_blas  # noqa: F401  compiled kernels call it, and limits reach only what is loaded
    import torch  # two seconds that 'topicscope list' does not need

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


@contextmanager
def repeatable() -> Iterator[None]:
    """The same bytes every time, on a GPU too, where sums would otherwise be taken in whatever order threads arrive.

    On one CPU thread sums are taken in one order anyway, and the switch would import the compiler (1.5 s) for nothing.

    Returns:
        A context manager.

    Example:
        >>> import torch
        >>> with repeatable():
        ...     torch.get_num_threads()
        1
    """
    import torch

    on_gpu, before = torch.cuda.is_available(), torch.are_deterministic_algorithms_enabled()
    if on_gpu:
        os.environ.setdefault(*CUBLAS_ORDER)
        torch.use_deterministic_algorithms(True)
    try:
        with one_thread():
            yield
    finally:
        if on_gpu:
            torch.use_deterministic_algorithms(before)


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes side by side. The end of the block ends them; they leave Ctrl-C to the parent.

    Args:
        workers: Number of processes.

    Returns:
        A context manager that gives the pool.

    Example:
        >>> with worker_pool(1) as pool:
        ...     type(pool).__name__  # processes start with the first task
        'ProcessPoolExecutor'
    """
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _start_worker() -> None:
    """In a worker: Ctrl-C is left to the parent, and a parent that is killed takes its workers along."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
