"""[MASK] first: under cross entropy the first thing that attention learns is that [MASK] should not look at [MASK].

As soon as topics show in W_V, the force on the query of [MASK] is many times that on the queries of words (R7).
Attention leaves its start in one direction, while value still grows: there are no two stages.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.pages import Figure, Heat, Lines, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell, reached, verdict
from topicscope.paper.stage_law import FlowWorld
from topicscope.theory import (
    Growth,
    MaskFirst,
    Population,
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

WORLDS = (FlowWorld(4, 3, 2), FlowWorld(5, 4, 2))
SCALES = (1e-3, 1e-2)
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
    population = Population.of(world.topic_model, world.prior, Masking(), "cross-entropy")
    course = gradient_flow(population, world.start(scale, seed), HORIZON, keep=True)
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
    """The same start under squared loss: |W_K| over its start when 99% of the topics are learnt."""
    until = math.log(100) / (2 * contrast_eigenvalue(world.growth()))
    course = gradient_flow(world.population(), world.start(SCALES[0], seed), until)
    return float(course.norm("key")[-1] / course.norm("key")[0])


def measure(context: Context) -> MaskFlows:
    seeds = context.seeds(2, 5)
    return MaskFlows(
        {world: force_of(world) for world in WORLDS},
        {world: law_of(world) for world in WORLDS},
        [flow(world, scale, seed) for world in WORLDS for scale in SCALES for seed in seeds],
        {world: squared_growth(world, seeds[0]) for world in WORLDS},
    )


def checks(found: MaskFlows) -> list[bool | None]:
    """None for a flow in which attention does not leave its start."""
    made: list[bool | None] = []
    for world, force in found.forces.items():
        made += [force.error <= 1e-6, force.second <= SECOND * force.first, found.squared[world] <= MOVED]
    for one in found.flows:
        at_leaving = [min(one.query, one.along) >= ALONG, one.second <= SECOND, one.left < one.half]
        made += at_leaving if math.isfinite(one.left) else [None]
    return made


def until(xs: list[float], ys: list[float], end: float, top: float = math.inf) -> tuple[list[float], list[float]]:
    """The part of a course up to a time, as long as it is below `top`."""
    x, y = np.array(xs), np.array(ys)
    shown = (x <= end) & (y <= top)
    return x[shown].tolist(), y[shown].round(5).tolist()


def panel(world: FlowWorld, found: MaskFlows) -> Lines:
    """|W_K| of the first seed, and the topic contrast of W_V, up to the time at which it is half-way."""
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


def judge(found: MaskFlows) -> Outcome:
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
        verdict=verdict(*checks(found)),
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
                    *(panel(world, found) for world in found.laws),
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
        config={"worlds": [list(world) for world in found.laws], "scales": list(SCALES), "horizon": HORIZON},
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
    measure=measure,
    judge=judge,
    seconds=5,
    beyond=True,
    number=Number(
        "leaves / t50(value)",
        "time at which |W_K| is three times its start over that at which the topic contrast of W_V is half-way to that "
        "at time 3,000 (a ratio), mean over flows (below 1: attention is first); the paper prints none",
    ),
)
