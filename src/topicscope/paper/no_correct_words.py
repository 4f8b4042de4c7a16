"""No correct words: where masked positions never show their own word, the second stage does not come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell, verdict
from topicscope.paper.stage_flows import COMMON, GROUP, WORLDS, StageFlow, World, stage_flows
from topicscope.theory import gradient_flow
from topicscope.world import Masking

MASKING = Masking(p_correct=0.0)
LONGER = 3.0
"""Times the half-time that key and query have where words are shown correctly: how long a flow lasts."""

STANDS, GROWS, EXACT = 1.05, 10.0, 1e-6
"""Times its start that a norm may reach; that it must reach with p_correct = .1; error of the loss."""


@dataclass(frozen=True)
class Pair:
    """A flow without correct words, and the one with them from the same start."""

    world: World
    seed: int
    times: list[float]
    losses: list[float]
    norms: dict[str, list[float]]  # of key and query, over their start
    with_words: StageFlow

    @property
    def bayes(self) -> float:
        """1 - E|P|^2: the word shown says nothing, so that the best prediction is the document's own P."""
        return 1 - 1 / (self.world.v * self.world.tau)

    @property
    def growth(self) -> float:
        return max(map(max, self.norms.values()))

    @property
    def growth_with_words(self) -> float:
        return max(self.with_words.key) / self.with_words.key[0]


@dataclass(frozen=True)
class Found:
    """One pair for each world and seed."""

    pairs: list[Pair]


def measure(context: Context) -> Found:
    pairs = []
    for flow in stage_flows(context):
        if flow.scale == COMMON:
            start = flow.world.start(flow.scale, flow.seed)
            course = gradient_flow(flow.world.population(MASKING), start, LONGER * flow.predicted.key)
            norms = {part: (course.norm(part) / course.norm(part)[0]).tolist() for part in ("key", "query")}
            pairs.append(Pair(flow.world, flow.seed, course.times, course.losses, norms, flow))
    return Found(pairs)


def panel(pair: Pair) -> Lines:
    flow = pair.with_words
    key = np.array(flow.key) / flow.key[0]
    return Lines(
        f"|W_K| over its start, {pair.world}",
        [
            Series("p_c = .1", flow.times[1:], key.round(5).tolist()[1:]),
            Series("p_c = 0", pair.times[1:], np.round(pair.norms["key"], 5).tolist()[1:]),
        ],
        "time",
        "times the start",
        log_x=True,
        log_y=True,
    )


def judge(found: Found) -> Outcome:
    pairs = found.pairs
    growth, control = max(pair.growth for pair in pairs), min(pair.growth_with_words for pair in pairs)
    error = max(abs(pair.losses[-1] - pair.bayes) for pair in pairs)
    return Outcome(
        paper="the second stage is shown only with p_correct > 0",
        theory="p_correct = 0: no force on attention, and the first stage ends at the Bayes loss 1 - 1/(v tau)",
        measured=f"key and query reach at most {growth:.4f} times their start (with p_correct = .1 key reaches at "
        f"least {control:.3g} times); the loss ends within {error:.1g} of the Bayes loss",
        verdict=verdict(growth < STANDS and control > GROWS and error <= EXACT),
        reason=f"in {LONGER:g} times the half-time predicted for key with p_correct = .1, key and query reach at most "
        f"{growth:.4f} times their start (below {STANDS} asked); with p_correct = .1 key reaches at least "
        f"{control:.3g} times its start (above {GROWS:g} asked); the last loss is within {error:.1g} of the Bayes loss "
        f"({EXACT:g} allowed)",
        figures=[
            Figure(
                "no-correct-words",
                "Key with and without correct words",
                "Without correct words the norm of W_K stays at its start; with them it grows to at least "
                f"{control:.3g} times its start.",
                [panel(next(pair for pair in pairs if pair.world == world)) for world in WORLDS],
                columns=3,
            )
        ],
        tables=[
            TableData(
                f"p_correct = 0, scale {COMMON:g}",
                ["world", "seed", "growth of key, query", "with p_correct = .1", "loss at the end", "Bayes loss"],
                [
                    [
                        str(pair.world),
                        str(pair.seed),
                        f"{pair.growth:.5f}",
                        cell(pair.growth_with_words),
                        f"{pair.losses[-1]:.9f}",
                        f"{pair.bayes:.9f}",
                    ]
                    for pair in pairs
                ],
            )
        ],
        numbers={
            "growth": [pair.growth for pair in pairs],
            "growth_with_words": [pair.growth_with_words for pair in pairs],
            "loss_above_bayes": [pair.losses[-1] - pair.bayes for pair in pairs],
        },
        ours=growth,
    )


EXPERIMENT = Experiment(
    id="no-correct-words",
    claim="Without correct words (p_correct = 0) there is no second stage: the first ends at the Bayes loss.",
    rule=f"The flows of stage-law from initial scale {COMMON:g}, with p_correct = 0 and for three times the half-time "
    f"predicted for key with p_correct = .1. In every flow the norms of key and query stay below {STANDS} times their "
    "start and the last loss is within 1e-6 of the Bayes loss 1 - 1/(v tau); in the flow of stage-law itself, with "
    "p_correct = .1, the norm of key grows more than tenfold.",
    measure=measure,
    judge=judge,
    seconds=25,
    group=GROUP,
    number=Number(
        "growth of key, query",
        "largest norm of W_K or W_Q over its start, without correct words, over all flows (1: no second stage); the "
        "paper prints none",
    ),
)
