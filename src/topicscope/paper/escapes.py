"""When a flow leaves its start: one topic per document, a trained embedding, and [MASK] under cross entropy."""

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from topicscope.pages import Figure, Heat, Lines, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell, listed, reached, verdict
from topicscope.paper.stage_law import WORLDS, FlowWorld
from topicscope.theory import (
    Growth,
    MaskFirst,
    NamedWeights,
    Population,
    Setting,
    Trajectory,
    dynamics,
    gaussian_start,
    gradient_flow,
    grouped_subsets,
    mask_first,
    mask_force,
    score_force,
    subset_world,
    topic_contrasts,
    word_tables,
)
from topicscope.world import Masking

ESCAPE_WORLD = FlowWorld(4, 3, 1)
ESCAPE_SCALES = {"quick": tuple(0.15 / 2**i for i in range(6)), "full": tuple(0.15 / 2**i for i in range(7))}
DROP = 0.002  # of the loss below its first plateau 1 - 1/v, once this is left; the flow falls by .03 in all
LEFT = 1 - 1 / ESCAPE_WORLD.v - DROP
LONGEST_ESCAPE = 1000.0  # times 1 / s that a flow may take: three times what the first numbers of this law say
NO_FORCE, CLOSE = 1e-12, 0.05  # sigma of tau = 1 over that of tau = 2; how far a ratio of times may be off, as a share


@dataclass(frozen=True)
class Escapes:
    """By seed the times at which the first plateau is left, in the order of scales (NaN: not left)."""

    scales: list[float]
    times: dict[int, list[float]]
    losses: dict[float, tuple[list[float], list[float]]]  # s x time and loss of the first seed, by scale
    force: float  # sigma of tau = 1 over that of tau = 2


def measure_escapes(context: Context) -> Escapes:
    scales, times = ESCAPE_SCALES[context.scale], {}
    losses: dict[float, tuple[list[float], list[float]]] = {}
    for seed in context.seeds(2, 5):
        times[seed] = list[float]()
        for scale in scales:
            start = ESCAPE_WORLD.start(scale, seed)
            course = gradient_flow(
                ESCAPE_WORLD.population(), start, LONGEST_ESCAPE / scale, stop=lambda course: course.losses[-1] <= LEFT
            )
            times[seed].append(reached(course.times, -np.array(course.losses), -LEFT))
            losses.setdefault(scale, ((scale * np.array(course.times)).round(4).tolist(), course.losses))
    two = ESCAPE_WORLD._replace(tau=2).growth()
    return Escapes(list(scales), times, losses, ESCAPE_WORLD.growth().sigma / two.sigma)


def doublings(found: Escapes, seed: int) -> list[float]:
    """t(s / 2) / t(s): 2 under the law C / s, towards 1 under one in log(1 / s)."""
    return [after / before for before, after in itertools.pairwise(found.times[seed])]


def from_plateau(name: str, x: np.ndarray, losses: np.ndarray) -> Series:
    late = losses <= 1 - 1 / ESCAPE_WORLD.v + DROP / 2
    return Series(name, x[late].tolist(), losses[late].round(6).tolist())


def judge_escapes(found: Escapes) -> Outcome:
    last = {seed: doublings(found, seed)[-1] for seed in found.times}
    products = {seed: (np.array(found.scales) * times).tolist() for seed, times in found.times.items()}
    checks = [None if np.isnan(ratio) else abs(ratio / 2 - 1) <= CLOSE for ratio in last.values()]
    smallest, halved = found.scales[-1], listed(last.values())
    return Outcome(
        paper="not asked; its second stage has several topics per document",
        theory="no force on attention for tau = 1 (sigma = 0); the flow leaves a cubic saddle after a time C / s",
        measured=f"s t at s = {smallest:.3g}: {', '.join(cell(product[-1]) for product in products.values())} (by "
        f"seed); the last halving of s makes t {halved} times as long",
        verdict=verdict(abs(found.force) <= NO_FORCE, *checks),
        reason=f"t({smallest:.3g}) / t({2 * smallest:.3g}) is {halved} "
        f"by seed (within {100 * CLOSE:g}% of 2 asked; a law in log(1/s) would give about "
        f"{np.log(1 / smallest) / np.log(0.5 / smallest):.2f}); the force on attention at the first plateau, over that "
        f"with tau = 2, is {found.force:.1g}. So tau = 1 has a second stage, though no force acts at the first "
        "plateau. C depends on the start",
        figures=[
            Figure(
                "one-topic",
                "One topic per document: the first plateau is left after C / s",
                "Left: s times the time at which the plateau is left, against s; this product levels off as s falls. "
                "Right: the loss against s times time; the curves of small scales fall at the same place.",
                [
                    Lines(
                        "when the plateau is left",
                        [
                            Series(f"seed {seed}", found.scales, product, markers=True)
                            for seed, product in products.items()
                        ],
                        "scale s of the start",
                        "s x time",
                        log_x=True,
                    ),
                    Lines(
                        "loss, one seed",
                        [from_plateau(f"s = {s:.3g}", *map(np.array, course)) for s, course in found.losses.items()],
                        "s x time",
                        "loss",
                        levels=[(1 - 1 / ESCAPE_WORLD.v, "first plateau")],
                    ),
                ],
            )
        ],
        tables=[
            TableData(
                f"World {ESCAPE_WORLD}: the first plateau is left at t",
                ["s", *(f"s t, seed {seed}" for seed in found.times), *(f"t / t(2 s), seed {seed}" for seed in last)],
                [
                    [
                        f"{scale:.4g}",
                        *(f"{product[i]:.1f}" for product in products.values()),
                        *("-" if i == 0 else f"{doublings(found, seed)[i - 1]:.3f}" for seed in found.times),
                    ]
                    for i, scale in enumerate(found.scales)
                ],
            )
        ],
        numbers={"scales": found.scales, "times": {str(k): v for k, v in found.times.items()}, "force": found.force},
        config={"world": list(ESCAPE_WORLD), "scales": found.scales, "drop": DROP},
        ours=float(np.mean(list(last.values()))),
    )


ONE_TOPIC = Experiment(
    id="one-topic",
    claim="With one topic per document there is a second stage too, after a time in proportion to 1/s (s: initial "
    "scale).",
    rule=f"Gradient flow in the world {ESCAPE_WORLD} from the same Gaussian directions at scales s, each half of the "
    f"one before. t is the time at which the loss is {DROP} below its first plateau 1 - 1/v. In every seed t at the "
    "smallest s is within 5% of twice t at the s before, and the force on attention at the first plateau is 0 (at most "
    "1e-12 of that with tau = 2). Undecided where the plateau is not left within the time 1000 / s.",
    measure=measure_escapes,
    judge=judge_escapes,
    seconds=5,
    beyond=True,
    number=Number(
        "t(s/2) / t(s)",
        "how many times as long the first plateau lasts where the start is half as large, at the smallest scales, mean "
        "over seeds (2 under the law 1/s); the paper prints none",
    ),
)


WORLD, WIDTH = FlowWorld(4, 3, 2), 60
SCALES = tuple(0.09 / 3**i for i in range(5))
LONGEST = 50_000.0  # time, of a flow whose key and query do not come
RATIO = 3.0  # of two neighbouring scales


@dataclass(frozen=True)
class Escape:
    scale: float
    seed: int
    value: float
    key: float
    times: list[float]
    contrast: list[float]  # of W_E' W_V W_E, as a share of 1/k

    @property
    def apart(self) -> float:
        return self.key / self.value


@dataclass(frozen=True)
class StartLaw:
    value: float
    key: float
    one_hot_value: float
    one_hot_key: float


@dataclass(frozen=True)
class StartFlows:
    flows: dict[int, list[Escape]]
    laws: dict[float, StartLaw]


def contrasts(weights: NamedWeights) -> tuple[float, float]:
    """Mean eigenvalues on topic contrasts: of W_E' W_V W_E times k, and of the scores."""
    tables = word_tables(weights)

    def mean_eigenvalue(matrix: Float[np.ndarray, "V V"]) -> float:
        blocks = matrix[1:, 1:].reshape(WORLD.T, WORLD.v, WORLD.T, WORLD.v).mean((1, 3))
        same = float(np.trace(blocks)) / WORLD.T
        return WORLD.v * (same - (float(blocks.sum()) - WORLD.T * same) / (WORLD.T * (WORLD.T - 1)))

    return Masking().k * mean_eigenvalue(tables.votes), mean_eigenvalue(tables.scores)


def escape(scale: float, seed: int) -> Escape:
    """Half of the topics is half of 1/k; key and query are half-way where the scores are a quarter of l*."""
    quarter = WORLD.growth().l_star / 4
    seen: list[tuple[float, float]] = []

    def there(course: Trajectory) -> bool:
        if len(seen) < len(course.times):  # a step that is tried again is asked about twice
            seen.append(contrasts(course.end))
        return seen[-1][1] >= quarter

    start = gaussian_start(WORLD.width, WORLD.width, scale, seed, width=WIDTH)
    course = gradient_flow(WORLD.population(), start, LONGEST, stop=there)
    there(course)  # the last step
    contrast, scores = map(list, zip(*seen, strict=True))
    value, key = reached(course.times, contrast, 0.5), reached(course.times, scores, quarter)
    return Escape(scale, seed, value, key, course.times, contrast)


def law_at(scale: float) -> StartLaw:
    setting, given = Setting.of(*WORLD), {"attention_dim": WORLD.width, "init_scale": scale}
    one_hot = dynamics(setting, **given)  # type: ignore[arg-type]
    trained = dynamics(setting, embedding="trained", width=WIDTH, **given)  # type: ignore[arg-type]
    numbers = (time for found in (trained, one_hot) for time in (found.value.half_time, found.attention.half_time))
    return StartLaw(*(math.nan if time is None else time for time in numbers))


def measure_starts(context: Context) -> StartFlows:
    scales = SCALES if context.scale == "quick" else (*SCALES, SCALES[-1] / RATIO)
    return StartFlows(
        {seed: [escape(scale, seed) for scale in scales] for seed in context.seeds(2, 5)},
        {scale: law_at(scale) for scale in scales},
    )


def last_ratio(flows: list[Escape]) -> float:
    return flows[-1].value / flows[-2].value


def by_logarithm(flows: list[Escape]) -> float:
    """Time at the smallest scale over that of a + b ln(1/s) through the two before: 1 where that law holds."""
    return flows[-1].value / (2 * flows[-2].value - flows[-3].value)


def start_checks(flows: list[Escape], laws: dict[float, StartLaw]) -> list[bool | None]:
    if not all(math.isfinite(flow.value + flow.key) for flow in flows):
        return [None]
    off = [abs(flow.value / laws[flow.scale].value - 1) for flow in flows if math.isfinite(laws[flow.scale].value)]
    return [
        abs(last_ratio(flows) / RATIO - 1) <= CLOSE,
        abs(by_logarithm(flows) - 1) > CLOSE,
        max(off) <= 0.2,
        all(smaller.apart < larger.apart for larger, smaller in itertools.pairwise(flows)),
    ]


def starts_figure(found: StartFlows) -> Figure:
    scales, first = list(found.laws), next(iter(found.flows.values()))
    covered = {s: law for s, law in found.laws.items() if math.isfinite(law.value)}
    one_hot = {s: law for s, law in found.laws.items() if math.isfinite(law.one_hot_key)}
    by_factor = first[-2].value - first[-3].value  # of a + b ln(1/s), per factor of 3
    straight = {s: first[-2].value + by_factor * math.log(first[-2].scale / s) / math.log(RATIO) for s in scales}
    positive = {s: time for s, time in straight.items() if time > 0}
    courses = [
        Series(
            f"s = {flow.scale:.3g}",
            *until((flow.scale * np.array(flow.times)).tolist()[1:], flow.contrast[1:], 5),
        )
        for flow in first
    ]
    lines = partial(Lines, x_label="scale s of the start", log_x=True, log_y=True)
    return Figure(
        "small-start",
        "Trained embedding: value needs a time of 1/s, so the two stages come nearer to each other",
        "Left: half-way times against s; value follows 1/s, not ln(1/s). Middle: key's half-way time over value's "
        "falls as s gets smaller; with one-hot words this ratio rises. Right: topic contrast against s x time.",
        [
            lines(
                "half-way times",
                [
                    *(
                        Series(f"{part}, seed {seed}", scales, [getattr(flow, part) for flow in flows], markers=True)
                        for seed, flows in found.flows.items()
                        for part in ("value", "key")
                    ),
                    *(
                        Series(f"{part}, predicted", [*covered], [getattr(law, part) for law in covered.values()])
                        for part in ("value", "key")
                    ),
                    Series("a + b ln(1/s)", [*positive], [*positive.values()], thin=True),
                ],
                y_label="time",
            ),
            lines(
                "key over value",
                [
                    *(
                        Series(f"seed {seed}", scales, [flow.apart for flow in flows], markers=True)
                        for seed, flows in found.flows.items()
                    ),
                    Series("predicted", [*covered], [law.key / law.value for law in covered.values()]),
                    Series(
                        "one-hot, predicted",
                        [*one_hot],
                        [law.one_hot_key / law.one_hot_value for law in one_hot.values()],
                    ),
                ],
                y_label="t50(key) / t50(value)",
            ),
            Lines("topic contrast, one seed", courses, "s x time", "share of 1/k", levels=[(0.5, "half")]),
        ],
        columns=3,
    )


def judge_starts(found: StartFlows) -> Outcome:
    every, smallest = list(found.flows.values()), list(found.laws)[-1]
    ratios, logs = list(map(last_ratio, every)), list(map(by_logarithm, every))
    last, law = [flows[-1] for flows in every], found.laws[smallest]
    ends = ", ".join(f"{flows[0].apart:.3g} to {flows[-1].apart:.3g}" for flows in every)
    off, off_key = [flow.value / law.value for flow in last], [flow.key / law.key for flow in last]

    return Outcome(
        paper="not asked; it says that the two stages depend on initialisation",
        theory=f"t50 of value: {cell(smallest * law.value)} / s (C / (f s sqrt(d)), d = {WIDTH}); key "
        "is ln(1/s) e-folds later",
        measured=f"s t50 of value at s = {smallest:.3g}: "
        + ", ".join(cell(smallest * flow.value) for flow in last)
        + f" (by seed); t50 of key over that of value, from the largest s to the smallest: {ends}",
        verdict=verdict(*(check for flows in found.flows.values() for check in start_checks(flows, found.laws))),
        reason=f"from the second smallest s to the smallest t50 of value becomes {listed(ratios)} times as long, by "
        "seed (within 5% of 3 asked); a + b ln(1/s) through the two scales before would be off by the factor "
        f"{listed(logs)}; t50 of value over C / (f s sqrt(d)) at the smallest s: {listed(off)} (within 20% of 1 "
        f"asked); t50 of key over that of value, from the largest s to the smallest: {ends} (to fall at every step). "
        f"t50 of key is {listed(off_key)} of its prediction: W_E keeps growing with attention",
        figures=[starts_figure(found)],
        tables=[
            TableData(
                f"World {WORLD}, width {WIDTH}: half-way times",
                [
                    *("s", "seed", "value", "value, predicted", "s x value", "key", "key, predicted", "key / value"),
                    "value / value at 3 s",
                ],
                [
                    [
                        *(f"{flow.scale:.3g}", str(seed), cell(flow.value), cell(found.laws[flow.scale].value)),
                        *(f"{flow.scale * flow.value:.4g}", cell(flow.key), cell(found.laws[flow.scale].key)),
                        *(cell(flow.apart), "-" if before is None else f"{flow.value / before.value:.3f}"),
                    ]
                    for seed, flows in found.flows.items()
                    for before, flow in itertools.pairwise([None, *flows])
                    if flow is not None
                ],
            )
        ],
        numbers={
            str(seed): [{"scale": flow.scale, "value": flow.value, "key": flow.key} for flow in flows]
            for seed, flows in found.flows.items()
        }
        | {"predicted": {f"{scale:.4g}": vars(law) for scale, law in found.laws.items()}},
        config={"world": list(WORLD), "width": WIDTH, "attention_dim": WORLD.width, "scales": list(found.laws)},
        ours=float(np.mean(ratios)),
    )


SMALL_START = Experiment(
    id="small-start",
    claim="With a trained embedding t50 of value is in proportion to 1/s (s: initial scale), and t50 of key over that "
    "of value falls with s.",
    rule=f"Gradient flow, squared loss, world {WORLD}, tied embedding of width {WIDTH}, the same Gaussian directions "
    "at scales s, each a third of the one before. t50: of value when the topic contrast of W_E' W_V W_E is half of "
    "1/k; of key when that of the scores is l*/4 (l*: its optimum). In every seed: t50 of value at the smallest s is "
    "within 5% of 3 times that at the s before; a + b ln(1/s) through the two scales before misses it by more than 5%; "
    "t50 of value is within 20% of C / (f s sqrt(d)) where s sqrt(d) <= .3; t50 of key over that of value falls with "
    "every smaller s. Undecided where value or key is not half-way.",
    measure=measure_starts,
    judge=judge_starts,
    seconds=10,
    beyond=True,
    number=Number(
        "t50(s/3) / t50(s)",
        "t50 of value at the smallest initial scale over that at the scale before, three times as large (a ratio; 3 "
        "under the law 1/s), mean over seeds; the paper prints none",
    ),
)


MASK_WORLDS = WORLDS[:2]
MASK_SCALES = (1e-3, 1e-2)
HORIZON = 3000.0  # value has no finite optimum under cross entropy: its half-way point is that of this time
LEAVES = 3.0  # times its start at which |W_K| has left it
# Cosine with the predicted direction, second singular value over the first, growth of |W_K| under squared loss.
ALONG, SECOND, MOVED = 0.9, 0.2, 1.1


@dataclass(frozen=True)
class Force:
    """On attention at W = w Pi, per unit of w: error of the [MASK] column, and singular values of the whole matrix."""

    error: float
    first: float
    second: float


@dataclass(frozen=True)
class Leaving:
    """A flow under cross entropy. `key` is |W_K| over its start; NaN where a time is not reached."""

    world: FlowWorld
    scale: float
    seed: int
    left: float  # |W_K| is three times its start
    half: float  # topic contrast of W_V is half of that at the horizon
    horizon: float  # from which on value is half-way after attention has left
    query: float  # share of [MASK] in the first right singular vector of W_K' W_Q then
    along: float  # cosine of the first left one with the formula
    second: float  # second singular value over the first
    times: list[float]
    key: list[float]
    contrast: list[float]
    scores: list[list[float]]  # W_K' W_Q / sqrt(d_a) then


@dataclass(frozen=True)
class MaskFlows:
    forces: dict[FlowWorld, Force]
    laws: dict[FlowWorld, MaskFirst]
    flows: list[Leaving]
    squared: dict[FlowWorld, float]  # |W_K| over its start under squared loss, once topics are learnt


def direction(growth: Growth) -> Float[np.ndarray, " V"]:
    """The force on the [MASK] query by key word, per unit of w."""
    force = mask_force(growth.shares, growth.v, growth.masking)
    return np.array([force.mask] + growth.topics * growth.v * [force.word])


def force_of(world: FlowWorld, w: float = 1e-7) -> Force:
    documents = subset_world(world.T, world.v, grouped_subsets(world.T, world.tau))
    force = score_force(documents, Masking(), w * topic_contrasts(world.T, world.v), loss="cross-entropy") / w
    formula = direction(world.growth())
    error = np.abs(force[:, 0] - formula).max() / np.abs(formula).max()
    return Force(float(error), *map(float, np.linalg.svd(force, compute_uv=False)[:2]))


def contrast_eigenvalue(growth: Growth) -> float:
    """lambda of W_V on topic contrasts (R1)."""
    return growth.masking.k**2 / growth.v * growth.shares.contrast


def law_of(world: FlowWorld) -> MaskFirst:
    return mask_first(world.growth(), contrast_eigenvalue(world.growth()), world.width)


def key_law(law: MaskFirst, world: FlowWorld, times: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """|W_K| over its start: one of V squares grows as cosh(2X), X = force speed t^2 / (2 sqrt(d_a))."""
    exponent = law.force * law.speed * times**2 / (2 * math.sqrt(world.width))
    return np.sqrt(1 + (np.cosh(2 * exponent) - 1) / world.width)


def flow(world: FlowWorld, scale: float, seed: int) -> Leaving:
    course = gradient_flow(
        Population.of(world.topic_model, world.prior, Masking(), "cross-entropy"),
        world.start(scale, seed),
        HORIZON,
        keep=True,
    )
    key = course.norm("key") / course.norm("key")[0]
    pi = topic_contrasts(world.T, world.v) / (world.T - 1)
    contrast = [float(np.vdot(weights["value"], pi)) for weights in course.states]
    left = course.reaches("key", LEAVES * float(course.norm("key")[0]))
    doubled = 2 * float(np.interp(left, course.times, contrast)) - contrast[0]
    there = course.states[int(np.searchsorted(course.times, left)) if math.isfinite(left) else -1]
    u, singular, vh = np.linalg.svd(there["key"].T @ there["query"])
    formula = direction(world.growth())
    return Leaving(
        *(world, scale, seed),
        left=left,
        half=reached(course.times, contrast, (contrast[0] + contrast[-1]) / 2),
        horizon=reached(course.times, contrast, doubled),
        query=float(abs(vh[0, 0])),
        along=float(abs(u[:, 0] @ formula) / np.linalg.norm(formula)),
        second=float(singular[1] / singular[0]),
        times=course.times,
        key=key.tolist(),
        contrast=contrast,
        scores=word_tables(there).scores.tolist(),
    )


def squared_growth(world: FlowWorld, seed: int) -> float:
    learnt = math.log(100) / (2 * contrast_eigenvalue(world.growth()))  # 99%
    course = gradient_flow(world.population(), world.start(MASK_SCALES[0], seed), learnt)
    return float(course.norm("key")[-1] / course.norm("key")[0])


def measure_mask(context: Context) -> MaskFlows:
    seeds = context.seeds(2, 5)
    return MaskFlows(
        {world: force_of(world) for world in MASK_WORLDS},
        {world: law_of(world) for world in MASK_WORLDS},
        [flow(world, scale, seed) for world in MASK_WORLDS for scale in MASK_SCALES for seed in seeds],
        {world: squared_growth(world, seeds[0]) for world in MASK_WORLDS},
    )


def mask_checks(found: MaskFlows) -> list[bool | None]:
    """None for a flow in which attention does not leave its start."""
    made: list[bool | None] = []
    for world, force in found.forces.items():
        made += [force.error <= 1e-6, force.second <= SECOND * force.first, found.squared[world] <= MOVED]
    for one in found.flows:
        at_leaving = [min(one.query, one.along) >= ALONG, one.second <= SECOND, one.left < one.half]
        made += at_leaving if math.isfinite(one.left) else [None]
    return made


def until(xs: list[float], ys: list[float], end: float, top: float = math.inf) -> tuple[list[float], list[float]]:
    x, y = np.array(xs), np.array(ys)
    shown = (x <= end) & (y <= top)
    return x[shown].tolist(), y[shown].round(5).tolist()


def mask_panel(world: FlowWorld, found: MaskFlows) -> Lines:
    first = [leaving for leaving in found.flows if leaving.world == world and leaving.seed == found.flows[0].seed]
    end, top = 1.1 * first[0].half, 3 * LEAVES
    times = np.linspace(0, end, 80)
    law = key_law(found.laws[world], world, times)
    share = (2 * LEAVES * np.array(first[0].contrast) / first[0].contrast[-1]).tolist()
    return Lines(
        f"(T, v, tau) = {world}",
        [
            Series("|W_K|, predicted", *until(times.tolist(), law.tolist(), end, top)),
            *(Series(f"|W_K|, s = {one.scale:g}", *until(one.times, one.key, end, top)) for one in first),
            Series("topic contrast of W_V (3: half-way)", *until(first[0].times, share, end), thin=True),
        ],
        "time",
        "times the start",
        levels=[(LEAVES, "attention has left its start")],
    )


def judge_mask(found: MaskFlows) -> Outcome:
    flows, last = found.flows, found.flows[-1]
    error = max(force.error for force in found.forces.values())
    weaker = min(force.first / force.second for force in found.forces.values())
    known = [one for one in flows if math.isfinite(one.left)]
    late = {world: [one.left / law.time for one in known if one.world == world] for world, law in found.laws.items()}
    spans = ", ".join(
        f"{world} {cell(found.laws[world].time)} predicted, measured {min(r):.3g} to {max(r):.3g} times that"
        for world, r in late.items()
        if r
    )
    ratios = [one.left / one.half for one in known]
    horizons = [one.horizon for one in known]
    silent = len(flows) - len(known)
    return Outcome(
        paper="not asked: Section 6 has two stages under squared loss",
        theory="force on the [MASK] query in closed form; |W_K| is three times its start at time "
        + ", ".join(f"{law.time:.4g} in {world}" for world, law in found.laws.items()),
        measured=f"force is its formula to {error:.1g}; |W_K| is three times its start at time "
        + ", ".join(f"{one.left:.4g}" for one in known)
        + f", value half-way at time {', '.join(f'{one.half:.4g}' for one in known)}",
        verdict=verdict(*mask_checks(found)),
        reason=f"the force on the [MASK] query is its formula to {error:.1g}; the first singular value of the force is "
        f"at least {weaker:.3g} times the second. When |W_K| is three times its start, the first singular direction of "
        f"W_K' W_Q has a cosine of at least {min((one.query for one in known), default=math.nan):.4f} with [MASK] as "
        f"query and {min((one.along for one in known), default=math.nan):.4f} with the formula as key, the second "
        f"singular value is at most {max((one.second for one in known), default=math.nan):.2g} of the first. That time "
        f"is {min(ratios, default=math.nan):.2f} to {max(ratios, default=math.nan):.2f} of value's half-way time up to "
        f"time {HORIZON:g} (value has no finite optimum: with an end below {cell(max(horizons, default=math.nan))} it "
        f"would be first in some flow). Times of leaving: {spans}: W_V slows down meanwhile. Under squared loss |W_K| "
        f"has grown at most {max(found.squared.values()):.3f}-fold when 99% of the topics are learnt"
        + (f". In {silent} flows attention does not leave its start; longer ones would decide" * bool(silent)),
        figures=[
            Figure(
                "mask-first",
                "Cross entropy: attention starts with [MASK], while value still grows",
                f"Left and middle: |W_K| leaves its start before W_V is half-way to what it is at time {HORIZON:g}; "
                "the predicted curve is earlier. Right: attention scores at that moment: only the column of [MASK] as "
                "query.",
                [
                    *(mask_panel(world, found) for world in found.laws),
                    Heat(
                        f"scores at time {cell(last.left)}",
                        np.round(last.scores, 6).tolist(),
                        "query word",
                        "key word",
                        last.world.T,
                        last.world.v,
                    ),
                ],
                columns=3,
            )
        ],
        tables=[
            TableData(
                "When attention leaves its start (|W_K| is three times its start), and the singular directions then",
                [
                    *("world", "s", "seed", "leaves at time", "predicted"),
                    *("value half-way", "attention first if the flow ends after"),
                    *("cosine with [MASK] as query", "with the formula as key", "second / first"),
                ],
                [
                    [
                        *(str(one.world), f"{one.scale:g}", str(one.seed), cell(one.left)),
                        *(cell(found.laws[one.world].time), cell(one.half), cell(one.horizon)),
                        *(f"{one.query:.4f}", f"{one.along:.4f}", cell(one.second)),
                    ]
                    for one in flows
                ],
            )
        ],
        numbers={
            "forces": {str(world): vars(force) for world, force in found.forces.items()},
            "predicted": {str(world): law._asdict() for world, law in found.laws.items()},
            "squared": {str(world): growth for world, growth in found.squared.items()},
            "flows": [
                {"world": list(one.world)}
                | {name: value for name, value in vars(one).items() if isinstance(value, float | int)}
                for one in flows
            ],
        },
        config={"worlds": [list(world) for world in found.laws], "scales": list(MASK_SCALES), "horizon": HORIZON},
        ours=float(np.mean(ratios)) if ratios else None,
    )


MASK_FIRST = Experiment(
    id="mask-first",
    claim="Under cross entropy attention first learns that [MASK] should not attend to [MASK], before value is "
    "half-way.",
    rule="One-hot words, infinite documents. At W_V = 1e-7 Pi (Pi: projector on topic contrasts) the force on the "
    "[MASK] query is its formula to 1e-6, and the force's second singular value is at most a fifth of the first. In "
    "every gradient flow, when |W_K| is three times its start: the first singular direction of W_K' W_Q has a cosine "
    "of at least .9 with [MASK] as query and with the formula as key, the second singular value is at most a fifth of "
    f"the first, and the topic contrast of W_V is not half-way from its start to that at time {HORIZON:g}. Under "
    "squared loss |W_K| is at most 1.1 times its start when 99% of the topics are learnt. Times are compared, not "
    "judged. Undecided where |W_K| does not reach three times its start.",
    measure=measure_mask,
    judge=judge_mask,
    seconds=5,
    beyond=True,
    number=Number(
        "leaves / t50(value)",
        "time at which |W_K| is three times its start over that at which the topic contrast of W_V is half-way to that "
        "at time 3,000 (a ratio), mean over flows (below 1: attention is first); the paper prints none",
    ),
)
