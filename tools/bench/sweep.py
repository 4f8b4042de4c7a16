"""Sweeps: a point on all cores, in a pool and on Ray, against one process; and points packed against one by one.

The time to start is not counted.
"""

import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from tools.bench.rows import Row, Say
from topicscope.ground import NAMES, Name
from topicscope.sweeps import PHASE, Place, Point, build_grid, compute, pack, sweep


def bench_sweep(_device: str = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    """Packs of eight runs of the quick map (T = v = 10, squared loss, Adam).

    The time until the first results, when all workers have started, is not counted.
    """
    cores = os.cpu_count() or 1
    packs, steps = (2 * cores + 2, 20) if quick else (10 * cores, 1000)
    base = {
        "steps": steps,
        "evaluate_every": None,
        "floors": False,
        "data": {"dev_documents": 1000},
        "objective": {"loss": "squared"},
    }
    axes = {
        "optimizer.betas": [[0.9, round(0.999 - 1e-6 * i, 6)] for i in range(packs)],
        "model.init_scale": [1e-4, 1e-3, 1e-2, 1e-1],
        "seed": {"seeds": 2},
    }
    grid = build_grid({"base": base, "axes": axes})

    def a_point(engine: str) -> float:
        say(f"sweep, {engine}")
        marks: list[tuple[float, float]] = []

        def mark(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
            if phase == PHASE:
                marks.append((done, time.perf_counter()))

        with tempfile.TemporaryDirectory() as folder:
            sweep(grid, folder, cast(Name, engine), progress=mark)
        first = min(cores, len(marks) - 2) if engine != "serial" else 1
        return (marks[-1][1] - marks[first][1]) / (marks[-1][0] - marks[first][0])

    seconds = {name: a_point(name) for name in NAMES if name != "ray" or (find_spec("ray") is not None and not quick)}
    serial, local = seconds["serial"], seconds["local"]
    rows = [
        Row(
            f"one point of a sweep, engine local ({cores} cores)",
            "s",
            local,
            {"engine serial": serial},
            aim=f"{0.9 * cores:.1f} times faster than engine serial",
            met=serial / local >= 0.9 * cores,
        )
    ]
    if "ray" in seconds:
        aim, met = "at most 1.25 times engine local", seconds["ray"] <= 1.25 * local
        rows.append(
            Row("one point of a sweep, engine ray", "s", seconds["ray"], {"engine local": local}, aim=aim, met=met)
        )
    say("sweep, packed against one by one")
    task, place = pack(grid)[0], Place(str(Path.cwd()), str(Path.cwd()))

    def wall(points: tuple[Point, ...]) -> float:
        began = time.perf_counter()
        compute(place, points)
        return (time.perf_counter() - began) / len(points)

    together, alone = wall(task), wall(task[:1])
    return [*rows, Row("one point of a sweep, eight trained together", "s", together, {"one by one": alone})]
