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

from topicscope.ground import Engine, Progress, files, folders, serial, watched
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.paper.registry import EXPERIMENTS
from topicscope.paper.reproduction import (
    FORMAT,
    REPRODUCE,
    Reproduction,
    check_context,
    outcome_path,
    read_outcome,
    stored_reproduction,
)

Finished = Callable[[str, Outcome, float], None]
"""Called with an experiment, its outcome and its seconds, as soon as the outcome is there."""


def compute(context: Context, name: str) -> dict[str, Any]:
    """In a worker: what the outcome's file holds."""
    began = time.perf_counter()
    outcome = EXPERIMENTS[name].run(context)
    seconds = round(time.perf_counter() - began, 2)
    key = EXPERIMENTS[name].key(context)
    return {"format": FORMAT, "context": key, "seconds": seconds, "outcome": asdict(outcome)}


def reproduce(
    experiments: Sequence[Experiment[Any]],
    context: Context,
    folder: str | Path,
    engine: Engine = serial,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> Reproduction:
    """The outcomes of these experiments. Those that the folder holds already are not computed again."""
    folder = Path(folder)
    check_context(folder, context)
    outcomes: dict[str, tuple[Outcome, float]] = {}
    expected = {e.id: e.seconds for e in experiments}
    with folders.open_folder(folder, REPRODUCE, context.config(), resume=True) as opened, watched(progress) as show:

        def report() -> None:
            done = sum(expected[name] for name in outcomes)
            show("experiments", done, sum(expected.values()), f"{len(outcomes)} of {len(expected)} done")

        def take(name: str) -> bool:
            """Whether the outcome is stored; it is reported then."""
            stored = read_outcome(folder, name, context)
            if stored is None:
                return False
            outcomes[name] = stored
            if finished is not None:
                finished(name, *stored)
            report()
            return True

        report()
        missing = [e for e in experiments if not take(e.id)]
        longest_first = [e.id for e in sorted(missing, key=lambda e: -e.seconds)]
        if missing:
            opened.mark("running")
            (folder / "outcomes").mkdir(exist_ok=True)
        for number, record in engine(compute, context, longest_first):
            files.write(outcome_path(folder, longest_first[number]), json.dumps(record).encode())
            take(longest_first[number])
        opened.finish(stored_reproduction(folder, context).as_dict())
    return Reproduction.of(context, outcomes, folder)
