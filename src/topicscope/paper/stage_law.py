"""When value, key and query rise: the law beside gradient flow (stage-law), and beside SGD (sgd-second-stage)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float

from topicscope import training
from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import (
    Context,
    Experiment,
    Number,
    Outcome,
    Scale,
    cell,
    first_step,
    listed,
    train_many,
    verdict,
)
from topicscope.theory import Growth, NamedWeights, Population, gaussian_start, gradient_flow, optimum
from topicscope.world import Fixed, Masking, TopicModel

STAGE_FLOWS = "stage flows"  # of the experiments that share the flows: they run in one process, one after another
SCALES: dict[Scale, tuple[float, ...]] = {"quick": (1e-4, 1e-3, 1e-2), "full": (1e-5, 1e-4, 1e-3, 3e-3, 1e-2)}
COMMON = 1e-3  # the scale that `no-correct-words` takes too
# Up to this scale there is a second plateau: from larger starts the third act begins before the second ends.
SMALL = 1e-3


class FlowWorld(NamedTuple):
    T: int
    v: int
    tau: int

    @property
    def topic_model(self) -> TopicModel:
        return TopicModel(self.T, self.v)

    @property
    def prior(self) -> Fixed:
        return Fixed(topics_per_document=self.tau, length="infinite")

    @property
    def width(self) -> int:
        """d_a: as many as there are words with [MASK]."""
        return self.T * self.v + 1

    def population(self, masking: Masking | None = None) -> Population:
        return Population.of(self.topic_model, self.prior, masking or Masking())

    def growth(self) -> Growth:
        return Growth.of(self.topic_model, self.prior)

    def start(self, scale: float, seed: int) -> NamedWeights:
        return gaussian_start(self.width, self.width, scale, seed)

    def __str__(self) -> str:
        return f"({self.T}, {self.v}, {self.tau})"


WORLDS = (FlowWorld(4, 3, 2), FlowWorld(5, 4, 2), FlowWorld(6, 3, 3))
# The paper's size. From scale .001 the third act begins here before key is half-way, and there is no plateau.
LARGE = FlowWorld(10, 10, 3)


class Halves(NamedTuple):
    """t50 of value, key and query: half-way from the start to the law's plateau (value: the first); NaN: never."""

    value: float
    key: float
    query: float


@dataclass(frozen=True)
class StageFlow:
    world: FlowWorld
    scale: float
    seed: int
    measured: Halves
    predicted: Halves
    times: list[float]
    value: list[float]  # norms
    key: list[float]
    value_law: list[float]
    key_law: list[float]
    plateau: float  # |W_K| on the second plateau
    plateau_law: float
    loss: float
    loss_law: float
    singular: list[float]  # values of W_K' W_Q there, largest first

    @property
    def errors(self) -> Halves:
        return Halves(*(there / said - 1 for there, said in zip(self.measured, self.predicted, strict=True)))


class FirstStage:
    """|W(t)| of the closed form from a given start. On the plateau, what is not learnt stays where it started."""

    def __init__(self, world: FlowWorld, start: Float[np.ndarray, "V V"]) -> None:
        self.best, self.start = optimum(world.topic_model, world.prior, Masking()), start
        self.end = 100 / min(mode.eigenvalue for mode in self.best.modes if mode.eigenvalue > 1e-12)
        self.plateau = self.norm(self.end)

    def norm(self, time: float) -> float:
        return float(np.linalg.norm(self.best.value_at(time, self.start)))

    def half_time(self) -> float:
        from scipy.optimize import brentq

        half = (self.norm(0.0) + self.plateau) / 2
        return float(brentq(lambda time: self.norm(time) - half, 0.0, self.end, xtol=1e-9 * self.end))


def key_law(growth: Growth, start: NamedWeights, times: Float[np.ndarray, " n"]) -> list[float]:
    """|W_K(t)|: the part in topic contrasts that W_K and W_Q share grows as the law says, the rest stands still."""
    width, first = len(start["key"]), growth.realised_start(start["key"], start["query"])
    grows = np.sqrt(width) * (growth.topics - 1)
    rest = float(np.vdot(start["key"], start["key"])) - grows * first
    return np.sqrt(rest + grows * growth.course(times, width, first)).tolist()


def stage_flow(world: FlowWorld, scale: float, seed: int, after: float = 8.0) -> StageFlow:
    """The flow up to `after` e-folds past the predicted half-time of key: by then it is on the second plateau."""
    growth, start = world.growth(), world.start(scale, seed)
    first, norm = FirstStage(world, start["value"]), growth.plateau_norm(world.width)
    said = growth.half_time(world.width, growth.realised_start(start["key"], start["query"]))
    course = gradient_flow(world.population(), start, said + after * growth.e_fold(world.width), keep=True)
    half = course.half_way("key", norm)
    place = course.slowest(after=half if half < course.times[-1] else said)
    there = course.states[place]
    return StageFlow(
        world,
        scale,
        seed,
        Halves(course.half_way("value", first.plateau), half, course.half_way("query", norm)),
        Halves(first.half_time(), said, said),
        course.times,
        course.norm("value").tolist(),
        course.norm("key").tolist(),
        [first.norm(time) for time in course.times],
        key_law(growth, start, np.array(course.times)),
        float(course.norm("key")[place]),
        norm,
        course.losses[place],
        growth.loss(growth.l_star),
        np.linalg.svd(there["key"].T @ there["query"], compute_uv=False).tolist(),
    )


@lru_cache(maxsize=1)
def stage_flows(context: Context) -> list[StageFlow]:
    seeds = context.seeds(2, 5)
    return [stage_flow(world, s, i) for world in WORLDS for s in SCALES[context.scale] for i in seeds]


CLOSE = 0.03  # how far measured half-times and norms may be from the law, as a share


def measure_flows(context: Context) -> list[StageFlow]:
    large = [stage_flow(LARGE, COMMON, 1000 * context.seed, after=1.0)] if context.scale == "full" else []
    return [*stage_flows(context), *large]


def worst(flow: StageFlow) -> float:
    return max(abs(error) if math.isfinite(error) else math.inf for error in flow.errors)


def by_world(flows: Sequence[StageFlow]) -> dict[FlowWorld, list[StageFlow]]:
    return {world: [flow for flow in flows if flow.world == world] for world in dict.fromkeys(f.world for f in flows)}


def drawn(flow: StageFlow, part: str, what: str, every: int = 1, *, group: str, markers: bool = False) -> Series:
    """From the second time on: time 0 has no place on a logarithmic axis."""
    norms = np.round(getattr(flow, part)[1::every], 5).tolist()
    return Series(f"s = {flow.scale:g}, {what}", flow.times[1::every], norms, group=group, markers=markers)


def curves(world: FlowWorld, flows: list[StageFlow]) -> list[Lines]:
    """Value and key of a world against the law, from the first seed of each scale: about 40 points of each flow."""
    first = [flow for _, flow in sorted({flow.scale: flow for flow in reversed(flows)}.items())]
    steps = {flow.scale: max(1, (len(flow.times) - 1) // 40) for flow in first}
    return [
        Lines(
            f"|W_{part[0].upper()}|, {world}",
            [
                *(drawn(f, part, "flow", steps[f.scale], group=f"s = {f.scale:g}", markers=True) for f in first),
                *(drawn(flow, f"{part}_law", "law", group="law") for flow in first),
            ],
            "time",
            "Frobenius norm",
            log_x=True,
        )
        for part in ("value", "key")
    ]


def half_times(flows: list[StageFlow]) -> list[Lines]:
    """Predicted against measured, all cells: value at the lower left, key at the upper right; and the error of key."""
    ends = [10.0, max(flow.predicted.key for flow in flows)]
    return [
        Lines(
            "half-times",
            [
                Series("as predicted", ends, ends, thin=True),
                *(
                    Series(
                        f"{world} {part}",
                        [getattr(flow.predicted, part) for flow in here],
                        [getattr(flow.measured, part) for flow in here],
                        group=str(world),
                        markers=True,
                    )
                    for world, here in by_world(flows).items()
                    for part in ("value", "key")
                ),
            ],
            "predicted t50",
            "measured t50",
            log_x=True,
            log_y=True,
        ),
        Lines(
            "t50 of key",
            [
                Series(
                    f"{world} seed {seed}",
                    [flow.scale for flow in here if flow.seed == seed],
                    [100 * flow.errors.key for flow in here if flow.seed == seed],
                    group=str(world),
                    markers=True,
                )
                for world, here in by_world(flows).items()
                for seed in dict.fromkeys(flow.seed for flow in here)
            ],
            "scale s of the start",
            "later than predicted, %",
            log_x=True,
            levels=[(-100 * CLOSE, "-3%"), (0.0, "as predicted"), (100 * CLOSE, "+3%")],
        ),
    ]


def judge_flows(flows: list[StageFlow]) -> Outcome:
    small = [flow for flow in flows if flow.scale <= SMALL and flow.world != LARGE]
    error, plateau = max(map(worst, flows)), max(abs(flow.plateau / flow.plateau_law - 1) for flow in small)
    late = [flow.errors.key for flow in flows]
    return Outcome(
        paper="key and query follow value (Section 5.1, Figure 4); when is left open",
        theory="half-time of value: from W(t); of key: (sqrt(d_a) / (2 sigma)) (ln(l* / (4 l0)) + chi)",
        measured=f"half-times of {len(flows)} flows are off by {100 * error:.2g}% at most, norms on the second plateau "
        f"by {100 * plateau:.2g}%",
        verdict=verdict(error <= CLOSE, plateau <= CLOSE),
        reason=f"largest error of a half-time {100 * error:.2g}% ({100 * CLOSE:g}% allowed); key is "
        f"{100 * min(late):+.2f}% to {100 * max(late):+.2f}% from its prediction (+: later); the second plateau, for "
        f"initial scales up to {SMALL:g}, is within {100 * plateau:.2g}% of the law. From larger scales the third act "
        "begins before this plateau: there the table has the slowest point instead",
        figures=[
            Figure(
                "stage-law",
                "Predicted and measured norms of value and key",
                "Norms under gradient flow against time, one row per world: points of the flow lie on the law's curves "
                "for value until key and query rise, and for key up to the second plateau.",
                [panel for world, here in by_world(flows).items() for panel in curves(world, here)],
            ),
            Figure(
                "stage-law-times",
                "Predicted against measured half-times",
                "Left: half-times of value and key in all worlds, scales and seeds lie on the diagonal. Right: key "
                "comes a little later than predicted, by less than 3%.",
                half_times(flows),
            ),
        ],
        tables=[
            TableData(
                "Law / flow, by world, scale and seed",
                ["world", "scale", "seed", "t50 of value", "t50 of key", "t50 of query", "plateau |W_K|", "loss on it"],
                [
                    [
                        *(str(flow.world), f"{flow.scale:g}", str(flow.seed)),
                        *(
                            f"{said:.5g} / {there:.5g} ({100 * off:+.2f}%)"
                            for said, there, off in zip(flow.predicted, flow.measured, flow.errors, strict=True)
                        ),
                        f"{flow.plateau_law:.4g} / {flow.plateau:.4g}",
                        f"{flow.loss_law:.5f} / {flow.loss:.5f}",
                    ]
                    for flow in flows
                ],
                folded=True,
            )
        ],
        numbers={
            "flows": [
                {
                    "world": list(flow.world),
                    "scale": flow.scale,
                    "seed": flow.seed,
                    "predicted": flow.predicted._asdict(),
                    "measured": flow.measured._asdict(),
                    "plateau": [flow.plateau_law, flow.plateau],
                    "loss": [flow.loss_law, flow.loss],
                }
                for flow in flows
            ]
        },
        config={
            "worlds": [list(world) for world in WORLDS],
            "scales": SCALES,
            "seeds": {"quick": 2, "full": 5},
            "common_scale": COMMON,
        },
        ours=float(np.median([flow.measured.key / flow.predicted.key for flow in flows])),
    )


# The rule's first draft measured half-way against the slowest point of the flow itself. Flows from scale .01 have no
# such point before the third act, so the law's plateau took its place.
STAGE_LAW = Experiment(
    id="stage-law",
    claim="A closed form predicts when value rises, and when key and query rise.",
    rule="Gradient flow of the population loss (squared, one-hot words, all three matrices, d_a = V) in three worlds, "
    "from Gaussian starts of several scales and seeds. t50 is the time at which a norm is half-way from its start to "
    "the plateau that the law predicts: the first one for value, the second for key and query. In every flow every t50 "
    "is within 3% of its prediction from that very start; a norm that does not get half-way fails. For initial scales "
    "up to .001, |W_K| at the slowest point after t50 of key is within 3% of the law's second plateau. With --scale "
    "full one flow of T = v = 10 from scale .001 is judged too, by its half-times alone: it has no second plateau.",
    measure=measure_flows,
    judge=judge_flows,
    seconds=20,
    beyond=True,
    group=STAGE_FLOWS,
    number=Number(
        "t50 of key over law",
        "half-time of the norm of W_K under gradient flow over its prediction, median over worlds, scales and seeds (1 "
        "in theory); the paper prints no times of a flow",
    ),
)


SGD_CLOSE = 0.2  # how far the measured step may be from the predicted one, as a share


class SgdSetting(NamedTuple):
    """A world, the width d_a of attention, the scale s of the start, the rate, documents per step, steps."""

    world: FlowWorld
    width: int
    scale: float
    rate: float
    batch: int
    steps: int


# T = v = 10 takes some minutes, so that the quick scale has a smaller world. Rates are half of what is stable.
SGD_SETTINGS: dict[Scale, SgdSetting] = {
    "quick": SgdSetting(FlowWorld(5, 4, 2), 21, 0.01, 8.0, 40, 5_000),
    "full": SgdSetting(FlowWorld(10, 10, 3), 16, 0.01, 20.0, 10, 28_000),
}


@dataclass(frozen=True)
class SgdCourse:
    """|W_K| at every step of a run, |W_K| of the law at the same steps, and the step that the law predicts."""

    norm: list[float]
    law: list[float]
    predicted: float
    value: list[float]

    @classmethod
    def of(cls, setting: SgdSetting, run: training.Run) -> Self:
        growth, norm = setting.world.growth(), run.metrics["norm_key"]
        start = {part: run.snapshots[0][part].astype(float) for part in ("value", "key", "query")}
        half = growth.half_time(setting.width, growth.realised_start(start["key"], start["query"]))
        return cls(
            norm.tolist(),
            key_law(growth, start, setting.rate * np.arange(len(norm))),
            half / setting.rate,
            run.metrics["norm_value"].tolist(),
        )


@dataclass(frozen=True)
class SgdCourses:
    setting: SgdSetting
    courses: list[SgdCourse]
    plateau: float
    config: dict[str, object]


def measure_sgd(context: Context) -> SgdCourses:
    setting = SGD_SETTINGS[context.scale]
    runs = train_many(
        context,
        steps=setting.steps,
        batch_size=setting.batch,
        snapshots=[0],
        topic_model={"topics": setting.world.T, "words_per_topic": setting.world.v},
        documents={"kind": "fixed", "topics_per_document": setting.world.tau, "length": "infinite"},
        data={"documents": 20_000, "dev_documents": 20},
        model={"attention_dim": setting.width, "init_scale": setting.scale, "prediction_bias": "none"},
        objective={"loss": "squared"},
        optimizer={"name": "sgd", "lr": setting.rate},
    )
    return SgdCourses(
        setting,
        [SgdCourse.of(setting, run) for run in runs],
        setting.world.growth().plateau_norm(setting.width),
        runs[0].config.as_dict(),
    )


def lines(courses: list[SgdCourse], name: str, law: str = "", *, markers: bool = False) -> list[Series]:
    every = max(1, len(courses[0].norm) // 50)
    steps = np.arange(0.0, len(courses[0].norm), every).tolist()
    curves = [np.round(getattr(course, name)[::every], 5).tolist() for course in courses]
    labels = [f"{law or 'SGD'}, seed {seed}" for seed in range(len(courses))]
    return [
        Series(label, steps, curve, group=law or label, markers=markers)
        for label, curve in zip(labels, curves, strict=True)
    ]


def judge_sgd(found: SgdCourses) -> Outcome:
    setting, courses = found.setting, found.courses
    measured = [first_step(course.norm, (course.norm[0] + found.plateau) / 2, math.inf) for course in courses]
    ratios = [step / course.predicted for step, course in zip(measured, courses, strict=True)]
    said = listed((course.predicted for course in courses), ",.0f")
    there = ", ".join(f"{step:,.0f}" if np.isfinite(step) else "not within the run" for step in measured)
    where = f"T = {setting.world.T}, v = {setting.world.v}, tau = {setting.world.tau}"
    return Outcome(
        paper="SGD shows no second stage in the paper's figures",
        theory=f"key half-way at step {said} (by seed; rate {setting.rate:g}, scale {setting.scale:g}, {where})",
        measured=f"key half-way at step {there} (by seed)",
        verdict=verdict(*(abs(ratio - 1) <= SGD_CLOSE for ratio in ratios)),
        reason=f"measured over predicted step: {listed(ratios)} (within "
        f"{100 * SGD_CLOSE:g}% of 1 asked); {where}, d_a = {setting.width}, {setting.steps:,} steps of {setting.batch} "
        "infinite documents",
        figures=[
            Figure(
                "sgd-second-stage",
                f"SGD's second stage, {where}",
                "Norm of W_K against steps: the run and the law, drawn from the run's own start, rise together. The "
                "value matrix was learnt long before.",
                [
                    Lines(
                        "|W_K|",
                        [*lines(courses, "norm", markers=True), *lines(courses, "law", "law")],
                        "step",
                        "Frobenius norm",
                        levels=[(found.plateau / 2, "half of the second plateau")],
                    ),
                    Lines("|W_V|", lines(courses, "value"), "step", "Frobenius norm"),
                ],
            )
        ],
        tables=[
            TableData(
                f"Key half-way, {where}",
                ["seed", "predicted step", "measured step", "ratio"],
                [
                    [str(seed), f"{course.predicted:,.0f}", f"{step:,.0f}", f"{ratio:.3f}"]
                    for seed, (course, step, ratio) in enumerate(zip(courses, measured, ratios, strict=True))
                ],
            )
        ],
        numbers={"predicted": [course.predicted for course in courses], "measured": measured, "ratios": ratios},
        config=found.config,
        ours=float(np.mean(ratios)),
    )


SGD_SECOND_STAGE = Experiment(
    id="sgd-second-stage",
    claim="SGD has a second stage too, at the step that the law predicts.",
    rule="SGD on the squared loss, infinite documents, one-hot words; the world (5, 4, 2), with --scale full (10, 10, "
    "3). In every run the step at which |W_K| is half-way from its start to the law's second plateau is within 20% of "
    "the predicted step: the law's half-time from the run's own start, divided by the learning rate. A run that does "
    "not get half-way fails.",
    measure=measure_sgd,
    judge=judge_sgd,
    seconds=15,
    beyond=True,
    number=Number(
        "step over law",
        "step at which the norm of W_K is half-way to the second plateau over the predicted step, mean over runs (1 in "
        "theory); the paper's runs of SGD end before it",
    ),
)


ALIKE, NONE = 0.9, 0.01  # the least of the T - 1 over the largest; the next one over the least of them


def shares(flow: StageFlow) -> tuple[float, float]:
    last, following = flow.singular[flow.world.T - 2 : flow.world.T]
    return last / flow.singular[0], following / last


def judge_rank(flows: list[StageFlow]) -> Outcome:
    small = [flow for flow in flows if flow.scale <= SMALL]
    alike, others = min(shares(flow)[0] for flow in small), max(shares(flow)[1] for flow in small)
    return Outcome(
        paper="not asked: the paper counts no singular values",
        theory="the force on attention is sigma times the projector on topic contrasts: T - 1 equal singular values",
        measured=f"in {len(small)} flows the T - 1 largest differ by {100 * (1 - alike):.2g}% at most, and the next is "
        f"at most {cell(others)} of the smallest of them",
        verdict=verdict(alike >= ALIKE, others <= NONE),
        reason=f"the (T - 1)-th singular value over the largest: {cell(alike)} (at least {ALIKE} asked); the T-th over "
        f"the (T - 1)-th: {cell(others)} (at most {NONE} asked). From larger starts the flow leaves the plateau before "
        "all contrasts are learnt",
        figures=[
            Figure(
                "rank",
                f"Singular values of W_K' W_Q at the second plateau, scale {COMMON:g}",
                "In each world the first T - 1 singular values are equal, and the others lie far below.",
                [
                    Lines(
                        f"{world}: T - 1 = {world.T - 1}",
                        [
                            Series(
                                f"seed {flow.seed}",
                                np.arange(1.0, len(flow.singular) + 1).tolist(),
                                np.maximum(np.array(flow.singular) / flow.singular[0], 1e-12).tolist(),
                                markers=True,
                            )
                            for flow in here
                            if flow.scale == COMMON
                        ],
                        "singular value, by size",
                        "share of the largest",
                        log_y=True,
                        levels=[(NONE, "1%")],
                    )
                    for world, here in by_world(flows).items()
                ],
                columns=3,
            )
        ],
        tables=[
            TableData(
                "Singular values at the second plateau (at the slowest point where there is none)",
                ["world", "scale", "seed", "largest", "(T - 1)-th / largest", "T-th / (T - 1)-th"],
                [
                    [str(flow.world), f"{flow.scale:g}", str(flow.seed), *map(cell, (flow.singular[0], *shares(flow)))]
                    for flow in flows
                ],
                folded=True,
            )
        ],
        numbers={
            "flows": [
                {"world": list(flow.world), "scale": flow.scale, "seed": flow.seed, "singular": flow.singular}
                for flow in flows
            ]
        },
        ours=others,
    )


RANK = Experiment(
    id="rank",
    claim="Key and query learn the T - 1 topic contrasts with equal strength, and nothing else.",
    rule="The flows of stage-law from initial scales up to .001, at the second plateau (the slowest point after the "
    f"half-time of key). In every flow the T - 1 largest singular values of W_K' W_Q are at least {ALIKE} of the "
    "largest, and all others at most 1% of the smallest of these T - 1.",
    measure=stage_flows,
    judge=judge_rank,
    seconds=20,
    beyond=True,
    group=STAGE_FLOWS,
    number=Number(
        "singular values, T/T-1",
        "the T-th singular value of W_K' W_Q at the second plateau over the (T - 1)-th, largest over flows (0 in "
        "theory); the paper prints none",
    ),
)


LONGER = 3.0  # times the half-time that key and query have where words are shown correctly: how long a flow lasts
# Times its start that a norm may reach; that it must reach with p_correct = .1; error of the loss.
STANDS, GROWS, EXACT_LOSS = 1.05, 10.0, 1e-6


@dataclass(frozen=True)
class Pair:
    world: FlowWorld
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


def measure_pairs(context: Context) -> list[Pair]:
    pairs = []
    for flow in (flow for flow in stage_flows(context) if flow.scale == COMMON):
        start = flow.world.start(flow.scale, flow.seed)
        course = gradient_flow(flow.world.population(Masking(p_correct=0.0)), start, LONGER * flow.predicted.key)
        norms = {part: (course.norm(part) / course.norm(part)[0]).tolist() for part in ("key", "query")}
        pairs.append(Pair(flow.world, flow.seed, course.times, course.losses, norms, flow))
    return pairs


def judge_pairs(pairs: list[Pair]) -> Outcome:
    growth, control = max(pair.growth for pair in pairs), min(pair.growth_with_words for pair in pairs)
    error = max(abs(pair.losses[-1] - pair.bayes) for pair in pairs)
    first = {pair.world: (pair, pair.with_words) for pair in reversed(pairs)}
    return Outcome(
        paper="the second stage is shown only with p_correct > 0",
        theory="p_correct = 0: no force on attention, and the first stage ends at the Bayes loss 1 - 1/(v tau)",
        measured=f"key and query reach at most {growth:.4f} times their start (with p_correct = .1 key reaches at "
        f"least {control:.3g} times); the loss ends within {error:.1g} of the Bayes loss",
        verdict=verdict(growth < STANDS, control > GROWS, error <= EXACT_LOSS),
        reason=f"in {LONGER:g} times the half-time predicted for key with p_correct = .1, key and query reach at most "
        f"{growth:.4f} times their start (below {STANDS} asked); with p_correct = .1 key reaches at least "
        f"{control:.3g} times its start (above {GROWS:g} asked); the last loss is within {error:.1g} of the Bayes loss "
        f"({EXACT_LOSS:g} allowed)",
        figures=[
            Figure(
                "no-correct-words",
                "Key with and without correct words",
                "Without correct words the norm of W_K stays at its start; with them it grows to at least "
                f"{control:.3g} times its start.",
                [
                    Lines(
                        f"|W_K| over its start, {pair.world}",
                        [
                            Series(
                                "p_c = .1", flow.times[1:], (np.array(flow.key) / flow.key[0]).round(5).tolist()[1:]
                            ),
                            Series("p_c = 0", pair.times[1:], np.round(pair.norms["key"], 5).tolist()[1:]),
                        ],
                        "time",
                        "times the start",
                        log_x=True,
                        log_y=True,
                    )
                    for pair, flow in (first[world] for world in WORLDS)
                ],
                columns=3,
            )
        ],
        tables=[
            TableData(
                f"p_correct = 0, scale {COMMON:g}",
                ["world", "seed", "growth of key, query", "with p_correct = .1", "loss at the end", "Bayes loss"],
                [
                    [
                        *(str(pair.world), str(pair.seed), f"{pair.growth:.5f}", cell(pair.growth_with_words)),
                        *(f"{pair.losses[-1]:.9f}", f"{pair.bayes:.9f}"),
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


NO_CORRECT_WORDS = Experiment(
    id="no-correct-words",
    claim="Without correct words (p_correct = 0) there is no second stage: the first ends at the Bayes loss.",
    rule=f"The flows of stage-law from initial scale {COMMON:g}, with p_correct = 0 and for three times the half-time "
    f"predicted for key with p_correct = .1. In every flow the norms of key and query stay below {STANDS} times their "
    "start and the last loss is within 1e-6 of the Bayes loss 1 - 1/(v tau); in the flow of stage-law itself, with "
    "p_correct = .1, the norm of key grows more than tenfold.",
    measure=measure_pairs,
    judge=judge_pairs,
    seconds=25,
    beyond=True,
    group=STAGE_FLOWS,
    number=Number(
        "growth of key, query",
        "largest norm of W_K or W_Q over its start, without correct words, over all flows (1: no second stage); the "
        "paper prints none",
    ),
)
