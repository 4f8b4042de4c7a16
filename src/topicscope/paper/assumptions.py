"""Assumptions: what survives where one is relaxed, in W* and in training.

The block pattern under other documents, sizes, masking rates and word probabilities, with trained attention; and W(t)
beside training under uniform attention, in worlds that the theorems leave out.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from topicscope import training
from topicscope.measure import Estimate, estimate
from topicscope.pages import Figure, Heat, Points, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, by_category, train_many, verdict
from topicscope.paper.matrices import Blocks, blocks_of, contrast, mean_spread
from topicscope.paper.topic_order import time_of, train_flow
from topicscope.theory import optimum, relative_distance
from topicscope.world import TopicModel

TOPICS, WORDS = 6, 5
SIZES: dict[str, object] = {"topics": TOPICS, "words_per_topic": WORDS}
PAIRS: dict[str, object] = {"kind": "fixed", "topics_per_document": 2, "length": "infinite"}
CORRELATED = [[2.0 if i == j else 1.2 if i // 2 == j // 2 else 0.0 for j in range(TOPICS)] for i in range(TOPICS)]
NORMAL: dict[str, object] = {"kind": "logistic-normal", "covariance": CORRELATED, "length": "infinite"}
# Where documents are finite: those of a step are only a sample of their words.
SAMPLED: dict[str, object] = {"batch_size": 1000}
# By the assumption that is relaxed.
WORLDS: dict[str, dict[str, object]] = {
    "none (Theorem 2)": {},
    "topics of unequal sizes": {"topic_model": {"topics": TOPICS, "words_per_topic": [2, 3, 4, 5, 7, 9]}},
    "Zipf words": {"topic_model": SIZES | {"zipf": 1.0}},
    "overlapping topics": {"topic_model": SIZES | {"overlap": 0.4}},
    "common words": {"topic_model": SIZES | {"common_words": 5, "common_share": 0.3}},
    "unequal topics": {"documents": PAIRS | {"weights": [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]}},
    "Dirichlet, unequal": {"documents": {"alpha": [0.1, 0.1, 0.2, 0.2, 0.4, 0.4], "length": "infinite"}},
    "groups of topics": {
        "documents": {"kind": "groups", "groups": 2, "rho": 0.5, "topics_per_document": 2, "length": "infinite"}
    },
    "logistic normal": {"documents": NORMAL},
    "documents of 30 words": SAMPLED | {"documents": PAIRS | {"length": 30}},
    "100 to 150 words": SAMPLED | {"documents": PAIRS | {"length": [100, 150]}},
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
        **SAMPLED,
    },
}

# The topics of the unrelaxed world, where other than the base has as many words.
UNRELAXED = {
    "overlapping topics": TopicModel(TOPICS, 3),  # 18 words too
    "common words": TopicModel(TOPICS + 1, WORDS),  # they are a seventh topic
}

TOLERANCE = 0.03  # relative Frobenius distance allowed between a trained matrix and W(t)
DRAWN = ("topics of unequal sizes", "Zipf words", "overlapping topics", "common words")


@dataclass(frozen=True)
class Pattern:
    """What a matrix shows: same less different topic, diagonal less same topic, and what means by relation leave."""

    contrast: float
    diagonal: float
    uneven: float  # a share of the matrix's norm


@dataclass(frozen=True)
class RelaxedWorld:
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
        if not self.to_unrelaxed:
            return True
        nearer = estimate([far - near for far, near in zip(self.to_unrelaxed, self.to_flow, strict=True)])
        return None if nearer.low <= 0 < nearer.high else nearer.above_zero

    @property
    def checks(self) -> list[bool | None]:
        near = None if self.distance.low <= TOLERANCE < self.distance.high else self.distance.high <= TOLERANCE
        return [self.best.contrast > 0, self.contrast.above_zero, near, self.told_apart]

    @property
    def changes(self) -> str:
        """What is not as in Theorem 2, beyond a hundredth, in W*, W(t) and training; when topics are half learnt."""
        uneven, diagonal = (
            [getattr(self.best, name), getattr(self.flow, name), np.mean([getattr(p, name) for p in self.trained])]
            for name in ("uneven", "diagonal")
        )
        said = []
        if max(uneven[:2]) > 0.01:
            said.append("blocks are not flat (share of the norm: " + in_each(f"{100 * x:.0f}%" for x in uneven) + ")")
        if max(map(abs, diagonal[:2])) > 0.01:
            said.append("diagonal minus block " + in_each(f"{excess:+.2g}" for excess in diagonal))
        ends = dict.fromkeys(f"{time:.3g}" for time in (min(self.half_times), max(self.half_times)))
        return "; ".join([*said, f"topics half learnt at time {' to '.join(ends)}"])

    def numbers(self) -> dict[str, object]:
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


def pattern_of(matrix: np.ndarray, same: np.ndarray) -> Pattern:
    inside, outside, diagonal, uneven = relation_means(matrix, same)
    return Pattern(inside - outside, diagonal - inside, uneven)


def world_of(runs: list[training.Run], instead: training.RunConfig | None) -> RelaxedWorld:
    best, same = optimum(runs[0].config), runs[0].config.topic_model.same_topic
    values = [run.weights["value"].astype(float) for run in runs]
    time = time_of(runs[0])
    flow = best.value_at(time)
    other = None if instead is None else optimum(instead).value_at(time)
    return RelaxedWorld(
        pattern_of(best.matrix(), same),
        pattern_of(flow, same),
        [pattern_of(value, same) for value in values],
        [mode.half_time for mode in best.modes if mode.name.startswith("topic") and mode.half_time is not None],
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
        return replace(config, documents=config.world.endless().prior)
    return replace(base, topic_model=UNRELAXED.get(name, base.topic_model))


def measure_worlds(context: Context) -> dict[str, RelaxedWorld]:
    settings: dict[str, Any] = {"topic_model": SIZES, "documents": PAIRS}
    runs = {name: train_flow(context, 0.15, 400, **(settings | change)) for name, change in WORLDS.items()}
    base = next(iter(runs.values()))[0].config
    return {
        name: world_of(here, unrelaxed(name, here[0].config, base) if WORLDS[name] else None)
        for name, here in runs.items()
    }


def worlds_figure(worlds: dict[str, RelaxedWorld]) -> Figure:
    places = np.arange(0.0, len(worlds)).tolist()
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


VARIATIONS: dict[str, dict[str, dict[str, object]]] = {
    "the paper's setting": {},
    "fixed tau = 3": {"documents": {"kind": "fixed", "topics_per_document": 3}},
    "T = 5": {"topic_model": {"topics": 5}},
    "T = 20, v = 5": {"topic_model": {"topics": 20, "words_per_topic": 5}},
    "v = 20": {"topic_model": {"words_per_topic": 20}},
    "alpha = 0.03": {"documents": {"alpha": 0.03}},
    "alpha = 1": {"documents": {"alpha": 1.0}},
    "p_mask = 0.4": {"masking": {"p_mask": 0.4}},
    "p_correct = p_random = 0.3": {"masking": {"p_correct": 0.3, "p_random": 0.3}},
    "unequal words": {
        "topic_model": {"word_probabilities": [0.28, 0.2, 0.14, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02]}
    },
}


@dataclass(frozen=True)
class RelaxedRuns:
    settings: dict[str, list[Blocks]]
    worlds: dict[str, RelaxedWorld]
    config: training.RunConfig


def measure(context: Context) -> RelaxedRuns:
    runs = {
        name: train_many(
            context,
            steps=context.pick(800, 3000),
            optimizer={"lr": 0.01},
            model={"prediction_bias": "none"},
            data={"documents": 4000, "dev_documents": 200},
            **change,
        )
        for name, change in VARIATIONS.items()
    }
    return RelaxedRuns(
        {name: [blocks_of(run) for run in here] for name, here in runs.items()},
        measure_worlds(context),
        next(iter(runs.values()))[0].config,
    )


def judge(found: RelaxedRuns) -> Outcome:
    contrasts = {name: contrast(runs) for name, runs in found.settings.items()}
    spreads = {name: mean_spread(runs) for name, runs in found.settings.items()}
    shown, worlds = list(contrasts.values()), found.worlds
    blocks = sum(c.above_zero for c in shown)
    verdicts = {name: verdict(*world.checks) for name, world in worlds.items()}
    as_predicted = f"{list(verdicts.values()).count('reproduced')} of {len(worlds)}"
    worst = max(worlds, key=lambda name: worlds[name].distance.mean)
    open_worlds = [name for name, seen in verdicts.items() if seen == "undecided"]
    return Outcome(
        paper="conclusions are robust (no numbers)",
        theory="the same-topic mean of W* is above its different-topic mean; W(t) is the value matrix at time t",
        measured=f"{blocks} of {len(shown)} settings show blocks; {as_predicted} "
        f"relaxed worlds are as predicted, the largest relative distance to W(t) is {worlds[worst].distance} ({worst})",
        verdict=verdict(
            *(c.above_zero for c in shown), *(check for world in worlds.values() for check in world.checks)
        ),
        reason=f"the same-topic minus different-topic mean of W_V is above zero (95% over seeds) in {blocks} of "
        f"{len(shown)} settings with trained attention; in {as_predicted} worlds with "
        f"uniform attention it is too, and W_V is within {100 * TOLERANCE:g}% of W(t) and nearer to this W(t) than to "
        "that of the unrelaxed world"
        + (f". Larger batches would decide: {', '.join(open_worlds)}" if open_worlds else ""),
        figures=[
            worlds_figure(worlds),
            Figure(
                "assumptions-matrices",
                "What changes: trained value matrices",
                "Heat maps of trained value matrices: blocks of several sizes, outer products of word frequencies, "
                "blocks that overlap, and words that all topics share.",
                [Heat(name, np.round(worlds[name].value, 5).tolist()) for name in DRAWN],
            ),
            Figure(
                "assumptions-settings",
                "Same-topic minus different-topic mean of W_V under other settings, attention trained",
                "Means with 95% intervals for ten settings; blocks survive above zero.",
                [
                    Points(
                        "contrast",
                        list(contrasts),
                        [by_category("contrast", shown)],
                        "same minus different topic",
                        [(0.0, "none")],
                    )
                ],
                columns=1,
            ),
        ],
        tables=[
            TableData(
                "One relaxed assumption each: uniform attention, squared loss, SGD. contrast: same-topic minus "
                "different-topic mean; distance: of the trained matrix, relative",
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
                        {"reproduced": "yes", "not reproduced": "no"}.get(verdicts[name], "undecided"),
                    ]
                    for name, world in worlds.items()
                ],
            ),
            TableData(
                "What else changes, in W*, in W(t) at the last step and in training",
                ["assumption relaxed", "what changes"],
                [[name, world.changes] for name, world in worlds.items()],
            ),
            TableData(
                "Contrast of W_V (same-topic minus different-topic mean) and spread (standard deviation of its "
                "different-topic entries); attention trained, cross entropy",
                ["setting", "contrast (95%)", "contrast / spread", "blocks"],
                [
                    [name, str(c), f"{c.mean / spreads[name]:.2g}", "yes" if c.above_zero else "no"]
                    for name, c in contrasts.items()
                ],
            ),
        ],
        numbers={name: {"contrast": asdict(c), "spread": spreads[name]} for name, c in contrasts.items()}
        | {"worlds": {name: world.numbers() for name, world in worlds.items()}},
        config=found.config.as_dict(),
        ours=worlds[worst].distance.mean,
    )


ASSUMPTIONS = Experiment(
    id="assumptions",
    claim="The block pattern survives where an assumption is relaxed, and W(t) predicts the value matrix in training.",
    rule="With trained attention, in every setting the same-topic minus different-topic mean of W_V has a 95% interval "
    "above zero. With uniform attention (squared loss, SGD from zero), in every relaxed world: that mean is above zero "
    "in W* and, 95% over seeds, after training; the 95% interval of the relative distance to W(t) is at most "
    f"{TOLERANCE:g} (Frobenius norm, last step); and this distance is smaller, 95% over seeds, than that to W(t) of "
    f"the unrelaxed world. Undecided where the interval of a distance has {TOLERANCE:g} inside, or that of the "
    "difference of both distances has zero inside. Revised after a first run: the first rule did not compare with the "
    "unrelaxed world, and two worlds were within the limit of both matrices. Documents of 5 words were tried and left "
    "out: at seed 0 they were 6.7% from W(t), and 2.8% [2.5, 3.0] with six times as many documents.",
    measure=measure,
    judge=judge,
    seconds=40,
    beyond=True,
    number=Number(
        "worst distance to W(t)",
        "Frobenius norm of the trained W_V minus the predicted W(t), over the norm of W(t) (a ratio; 0 in theory), "
        "mean over seeds, largest over relaxed worlds; the paper prints no number",
    ),
)
