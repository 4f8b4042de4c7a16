"""What survives where an assumption of the theorems is relaxed, in W* and in training; documents of finite length."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from topicscope import training
from topicscope.measure import Estimate, estimate
from topicscope.pages import Figure, Heat, Points, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, by_category, train_many, verdict
from topicscope.paper.matrices import RELATIONS, Blocks, blocks_of, contrast, heat, mean_spread
from topicscope.paper.topic_order import time_of, train_flow
from topicscope.theory import optimum, relative_distance
from topicscope.world import Fixed, TopicModel

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
    """Means: same topic, different topic, diagonal; and the share of the norm that they leave. No common words."""
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
    """Must be further from training than its own world. Of many changes the length moves W(t) least: it is undone."""
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


LENGTHS: tuple[int, ...] = (30, 125, 1000)
ENDLESS = "infinite"
TAU = 3
EXACT = 1e-6  # what the matrix of infinite documents may be off by: it is exact up to rounding

# The settings of Figure 6 and Table 4 with attention as they have it, and without.
DIAGONALS: dict[str, dict[str, object]] = {
    f"{name}, {attention} attention": {
        "objective": {"loss": loss},
        "model": {"prediction_bias": "none"} | ({} if attention == "trained" else {"key": "zero", "query": "zero"}),
    }
    for name, loss in (("Figure 6 (squared)", "squared-mean"), ("Table 4 (cross entropy)", "cross-entropy"))
    for attention in ("uniform", "trained")
}


@dataclass(frozen=True)
class DiagonalExcess:
    """By length and sample: the diagonal less its block, and the mean of W_i0. Value matrices of trained runs."""

    excess: dict[str, list[float]]
    mask_column: dict[str, list[float]]
    value: np.ndarray  # least squares, N = 125
    diagonals: dict[str, list[Blocks]]
    config: training.RunConfig


def least_squares(context: Context, length: int | str, documents: int, sample: int) -> np.ndarray:
    return training.own_optimum(
        training.RunConfig.of(
            {
                "device": "cpu",
                "seed": 1000 * context.seed + sample,
                "documents": {"kind": "fixed", "topics_per_document": TAU, "length": length},
                "data": {"documents": documents, "dev_documents": 1},
                "masking": {"fresh": False},
            }
        )
    )


def means_of(matrix: np.ndarray) -> tuple[float, float]:
    topic = TopicModel().topic_of_word[1:]
    words, own = matrix[1:, 1:], np.eye(len(topic), dtype=bool)
    same = (topic[:, None] == topic) & ~own
    return float(words[own].mean() - words[same].mean()), float(matrix[1:, 0].mean())


def measure_lengths(context: Context) -> DiagonalExcess:
    trained = {
        name: train_many(context, steps=context.pick(1500, 5000), optimizer={"lr": 0.003}, **settings)
        for name, settings in DIAGONALS.items()
    }
    documents, config = context.pick(6000, 12_000), next(iter(trained.values()))[0].config
    # 16 sets of documents per length; sets of infinite documents have one and the same matrix
    matrices = {str(n): [least_squares(context, n, documents, sample) for sample in range(16)] for n in LENGTHS}
    matrices[ENDLESS] = [least_squares(context, ENDLESS, 1000, 0)]
    means = {length: np.array([means_of(matrix) for matrix in here]) for length, here in matrices.items()}
    return DiagonalExcess(
        {length: here[:, 0].tolist() for length, here in means.items()},
        {length: here[:, 1].tolist() for length, here in means.items()},
        np.mean(matrices["125"], 0),
        {name: [blocks_of(run) for run in runs] for name, runs in trained.items()},
        config,
    )


def theory_at(length: int | str) -> tuple[float, float]:
    """b and W_i0 of W*; for infinite documents of Theorem 2."""
    entries = optimum(TopicModel(), Fixed(topics_per_document=TAU), length=length).entries  # type: ignore[arg-type]
    assert entries is not None
    return entries.diagonal - entries.same_topic, entries.mask_column


def joint(values: Sequence[float]) -> Estimate:
    """Mean and interval. Those of all lengths hold together with probability 95% (Bonferroni)."""
    mean, count = float(np.mean(values)), len(values)
    half = float(stdtrit(count - 1, 1 - 0.025 / len(LENGTHS)) * np.std(values, ddof=1) / np.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)


def covers(interval: Estimate, number: float) -> bool | None:
    """None where the interval is too wide to tell the excess .1136 from p_correct = .1."""
    narrow = (interval.high - interval.low) / 2 <= 0.01
    return interval.low <= number <= interval.high if narrow else None


def answer(found: DiagonalExcess, limit: float) -> str:
    sentences = []
    for name, runs in found.diagonals.items():
        excess = estimate([run.diagonal - run.same for run in runs])
        if excess.low <= 0 <= excess.high:
            said = "no diagonal"
        elif excess.low <= limit <= excess.high:
            said = "the same" if excess.high - excess.low <= limit else "not decided"
        else:
            said = "larger" if excess.low > limit else "smaller"
        sentences.append(f"{name}: {excess} ({said})")
    return "; ".join(sentences)


def judge_lengths(found: DiagonalExcess) -> Outcome:
    theory = {length: theory_at(int(length) if length != ENDLESS else ENDLESS) for length in found.excess}
    finite = [str(length) for length in LENGTHS]
    intervals = {length: joint(found.excess[length]) for length in finite}
    limit = optimum(TopicModel(), Fixed(topics_per_document=TAU), length=1000).limit  # type: ignore[union-attr]
    b = limit.diagonal - limit.same_topic
    checks = [covers(intervals[length], theory[length][0]) for length in finite]
    endless = [*found.excess[ENDLESS], *(x - theory[ENDLESS][1] for x in found.mask_column[ENDLESS])]
    shown = {length: str(intervals[length]) for length in finite} | {ENDLESS: f"{found.excess[ENDLESS][0]:.1g}"}
    return Outcome(
        paper="Theorem 2: no diagonal and W_i0 = .0542, for infinite documents",
        theory=f"b = p_c / (k + p_m p_r) = {b:.4f} and W_i0 = {limit.mask_column:g} as N grows",
        measured="b = " + ", ".join(f"{shown[length]} (N = {length})" for length in theory),
        verdict=verdict(*checks, *(abs(x) < EXACT for x in endless)),
        reason=f"the interval of b covers that of W* at {sum(c is True for c in checks)} of {len(checks)} lengths"
        + (" (some are too wide to say; more documents would decide)" if None in checks else "")
        + f"; W_i0 is {np.mean(found.mask_column[finite[-1]]):.6f} at N = {finite[-1]}, "
        f"{np.mean(found.mask_column[ENDLESS]):.6f} for infinite documents. The first W_i0 is not judged: where the "
        "number of [MASK]s varies, columns of W add up to 1, so that the mean of W_i0 is 1/(Tv) for any documents. Is "
        f"this the diagonal of Figure 6 and Table 4? Diagonal minus block after training: {answer(found, b)}. "
        f"W* has {b:.4f}",
        figures=[
            Figure(
                "finite-length",
                "The diagonal that finite documents have",
                "Left: diagonal minus block by document length, from least squares and in W*. Middle: the mean "
                "least-squares matrix. Right: diagonal minus block after training as in Figure 6 and Table 4.",
                [
                    Points(
                        "diagonal minus block, by length",
                        [f"N = {length}" for length in finite],
                        [
                            by_category("least squares on documents", [intervals[length] for length in finite]),
                            Series("W*", [0.0, 1.0, 2.0], [theory[length][0] for length in finite]),
                        ],
                        "b",
                        [(b, "p_c / (k + p_m p_r)"), (0.0, "Theorem 2")],
                    ),
                    heat("least squares, N = 125", found.value, found.config),
                    Points(
                        "diagonal minus block, trained with this attention",
                        [re.sub(r" \(.*\)| attention", "", name) for name in found.diagonals],
                        [
                            by_category(
                                "trained",
                                [estimate([r.diagonal - r.same for r in runs]) for runs in found.diagonals.values()],
                            )
                        ],
                        "b",
                        [(b, "W*")],
                    ),
                ],
                columns=3,
            )
        ],
        tables=[
            TableData(
                "W* of documents of N words (T = v = 10, tau = 3)",
                ["N", "b, theory", "b, least squares (joint 95%)", "W_i0, theory", "W_i0, least squares"],
                [
                    [length, f"{excess:.5f}", shown[length], f"{mask:.6f}", f"{np.mean(found.mask_column[length]):.6f}"]
                    for length, (excess, mask) in theory.items()
                ],
            ),
            TableData(
                "Trained value matrices, Adam .003: same topic, different topic, diagonal",
                ["setting", "same", "different", "diagonal", "diagonal by the rule of Figure 6"],
                [
                    [
                        name,
                        *(f"{np.mean([getattr(r, part) for r in runs]):.3g}" for part in RELATIONS),
                        f"{sum(r.diagonal_stands_out for r in runs)} of {len(runs)}",
                    ]
                    for name, runs in found.diagonals.items()
                ],
            ),
        ],
        numbers={
            "excess": found.excess,
            "mask_column": found.mask_column,
            "theory": {length: list(both) for length, both in theory.items()},
            "diagonals": {name: [r.diagonal - r.same for r in runs] for name, runs in found.diagonals.items()},
        },
        config=found.config.as_dict(),
        ours=intervals[finite[-1]].mean,
    )


FINITE_LENGTH = Experiment(
    id="finite-length",
    claim="For documents of N words the best W_V has a diagonal that is b = p_c / (k + p_m p_r) above its block; for "
    "infinite documents it has none.",
    rule="Least squares under uniform attention on sampled documents of 30, 125 and 1,000 words, masks drawn. b: mean "
    "diagonal minus mean of the other same-topic entries. At each length the interval of b over samples (95% for the "
    "three lengths together) covers b of W*; for infinite documents b and the mean of W_i0 equal those of Theorem 2 to "
    "1e-6. Undecided where half the width of an interval is above .01. Whether this diagonal is that of Figure 6 and "
    "Table 4 is reported, not judged: 'the same' where the 95% interval of b after training covers .1136 and is at "
    "most that wide. Revised after a first run: W_i0 = 1/(Tv) in finite documents is no longer judged, as no sample "
    "could refute it: columns of W add up to 1 there whatever the documents are, and words are alike.",
    measure=measure_lengths,
    judge=judge_lengths,
    seconds=20,
    beyond=True,
    number=Number(
        "diagonal's excess b",
        "mean diagonal entry of the least-squares W_V minus the mean of other same-topic entries, documents of 1,000 "
        "words (.1136 in theory); the paper's theorem has infinite documents, where it is 0",
    ),
)
