"""A reproduction: the outcomes of experiments of one scale and seed, and the folder that keeps them.

Each outcome is a file of its own, named by its experiment. results.json holds the numbers of all of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from topicscope.figures import Judgement, Section, Verdict
from topicscope.ground import InputError, Kind, Result, folders, load_settings
from topicscope.paper.experiment import Context, Scale
from topicscope.paper.outcome import Outcome
from topicscope.paper.registry import EXPERIMENTS, NOT_IN_REFERENCE

if TYPE_CHECKING:
    import pyarrow

FORMAT = 2
"""Of the outcome files; one of another format is computed again."""

REPRODUCE = Kind("reproduce", 1, ("outcomes",))


@dataclass(frozen=True, repr=False)
class Reproduction(Result):
    """Outcomes and the seconds that they took, by experiment, in the paper's order."""

    kind: ClassVar[str] = REPRODUCE.name
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
        context = f"scale {self.context.scale}, seed {self.context.seed}"
        return [
            "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured at "
            f"{context}: {self.counts}.",
            *(f"{name}: {o.reason}" for name, o in self.outcomes.items() if o.verdict != "reproduced"),
        ]

    @property
    def counts(self) -> str:
        """For example '20 reproduced, 1 not reproduced, 4 skipped'."""
        counts = Counter(outcome.verdict for outcome in self.outcomes.values())
        return ", ".join(f"{counts[kind]} {kind}" for kind in get_args(Verdict) if counts[kind]) or "no experiments"

    def sections(self) -> list[Section]:
        """One section per experiment."""
        context, sections = self.context, []
        for name, o in self.outcomes.items():
            claim, rule = EXPERIMENTS[name].claim, EXPERIMENTS[name].rule
            texts = (o.paper, o.theory, o.measured, o.verdict, o.reason)
            sections.append(
                Section(
                    name,
                    command=f"topicscope reproduce {name} --scale {context.scale} --seed {context.seed} "
                    f"--out {self.folder}",
                    figures=o.figures,
                    tables=o.tables,
                    verdict=Judgement(claim, rule, *texts, self.seconds[name]),
                    config=o.config,
                )
            )
        return sections

    def _about(self) -> str:
        return f"{self.context.scale}, seed {self.context.seed}, {self.counts}"

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


def check_context(folder: Path, context: Context) -> None:
    """Refuse a folder that holds a reproduction of another scale or seed."""
    about = folders.read_about(folder)
    if about is None or about.kind != REPRODUCE.name:
        return
    stored = stored_context(folder)
    if stored.config() != context.config():
        raise InputError(
            f"{folder} holds a reproduction of scale {stored.scale}, seed {stored.seed}, not of {context.scale}, "
            f"{context.seed}; choose another folder"
        )


def stored_context(folder: Path) -> Context:
    """Scale and seed of the folder."""
    config = load_settings(folder / folders.CONFIG)
    if config.get("scale") not in get_args(Scale) or not isinstance(config.get("seed"), int):
        raise InputError(f"{folder / folders.CONFIG} is damaged: expected scale and seed; choose another folder")
    return Context(config["scale"], config["seed"])


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
    """All outcomes of a finished folder."""
    folders.finished_about(folder, REPRODUCE)
    return stored_reproduction(Path(folder), stored_context(Path(folder)))


def stored_reproduction(folder: Path, context: Context) -> Reproduction:
    """All outcomes of a folder, of whatever models and texts."""
    stored = {name: read_outcome(folder, name, context, inputs=False) for name in EXPERIMENTS}
    return Reproduction.of(context, {name: pair for name, pair in stored.items() if pair is not None}, folder)
