"""What work will cost, estimated before it begins: memory, disk and time.

What would not fit into this machine's memory or on its disk is refused with the estimate, unless the user insists
(`--yes`). Work of more than ten minutes is announced.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from topicscope.ground.checked import shown
from topicscope.ground.errors import InputError
from topicscope.ground.progress import duration

LONG = 600.0  # seconds from which on work is announced
BASE = 0.4e9  # bytes that Python and PyTorch take before any work
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Cost:
    """Bytes of memory at the peak, bytes that are written, and seconds on this machine; rough, rather too much."""

    memory: float = 0.0
    disk: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """One after the other: the larger of the peaks."""
        return Cost(max(self.memory, other.memory), self.disk + other.disk, self.seconds + other.seconds)

    def __str__(self) -> str:
        return f"about {size(self.memory)} of memory, {size(self.disk)} on disk, {duration(self.seconds)}"


def size(count: float) -> str:
    """
    >>> [size(x) for x in (20, 5_000, 2.5e6, 3e9, 4e15)]
    ['0 kB', '5 kB', '2.5 MB', '3 GB', '4e+06 GB']
    """
    units = ((1e9, "GB"), (1e6, "MB"))
    return next((f"{count / unit:.3g} {name}" for unit, name in units if count >= unit), f"{count / 1e3:.0f} kB")


def machine_memory() -> int:
    """Bytes of memory that this process may use at most: of the machine, or of the container around it."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in CGROUPS:
        try:
            whole = min(whole, int(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file, or 'max'
            continue
    return whole


def free_disk(path: str | os.PathLike[str]) -> int:
    """Bytes that are free where a folder is, or will be."""
    place = next(place for place in (Path(path).absolute(), *Path(path).absolute().parents) if place.exists())
    return shutil.disk_usage(place).free


def afford(cost: Cost, what: str, out: str | os.PathLike[str] | None = None, *, yes: bool = False) -> None:
    """Raise InputError where the machine has not as much memory or disk, unless `yes`; say so where it takes long.

    `what`: the settings that make it large, to be chosen smaller.
    """
    memory, need = machine_memory(), cost.memory + BASE
    if not yes and need > memory:
        raise InputError(
            f"this would take about {size(need)} of memory, and the machine has {size(memory)}; choose smaller {what}, "
            "or insist with --yes"
        )
    if not yes and out is not None and cost.disk > (free := free_disk(out)):
        raise InputError(
            f"this would write about {size(cost.disk)}, and {shown(out)} has room for {size(free)}; choose another "
            f"folder or smaller {what}, or insist with --yes"
        )
    if cost.seconds > LONG:
        print(f"topicscope: this will take long: {cost}", file=sys.stderr, flush=True)
