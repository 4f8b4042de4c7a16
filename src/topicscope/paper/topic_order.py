"""In which order topics are learnt: by falling E[theta_t^2] (topic-order), groups before topics (coarse-to-fine)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope import training
from topicscope.ground import merged
from topicscope.measure import estimate
from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import (
    Context,
    Experiment,
    Number,
    Outcome,
    cell,
    reached,
    train_many,
    verdict,
    with_intervals,
)
from topicscope.theory import (
    Setting,
    SmallWorld,
    closed_form,
    force_formula,
    group_rates,
    grouped_subsets,
    optimum,
    score_force,
    subset_world,
)
from topicscope.world import Masking, TopicModel

Matrix = Float[np.ndarray, "V V"]
FLOW: dict[str, object] = {
    "dtype": "float64",
    "objective": {"loss": "squared"},
    "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
    "data": {"documents": 20_000, "dev_documents": 50},
    "batch_size": 200,
}


def train_flow(context: Context, rate: float, steps: int, kept: int = 0, **settings: Any) -> list[training.Run]:
    """SGD of W_V alone; `kept` matrices are kept. The full scale has four times the steps in the same time."""
    finer = context.pick(1, 4)
    total = finer * steps
    snapshots = {"snapshots": list(range(0, total + 1, total // kept))} if kept else {}
    own = {"optimizer": {"name": "sgd", "lr": rate / finer}, "steps": total} | snapshots
    return train_many(context, **merged(FLOW | own, settings))


def time_of(run: training.Run, step: int | None = None) -> float:
    return run.config.optimizer.lr * (run.config.total_steps if step is None else step)


UNEQUAL_TOPICS, UNEQUAL_WORDS = 8, 5
WEIGHTS = [1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.8, 6.3]
# In each of them the weights order the topics, from the rarest to the commonest.
LAWS: dict[str, dict[str, object]] = {
    "one topic per document": {"kind": "fixed", "topics_per_document": 1, "weights": WEIGHTS},
    "two topics per document": {"kind": "fixed", "topics_per_document": 2, "weights": WEIGHTS},
    "Dirichlet": {"kind": "dirichlet", "alpha": [0.1 * weight for weight in WEIGHTS]},
}

LEAST = 0.95  # the rank correlation that the claim asks for
CLOSE = 0.05  # how far mean half-times may be from those of W(t), as a share


@dataclass(frozen=True)
class TopicLaw:
    """Of every topic E[theta^2], the half-time that W(t) predicts, the rule of thumb, and what each run measured."""

    squares: list[float]
    predicted: list[float]
    thumb: list[float]
    measured: list[list[float]]  # by run and topic; NaN: not half-way at the end


@dataclass(frozen=True)
class TopicTimes:
    laws: dict[str, TopicLaw]
    config: training.RunConfig


def block_means(value: Matrix) -> Float[np.ndarray, " T"]:
    blocks = value[1:, 1:].reshape(UNEQUAL_TOPICS, UNEQUAL_WORDS, UNEQUAL_TOPICS, UNEQUAL_WORDS).mean((1, 3))
    return np.diagonal(blocks)


def law_of(runs: list[training.Run]) -> TopicLaw:
    config, best = runs[0].config, optimum(runs[0].config)
    end = block_means(best.matrix())

    def half_times(times: Sequence[float], values: Iterable[Matrix]) -> list[float]:
        shares = np.array([block_means(value) for value in values]) / end
        return [reached(times, share, 0.5) for share in shares.T]

    times = np.linspace(0, time_of(runs[0]), config.total_steps + 1).tolist()
    squares = np.diagonal(config.documents.moments(UNEQUAL_TOPICS).second)
    thumb = np.log(2) * UNEQUAL_WORDS / (2 * config.masking.k**2 * squares)
    kept = sorted(runs[0].snapshots)
    at = [time_of(runs[0], step) for step in kept]
    measured = [half_times(at, (run.snapshots[step]["value"] for step in kept)) for run in runs]
    return TopicLaw(squares.tolist(), half_times(times, map(best.value_at, times)), thumb.tolist(), measured)


def measure_topics(context: Context) -> TopicTimes:
    runs = {
        name: train_flow(
            context,
            *(0.5, 800, 200),
            topic_model={"topics": UNEQUAL_TOPICS, "words_per_topic": UNEQUAL_WORDS},
            documents=documents | {"length": "infinite"},
        )
        for name, documents in LAWS.items()
    }
    return TopicTimes({name: law_of(here) for name, here in runs.items()}, next(iter(runs.values()))[0].config)


def rank_correlation(one: list[float], other: list[float]) -> float:
    """Spearman's, of numbers without ties."""
    first, second = (np.argsort(np.argsort(values)).astype(float) for values in (one, other))
    return float(np.corrcoef(first, second)[0, 1])


def correlations(law: TopicLaw) -> tuple[list[float], list[float]] | None:
    """By run: of measured and predicted times, of measured times and falling E[theta^2]; None: not all are known."""
    if not np.isfinite(law.measured).all() or not np.isfinite(law.predicted).all():
        return None
    orders = law.predicted, [-square for square in law.squares]
    by_time, by_square = ([rank_correlation(run, order) for run in law.measured] for order in orders)
    return by_time, by_square


def law_panel(name: str, law: TopicLaw) -> Lines:
    order = np.argsort(law.squares)
    x, predicted, thumb = (np.array(values)[order].tolist() for values in (law.squares, law.predicted, law.thumb))
    return Lines(
        name,
        [
            Series("W(t)", x, predicted),
            Series("ln 2 v / (2 k^2 E[theta^2])", x, thumb, thin=True),
            with_intervals("trained", x, [estimate([run[i] for run in law.measured]) for i in order]),
        ],
        "E[theta_t^2]",
        "half-time (learning rate x steps)",
    )


def judge_topics(found: TopicTimes) -> Outcome:
    ranks = {name: correlations(law) for name, law in found.laws.items()}
    # how far the mean half-time of a topic is from that of W(t), as a share; of all topics the largest
    apart = {
        name: float(np.max(np.abs(np.mean(law.measured, 0) / law.predicted - 1))) for name, law in found.laws.items()
    }
    checks = [
        None if both is None else min(map(min, both)) >= LEAST and apart[name] <= CLOSE for name, both in ranks.items()
    ]
    known = [both for both in ranks.values() if both is not None]
    lowest, lowest_square = (min((min(both[i]) for both in known), default=math.nan) for i in (0, 1))
    thumbs = {name: 100 * (np.array(law.thumb) / law.predicted - 1) for name, law in found.laws.items()}
    silent = [name for name, both in ranks.items() if both is None]
    return Outcome(
        paper="not asked: the paper's topics are alike",
        theory="order of E[theta_t^2], times from W(t)",
        measured=f"rank correlation with the predicted order: at least {cell(lowest)}; half-times are off by at most "
        + ", ".join(f"{100 * off:.2g}% ({name})" if ranks[name] else f"- ({name})" for name, off in apart.items()),
        verdict=verdict(*checks),
        reason=f"lowest rank correlation of the measured half-times, over laws of theta and runs: {cell(lowest)} with "
        f"those of W(t), {cell(lowest_square)} with the order of falling E[theta^2]; mean half-times are within "
        f"{100 * CLOSE:g}% of those of W(t) under {sum(off <= CLOSE for off in apart.values())} of {len(apart)} laws. "
        "The rule of thumb ln 2 v / (2 k^2 E[theta^2]) differs from W(t) by "
        + ", ".join(f"{off.min():+.0f} to {off.max():+.0f}% ({name})" for name, off in thumbs.items())
        + (f". Some topics are not half-way at the end: {', '.join(silent)}; longer runs would decide" * bool(silent)),
        figures=[
            Figure(
                "topic-order",
                "When each topic is learnt",
                "Half-time of each topic against its mean square share, for three laws of theta: points of training "
                "lie on the line of W(t).",
                [law_panel(name, law) for name, law in found.laws.items()],
                columns=3,
            )
        ],
        tables=[
            TableData(
                f"Half-times by topic, rarest first: {name}",
                ["topic", "E[theta^2]", "W(t)", "rule of thumb", "trained (95%)"],
                [
                    [str(i + 1), cell(law.squares[i]), cell(law.predicted[i]), cell(law.thumb[i]), str(estimate(times))]
                    for i, times in enumerate(np.transpose(law.measured).tolist())
                ],
            )
            for name, law in found.laws.items()
        ],
        numbers={
            name: {
                "squares": law.squares,
                "predicted": law.predicted,
                "rule_of_thumb": law.thumb,
                "measured": law.measured,
                "rank_correlation": ranks[name],
                "time_error": apart[name] if ranks[name] else None,
            }
            for name, law in found.laws.items()
        },
        config=found.config.as_dict(),
        ours=lowest,
    )


TOPIC_ORDER = Experiment(
    id="topic-order",
    claim="Topics of unequal weight are learnt in the order of falling E[theta_t^2], at the times that W(t) predicts.",
    rule="Uniform attention, squared loss, SGD from zero, infinite documents. A topic's half-time is when the mean of "
    "its block of W_V reaches half of that of W*. For each law of theta and each run the half-times have a Spearman "
    f"rank correlation of at least {LEAST} with those of W(t), and with the order of falling E[theta_t^2]; the mean "
    f"half-time of every topic is within {100 * CLOSE:g}% of that of W(t). Undecided where a topic is not half-way at "
    "the end. Revised after a first run, in which times were at most 3.3% off: the first rule looked at ranks alone.",
    measure=measure_topics,
    judge=judge_topics,
    seconds=10,
    beyond=True,
    number=Number(
        "rank correlation",
        "Spearman's, of the half-times of topics in training and in W(t), lowest over laws of theta and runs (1 in "
        "theory); the paper's topics are alike",
    ),
)


GROUPS, SIZE, WORDS, TAU, RHO = 3, 3, 4, 2, 0.5
TOPICS = GROUPS * SIZE
RHOS = (0.0, 0.25, 0.5, 0.75, 1.0)
EXACT = 1e-9  # relative error allowed between the gradient of the scores and its formula
NONE = 1e-12  # A force below this is rounding: documents of one group alone (rho = 1) leave none between groups
Contrasts = tuple[float, float]  # between groups, and between topics inside a group


@dataclass(frozen=True)
class GroupCourses:
    """Courses of the two contrasts of W_V as shares of W*, by run and time; forces on attention by rho."""

    times: list[float]
    courses: list[list[Contrasts]]
    forces: dict[float, Contrasts]  # gradient of the scores at W*, over every document
    formula: dict[float, Contrasts]
    trained: list[Contrasts]  # the same gradient at the last value matrix of every run, rho of the runs
    config: training.RunConfig


def contrasts(matrix: Matrix) -> Contrasts:
    """Mean eigenvalue on contrasts between groups, and between topics inside groups; [MASK] is left out."""
    groups = np.kron(np.eye(GROUPS) - 1 / GROUPS, np.full((SIZE, SIZE), 1 / SIZE))
    topics = np.kron(np.eye(GROUPS), np.eye(SIZE) - 1 / SIZE)
    words = np.full((WORDS, WORDS), 1 / WORDS)
    between, inside = (np.pad(np.kron(projector, words), ((1, 0), (1, 0))) for projector in (groups, topics))
    return float((matrix * between).sum()) / (GROUPS - 1), float((matrix * inside).sum()) / (TOPICS - GROUPS)


def world_of(rho: float) -> SmallWorld:
    return subset_world(TOPICS, WORDS, grouped_subsets(TOPICS, TAU, GROUPS, rho))


def measure_groups(context: Context) -> GroupCourses:
    runs = train_flow(
        context,
        *(0.25, 1000, 100),
        topic_model={"topics": TOPICS, "words_per_topic": WORDS},
        documents={"kind": "groups", "groups": GROUPS, "rho": RHO, "topics_per_document": TAU, "length": "infinite"},
    )
    masking, worlds = Masking(), {rho: world_of(rho) for rho in RHOS}
    value = closed_form(TopicModel(TOPICS, WORDS).word_topics, masking)  # W* = A (R A)^+: the same for every rho
    steps = sorted(runs[0].snapshots)
    return GroupCourses(
        [time_of(runs[0], step) for step in steps],
        [[contrasts(masking.k * run.snapshots[step]["value"]) for step in steps] for run in runs],
        {rho: contrasts(score_force(world, masking, value)) for rho, world in worlds.items()},
        {rho: contrasts(force_formula(world, masking, value)) for rho, world in worlds.items()},
        [contrasts(score_force(worlds[RHO], masking, run.weights["value"].astype(float))) for run in runs],
        runs[0].config,
    )


def groups_figure(found: GroupCourses) -> Figure:
    rates = {rho: group_rates(Setting.of(TOPICS, WORDS, TAU), GROUPS, rho) for rho in RHOS}
    times, names = found.times, ("groups", "topics in a group")
    learnt = [  # of the matrices that are kept every tenth is drawn
        Series(f"{name}, trained", times[::10], np.round(course, 5).tolist()[::10], markers=True)
        for name, course in zip(names, zip(*found.courses[0], strict=True), strict=True)
    ] + [
        Series(f"{name}, W(t)", times, (-np.expm1(-2 * rate * np.array(times))).round(5).tolist())
        for name, rate in zip(names, rates[RHO], strict=True)
    ]
    return Figure(
        "coarse-to-fine",
        "Value learns groups first; attention is pulled to topics inside groups",
        "Left: share of W* that is learnt, groups before topics. Middle: rates of learning rise with rho for groups "
        "and fall for topics in a group. Right: the force on attention has the opposite order.",
        [
            Lines(f"W_V, rho = {RHO:g}", learnt, "learning rate x steps", "share of W*", levels=[(0.5, "half")]),
            Lines(
                "rate of W_V",
                [Series(name, list(RHOS), [2 * rates[rho][i] for rho in RHOS]) for i, name in enumerate(names)],
                "rho",
                "2 x eigenvalue",
            ),
            Lines(
                "force on attention at W*",
                [
                    Series(f"{name}, {what}", list(RHOS), [forces[rho][i] for rho in RHOS], markers=what == "gradient")
                    for i, name in enumerate(names)
                    for what, forces in (("formula", found.formula), ("gradient", found.forces))
                ],
                "rho",
                "-dLoss/dL on the contrast",
            ),
        ],
        columns=3,
    )


def judge_groups(found: GroupCourses) -> Outcome:
    rates = group_rates(Setting.of(TOPICS, WORDS, TAU), GROUPS, RHO)
    predicted = [np.log(2) / (2 * rate) for rate in rates]
    halves = [
        tuple(reached(found.times, share, 0.5) for share in zip(*course, strict=True)) for course in found.courses
    ]
    known, means = bool(np.isfinite(halves).all()), np.mean(halves, 0)
    order = all(groups < topics for groups, topics in halves) if known else None
    off = float(np.abs(means / predicted - 1).max())
    between, within = found.forces[RHO]
    differences = [abs(a - b) for rho in RHOS for a, b in zip(found.forces[rho], found.formula[rho], strict=True)]
    error = max(differences) / max(map(max, found.formula.values()))
    opposite, last = between < within, abs(found.forces[1.0][0])
    opposite_trained = [groups < topics for groups, topics in found.trained]
    return Outcome(
        paper="not asked: the paper's topics are not correlated",
        theory=f"half-times {predicted[0]:.3g} (groups) and {predicted[1]:.3g} (topics in a group); force on attention "
        f"{found.formula[RHO][0]:.4g} between groups and {found.formula[RHO][1]:.4g} inside",
        measured=f"half-times {cell(float(means[0]))} (groups) and {cell(float(means[1]))} (topics in a group); force "
        f"{between:.4g} between groups and {within:.4g} inside",
        verdict=verdict(
            order, off <= CLOSE if known else None, opposite, *opposite_trained, last < NONE, error <= EXACT
        ),
        reason="value learns groups before topics: "
        + ("not half-way at the end of a run, longer runs would decide" if not known else "yes" if order else "no")
        + (f", half-times are {100 * off:.2g}% off at most" if known else "")
        + f"; the force on attention is weaker between groups than inside: {'yes' if opposite else 'no'} at W*, where "
        f"gradient and formula differ by {error:.1g}; at the trained matrix of {sum(opposite_trained)} of "
        f"{len(halves)} "
        "runs, {:.3g} between and {:.3g} inside on average".format(*np.mean(found.trained, 0))
        + f"; at W* with rho = 1 it is {last:.1g} between groups",
        figures=[groups_figure(found)],
        tables=[
            TableData(
                f"{GROUPS} groups of {SIZE} topics of {WORDS} words, tau = {TAU}, rho = {RHO:g}",
                ["contrasts", "half-time, theory", "half-time, trained (95%)", "force, formula", "force, gradient"],
                [
                    [name, f"{half:.4g}", str(estimate(trained)), f"{formula:.4g}", f"{force:.4g}"]
                    for name, half, trained, formula, force in zip(
                        ("between groups", "topics in a group"),
                        predicted,
                        zip(*halves, strict=True),
                        found.formula[RHO],
                        found.forces[RHO],
                        strict=True,
                    )
                ],
            )
        ],
        numbers={
            "half_times": [list(pair) for pair in halves],
            "predicted": predicted,
            "forces": {f"{rho:g}": list(pair) for rho, pair in found.forces.items()},
            "formula": {f"{rho:g}": list(pair) for rho, pair in found.formula.items()},
            "force_at_trained": [list(pair) for pair in found.trained],
        },
        config=found.config.as_dict(),
        ours=float(means[1] / means[0]),
    )


COARSE_TO_FINE = Experiment(
    id="coarse-to-fine",
    claim="Where topics come in groups, value learns groups before the topics in them; the force on attention (the "
    "negative gradient of its scores) is weaker between groups than inside.",
    rule="Uniform attention, squared loss, SGD from zero, infinite documents. rho: share of documents whose topics are "
    "drawn from one group. In every run contrasts between groups are half learnt before those between topics in a "
    "group, and the mean half-times are within 5% of ln 2 / (2 x eigenvalue). At W* the force is smaller between "
    "groups than inside, and for every rho within 1e-9 of its formula (relative to the largest); at the trained matrix "
    "of every run it is smaller between groups too; at W* with rho = 1 it is below 1e-12 between groups. Undecided "
    "where a contrast is not half-way at the end. Revised twice after runs: the first rule looked at the force at W* "
    "alone, where no training enters; the second at the first run's trained matrix alone.",
    measure=measure_groups,
    judge=judge_groups,
    seconds=5,
    beyond=True,
    number=Number(
        "half-time, fine/coarse",
        "half-time of contrasts between topics of a group over that of contrasts between groups (a ratio, 2.09 in "
        "theory), mean over runs; the paper has no groups",
    ),
)
