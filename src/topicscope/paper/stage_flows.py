"""Gradient flows through both stages in small worlds, with what the law says of them: `stage-law`, `rank` and
`no-correct-words` share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.paper.experiment import Context, Scale
from topicscope.theory import Growth, NamedWeights, Population, gaussian_start, gradient_flow, optimum
from topicscope.world import Fixed, Masking, TopicModel

GROUP = "stage flows"
"""Of the experiments that share the flows: they run in one process, one after another."""

SCALES = {"quick": (1e-4, 1e-3, 1e-2), "full": (1e-5, 1e-4, 1e-3, 3e-3, 1e-2)}
SEEDS = {"quick": 2, "full": 5}
COMMON = 1e-3
"""The scale that `no-correct-words` takes too."""

AFTER = 8.0
"""A flow ends so many e-folds after the predicted half-time of key and query: on the second plateau."""

SMALL = 1e-3
"""Up to this scale there is a second plateau: from larger starts the third act begins before the second ends."""


class World(NamedTuple):
    """T topics of v words, tau of them in a document."""

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


WORLDS = (World(4, 3, 2), World(5, 4, 2), World(6, 3, 3))
LARGE = World(10, 10, 3)
"""The paper's size. From scale .001 the third act begins here before key is half-way, and there is no plateau."""


class Halves(NamedTuple):
    """t50 of value, key and query: half-way from the start to the law's plateau (value: the first); NaN: never."""

    value: float
    key: float
    query: float


@dataclass(frozen=True)
class StageFlow:
    """A flow to the second plateau: measured and predicted."""

    world: World
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
        """Measured over predicted, less 1."""
        return Halves(*(there / said - 1 for there, said in zip(self.measured, self.predicted, strict=True)))


class FirstStage:
    """|W(t)| of the closed form from a given start."""

    def __init__(self, world: World, start: Float[np.ndarray, "V V"]) -> None:
        self.best, self.start = optimum(world.topic_model, world.prior, Masking()), start
        self.end = 100 / min(mode.eigenvalue for mode in self.best.modes if mode.eigenvalue > 1e-12)

    def norm(self, time: float) -> float:
        return float(np.linalg.norm(self.best.value_at(time, self.start)))

    @property
    def plateau(self) -> float:
        """What is not learnt stays where it started."""
        return self.norm(self.end)

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


def stage_flow(world: World, scale: float, seed: int, after: float = AFTER) -> StageFlow:
    """The flow up to `after` e-folds past the predicted half-time of key."""
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


def stage_flows(context: Context) -> list[StageFlow]:
    """All worlds, scales and seeds; computed once per process."""
    return _flows(context.scale, context.seed)


@lru_cache(maxsize=1)
def _flows(scale: Scale, seed: int) -> list[StageFlow]:
    seeds = [1000 * seed + i for i in range(SEEDS[scale])]
    return [stage_flow(world, s, i) for world in WORLDS for s in SCALES[scale] for i in seeds]
