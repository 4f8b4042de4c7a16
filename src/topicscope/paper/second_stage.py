"""The second stage: what it learns (rank), where it does not come (no-correct-words), one topic per document."""

import itertools
from dataclasses import dataclass

import numpy as np

from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell, listed, reached, verdict
from topicscope.paper.stage_law import COMMON, SMALL, STAGE_FLOWS, WORLDS, FlowWorld, StageFlow, by_world, stage_flows
from topicscope.theory import gradient_flow
from topicscope.world import Masking

ALIKE, NONE = 0.9, 0.01  # the least of the T - 1 over the largest; the next one over the least of them


def shares(flow: StageFlow) -> tuple[float, float]:
    """The least of the first T - 1 singular values over the largest, and the next one over the least."""
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


WORLD = FlowWorld(4, 3, 1)
ESCAPE_SCALES = {"quick": tuple(0.15 / 2**i for i in range(6)), "full": tuple(0.15 / 2**i for i in range(7))}
DROP = 0.002  # of the loss below its first plateau 1 - 1/v, once this is left; the flow falls by .03 in all
LEFT = 1 - 1 / WORLD.v - DROP
LONGEST = 1000.0  # times 1 / s that a flow may take: three times what the first numbers of this law say
NO_FORCE, CLOSE = 1e-12, 0.05  # sigma of tau = 1 over that of tau = 2; how far the last ratio may be from 2, as a share


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
            start = WORLD.start(scale, seed)
            course = gradient_flow(
                WORLD.population(), start, LONGEST / scale, stop=lambda course: course.losses[-1] <= LEFT
            )
            times[seed].append(reached(course.times, -np.array(course.losses), -LEFT))
            losses.setdefault(scale, ((scale * np.array(course.times)).round(4).tolist(), course.losses))
    force = WORLD.growth().sigma / FlowWorld(WORLD.T, WORLD.v, 2).growth().sigma
    return Escapes(list(scales), times, losses, force)


def ratios(found: Escapes, seed: int) -> list[float]:
    """t(s / 2) / t(s): 2 under the law C / s, towards 1 under one in log(1 / s)."""
    return [after / before for before, after in itertools.pairwise(found.times[seed])]


def judge_escapes(found: Escapes) -> Outcome:
    last = {seed: ratios(found, seed)[-1] for seed in found.times}
    products = {seed: (np.array(found.scales) * times).tolist() for seed, times in found.times.items()}
    checks = [None if np.isnan(ratio) else abs(ratio / 2 - 1) <= CLOSE for ratio in last.values()]
    falls = []
    for scale, (x, losses) in found.losses.items():
        late = np.array(losses) <= 1 - 1 / WORLD.v + DROP / 2  # from the first plateau on
        y = np.array(losses)[late].round(6).tolist()
        falls.append(Series(f"s = {scale:.3g}", np.array(x)[late].tolist(), y))
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
                        falls,
                        "s x time",
                        "loss",
                        levels=[(1 - 1 / WORLD.v, "first plateau")],
                    ),
                ],
            )
        ],
        tables=[
            TableData(
                f"World {WORLD}: the first plateau is left at t",
                ["s", *(f"s t, seed {seed}" for seed in found.times), *(f"t / t(2 s), seed {seed}" for seed in last)],
                [
                    [
                        f"{scale:.4g}",
                        *(f"{product[i]:.1f}" for product in products.values()),
                        *("-" if i == 0 else f"{ratios(found, seed)[i - 1]:.3f}" for seed in found.times),
                    ]
                    for i, scale in enumerate(found.scales)
                ],
            )
        ],
        numbers={"scales": found.scales, "times": {str(k): v for k, v in found.times.items()}, "force": found.force},
        config={"world": list(WORLD), "scales": found.scales, "drop": DROP},
        ours=float(np.mean(list(last.values()))),
    )


ONE_TOPIC = Experiment(
    id="one-topic",
    claim="With one topic per document there is a second stage too, after a time in proportion to 1/s (s: initial "
    "scale).",
    rule=f"Gradient flow in the world {WORLD} from the same Gaussian directions at scales s, each half of the one "
    f"before. t is the time at which the loss is {DROP} below its first plateau 1 - 1/v. In every seed t at the "
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
