"""An experiment of the paper, and what all of them share: scales, seeds, training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from topicscope.paper.outcome import Outcome
from topicscope.training import Run, build_config, seeds, train

ScaleName = Literal["quick", "full"]


@dataclass(frozen=True)
class Context:
    """How large, and from which seed; every random draw follows from it."""

    scale: ScaleName = "quick"
    seed: int = 0
    models: tuple[str, ...] = ()  # for the language half: folders or hub ids
    corpus: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Seeds of each setting."""
        return 3 if self.scale == "quick" else 5

    def pick(self, quick: int, full: int) -> int:
        return quick if self.scale == "quick" else full


@dataclass(frozen=True)
class Experiment:
    """`claim` is the paper's; `rule` decides the verdict and is fixed here, before any run."""

    id: str
    claim: str
    rule: str
    run: Callable[[Context], Outcome]
    seconds: int  # roughly, quick scale, one core
    needs_models: bool = False  # whether it is about the user's models and text
    takes_corpus: bool = False  # whether it runs on the user's text where there is one

    def key(self, context: Context) -> dict[str, Any]:
        """What an outcome depends on."""
        whole: dict[str, Any] = {"scale": context.scale, "seed": context.seed}
        if self.needs_models:
            whole |= {"models": list(context.models)}
        return whole | {"corpus": list(context.corpus)} if self.needs_models or self.takes_corpus else whole

    def judged(self, context: Context) -> bool:
        """Whether the reference runs say what has to come out: of the user's own models and text they know nothing."""
        return not self.needs_models and not (self.takes_corpus and context.corpus)


def train_many(context: Context, settings: dict[str, Any], count: int | None = None) -> list[Run]:
    """The same run with several seeds, as one ensemble on one thread."""
    config = build_config({"device": "cpu", "evaluate_every": None, "seed": 1000 * context.seed, **settings})
    return train(seeds(config, count or context.runs), with_floors=False)
