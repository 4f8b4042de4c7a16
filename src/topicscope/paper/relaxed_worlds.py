"""Worlds that relax one assumption of the theorems each: W* and W(t) beside training under uniform attention.

What survives is that words of one topic are above words of different topics; what changes is said in numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from topicscope import training
from topicscope.measure import Estimate, estimate
from topicscope.pages import Figure, Heat, Points, Series, TableData
from topicscope.paper.experiment import Context, by_category
from topicscope.paper.flows import time_of, train_flow
from topicscope.theory import ValueOptimum, optimum, relative_distance
from topicscope.world import TopicModel

TOPICS, WORDS, RATE, STEPS = 6, 5, 0.15, 400
BASE: dict[str, Any] = {
    "topic_model": {"topics": TOPICS, "words_per_topic": WORDS},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
}
CORRELATED = [[2.0 if i == j else 1.2 if i // 2 == j // 2 else 0.0 for j in range(TOPICS)] for i in range(TOPICS)]
NORMAL: dict[str, Any] = {"kind": "logistic-normal", "covariance": CORRELATED, "length": "infinite"}
WORLDS: dict[str, dict[str, dict[str, Any]]] = {
    "none (Theorem 2)": {},
    "topics of unequal sizes": {"topic_model": {"topics": TOPICS, "words_per_topic": [2, 3, 4, 5, 7, 9]}},
    "Zipf words": {"topic_model": BASE["topic_model"] | {"zipf": 1.0}},
    "overlapping topics": {"topic_model": BASE["topic_model"] | {"overlap": 0.4}},
    "common words": {"topic_model": BASE["topic_model"] | {"common_words": 5, "common_share": 0.3}},
    "unequal topics": {"documents": BASE["documents"] | {"weights": [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]}},
    "Dirichlet, unequal": {"documents": {"alpha": [0.1, 0.1, 0.2, 0.2, 0.4, 0.4], "length": "infinite"}},
    "groups of topics": {
        "documents": {"kind": "groups", "groups": 2, "rho": 0.5, "topics_per_document": 2, "length": "infinite"}
    },
    "logistic normal": {"documents": NORMAL},
    "documents of 30 words": {"documents": BASE["documents"] | {"length": 30}},
    "100 to 150 words": {"documents": BASE["documents"] | {"length": [100, 150]}},
    "many at once": {
        "topic_model": {
            "topics": TOPICS,
            "words_per_topic": [3, 3, 4, 5, 6, 6],
            "zipf": 1.0,
            "overlap": 0.34,
            "common_words": 5,
            "common_share": 0.3,
        },
        "documents": NORMAL | {"length": [100, 150]},
    },
}
"""By the assumption that is relaxed."""

UNRELAXED = {
    "overlapping topics": TopicModel(TOPICS, 3),  # 18 words too
    "common words": TopicModel(TOPICS + 1, WORDS),  # they are a seventh topic
}
"""The topics of the unrelaxed world, where other than the base has as many words."""

FINITE_BATCH = 1000  # documents per step where they are finite: a step's documents are only a sample of their words

TOLERANCE = 0.03
"""Relative Frobenius distance allowed between a trained matrix and W(t)."""

DRAWN = ("topics of unequal sizes", "Zipf words", "overlapping topics", "common words")


@dataclass(frozen=True)
class Pattern:
    """What a matrix shows: same less different topic, diagonal less same topic, and what means by relation leave."""

    contrast: float
    diagonal: float
    uneven: float  # a share of the matrix's norm

    @classmethod
    def of(cls, matrix: np.ndarray, same: np.ndarray) -> Pattern:
        inside, outside, diagonal, uneven = relation_means(matrix, same)
        return cls(inside - outside, diagonal - inside, uneven)


@dataclass(frozen=True)
class World:
    """Of one world: W*, W(t) at the last step, the trained matrices, and how far these are from others."""

    best: Pattern
    flow: Pattern
    trained: list[Pattern]  # by run
    half_times: list[float]  # of topic contrasts
    to_flow: list[float]  # distance to W(t) at the last step
    to_unrelaxed: list[float]  # to that of the unrelaxed world; empty where nothing is relaxed
    to_optimum: list[float]
    value: np.ndarray  # of the first run

    @property
    def distance(self) -> Estimate:
        return estimate(self.to_flow)

    @property
    def contrast(self) -> Estimate:
        return estimate([pattern.contrast for pattern in self.trained])

    @property
    def told_apart(self) -> bool | None:
        """Whether training is nearer to its W(t) than to that of the unrelaxed world, 95% over seeds."""
        if not self.to_unrelaxed:
            return True
        nearer = estimate([far - near for far, near in zip(self.to_unrelaxed, self.to_flow, strict=True)])
        if nearer.high <= 0:
            return False
        return True if nearer.above_zero else None

    @property
    def holds(self) -> bool | None:
        """Same above different in W* and over seeds, W(t) within the tolerance and told apart; None: not decided."""
        if not self.best.contrast > 0 or not self.contrast.above_zero or self.distance.low > TOLERANCE:
            return False
        if self.told_apart is False:
            return False
        return True if self.distance.high <= TOLERANCE and self.told_apart else None

    @property
    def changes(self) -> str:
        """What is not as in Theorem 2, beyond a hundredth, in W*, W(t) and training; when topics are half learnt."""
        said = []
        uneven = [self.best.uneven, self.flow.uneven, float(np.mean([p.uneven for p in self.trained]))]
        if max(uneven[:2]) > 0.01:
            said.append("blocks are not flat (share of the norm: " + in_each(f"{100 * x:.0f}%" for x in uneven) + ")")
        diagonal = [self.best.diagonal, self.flow.diagonal, float(np.mean([p.diagonal for p in self.trained]))]
        if max(map(abs, diagonal[:2])) > 0.01:
            said.append("diagonal minus block " + in_each(f"{excess:+.2g}" for excess in diagonal))
        ends = dict.fromkeys(f"{time:.3g}" for time in (min(self.half_times), max(self.half_times)))
        return "; ".join([*said, f"topics half learnt at time {' to '.join(ends)}"])

    def numbers(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "value"} | {"changes": self.changes}


def in_each(numbers: Iterable[str]) -> str:
    return ", ".join(
        f"{number} {where}" for number, where in zip(numbers, ("in W*", "in W(t)", "trained"), strict=True)
    )


def relation_means(matrix: np.ndarray, same: np.ndarray) -> tuple[float, float, float, float]:
    """Means over two words that share a topic, that share none, of the diagonal, and the share that they leave.

    Common words are left out: they share a topic with every word.
    """
    kept = ~same[1:, 1:].all(1)
    words, together, own = matrix[1:, 1:][np.ix_(kept, kept)], same[1:, 1:][np.ix_(kept, kept)], np.eye(kept.sum()) > 0
    relations = (together & ~own, ~together, own)
    means = [float(words[chosen].mean()) for chosen in relations]
    column = matrix[1:, :1][kept]
    flat = sum(mean * chosen for mean, chosen in zip(means, relations, strict=True))
    parts = np.hstack([column, words]), np.hstack([np.full_like(column, column.mean()), flat])
    return means[0], means[1], means[2], relative_distance(parts[1], parts[0])


def topic_half_times(best: ValueOptimum) -> list[float]:
    return [mode.half_time for mode in best.modes if mode.name.startswith("topic") and mode.half_time is not None]


def world_of(runs: list[training.Run], instead: training.RunConfig | None) -> World:
    best, same = optimum(runs[0].config), runs[0].config.topic_model.same_topic
    values = [run.weights["value"].astype(float) for run in runs]
    time = time_of(runs[0])
    flow = best.value_at(time)
    other = None if instead is None else optimum(instead).value_at(time)
    return World(
        Pattern.of(best.matrix(), same),
        Pattern.of(flow, same),
        [Pattern.of(value, same) for value in values],
        topic_half_times(best),
        [relative_distance(value, flow) for value in values],
        [] if other is None else [relative_distance(value, other) for value in values],
        [relative_distance(value, best.matrix()) for value in values],
        values[0],
    )


def unrelaxed(name: str, config: training.RunConfig, base: training.RunConfig) -> training.RunConfig:
    """The world that training must be further from than from its own, with as many words.

    Of the many changes at once the length moves W(t) least: it alone is undone.
    """
    if name == "many at once":
        return replace(config, documents=replace(config.documents, length="infinite"))
    return replace(base, topic_model=UNRELAXED.get(name, base.topic_model))


def measure_worlds(context: Context) -> dict[str, World]:
    made: dict[str, World] = {}
    base: training.RunConfig | None = None
    for name, change in WORLDS.items():
        settings = BASE | change
        finite = settings["documents"]["length"] != "infinite"
        more = {"batch_size": FINITE_BATCH} if finite else {}
        runs = train_flow(context, RATE, STEPS, **settings, **more)
        base = base or runs[0].config
        made[name] = world_of(runs, unrelaxed(name, runs[0].config, base) if change else None)
    return made


def worlds_figure(worlds: dict[str, World]) -> Figure:
    places = [float(i) for i in range(len(worlds))]
    return Figure(
        "assumptions",
        "Relaxed assumptions: theory against training",
        "Above: same-topic minus different-topic mean of W*, of W(t) and after training; blocks survive above zero. "
        "Below: relative distance of the trained matrix to W(t), and the tolerance.",
        [
            Points(
                "contrast of W_V",
                list(worlds),
                [
                    Series("W*", places, [world.best.contrast for world in worlds.values()]),
                    Series("W(t)", places, [world.flow.contrast for world in worlds.values()]),
                    by_category("trained", [world.contrast for world in worlds.values()]),
                ],
                "same - different topic",
                [(0.0, "none")],
            ),
            Points(
                "distance to W(t) at the last step",
                list(worlds),
                [by_category("trained", [world.distance for world in worlds.values()])],
                "relative distance",
                [(TOLERANCE, "tolerance")],
            ),
        ],
        columns=1,  # twelve long names have no room in half a figure
    )


def matrices_figure(worlds: dict[str, World]) -> Figure:
    return Figure(
        "assumptions-matrices",
        "What changes: trained value matrices",
        "Heat maps of trained value matrices: blocks of several sizes, outer products of word frequencies, blocks that "
        "overlap, and words that all topics share.",
        [Heat(name, np.round(worlds[name].value, 5).tolist()) for name in DRAWN],
    )


def worlds_table(worlds: dict[str, World]) -> TableData:
    return TableData(
        "One relaxed assumption each: uniform attention, squared loss, SGD. contrast: same-topic minus different-topic "
        "mean; distance: of the trained matrix, relative",
        [
            *("assumption relaxed", "contrast of W*", "contrast of W(t)", "contrast, trained (95%)"),
            *("distance to W(t) (95%)", "distance to W(t), unrelaxed", "distance to W*", "as predicted"),
        ],
        [
            [
                name,
                f"{world.best.contrast:.4g}",
                f"{world.flow.contrast:.4g}",
                str(world.contrast),
                str(world.distance),
                f"{np.mean(world.to_unrelaxed):.2g}" if world.to_unrelaxed else "-",
                f"{np.mean(world.to_optimum):.2g}",
                {True: "yes", False: "no", None: "undecided"}[world.holds],
            ]
            for name, world in worlds.items()
        ],
    )


def changes_table(worlds: dict[str, World]) -> TableData:
    return TableData(
        "What else changes, in W*, in W(t) at the last step and in training",
        ["assumption relaxed", "what changes"],
        [[name, world.changes] for name, world in worlds.items()],
    )
