"""What flows through both stages may show, built by hand: as the law says, and just not so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from topicscope.paper import second_stage, stage_law
from topicscope.paper.stage_law import WORLDS, FlowWorld, Halves, StageFlow

SCALES, SEEDS = (1e-3, 1e-2), (0, 1)
NEVER = float("nan")


def flow(world: FlowWorld = WORLDS[0], scale: float = 1e-3, seed: int = 0, **changes: Any) -> StageFlow:
    """A flow that is half a per cent late, with T - 1 singular values of 10 and others of 1e-4."""
    times = np.linspace(0, 20_000, 101)
    key = 0.013 + 7 / (1 + np.exp(-(times - 10_000) / 1000))
    singular = [10.0] * (world.T - 1) + [1e-4] * (world.T * (world.v - 1) + 2)
    law = Halves(11.0, 10_000.0, 10_000.0)
    late = Halves(11.0, 10_050.0, 10_050.0)
    value = (2 * (1 - np.exp(-times / 20))).tolist()
    made = StageFlow(
        *(world, scale, seed, late, law, times.tolist(), value, key.tolist(), value, key.tolist()),
        *(6.9, 7.0, 0.8223, 0.8222, singular),
    )
    return replace(made, **changes)


def flows(world: FlowWorld = WORLDS[1], scale: float = 1e-3, seed: int = 1, **changes: Any) -> list[StageFlow]:
    """All flows as the law says, but one with these changes."""
    return [
        flow(w, s, i, **(changes if (w, s, i) == (world, scale, seed) else {}))
        for w in WORLDS
        for s in SCALES
        for i in SEEDS
    ]


def law(**changes: Any) -> stage_law.LawFlows:
    return stage_law.LawFlows(flows(**changes))


def late(value: float = 11.0, key: float = 10_000.0, query: float = 10_000.0, **where: Any) -> stage_law.LawFlows:
    return law(measured=Halves(value, key, query), **where)


def ranks(*singular: float, **where: Any) -> list[StageFlow]:
    """Of (5, 4, 2), where T - 1 = 4, unless said otherwise."""
    return flows(singular=[*singular] + [1e-5] * (21 - len(singular)), **where)


def pairs(number: int = 0, loss: float = 0.0, **changes: Any) -> list[second_stage.Pair]:
    """Key and query grow by a thousandth; of one pair the loss ends above Bayes's, or other fields."""
    made = []
    for i, world in enumerate(WORLDS):
        bayes = 1 - 1 / (world.v * world.tau)
        pair = second_stage.Pair(
            world,
            0,
            [0.0, 10.0, 20.0],
            [1.0, 0.9, bayes + (loss if i == number else 0.0)],
            {"key": [1.0, 1.001, 1.0], "query": [1.0, 0.99, 0.99]},
            flow(world),
        )
        made.append(replace(pair, **changes) if i == number else pair)
    return made


def escapes(last: float = 2.0, seed: int = 1, force: float = 0.0) -> second_stage.Escapes:
    """Plateaus that last 240 / s; of one seed the last halving makes them `last` times as long."""
    scales = [0.1, 0.05, 0.025]
    times = {i: [2400.0, 4800.0, 9600.0] for i in (0, 1)}
    times[seed] = [2400.0, 4800.0, 4800.0 * last]
    losses = {s: ([0.0, 100.0, 240.0], [1.0, 0.667, 0.66]) for s in scales}
    return second_stage.Escapes(scales, times, losses, force)


def sgd(step: int = 3000, run: int = 1, rises: bool = True) -> stage_law.SgdCourses:
    """Predicted at step 3,000 in three runs; in one of them the norm is half-way at another step, or never."""
    setting = stage_law.SGD_SETTINGS["quick"]._replace(steps=4000)
    courses = []
    for i in range(3):
        at, top = (step, 10.0 if rises else 4.0) if i == run else (3000, 10.0)
        norm = np.where(np.arange(4001) < at, 0.0, top)
        courses.append(stage_law.SgdCourse(norm.tolist(), norm.tolist(), 3000.0, [2.5] * 4001))
    return stage_law.SgdCourses(setting, courses, 10.0, {"steps": 4000})


GOOD: dict[str, Callable[[], Any]] = {
    "stage-law": law,
    "rank": flows,
    "no-correct-words": pairs,
    "one-topic": escapes,
    "sgd-second-stage": sgd,
}

BAD: dict[str, dict[str, Any]] = {
    "stage-law": {
        "sigma is 1.1 times as large in one flow": late(key=11_000.0),
        "value too early": late(value=10.66),
        "value too late": late(value=11.34, world=WORLDS[2]),
        "key too early": late(key=9_690.0),
        "key too late from a large start": late(key=10_310.0, scale=1e-2),
        "query too late": late(query=10_310.0, world=WORLDS[0], seed=0),
        "key never rises, as without correct words": late(key=NEVER),
        "another plateau": law(plateau=7.0 * 1.031),
        "a plateau that is too low": law(plateau=7.0 * 0.969, world=WORLDS[2]),
    },
    "rank": {
        "one contrast is weaker": ranks(10.0, 10.0, 10.0, 8.9),
        "one contrast is missing": ranks(10.0, 10.0, 10.0),
        "one more": ranks(10.0, 10.0, 10.0, 9.5, 0.1),
        "in the last world": ranks(*[10.0] * 5, 0.2, world=WORLDS[2]),
    },
    "no-correct-words": {
        "key grows": pairs(1, norms={"key": [1.0, 1.06], "query": [1.0, 1.0]}),
        "query grows for a while": pairs(2, norms={"key": [1.0, 1.0], "query": [1.0, 1.06, 1.0]}),
        "the loss is not Bayes's": pairs(0, 2e-6),
        "the loss is below Bayes's": pairs(2, -2e-6),
        "key does not grow with correct words either": pairs(with_words=flow(key=[1.0, 9.0])),
    },
    "one-topic": {
        "a law in log(1/s)": escapes(1.17),
        "just too short": escapes(1.89),
        "just too long": escapes(2.11, 0),
        "there is a force": escapes(force=1e-10),
        "there is a force, and a plateau that is not left": escapes(NEVER, force=1e-10),
    },
    "sgd-second-stage": {
        "too early": sgd(2399),
        "too late": sgd(3601, 2),
        "not within the run": sgd(4001, 0),
        "no second stage": sgd(rises=False),
    },
}

STILL: dict[str, dict[str, Any]] = {
    "stage-law": {
        "just within 3%": late(10.68, 10_290.0, 9_710.0),
        "no plateau from a large start": law(plateau=5.0, scale=1e-2),
        "a plateau just near enough": law(plateau=7.0 * 1.029),
    },
    "rank": {
        "just alike": ranks(10.0, 10.0, 10.0, 9.1, 0.09),
        "a large start, from which they differ": ranks(10.0, 9.0, 7.0, 6.0, 5.0, scale=1e-2),
    },
    "no-correct-words": {"a little growth": pairs(1, 5e-7, norms={"key": [1.0, 1.04], "query": [1.0, 0.5]})},
    "one-topic": {"almost twice": escapes(1.91), "a little more than twice": escapes(2.09, 0)},
    "sgd-second-stage": {"20% early": sgd(2401), "20% late": sgd(3599, 0)},
}

UNDECIDED: dict[str, dict[str, Any]] = {"one-topic": {"a plateau that is not left": escapes(NEVER)}}
