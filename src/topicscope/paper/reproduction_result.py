"""What `reproduce` returns: outcomes with their verdicts, as sentences, a table, and sections of a page."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from topicscope.ground import (
    Result,
)
from topicscope.pages import Compared, Figure, Judgement, Section, counted
from topicscope.paper.experiment import Context, Outcome
from topicscope.paper.outcome_files import (
    REPRODUCE,
)
from topicscope.paper.registry import EXPERIMENTS, NOT_IN_REFERENCE, verdict_name

if TYPE_CHECKING:
    import pyarrow

FULL = 12  # how much longer everything takes at full scale, roughly


@dataclass(frozen=True, repr=False)
class Reproduction(Result):
    """The outcomes of experiments of one scale and seed, in the paper's order.

    Attributes:
        context: Scale, seed and inputs.
        outcomes: By experiment.
        seconds: How long each took, where known.
        folder: Where they are kept.

    Example:
        See `reproduce`.
    """

    kind: ClassVar[str] = REPRODUCE.name
    context: Context
    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    folder: Path

    @classmethod
    def of(
        cls, context: Context, outcomes: dict[str, Outcome], seconds: dict[str, float], folder: Path
    ) -> Reproduction:
        names = [name for name in EXPERIMENTS if name in outcomes]
        known = {name: seconds[name] for name in names if name in seconds}
        return cls(context, {name: outcomes[name] for name in names}, known, folder)

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
                    "rule": EXPERIMENTS[name].rule,
                    "numbers": finite(outcome.numbers),
                    "number": asdict(self.compared(name)) | {"close": EXPERIMENTS[name].number.close(outcome.ours)},
                    "sizes": self.sizes(name),
                }
                for name, outcome in self.outcomes.items()
            ],
        }

    def table(self) -> pyarrow.Table:
        """One row per experiment."""
        import pyarrow

        rows = self.as_dict()["results"]
        names = ("id", "claim", "paper", "theory", "measured", "verdict")
        columns = {name: [row[name] for row in rows] for name in names}
        seconds = pyarrow.array([self.seconds.get(name) for name in self.outcomes], pyarrow.float64())
        return pyarrow.table(columns | {"seconds": seconds})

    def summary(self) -> list[str]:
        """How many verdicts of each kind; why one is not 'reproduced', or its sizes are not the paper's."""
        return [
            "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured at "
            f"scale {self.context.scale}, seed {self.context.seed}: {self.counts}.",
            *(f"{name}: {o.reason}" for name, o in self.outcomes.items() if o.verdict != "reproduced"),
            *(f"{name}: {sizes}" for name in self.outcomes if (sizes := self.sizes(name))),
        ]

    def intro(self) -> list[str]:
        """The first sentence: the page's table and sections have the others."""
        return self.summary()[:1]

    def compared(self, name: str) -> Compared:
        """The experiment's number: the paper's and ours."""
        return EXPERIMENTS[name].number.compared(self.outcomes[name].ours)

    def sizes(self, name: str) -> str:
        """A sentence where the pattern is reproduced and the paper's number and ours are not close; else nothing."""
        outcome = self.outcomes[name]
        return EXPERIMENTS[name].number.sizes(outcome.verdict, outcome.ours, outcome.differs)

    def figures(self, name: str) -> list[Figure]:
        """The figures of an experiment. The name of each begins with the experiment's: all are files of one folder."""
        return [
            figure if figure.name.startswith(name) else replace(figure, name=f"{name}-{figure.name}")
            for figure in self.outcomes[name].figures
        ]

    def expected_seconds(self, name: str) -> float:
        """About how long an experiment takes at this scale."""
        return EXPERIMENTS[name].seconds * self.context.pick(1, FULL)

    @property
    def counts(self) -> str:
        """For example '20 reproduced, 14 as predicted, 1 not reproduced, 4 skipped'."""
        return counted(verdict_name(name, o.verdict) for name, o in self.outcomes.items()) or "no experiments"

    def sections(self) -> list[Section]:
        """One section per experiment."""
        options = f"--scale {self.context.scale} --seed {self.context.seed} --out {self.folder}"
        return [
            Section(
                name,
                command=f"topicscope reproduce {name} {options}",
                figures=self.figures(name),
                tables=o.tables,
                verdict=Judgement(
                    EXPERIMENTS[name].claim,
                    EXPERIMENTS[name].rule,
                    *(o.paper, o.theory, o.measured, o.verdict, o.reason),
                    self.seconds.get(name),
                    self.compared(name),
                    self.sizes(name),
                    verdict_name(name, o.verdict),
                ),
                config=o.config,
            )
            for name, o in self.outcomes.items()
        ]

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
