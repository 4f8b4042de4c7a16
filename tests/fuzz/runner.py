"""Runs cases fast: PyTorch and the command are imported once, then every case is a fork that calls `main()`.

The process that forks has one thread. A child has a limit of address space, so that a runaway allocation fails
instead of swapping, and a limit of time; its peak of memory comes from `wait4`.
"""

import contextlib
import importlib
import io
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.cases import Case

GIGABYTE = 2**30
MEMORY = 6 * GIGABYTE  # of address space that a child may take beyond the server's
LARGEST_FILE = GIGABYTE
IDLE = 6.0  # seconds without any work after which a child is taken to hang: it waits for something
STARVED = 5  # times the limit of processor time that a child may take by the clock

SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "COLUMNS": "120",
}
MODULES = (
    *("torch", "transformers.models.bert.modeling_bert", "transformers.models.auto.modeling_auto", "accelerate"),
    *("matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "tomotopy"),
    *("plotly.graph_objects", "zstandard", "yaml", "topicscope.cli.main"),
)
"""What the commands import late. Not pyarrow.parquet: it starts a thread, which a fork does not survive."""


@dataclass(frozen=True)
class Raw:
    """How a command ended. `code`: negative for a signal, None where it was stopped. `peak`: bytes."""

    code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    peak: int
    new: tuple[str, ...] = ()  # paths that were not there before
    products: tuple[tuple[str, bytes], ...] = ()


def preload() -> None:
    """Import everything; called once, in the process that forks."""
    os.environ.update(SETTINGS)
    package = importlib.import_module("topicscope")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, "topicscope.")]
    for name in (*(name for name in names if not name.endswith(("__main__", "ray_engine"))), *MODULES):
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)


def run_case(case: Case, fixtures: Path, limit: float, keep: Path | None = None) -> Raw:
    """Run a case in a fresh folder; `keep`: where the folder stays, to look at."""
    with fresh_folder(keep) as home:
        for name in dict.fromkeys((*case.uses, *case.extra)):
            copy(fixtures / name, home / name)
        for place in case.places:
            place.apply(home)
        before = paths(home)
        raw = run_command(case.argv, home, limit)
        new = tuple(sorted(paths(home) - before))
        return Raw(raw.code, raw.stdout, raw.stderr, raw.seconds, raw.peak, new, products(home, case.products))


@contextlib.contextmanager
def fresh_folder(keep: Path | None) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="fuzz-")) if keep is None else keep
    home.mkdir(parents=True, exist_ok=True)
    try:
        yield home
    finally:
        if keep is None:
            shutil.rmtree(os.fsencode(home), ignore_errors=True)


def copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True) if source.is_dir() else shutil.copy2(source, target)


def paths(home: Path) -> set[str]:
    """Every path below a folder; lock files stay by design and do not count."""
    return {
        os.path.relpath(os.path.join(folder, name), home)
        for folder, folders, files in os.walk(home)
        for name in (*folders, *files)
        if name != ".lock"
    }


def products(home: Path, patterns: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
    found = sorted({path for pattern in patterns for path in home.glob(pattern) if path.is_file()})
    return tuple((str(path.relative_to(home)), path.read_bytes()) for path in found)


def run_command(
    argv: Iterable[str], home: Path, limit: float, before: Callable[[], None] | None = None, memory: int = MEMORY
) -> Raw:
    """Fork, run the command in `home`, wait. `before` is called in the child: tests and fixtures plant things there."""
    size, resident = memory_of_this_process()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _child(list(argv), home, out.fileno(), err.fileno(), size + memory, before)
        code, peak = _wait(pid, limit)
        seconds = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        return Raw(code, out.read(4_000_000), err.read(4_000_000), seconds, max(0, peak - resident))


def memory_of_this_process() -> tuple[int, int]:
    """Address space and resident memory, in bytes."""
    pages = Path("/proc/self/statm").read_text().split()
    return int(pages[0]) * resource.getpagesize(), int(pages[1]) * resource.getpagesize()


def _child(argv: list[str], home: Path, out: int, err: int, memory: int, before: Callable[[], None] | None) -> None:
    """Never returns: the child ends here whatever happens."""
    code = 1
    try:
        os.setsid()
        os.chdir(home)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb"), encoding="utf-8", errors="strict")
        sys.stderr = io.TextIOWrapper(
            os.fdopen(2, "wb", 0), encoding="utf-8", errors="backslashreplace", write_through=True
        )
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["topicscope", *argv]
        if before is not None:
            before()
        importlib.import_module("topicscope.cli.main").main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code & 0xFF)


def _wait(pid: int, limit: float) -> tuple[int | None, int]:
    """The exit code (None: it was stopped) and the peak of memory.

    The limit is of processor time, since other programs may share the machine. A child that sleeps for long without
    working waits for something that never comes.
    """
    began = last_work = time.monotonic()
    work, pause = 0.0, 0.002
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
        now, (spent, sleeps) = time.monotonic(), _work_of(pid)
        if spent > work + 0.02 or not sleeps:
            work, last_work = max(work, spent), now
        if spent > limit or now - began > STARVED * limit or now - last_work > min(IDLE, limit):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            usage = os.wait4(pid, 0)[2]
            return None, usage.ru_maxrss * 1024
        time.sleep(pause)
        pause = min(0.05, pause * 1.3)


def _work_of(pid: int) -> tuple[float, bool]:
    """Processor seconds of a process and its children that ended; and whether it sleeps and has no child that runs."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0, False
    spent = sum(int(fields[at]) for at in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")
    return spent, fields[0] == "S" and not children
