"""An experiment of the paper: it measures, then judges. And what all share: scale, seed, inputs, training, outcome.

`measure` trains or probes and returns numbers. `judge` applies the rule to them and writes texts, tables and figures:
outcome = experiment.judge(experiment.measure(Context("quick", seed=0)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

from topicscope import language, training
from topicscope.ground import MOST, InputError
from topicscope.measure import Estimate
from topicscope.pages import Circles, Compared, Figure, Heat, Lines, Map, Panel, Points, Series, TableData, Verdict

Scale = Literal["quick", "full"]
Input = Literal["models", "corpus"]
Found = TypeVar("Found")

LANGUAGE = ("accelerate", "tokenizers", "tomotopy", "transformers")
"""The optional libraries of experiments on language models."""

CHECKPOINTS = (
    "bert-base-uncased",
    "albert-base-v2",
    "facebook/bart-base",
    "google/electra-base-discriminator",
    "roberta-base",
)
WIKIPEDIA = "hf:wikimedia/wikipedia/20231101.en"
"""The paper's models and text."""

CLOSE = 0.1
"""Ours is close to the paper's number where it is off by at most this share of it (of a range: of the nearer end)."""

PANELS: dict[str, Callable[..., Panel]] = {
    "heat": Heat,
    "map": Map,
    "lines": Lines,
    "points": Points,
    "circles": Circles,
}


@dataclass
class Outcome:
    """An experiment's result. The texts have the numbers that are compared.

    Attributes:
        paper: What the paper shows.
        theory: What theory says.
        measured: What was measured here.
        verdict: 'reproduced', 'not reproduced', 'undecided' or 'skipped'.
        reason: Why.
        figures: Figures, as data.
        tables: Tables, as data.
        numbers: All that was measured, for results.json.
        config: Settings of the runs.
        ours: The experiment's number, as measured.
        differs: Why sizes may differ from the paper's in this run; '': for the reason that its `Number` has.

    Example:
        >>> from topicscope.paper import EXPERIMENTS
        >>> outcome = EXPERIMENTS["figure7"].run(Context("quick"))
        >>> outcome.verdict, outcome.reason
        ('reproduced', "all minima agree to five decimals and lie inside the theorem's bounds")
    """

    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    ours: float | None = None
    differs: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Outcome:
        """The outcome that `asdict` wrote; KeyError, TypeError or ValueError where the data is something else."""
        if data["verdict"] not in get_args(Verdict):
            raise ValueError(f"no verdict: {data['verdict']}")
        figures = [Figure(**figure | {"panels": list(map(panel_from, figure["panels"]))}) for figure in data["figures"]]
        return cls(**data | {"figures": figures, "tables": [TableData(**table) for table in data["tables"]]})


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
        printed = "-" if self.paper is None else " to ".join(dict.fromkeys(map(cell, self.paper)))
        return Compared(self.name, self.what, printed, cell(ours))

    def sizes(self, verdict: Verdict, ours: float | None, differs: str = "") -> str:
        """What is said where the pattern is there and the sizes are others, for this reason or the usual one."""
        if verdict != "reproduced" or self.close(ours) is not False:
            return ""
        both = self.compared(ours)
        numbers = f"{self.name}: paper {both.paper}, ours {both.ours}"
        return f"pattern reproduced; sizes differ ({numbers}) because {differs or self.differs}"


def panel_from(data: dict[str, Any]) -> Panel:
    series = {"series": [Series(**line) for line in data["series"]]} if "series" in data else {}
    return PANELS[data["kind"]](**data | series)


def verdict(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


def cell(value: float | None) -> str:
    """A number of a table; '-' where there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:.3g}"


def by_category(name: str, means: Sequence[Estimate]) -> Series:
    """A mean and its interval for each category of a panel of points."""
    places = [float(i) for i in range(len(means))]
    return Series(name, places, [m.mean for m in means], [m.low for m in means], [m.high for m in means])


@dataclass(frozen=True)
class Context:
    """How large a reproduction is, from which seed, and on which of your models and texts.

    Attributes:
        scale: 'quick' or 'full'.
        seed: Seed of all random draws.
        models: Folders or hub ids.
        corpus: Files, globs, folders or hf:NAME.

    Example:
        >>> Context("quick").runs, Context("full").runs  # seeds per setting
        (3, 5)
    """

    scale: Scale = "quick"
    seed: int = 0
    models: tuple[str, ...] = ()
    corpus: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Seeds per setting."""
        return self.pick(3, 5)

    def check(self) -> None:
        """Raise InputError where a model or a text is not there, or the seed is out of range."""
        if not 0 <= self.seed <= MOST:
            raise InputError(f"seed = {self.seed}: expected a number from 0 to {MOST:,}")
        for name in self.models:
            language.check_model(name)
        if self.corpus:
            language.Corpus(self.corpus).check()

    def config(self) -> dict[str, Scale | int]:
        """What all outcomes of a folder share."""
        return {"scale": self.scale, "seed": self.seed}

    def pick(self, quick: int, full: int) -> int:
        return quick if self.scale == "quick" else full


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[Found]):
    """One experiment of the paper: it measures, then judges by a rule that was fixed before any run.

    Attributes:
        id: Such as 'figure7'.
        claim: The paper's claim.
        rule: Decides the verdict.
        measure: Trains or probes, and returns numbers.
        judge: Applies the rule to the numbers.
        seconds: About how long it takes, at quick scale on one core.
        number: The number that is compared with the paper's.
        takes: Inputs that it uses where they are given.
        needs: Inputs of which it needs all or none; with only some it is skipped.
        uses: Optional libraries.
        group: Experiments of a group share what they train.
        paper: What the paper shows, for an experiment that is skipped.

    Example:
        >>> from topicscope.paper import EXPERIMENTS
        >>> EXPERIMENTS["figure7"].run(Context("quick")).verdict
        'reproduced'
    """

    id: str
    claim: str
    rule: str
    measure: Callable[[Context], Found]
    judge: Callable[[Found], Outcome]
    seconds: int
    number: Number
    takes: tuple[Input, ...] = ()
    needs: tuple[Input, ...] = ()
    uses: tuple[str, ...] = ()
    group: str = ""
    paper: str = ""

    def run(self, context: Context) -> Outcome:
        """Measure and judge; skipped where one input is given and another that belongs to it is not."""
        given = [bool(getattr(context, name)) for name in self.needs]
        if all(given) or not any(given):
            return self.judge(self.measure(context))
        models = " ".join(f"--model {model}" for model in CHECKPOINTS)
        return Outcome(
            paper=self.paper,
            theory="-",
            measured="-",
            verdict="skipped",
            reason="--model and --corpus must be given together here, and only one is given; run: topicscope "
            f"reproduce {self.id} {models} --corpus {WIKIPEDIA} (folders and files work too; without both options: "
            "five small models)",
        )

    def key(self, context: Context) -> dict[str, Any]:
        """What an outcome depends on."""
        return context.config() | {name: list(getattr(context, name)) for name in (*self.needs, *self.takes)}

    def judged(self, context: Context) -> bool:
        """Whether a reference verdict exists: there is none for the user's own models and texts."""
        return not any(getattr(context, name) for name in (*self.needs, *self.takes))


def train_many(context: Context, **settings: Any) -> list[training.Run]:
    """The same run with several seeds, as one ensemble on one thread."""
    config = training.RunConfig.of({"device": "cpu", "evaluate_every": None, "seed": 1000 * context.seed, **settings})
    return training.train(config.with_seeds(context.runs), with_floors=False)
