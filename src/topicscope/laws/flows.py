"""Norms of a run without a closed form, from its own start: by gradient flow, or by gradient descent at its own rate.

Cross entropy and trained embeddings follow the flow of topics. From a start above LARGEST_START attention is not even
and the words of a topic are not alike, so all words are followed. Where the rate times the curvature passes 2, SGD
leaves the flow, and descent says what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from topicscope.laws.coverage import RunSettings, starts_even
from topicscope.theory import NamedWeights, Population, curvature, descent, gradient_flow

FLOW_TOLERANCE = 1e-3
CURVATURES = 10  # states of a flow at which the stability of SGD is looked at

Curve = Float[np.ndarray, " S"]
Curves = dict[str, Curve]


def time_per_step(run: RunSettings) -> float:
    """In units of gradient flow: SGD's rate, for the loss summed over the outputs."""
    return run.optimizer.lr * run.objective.scale(run.world.topic_model.vocabulary)


def time_of(run: RunSettings) -> float:
    """The whole of a run in units of gradient flow."""
    return time_per_step(run) * run.total_steps


@dataclass(frozen=True)
class FlowStart:
    """Where a run starts: its population, the weights in the population's coordinates, and all matrices."""

    world: Population
    weights: NamedWeights
    whole: NamedWeights

    @classmethod
    def of(cls, run: RunSettings) -> FlowStart:
        world = Population.of_topics(
            run.world.topic_model,
            run.world.prior,
            run.world.masking,
            "cross-entropy" if run.objective.loss == "cross-entropy" else "squared",
            alike=starts_even(run),
        )
        drawn = run.model.initial(run.world.topic_model.vocabulary, run.seed)
        names = {"embedding": "embedding", "value": "value", "key": "key", "query": "query", "prediction_bias": "bias"}
        whole = {name: drawn[part].astype(float) for part, name in names.items() if part in drawn}
        return cls(world, world.alike(whole), whole)

    @cached_property
    def curvature(self) -> float:
        """The largest eigenvalue of the Hessian."""
        return curvature(self.world, self.weights)

    def squares(self, weights: NamedWeights) -> dict[str, float]:
        """Squared norms of the matrices inside the population's coordinates."""
        return {name: float(np.vdot(weights[name], weights[name])) for name in ("value", "key", "query")}

    def norms(self, along: list[dict[str, float]]) -> Curves:
        """Norms of the whole matrices: what the start has outside of the population's coordinates stays."""
        first = self.squares(self.weights)
        outside = {name: float(np.vdot(self.whole[name], self.whole[name])) - first[name] for name in first}
        return {
            f"norm_{name}": np.sqrt(np.array([squares[name] for squares in along]) + rest)
            for name, rest in outside.items()
        }


@dataclass(frozen=True)
class FlowCourse:
    """Norms of W_V, W_K and W_Q at the times of a flow, and at some of them the largest eigenvalue of the Hessian."""

    times: Curve
    norms: Curves
    curvatures: list[tuple[float, float]]  # with the time

    def at_steps(self, run: RunSettings) -> Curves:
        """Norms at every step of a run."""
        at = time_per_step(run) * np.arange(run.total_steps + 1.0)
        return {name: np.interp(at, self.times, norm) for name, norm in self.norms.items()}

    def left_by(self, run: RunSettings) -> bool:
        """Whether SGD leaves the flow before the run ends: the rate times the curvature passes 2."""
        rate, until = time_per_step(run), time_of(run)
        return rate * max(curved for time, curved in self.curvatures if time <= until) >= 2


def flow_course(start: FlowStart, until: float) -> FlowCourse:
    flow = gradient_flow(start.world, start.weights, until, tolerance=FLOW_TOLERANCE, keep=True)
    looked_at = np.unique(np.linspace(0, len(flow.states) - 1, CURVATURES).astype(int))
    return FlowCourse(
        np.array(flow.times),
        start.norms([start.squares(state) for state in flow.states]),
        [(flow.times[i], curvature(start.world, flow.states[i])) for i in looked_at],
    )


def descent_course(start: FlowStart, run: RunSettings) -> tuple[Curve, Curves]:
    """Losses and norms at every step of a run; fewer where it does not stay finite."""
    losses, squares = [], []
    for loss, weights in descent(start.world, start.weights, time_per_step(run), run.total_steps):
        losses.append(loss)
        squares.append(start.squares(weights))
    return np.array(losses), start.norms(squares)
