"""An experiment of the paper: it measures, then judges. And what all share: scale, seed, inputs, training, outcome.

outcome = experiment.judge(experiment.measure(Context("quick", seed=0)))
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from topicscope import language, training
from topicscope.ground import MOST, refuse_if
from topicscope.measure import Estimate
from topicscope.pages import Compared, Figure, Panel, Series, TableData, Verdict

Scale = Literal["quick", "full"]
Input = Literal["models", "corpus"]
Measured = TypeVar("Measured")
Value = TypeVar("Value")
LANGUAGE = ("accelerate", "tokenizers", "tomotopy", "transformers")  # the optional libraries of language models

# the paper's models and text
CHECKPOINTS = (
    "bert-base-uncased",
    "albert-base-v2",
    "facebook/bart-base",
    "google/electra-base-discriminator",
    "roberta-base",
)
WIKIPEDIA = "hf:wikimedia/wikipedia/20231101.en"
CLOSE = 0.1  # a number is close to the paper's if it is off by at most this share (of a range: of the nearer end)


@dataclass
class Outcome:
    """An experiment's result: texts with the numbers that are compared, figures and tables as data.

    `numbers` has all that was measured, for results.json; `config` the settings of the runs; `ours` the experiment's
    number. `differs` says why sizes may differ from the paper's in this run; '': for the reason that `Number` has.
    """

    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    ours: float | None = None
    differs: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The outcome that `asdict` wrote, its whole numbers as they were; errors where the data is something else."""
        if data["verdict"] not in get_args(Verdict):
            raise ValueError(f"no verdict: {data['verdict']}")
        figures = [Figure(**figure | {"panels": list(map(panel_from, figure["panels"]))}) for figure in data["figures"]]
        return cls(**data | {"figures": figures, "tables": [TableData(**table) for table in data["tables"]]})


def panel_from(data: dict[str, Any]) -> Panel:
    series = {"series": [Series(**line) for line in data["series"]]} if "series" in data else {}
    panels = {kind.kind: kind for kind in get_args(Panel)}
    return panels[data["kind"]](**data | series)


@dataclass(frozen=True)
class Number:
    """The number by which an experiment is compared with the paper at a glance.

    `name` stands in short tables, `what` defines it with its unit. `paper`: the range that the paper prints; None where
    it prints no number. `differs`: why sizes may differ although the pattern is the same.
    """

    name: str
    what: str
    paper: tuple[float, float] | None = None
    differs: str = ""

    def close(self, ours: float | None) -> bool | None:
        """Whether ours is within a tenth of the paper's; None where there is nothing to compare."""
        if self.paper is None or ours is None or math.isnan(ours):
            return None
        low, high = self.paper
        return low - CLOSE * abs(low) <= ours <= high + CLOSE * abs(high)

    def compared(self, ours: float | None) -> Compared:
        return Compared(self.name, self.what, "-" if self.paper is None else span(self.paper), cell(ours))

    def sizes(self, verdict: Verdict, ours: float | None, differs: str = "") -> str:
        if verdict != "reproduced" or self.close(ours) is not False:
            return ""
        both = self.compared(ours)
        return (
            f"pattern reproduced; sizes differ ({self.name}: paper {both.paper}, ours {both.ours}) because "
            f"{differs or self.differs}"
        )


@dataclass(frozen=True)
class Context:
    scale: Scale = "quick"
    seed: int = 0
    models: tuple[str, ...] = ()  # folders or hub ids
    corpus: tuple[str, ...] = ()  # files, globs, folders or hf:NAME

    @property
    def runs(self) -> int:
        return self.pick(3, 5)

    def check(self) -> None:
        refuse_if(not 0 <= self.seed <= MOST, f"seed = {self.seed}: expected a number from 0 to {MOST:,}")
        for name in self.models:
            language.check_model(name)
        if self.corpus:
            language.Corpus(self.corpus).check()

    def config(self) -> dict[str, Scale | int]:
        return {"scale": self.scale, "seed": self.seed}

    def pick(self, quick: Value, full: Value) -> Value:
        return quick if self.scale == "quick" else full

    def seeds(self, quick: int, full: int) -> list[int]:
        return [1000 * self.seed + i for i in range(self.pick(quick, full))]


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[Measured]):
    """One experiment: it measures, then judges by a rule that was fixed before any run.

    `seconds`: about how long it takes at quick scale on one core. `takes`: inputs of which it needs all or none, and is
    skipped with only some; `paper` is what the paper shows, for an experiment that is skipped. `uses`: optional
    libraries. Experiments of a `group` share what they train. `beyond`: the claim is this project's and not the
    paper's. `lost_at`: scales at which the reference runs did not reproduce it.
    """

    id: str
    claim: str
    rule: str
    measure: Callable[[Context], Measured]
    judge: Callable[[Measured], Outcome]
    seconds: int
    number: Number
    takes: tuple[Input, ...] = ()
    uses: tuple[str, ...] = ()
    group: str = ""
    paper: str = ""
    beyond: bool = False
    lost_at: tuple[Scale, ...] = ()

    def run(self, context: Context) -> Outcome:
        """Measure and judge; skipped where one input is given and another that belongs to it is not."""
        given = self.given(context).values()
        if all(given) or not any(given):
            return self.judge(self.measure(context))
        models = " ".join(f"--model {model}" for model in CHECKPOINTS)
        return Outcome(
            *(self.paper, "-", "-", "skipped"),
            "--model and --corpus must be given together here, and only one is given; run: topicscope reproduce "
            f"{self.id} {models} --corpus {WIKIPEDIA} (folders and files work too; without both options: five small "
            "models)",
        )

    def given(self, context: Context) -> dict[str, list[str]]:
        return {name: list(getattr(context, name)) for name in self.takes}

    def key(self, context: Context) -> Mapping[str, object]:
        return context.config() | self.given(context)

    def judged(self, context: Context) -> bool:
        """Whether a reference verdict exists: there is none for the user's own models and texts."""
        return not any(self.given(context).values())

    def verdict_name(self, verdict: Verdict) -> str:
        """A verdict in the words that tables show: only a claim of the paper can be reproduced."""
        return verdict.replace("reproduced", "as predicted") if self.beyond else verdict


def verdict(*checks: bool | None) -> Verdict:
    """Not reproduced where one check fails; undecided where none fails and one says nothing (None)."""
    if False in checks:
        return "not reproduced"
    return "undecided" if None in checks else "reproduced"


def cell(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3g}"


def span(numbers: Sequence[float]) -> str:
    """The least and the largest; one number where both read the same."""
    return " to ".join(dict.fromkeys(map(cell, (float(np.min(numbers)), float(np.max(numbers))))))


def listed(numbers: Iterable[float], form: str = ".3f") -> str:
    return ", ".join(f"{number:{form}}" for number in numbers)


def with_intervals(name: str, x: list[float], means: Sequence[Estimate], *, markers: bool = True) -> Series:
    return Series(name, x, [m.mean for m in means], [m.low for m in means], [m.high for m in means], markers=markers)


def by_category(name: str, means: Sequence[Estimate]) -> Series:
    return with_intervals(name, [float(i) for i in range(len(means))], means, markers=False)


def reached(times: ArrayLike, course: ArrayLike, level: float) -> float:
    """When a course first reaches a level, between two times by a straight line; NaN where it does not."""
    x, y = np.asarray(times), np.asarray(course)
    above = np.flatnonzero(y >= level)
    if not len(above) or above[0] == 0:
        return float(x[0]) if len(above) else math.nan
    i = above[0]
    return float(x[i - 1] + (level - y[i - 1]) / (y[i] - y[i - 1]) * (x[i] - x[i - 1]))


def first_step(course: ArrayLike, level: float, never: float = math.nan) -> float:
    above = np.flatnonzero(np.asarray(course) >= level)
    return float(above[0]) if len(above) else never


def train_many(context: Context, **settings: object) -> list[training.Run]:
    config = training.RunConfig.of({"device": "cpu", "evaluate_every": None, "seed": 1000 * context.seed, **settings})
    return training.train(config.with_seeds(context.runs), with_floors=False)
