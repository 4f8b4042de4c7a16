"""Run experiments on an engine, and store each outcome as soon as it arrives.

reproduction = reproduce(chosen(["figure7", "theorem1"]), Context("quick", seed=0), "runs/two")
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from topicscope.ground import Engine, files, folders, serial
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.paper.registry import EXPERIMENTS
from topicscope.paper.reproduction import (
    FORMAT,
    RESULTS,
    Reproduction,
    claim,
    outcome_path,
    read_outcome,
    read_reproduction,
)

Progress = Callable[[str, Outcome, float], None]
"""Called with an experiment, its outcome and its seconds, as soon as the outcome is there."""


def compute(context: Context, name: str) -> dict[str, Any]:
    """In a worker: what the outcome's file holds."""
    began = time.perf_counter()
    outcome = EXPERIMENTS[name].run(context)
    seconds = round(time.perf_counter() - began, 2)
    return {
        "format": FORMAT,
        "context": EXPERIMENTS[name].key(context),
        "seconds": seconds,
        "outcome": asdict(outcome),
    }


def reproduce(
    experiments: Sequence[Experiment[Any]],
    context: Context,
    folder: str | Path,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Reproduction:
    """The outcomes of these experiments. Those that the folder holds already are not computed again."""
    folder = Path(folder)
    claim(folder, context)
    with folders.lock(folder):
        (folder / "outcomes").mkdir(exist_ok=True)
        finished: dict[str, tuple[Outcome, float]] = {}

        def take(name: str) -> bool:
            stored = read_outcome(folder, name, context)
            if stored is None:
                return False
            finished[name] = stored
            if progress is not None:
                progress(name, *stored)
            return True

        missing = [e for e in experiments if not take(e.id)]
        longest_first = [e.id for e in sorted(missing, key=lambda e: -e.seconds)]
        for number, record in engine(compute, context, longest_first):
            files.write(outcome_path(folder, longest_first[number]), json.dumps(record).encode())
            take(longest_first[number])
        files.write_json(folder / RESULTS, read_reproduction(folder).as_dict())
    return Reproduction.of(context, finished, folder)
