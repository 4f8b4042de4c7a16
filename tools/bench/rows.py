"""A row of the table, and how times are taken."""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import torch

from topicscope.ground import one_thread

Say = Callable[[str], None]
Work = Callable[[], object]


@dataclass
class Row:
    """One figure: seconds per unit for ours and for each plain way, with the floor and the aim."""

    name: str
    unit: str
    ours: float
    plain: dict[str, float] = field(default_factory=dict)
    times_faster: dict[str, float] = field(init=False)
    floor: float | None = None
    floor_is: str = ""
    over_floor: float | None = field(init=False)
    aim: str = ""
    met: bool | None = None

    def __post_init__(self) -> None:
        self.times_faster = {name: seconds / self.ours for name, seconds in self.plain.items()}
        self.over_floor = None if self.floor is None else self.ours / self.floor


def measured(parts: Mapping[str, Callable[[], list[Row]]], say: Say) -> list[Row]:
    """The rows of all parts, measured on one thread; what comes next is said before."""
    rows = []
    with one_thread():
        for what, measure in parts.items():
            say(what)
            rows += measure()
    return rows


def now(device: str) -> float:
    """CPU time; on a GPU, wall time when its work is done."""
    if device != "cuda":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def seconds(work: Work, device: str = "cpu") -> float:
    began = now(device)
    work()
    return now(device) - began


def medians(works: Mapping[str, Work], rounds: int, device: str = "cpu") -> dict[str, float]:
    """Median seconds of each. They take turns, so that a machine that slows down slows all."""
    times = [[seconds(work, device) for work in works.values()] for _ in range(rounds)]
    return dict(zip(works, map(statistics.median, zip(*times, strict=True)), strict=True))


def peak_gigabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def matrix_products(device: str) -> tuple[Work, float]:
    """Products of 512 x 512 float32 matrices (4,096 on a GPU), and how many multiplications and additions they are."""
    size, times = 512 if device == "cpu" else 4096, 20
    a = torch.randn(size, size, device=device)
    out = torch.empty_like(a)
    return lambda: [torch.mm(a, a, out=out) for _ in range(times)], times * 2.0 * size**3


@cache
def matrix_rate(device: str) -> float:
    """Multiplications and additions per second: the machine's own rate at its best in this run."""
    work, flops = matrix_products(device)
    return flops / min(seconds(work, device) for _ in range(8))
