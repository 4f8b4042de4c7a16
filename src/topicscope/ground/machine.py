"""What this machine has: devices, threads, processes, compiled kernels, optional libraries, memory, disk and time.

The matrices here are small, and a second thread only waits. Numba is imported with the first module of kernels, which
are compiled once per installation. Work that does not fit is refused with an estimate, unless the
user insists (`--yes`).
"""

import functools
import importlib
import math
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from threadpoolctl import threadpool_limits

from topicscope.ground.config import Config, flat
from topicscope.ground.errors import InputError, one_line, refuse_if
from topicscope.ground.files import shown
from topicscope.ground.results import Progress, duration, silent

Device = Literal["auto", "cpu", "cuda"]
CUBLAS_ORDER = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order every time


def usable_device(name: str, *, worth_it: bool = True) -> Literal["cpu", "cuda"]:
    refuse_if(name not in get_args(Device), f"device {name!r}: expected auto, cpu or cuda")
    if name == "cpu":
        return "cpu"
    import torch

    there = torch.cuda.is_available()
    refuse_if(name == "cuda" and not there, "device 'cuda', but PyTorch finds no usable GPU here; choose cpu or auto")
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


RESUME_NEEDS_OUT = "resume (--resume) needs out (--out), the folder of the run to continue"
FORCE_NEEDS_OUT = "force (--force) replaces what is in a folder, and no folder is given: it needs out (--out)"
LONG = 600.0  # seconds from which on work is announced
PROCESS = 0.4e9  # bytes that Python and PyTorch take before any work
FLOPS = 4e10  # arithmetic operations per second of one core, in matrices of the sizes used here
STREAMED = 1e10  # bytes per second that one core reads or writes
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Cost:
    memory: float = 0.0
    disk: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """One after the other: the larger of the peaks."""
        return Cost(max(self.memory, other.memory), self.disk + other.disk, self.seconds + other.seconds)

    def __str__(self) -> str:
        sizes = [(self.memory, " of memory"), (self.disk, " on disk")]
        return ", ".join([f"about {duration(self.seconds)}", *(size(x) + what for x, what in sizes if x)])


def size(count: float) -> str:
    units = ((1e9, "GB"), (1e6, "MB"))
    return next((f"{count / unit:.3g} {name}" for unit, name in units if count >= unit), f"{count / 1e3:.0f} kB")


def machine_memory() -> int:
    """Memory that this process may use at most: of the machine, or of the container around it."""
    if not hasattr(os, "sysconf"):  # Windows says it in another way
        return sys.maxsize
    import resource  # which Windows has not

    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in CGROUPS:
        with suppress(OSError, ValueError):  # no such file, or 'max'
            whole = min(whole, int(Path(name).read_text(encoding="ascii")))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]  # as `ulimit -v` sets it
    return whole if limit == resource.RLIM_INFINITY else min(whole, limit)


def free_disk(path: str | os.PathLike[str]) -> int:
    whole = Path(path).absolute()
    return shutil.disk_usage(next(place for place in (whole, *whole.parents) if place.exists())).free


AnyConfig = TypeVar("AnyConfig", bound=Config)


def driving(config: AnyConfig, usual: AnyConfig, cost: Callable[[AnyConfig], Cost]) -> str:
    """The settings that make work large, with their values: those whose usual value lowers the estimate most."""
    settings, defaults = flat(config.as_dict()), flat(usual.as_dict())
    part = "memory" if cost(config).memory + PROCESS > machine_memory() else "disk"
    whole, saved = max(1.0, getattr(cost(config), part)), dict[str, float]()
    for name, value in settings.items():
        default = defaults.get(name)
        numbers = [one for one in (value, default) if isinstance(one, int | float) and not isinstance(one, bool)]
        if value != default and numbers and not (len(numbers) == 2 and value < default):
            with suppress(InputError):  # the usual value may not go with the others
                saved[name] = 1 - getattr(cost(config.changed({name: default})), part) / whole
    most = max(saved.values(), default=0.0)
    found = sorted((name for name in saved if saved[name] > max(0.1, most / 2)), key=lambda name: -saved[name])
    return ", ".join(f"{name} {'all' if settings[name] is None else settings[name]}" for name in found[:3]) or "sizes"


_settled: ContextVar[bool] = ContextVar("settled", default=False)


@contextmanager
def affordable() -> Iterator[None]:
    """Inside, `afford` lets everything pass in silence: what it is a part of was checked as a whole."""
    token = _settled.set(True)
    try:
        yield
    finally:
        _settled.reset(token)


def check_gpu(cost: Cost, what: Callable[[], str], *, yes: bool = False) -> None:
    if yes or _settled.get():
        return
    import torch

    memory = torch.cuda.mem_get_info()[1]
    if cost.memory > memory:
        raise InputError(
            f"this would take about {size(cost.memory)} of memory on the GPU, which has {size(memory)}; "
            f"make it smaller ({what()}), choose the device cpu, or go ahead anyway (--yes)"
        )


def afford(
    cost: Cost,
    what: str | Callable[[], str],
    out: str | os.PathLike[str] | None = None,
    *,
    yes: bool = False,
    announced: float = LONG,
) -> None:
    """Refuse work that does not fit into memory or onto the disk; announce work that takes long."""
    if _settled.get():
        return
    memory, need = machine_memory(), cost.memory + PROCESS
    room = math.inf if out is None else free_disk(out)
    if not yes and (need > memory or cost.disk > room):
        large = what if isinstance(what, str) else what()
        raise InputError(
            f"this would take about {size(need)} of memory, and the machine has {size(memory)}; make it smaller "
            f"({large}), or go ahead anyway (--yes)"
            if need > memory
            else f"this would write about {size(cost.disk)}, and {shown(out or '')} has room for {size(room)}; choose "
            f"another folder, make it smaller ({large}), or go ahead anyway (--yes)"
        )
    if cost.seconds > min(LONG, announced):
        length = "this will take a long time" if cost.seconds > LONG else "estimate"
        print(f"topicscope: {length}: {cost}", file=sys.stderr, flush=True)
