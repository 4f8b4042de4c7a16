"""An experiment of the paper: it measures, then judges. And what all experiments share: scale, seed, inputs, training.

`measure` trains or probes and returns numbers. `judge` applies the rule to them and writes texts, tables and figures:
outcome = experiment.judge(experiment.measure(Context("quick", seed=0)))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from topicscope import training
from topicscope.paper.outcome import Outcome

Scale = Literal["quick", "full"]
Input = Literal["models", "corpus"]
Found = TypeVar("Found")

CHECKPOINTS = (
    "bert-base-uncased",
    "albert-base-v2",
    "facebook/bart-base",
    "google/electra-base-discriminator",
    "roberta-base",
)
WIKIPEDIA = "hf:wikimedia/wikipedia/20231101.en"
"""The paper's models and text."""


@dataclass(frozen=True)
class Context:
    """How large, from which seed, and on which of the user's models and texts; every random draw follows from it."""

    scale: Scale = "quick"
    seed: int = 0
    models: tuple[str, ...] = ()  # folders or hub ids
    corpus: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Seeds per setting."""
        return self.pick(3, 5)

    def config(self) -> dict[str, Any]:
        """What all outcomes of a folder share."""
        return {"scale": self.scale, "seed": self.seed}

    def pick(self, quick: int, full: int) -> int:
        return quick if self.scale == "quick" else full


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[Found]):
    """`claim` is the paper's. `rule` decides the verdict and is fixed here, before any run."""

    id: str
    claim: str
    rule: str
    measure: Callable[[Context], Found]
    judge: Callable[[Found], Outcome]
    seconds: int  # roughly, quick scale, one core
    needs: tuple[Input, ...] = ()  # inputs without which it is skipped
    takes: tuple[Input, ...] = ()  # inputs that it uses where they are given
    paper: str = ""  # what the paper shows, for the outcome of an experiment that is skipped

    def run(self, context: Context) -> Outcome:
        """Measure and judge; skipped where an input that it needs is missing."""
        if all(getattr(context, name) for name in self.needs):
            return self.judge(self.measure(context))
        models = " ".join(f"--model {model}" for model in CHECKPOINTS)
        command = f"topicscope reproduce {self.id} {models} --corpus {WIKIPEDIA}"
        reason = f"needs models and text; run: {command} (or your own: folders and files)"
        return Outcome(self.paper, "-", "-", "skipped", reason)

    def key(self, context: Context) -> dict[str, Any]:
        """What an outcome depends on."""
        inputs = {str(name): list(getattr(context, name)) for name in (*self.needs, *self.takes)}
        return context.config() | inputs

    def judged(self, context: Context) -> bool:
        """Whether a reference verdict exists: there is none for the user's own models and texts."""
        return not self.needs and not any(getattr(context, name) for name in self.takes)


def train_many(context: Context, settings: dict[str, Any]) -> list[training.Run]:
    """The same run with several seeds, as one ensemble on one thread."""
    config = training.RunConfig.of({"device": "cpu", "evaluate_every": None, "seed": 1000 * context.seed, **settings})
    return training.train(config.with_seeds(context.runs), with_floors=False)


def first_config(runs: Mapping[Any, Sequence[training.Run]]) -> dict[str, Any]:
    """The config of the first run, for the outcome."""
    return next(iter(runs.values()))[0].config.as_dict()
