"""A small grid, what a sweep of it leaves behind, and a kind of sweep that takes no time."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.sweeps import Grid, PointResult, SweepKind, build_grid

BASE = {
    "steps": 60,
    "data": {"documents": 200, "dev_documents": 40},
    "evaluate_every": None,
    "floors": False,
    "topic_model": {"topics": 4, "words_per_topic": 4},
}
LONG = {"base": {**BASE, "steps": 1500}, "axes": {"batch_size": [10, 12, 14, 16], "seed": {"seeds": 4}}}
"""Four packs of four, some seconds each."""


def small(**axes: Any) -> Grid:
    chosen = axes or {
        "optimizer.lr": {"log": [0.001, 0.1], "points": 3},
        "model.init_scale": [0.001, 0.1],
        "seed": {"seeds": 2},
    }
    return build_grid({"base": BASE, "axes": chosen})


def files(folder: Path) -> dict[str, bytes]:
    """Every file of every point; nothing half-written is among them."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted((folder / "points").rglob("*")) if p.is_file()}


def count(folder: Path) -> int:
    """Points that are there, whole."""
    home = folder / "points"
    return sum(not path.name.startswith(".") for path in home.iterdir()) if home.is_dir() else 0


@dataclasses.dataclass(frozen=True)
class Cake:
    """The config of a kind that nobody knows."""

    sugar: int = 1
    seed: int = 0
    recipe: str = ""

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def bake(configs: Any, _homes: Any) -> list[PointResult]:
    curves = {"crumb_size": np.arange(3.0)}
    measures = [{"sweetness": 10 * config.sugar + config.seed, "together": len(configs)} for config in configs]
    return [PointResult(one, curves) for one in measures]


BAKING = SweepKind[Cake](
    build=lambda settings: Cake(**settings),
    run=bake,
    reads=("recipe",),
    measures={"sweetness": "as measured"},
    knobs={"sugar": (1, 2)},
    sizes=lambda cake: {"sugar": cake.sugar},
    pack_size=lambda _: 3,
    may_differ=("seed",),
    curve_panels={"crumbs": "crumb_"},
)


Bakery = Callable[..., None]


def baking(**axes: Any) -> Grid:
    """A grid of cakes, where `KINDS` knows them."""
    return build_grid({"kind": "bake", "axes": axes})
