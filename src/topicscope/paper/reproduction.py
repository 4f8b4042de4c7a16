"""A reproduction: the outcomes of experiments of one scale and seed, and the folder that keeps them.

Each outcome is a file of its own, named by its experiment. results.json holds the numbers of all of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from topicscope.figures import Verdict
from topicscope.ground import InputError, files, folders
from topicscope.paper.experiment import Context, Scale
from topicscope.paper.outcome import Outcome
from topicscope.paper.registry import EXPERIMENTS, NOT_IN_REFERENCE

if TYPE_CHECKING:
    import pyarrow

FORMAT = 2
"""Of the outcome files; one of another format is computed again."""

CONTEXT, RESULTS = "reproduction.json", "results.json"


@dataclass(frozen=True)
class Reproduction:
    """Outcomes and the seconds that they took, by experiment, in the paper's order."""

    context: Context
    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    folder: Path

    @classmethod
    def of(cls, context: Context, finished: dict[str, tuple[Outcome, float]], folder: Path) -> Reproduction:
        ordered = {name: finished[name] for name in EXPERIMENTS if name in finished}
        outcomes = {name: outcome for name, (outcome, _) in ordered.items()}
        return cls(context, outcomes, {name: seconds for name, (_, seconds) in ordered.items()}, folder)

    def as_dict(self) -> dict[str, Any]:
        """results.json."""
        return {
            "scale": self.context.scale,
            "seed": self.context.seed,
            "results": [
                {
                    "id": name,
                    "claim": EXPERIMENTS[name].claim,
                    "paper": outcome.paper,
                    "theory": outcome.theory,
                    "measured": outcome.measured,
                    "verdict": outcome.verdict,
                    "reason": outcome.reason,
                    "seconds": self.seconds[name],
                    "rule": EXPERIMENTS[name].rule,
                    "numbers": finite(outcome.numbers),
                }
                for name, outcome in self.outcomes.items()
            ],
        }

    def table(self) -> pyarrow.Table:
        """One row per experiment."""
        import pyarrow

        columns = ("id", "claim", "paper", "theory", "measured", "verdict", "seconds")
        rows = self.as_dict()["results"]
        return pyarrow.table({name: [row[name] for row in rows] for name in columns})

    def summary(self) -> list[str]:
        """How many verdicts of each kind, and the reason of every one that is not 'reproduced'."""
        counts = Counter(outcome.verdict for outcome in self.outcomes.values())
        return [
            ", ".join(f"{counts[kind]} {kind}" for kind in get_args(Verdict) if counts[kind]) or "no experiments",
            *(f"{name}: {o.reason}" for name, o in self.outcomes.items() if o.verdict != "reproduced"),
        ]

    def regressions(self) -> list[str]:
        """Experiments that were reproduced in the reference runs, and are not here."""
        return [
            name
            for name, outcome in self.outcomes.items()
            if outcome.verdict == "not reproduced"
            and EXPERIMENTS[name].judged(self.context)
            and name not in NOT_IN_REFERENCE[self.context.scale]
        ]


def finite(value: Any) -> Any:
    """Numbers that JSON can hold: None for infinities and NaN."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def claim(folder: Path, context: Context) -> None:
    """Make the folder this reproduction's; refuse one that holds something else, or another scale or seed."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"out {folder} is a file; give a folder that is new, empty, or of a reproduction")
    if folder.is_dir() and any(path.name != ".lock" for path in folder.iterdir()):
        stored = stored_context(folder)
        if stored is None:
            raise InputError(
                f"out {folder} holds something else (no {CONTEXT}); choose a folder that is new, empty, or of a "
                "reproduction"
            )
        if (stored.scale, stored.seed) != (context.scale, context.seed):
            raise InputError(
                f"{folder} holds a reproduction of scale {stored.scale}, seed {stored.seed}, not of {context.scale}, "
                f"{context.seed}; choose another folder"
            )
        return
    folders.prepare(folder)
    files.write_json(folder / CONTEXT, {"scale": context.scale, "seed": context.seed})


def stored_context(folder: Path) -> Context | None:
    """Scale and seed of the folder; None where it is not a reproduction's."""
    try:
        stored = json.loads((folder / CONTEXT).read_text(encoding="utf-8"))
        return Context(stored["scale"], int(stored["seed"])) if stored["scale"] in get_args(Scale) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def outcome_path(folder: Path, experiment: str) -> Path:
    return folder / "outcomes" / f"{experiment}.json"


def read_outcome(
    folder: Path, experiment: str, context: Context, *, inputs: bool = True
) -> tuple[Outcome, float] | None:
    """A stored outcome and its seconds; None where it is damaged or of another context.

    Without `inputs` the models and texts that it was made from do not matter.
    """
    try:
        stored = json.loads(outcome_path(folder, experiment).read_text(encoding="utf-8"))
        wanted = EXPERIMENTS[experiment].key(context)
        keys = wanted if inputs else ("scale", "seed")
        if stored["format"] != FORMAT or any(stored["context"][key] != wanted[key] for key in keys):
            return None
        return Outcome.from_dict(stored["outcome"]), float(stored["seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_reproduction(folder: str | Path) -> Reproduction:
    """All finished outcomes of a folder, of whatever models and texts."""
    folder = Path(folder)
    context = stored_context(folder)
    if context is None:
        raise InputError(f"{folder} holds no reproduction (no {CONTEXT}); run 'topicscope reproduce --out {folder}'")
    stored = {name: read_outcome(folder, name, context, inputs=False) for name in EXPERIMENTS}
    finished = {name: pair for name, pair in stored.items() if pair is not None}
    return Reproduction.of(context, finished, folder)
