"""A small grid, and what a sweep of it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topicscope.sweeps import Grid, build_grid

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
