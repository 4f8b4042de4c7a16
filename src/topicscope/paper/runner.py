"""Run experiments side by side, one process a core, and keep each outcome as soon as it is there.

An outcome is a file of its own, named by what it depends on; run again, and only what is missing is computed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from topicscope.figures import Figure, Heat, Lines, Map, Panel, Points, Series, TableData, Verdict
from topicscope.ground import InputError, files, old_folders as folders, worker_pool
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.paper.registry import EXPERIMENTS

FORMAT = 2
"""Of the outcome files; another one is computed anew."""

CONTEXT = "reproduction.json"
"""Scale and seed of a folder: it holds the outcomes of one of each."""

Started = Callable[[str], None]
Finished = Callable[[str, Outcome, float], None]


def claim(folder: Path, context: Context) -> None:
    """Make the folder this reproduction's, or say why it is not to be had."""
    mine = {"scale": context.scale, "seed": context.seed}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file; give a folder that is new, empty, or a reproduction's")
    if folder.is_dir() and any(path.name != ".lock" for path in folder.iterdir()):
        if (found := stored_context(folder)) is None:
            raise InputError(
                f"--out {folder} holds something else (no {CONTEXT}); choose a folder that is new, empty, or a reproduction's"
            )
        if found != mine:
            raise InputError(
                f"{folder} holds a reproduction of scale {found['scale']}, seed {found['seed']}, not of {context.scale}, {context.seed}; choose another --out"
            )
        return
    folders.prepare(folder)
    files.write_json(folder / CONTEXT, mine)


def stored_context(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / CONTEXT).read_text(encoding="utf-8"))
        return {"scale": str(found["scale"]), "seed": int(found["seed"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def outcome_path(folder: Path, experiment: str) -> Path:
    return folder / "outcomes" / f"{experiment}.json"


def run_one(experiment: str, context: Context, folder: str) -> float:
    """In a worker: run and write. Returns the seconds that it took."""
    began = time.perf_counter()
    outcome = EXPERIMENTS[experiment].run(context)
    seconds = round(time.perf_counter() - began, 2)
    path = outcome_path(Path(folder), experiment)
    files.write(
        path,
        json.dumps(
            {
                "format": FORMAT,
                "context": EXPERIMENTS[experiment].key(context),
                "seconds": seconds,
                "outcome": asdict(outcome),
            }
        ).encode(),
    )
    return seconds


def load(folder: Path, experiment: str, context: Context, *, inputs: bool = True) -> tuple[Outcome, float] | None:
    """A stored outcome, if it is whole and of this context; without `inputs`, whatever models and text it is of."""
    try:
        stored = json.loads(outcome_path(folder, experiment).read_text(encoding="utf-8"))
        wanted = EXPERIMENTS[experiment].key(context)
        if stored["format"] != FORMAT or any(
            stored["context"][key] != wanted[key] for key in (wanted if inputs else ("scale", "seed"))
        ):
            return None
        return outcome_from(stored["outcome"]), float(stored["seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def outcome_from(data: dict[str, Any]) -> Outcome:
    if data["verdict"] not in get_args(Verdict):
        raise ValueError(f"no verdict: {data['verdict']}")
    figures = [
        Figure(**{**figure, "panels": [panel_from(panel) for panel in figure["panels"]]}) for figure in data["figures"]
    ]
    return Outcome(**{**data, "figures": figures, "tables": [TableData(**table) for table in data["tables"]]})


def panel_from(data: dict[str, Any]) -> Panel:
    kinds: dict[str, Callable[..., Panel]] = {"heat": Heat, "map": Map, "lines": Lines, "points": Points}
    if "series" in data:
        data = data | {"series": [Series(**series) for series in data["series"]]}
    return kinds[data["kind"]](**data)


def reproduce(
    experiments: list[Experiment],
    context: Context,
    folder: Path,
    *,
    workers: int = 2,
    started: Started | None = None,
    finished: Finished | None = None,
) -> dict[str, tuple[Outcome, float]]:
    """Outcomes of all experiments; those already stored are not run again."""
    (folder / "outcomes").mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[Outcome, float]] = {}

    def take(experiment: str) -> None:
        stored = load(folder, experiment, context)
        assert stored is not None
        found[experiment] = stored
        if finished is not None:
            finished(experiment, *stored)

    missing = []
    for e in experiments:
        if load(folder, e.id, context) is None:
            missing.append(e)
        else:
            take(e.id)
    missing.sort(key=lambda e: -e.seconds)  # the longest first, so that no core waits at the end
    if workers <= 1 or len(missing) <= 1:
        for e in missing:
            if started is not None:
                started(e.id)
            run_one(e.id, context, str(folder))
            take(e.id)
        return found
    with worker_pool(workers) as pool:
        queue, running = list(missing), dict[Future[float], str]()
        while queue or running:
            while queue and len(running) < workers:
                e = queue.pop(0)
                running[pool.submit(run_one, e.id, context, str(folder))] = e.id
                if started is not None:
                    started(e.id)
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                future.result()  # an error in a worker is an error here
                take(name)
    return found


def finite(value: Any) -> Any:
    """Numbers that JSON can hold: None for those that are none."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def results_of(outcomes: dict[str, tuple[Outcome, float]], context: Context) -> dict[str, Any]:
    """results.json."""
    results = [
        {
            "id": name,
            "claim": EXPERIMENTS[name].claim,
            "paper": outcome.paper,
            "theory": outcome.theory,
            "measured": outcome.measured,
            "verdict": outcome.verdict,
            "reason": outcome.reason,
            "seconds": seconds,
            "rule": EXPERIMENTS[name].rule,
            "numbers": finite(outcome.numbers),
        }
        for name, (outcome, seconds) in ((name, outcomes[name]) for name in EXPERIMENTS if name in outcomes)
    ]
    return {"scale": context.scale, "seed": context.seed, "results": results}
