"""One topic: with tau = 1 no force acts on attention at the first plateau, and yet it is left, in a time C / s.

Attention and the part of W_V inside topics pull each other out of a cubic saddle, so that the time grows as 1 / s and
not as log(1 / s), the law for more topics per document (BEYOND the paper, R3).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell
from topicscope.paper.flows import all_of
from topicscope.paper.stage_flows import World
from topicscope.theory import Course, gradient_flow

WORLD = World(4, 3, 1)
SCALES = tuple(0.15 / 2**i for i in range(6))
FINER = tuple(0.15 / 2**i for i in range(7))
SEEDS = {"quick": 2, "full": 5}

DROP = 0.002
"""How far the loss has to fall below its first plateau 1 - 1/v for it to be left; the flow falls by .03 in all."""

LONGEST = 1000.0
"""Times 1 / s that a flow may take: three times what the first numbers of this law say."""

NO_FORCE, CLOSE = 1e-12, 0.05
"""sigma of tau = 1 over that of tau = 2; how far the last ratio may be from 2, as a share."""


@dataclass(frozen=True)
class Found:
    """By seed the times at which the first plateau is left, in the order of scales (NaN: not left)."""

    scales: list[float]
    times: dict[int, list[float]]
    losses: dict[float, tuple[list[float], list[float]]]  # s x time and loss of the first seed, by scale
    force: float  # sigma of tau = 1 over that of tau = 2


def left(course: Course) -> float:
    """When the loss is below its first plateau, between two steps by a straight line."""
    losses, level = np.array(course.losses), 1 - 1 / WORLD.v - DROP
    below = np.flatnonzero(losses <= level)
    if not len(below):
        return float("nan")
    i = int(below[0])
    share = (losses[i - 1] - level) / (losses[i - 1] - losses[i])
    return float(course.times[i - 1] + share * (course.times[i] - course.times[i - 1]))


def measure(context: Context) -> Found:
    scales = SCALES if context.scale == "quick" else FINER
    population = WORLD.population()
    times: dict[int, list[float]] = {}
    losses: dict[float, tuple[list[float], list[float]]] = {}
    for seed in (1000 * context.seed + i for i in range(SEEDS[context.scale])):
        times[seed] = []
        for scale in scales:
            course = gradient_flow(
                population,
                WORLD.start(scale, seed),
                LONGEST / scale,
                stop=lambda course: course.losses[-1] <= 1 - 1 / WORLD.v - DROP,
            )
            times[seed].append(left(course))
            losses.setdefault(scale, ((scale * np.array(course.times)).round(4).tolist(), course.losses))
    force = WORLD.growth().sigma / World(WORLD.T, WORLD.v, 2).growth().sigma
    return Found(list(scales), times, losses, force)


def fall(x: list[float], losses: list[float]) -> tuple[list[float], list[float]]:
    """The course from the first plateau on."""
    late = np.array(losses) <= 1 - 1 / WORLD.v + DROP / 2
    return np.array(x)[late].tolist(), np.array(losses)[late].round(6).tolist()


def ratios(found: Found, seed: int) -> list[float]:
    """t(s / 2) / t(s): 2 under the law C / s, towards 1 under one in log(1 / s)."""
    return [after / before for before, after in itertools.pairwise(found.times[seed])]


def judge(found: Found) -> Outcome:
    last = {seed: ratios(found, seed)[-1] for seed in found.times}
    products = {seed: (np.array(found.scales) * times).tolist() for seed, times in found.times.items()}
    checks = [None if np.isnan(ratio) else abs(ratio / 2 - 1) <= CLOSE for ratio in last.values()]
    smallest = found.scales[-1]
    return Outcome(
        paper="not asked; its second stage has several topics per document",
        theory="no force on attention for tau = 1 (sigma = 0); the flow leaves a cubic saddle after a time C / s",
        measured=f"s t at s = {smallest:.3g}: {', '.join(cell(product[-1]) for product in products.values())} (by "
        f"seed); the last halving of s makes t {', '.join(f'{ratio:.3f}' for ratio in last.values())} times as long",
        verdict=all_of([abs(found.force) <= NO_FORCE, *checks]),
        reason=f"t({smallest:.3g}) / t({2 * smallest:.3g}) is {', '.join(f'{ratio:.3f}' for ratio in last.values())} "
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
                        [Series(f"s = {scale:.3g}", *fall(*course)) for scale, course in found.losses.items()],
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


EXPERIMENT = Experiment(
    id="one-topic",
    claim="With one topic per document there is a second stage too, after a time in proportion to 1/s (s: initial "
    "scale).",
    rule=f"Gradient flow in the world {WORLD} from the same Gaussian directions at scales s, each half of the one "
    f"before. t is the time at which the loss is {DROP} below its first plateau 1 - 1/v. In every seed t at the "
    "smallest s is within 5% of twice t at the s before, and the force on attention at the first plateau is 0 (at most "
    "1e-12 of that with tau = 2). Undecided where the plateau is not left within the time 1000 / s.",
    measure=measure,
    judge=judge,
    seconds=5,
    number=Number(
        "t(s/2) / t(s)",
        "how many times as long the first plateau lasts where the start is half as large, at the smallest scales, mean "
        "over seeds (2 under the law 1/s); the paper prints none",
    ),
)
