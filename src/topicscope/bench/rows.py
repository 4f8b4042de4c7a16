"""A row of the table, and how times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

Say = Callable[[str], None]


@dataclass
class Row:
    """One figure: seconds per unit for ours and for each plain way, with the floor and the aim."""

    name: str
    unit: str
    ours: float
    plain: dict[str, float] = field(default_factory=dict)
    times_faster: dict[str, float] = field(default_factory=dict)
    floor: float | None = None
    floor_is: str = ""
    over_floor: float | None = None
    aim: str = ""
    met: bool | None = None

    def __post_init__(self) -> None:
        self.times_faster = {name: seconds / self.ours for name, seconds in self.plain.items()}
        self.over_floor = None if self.floor is None else self.ours / self.floor


def seconds(work: Callable[[], object], device: str = "cpu") -> float:
    """CPU time of one call; on a GPU, wall time until its work is done."""
    if device == "cuda":
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - began
    began = time.process_time()
    work()
    return time.process_time() - began


def matrix_rate(device: str) -> float:
    """Multiply-adds and adds per second of a 512 x 512 float32 product: the machine's own rate."""
    size = 512 if device == "cpu" else 4096
    a = torch.randn(size, size, device=device)
    out = torch.empty_like(a)
    best = min(seconds(lambda: [torch.mm(a, a, out=out) for _ in range(20)], device) for _ in range(8))
    return 20 * 2 * size**3 / best
