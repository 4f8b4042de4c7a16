"""What work will cost, estimated before it begins: memory, disk and time.

What would not fit into this machine's memory or on its disk is refused with the estimate, unless the user insists
(`--yes`). Work of more than ten minutes is announced.
"""

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from topicscope.ground.checked import shown
from topicscope.ground.config import Config, flat
from topicscope.ground.errors import InputError
from topicscope.ground.progress import duration

RESUME_NEEDS_OUT = "resume (--resume) needs out (--out), the folder of the run to continue"
FORCE_NEEDS_OUT = "force (--force) replaces what is in a folder, and no folder is given: it needs out (--out)"
LONG = 600.0  # seconds from which on work is announced
PROCESS = 0.4e9  # bytes that Python and PyTorch take before any work
FLOPS = 4e10  # arithmetic operations per second of one core, in matrices of the sizes used here
STREAMED = 1e10  # bytes per second that one core reads or writes
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Cost:
    """What work will take: a rough estimate, rather too much."""

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
    """Bytes that are free where a folder is, or will be."""
    place = next(place for place in (Path(path).absolute(), *Path(path).absolute().parents) if place.exists())
    return shutil.disk_usage(place).free


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
