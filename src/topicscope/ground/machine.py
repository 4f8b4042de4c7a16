"""What this machine has: devices, threads, worker processes, compiled kernels, optional libraries.

The matrices here are small, and a second thread only waits and burns a core. Loops that numba compiles replace many
small calls of PyTorch, which cost more than their arithmetic. Numba is imported with the first module of kernels, not
before; kernels are compiled once per installation, which takes seconds and is announced.
"""

import functools
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Literal, TypeVar, cast, get_args

from threadpoolctl import threadpool_limits

from topicscope.ground.errors import InputError, one_line, refuse
from topicscope.ground.progress import Progress, silent

Device = Literal["auto", "cpu", "cuda"]
CUBLAS_ORDER = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order every time


def usable_device(name: str, *, worth_it: bool = True) -> Literal["cpu", "cuda"]:
    """Where to compute: 'auto' takes a GPU where there is one."""
    refuse((name not in get_args(Device), f"device {name!r}: expected auto, cpu or cuda"))
    if name == "cpu":
        return "cpu"
    import torch

    there = torch.cuda.is_available()
    refuse((name == "cuda" and not there, "device 'cuda', but PyTorch finds no usable GPU here; choose cpu or auto"))
    if not there or (name == "auto" and not worth_it):
        return "cpu"
    os.environ.setdefault(*CUBLAS_ORDER)
    return "cuda"


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch and BLAS on one thread inside, the caller's settings again afterwards.

    Numbers below 1e-38 count as zero: a saturated softmax is full of them, and the processor takes them one by one (8.6
    ms per step instead of 1.4).
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
    """Processes side by side. The end of the block ends them; they leave Ctrl-C to the parent."""
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


F = TypeVar("F", bound=Callable[..., Any])

_progress: list[Progress] = [silent]  # the last one hears when a kernel is compiled


def can_compile() -> bool:
    return find_spec("numba") is not None


@contextmanager
def compiling_announced(progress: Progress) -> Iterator[None]:
    """Inside, `progress` hears when a kernel is compiled. One that is only loaded takes no time worth mentioning."""
    _progress.append(progress)
    try:
        yield
    finally:
        _progress.pop()


@contextmanager
def interruptible() -> Iterator[None]:
    """Around calls of kernels: numba wraps what a signal raises into a SystemError; here it is itself again."""
    try:
        yield
    except SystemError as error:
        raised: BaseException = error
        while isinstance(raised, SystemError) and raised.__cause__ is not None:
            raised = raised.__cause__
        raise raised from None


def compiled(function: F) -> F:
    """The function as machine code, made or loaded at its first call.

    Sums are taken in their order, as written, so that every process gets the same bytes. Divergence shows as NaN or
    infinity.
    """
    from numba import njit

    _listen()
    try:  # error_model: division by zero gives inf or NaN
        return cast("F", njit(cache=True, error_model="numpy")(function))
    except RuntimeError:  # there is no folder to keep it in: every process compiles it
        return cast("F", njit(error_model="numpy")(function))


@functools.cache
def _listen() -> None:
    from numba.core import event

    class Announcer(event.Listener):
        """Numba calls it when it begins to compile, and when it has done so."""

        def on_start(self, event: object) -> None:
            _progress[-1]("compiling", note="once per installation")

        def on_end(self, event: object) -> None: ...

    event.register("numba:compile", Announcer())  # type: ignore[no-untyped-call]


# optional libraries by the name that is imported, and the extra that installs each; pyproject.toml says the same
EXTRAS = {
    "accelerate": "language",
    "tokenizers": "language",
    "tomotopy": "language",
    "transformers": "language",
    "zstandard": "language",
    "ray": "cluster",
    "gensim": "backends",
    "pyLDAvis": "backends",
    "sklearn": "backends",
    "datasets": "hub",
    "anyio": "explorer",
    "starlette": "explorer",
    "uvicorn": "explorer",
    "anywidget": "notebook",
    "ipywidgets": "notebook",
    "traitlets": "notebook",
}

PACKAGES = {"sklearn": "scikit-learn", "pyLDAvis": "pyldavis"}  # where the package has another name


def require(libraries: Iterable[str], user: str) -> None:
    """Check that optional libraries are installed. None of them is imported: this comes before any work."""
    for library in libraries:
        if sys.modules.get(library) is None and find_spec(library) is None:
            raise _missing(library, user)


def needed(module: str, user: str) -> Any:
    library = module.partition(".")[0]
    try:
        with warnings.catch_warnings(action="ignore"):  # what a library says about its own parts
            return importlib.import_module(module)
    except (ImportError, OSError, ValueError, AttributeError) as error:  # compiled for other versions
        raise _missing(library, user, None if find_spec(library) is None else error) from None


def _missing(library: str, user: str, damage: Exception | None = None) -> InputError:
    package, extra = PACKAGES.get(library, library), EXTRAS[library]
    return InputError(
        f"{user} needs {package}, which is not installed: pip install 'topicscope[{extra}]'"
        if damage is None
        else f"{user} needs {package}, which is installed, but cannot be loaded ({one_line(damage)}): "
        f"pip install --upgrade 'topicscope[{extra}]', or pip install --force-reinstall --no-deps {package}"
    )
