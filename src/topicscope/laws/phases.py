"""The phase that theory predicts for a run: its norms by the laws of learning, classified as measured ones are.

In closed form for the squared loss and one-hot words: W(t) and the growth of attention (R1, R3), Adam's clocks (R4).
Documents of LONG words and more count as infinite for key and query, and with a trained embedding or cross entropy for
everything; W_V on one-hot words has the optimum of its own length (R5).

Runs with cross entropy or a trained embedding follow the flow of topics from their own start. From a start above
LARGEST_START attention is not even and the words of a topic are not alike, so all words are followed. Where the rate
times the curvature passes 2, SGD leaves the flow, and descent at the run's own rate says what follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, Progress, refuse, silent
from topicscope.laws.coverage import LAWS, RunSettings, by_flow, starts_even
from topicscope.measure import NOT_COVERED, Course, Phase, course, risen
from topicscope.theory import (
    FEWEST_STEPS,
    Dynamics,
    NamedWeights,
    Population,
    adam_clock,
    curvature,
    descent,
    dynamics,
    gradient_flow,
    optimum,
)

ENTRIES = 400  # points of Adam's curve
LINEAR = 0.5  # e-folds up to which key and query grow at one rate, whatever follows
FLOW_TOLERANCE = 1e-3
CURVATURES = 10  # states of a flow at which the stability of SGD is looked at

CLOSED, REDUCED, WORDS, DESCENT = "closed form", "flow of topics", "flow of all words", "descent at the run's own rate"
UNSTABLE = "the rate is not stable at the start"
FALLING = np.array([1.0, 0.0])  # losses of a run that does not diverge

Curve = Float[np.ndarray, " S"]
Curves = dict[str, Curve]


@dataclass(frozen=True)
class PredictedPhase:
    """The phase that theory predicts for a run; None where no law applies, and `code` then names the reason.

    `why` says which law predicts it, or why none does; `rise` is the rise of W_V's norm, relative to its start.
    """

    phase: Phase | None
    why: str
    course: Course | None = None
    rise: float | None = None
    code: str = ""

    def as_dict(self) -> dict[str, float | str | None]:
        """Columns of a table, each with 'predicted_' before its name."""
        known = {} if self.course is None else self.course.as_dict()
        return {
            "predicted_phase": self.phase or NOT_COVERED,
            "predicted_by": self.why,
            "predicted_separation": known.get("separation"),
            "predicted_start_separation": known.get("start_separation"),
            "predicted_rise": self.rise,
        }


def predicted_phase(run: RunSettings, *, batch_noise: float = 1.0) -> PredictedPhase:
    """The phase that theory predicts for one run: its norms by the laws of learning, classified as measured ones are.

    `batch_noise` is |mean| / rms of the gradients of key and query that Adam sees (R4); 1 for full batches.
    """
    return predicted_phases([run], batch_noise=batch_noise)[0]


def predicted_phases(
    runs: Sequence[RunSettings], *, batch_noise: float = 1.0, progress: Progress = silent
) -> list[PredictedPhase]:
    """The phases that theory predicts for many runs. Runs that differ only in rate and steps share their computation.

    >>> from topicscope.training import RunConfig
    >>> sgd = {"optimizer": {"name": "sgd", "lr": 0.3}, "objective": {"loss": "squared"}}
    >>> [phase.phase for phase in predicted_phases([RunConfig.of(sgd, steps=steps) for steps in (1, 1000)])]
    ['never', 'first stage only']
    """
    laws: dict[str, Dynamics] = {}
    flows: dict[str, SharedFlow] = {}
    law = LAWS["phase"]

    def prediction(run: RunSettings) -> PredictedPhase:
        law.require(run)
        key, sgd = shared(run), run.optimizer.name == "sgd"
        even = starts_even(run) or not by_flow(run)  # attention is, at the start
        if sgd and even and time_per_step(run) * even_curvature(run) >= 2:
            return PredictedPhase("diverged", UNSTABLE)
        if by_flow(run):
            if key not in flows:
                alike = [other for other in runs if shared(other) == key and law.refusal(other) is None]
                flows[key] = SharedFlow.of(alike)
            return flows[key].phase(run)
        laws[key] = laws.get(key) or law_of(run)
        value, of_key = sgd_norms(run, laws[key]) if sgd else adam_norms(run, laws[key], batch_noise)
        return classified({"norm_value": value, "norm_key": of_key, "norm_query": of_key}, CLOSED)

    phases = []
    for number, run in enumerate(runs):
        progress("predicted phases", number, len(runs), "")
        try:
            phases.append(prediction(run))
        except InputError as error:
            phases.append(PredictedPhase(None, str(error), code=error.code))
    return phases


def time_per_step(run: RunSettings) -> float:
    """In units of gradient flow: SGD's rate, for the loss summed over the outputs."""
    return run.optimizer.lr * run.objective.scale(run.world.topic_model.vocabulary)


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

    def squares(self, weights: NamedWeights) -> dict[str, float]:
        """Squared norms of the matrices inside the population's coordinates."""
        return {name: float(np.vdot(weights[name], weights[name])) for name in ("value", "key", "query")}

    def norms(self, along: Sequence[dict[str, float]]) -> Curves:
        """Norms of the whole matrices: what the start has outside of the population's coordinates stays."""
        inside, whole = self.squares(self.weights), self.squares(self.whole)
        return {
            f"norm_{name}": np.sqrt(np.array([squares[name] for squares in along]) + (whole[name] - square))
            for name, square in inside.items()
        }


@dataclass(frozen=True)
class FlowCourse:
    """Norms of W_V, W_K and W_Q at the times of a flow, and at some of them the largest eigenvalue of the Hessian."""

    times: Curve
    norms: Curves
    curvatures: list[tuple[float, float]]  # with the time


def flow_course(start: FlowStart, until: float) -> FlowCourse:
    flow = gradient_flow(start.world, start.weights, until, tolerance=FLOW_TOLERANCE, keep=True)
    looked_at = np.unique(np.linspace(0, len(flow.states) - 1, CURVATURES).astype(int))
    return FlowCourse(
        np.array(flow.times),
        start.norms([start.squares(state) for state in flow.states]),
        [(flow.times[i], curvature(start.world, flow.states[i])) for i in looked_at],
    )


@dataclass(frozen=True)
class SharedFlow:
    """Runs from one start: a flow as long as the longest of those that are stable at the start."""

    start: FlowStart
    curvature: float  # at the start
    flow: FlowCourse | None  # None: no rate is stable

    @classmethod
    def of(cls, runs: Sequence[RunSettings]) -> SharedFlow:
        start = FlowStart.of(runs[0])
        curved = even_curvature(runs[0]) if starts_even(runs[0]) else curvature(start.world, start.weights)
        times = [time_per_step(run) * run.total_steps for run in runs if time_per_step(run) * curved < 2]
        return cls(start, curved, flow_course(start, max(times)) if times else None)

    def phase(self, run: RunSettings) -> PredictedPhase:
        """By the flow; where SGD leaves it, by descent at the run's own rate."""
        flow, rate, steps = self.flow, time_per_step(run), run.total_steps
        if flow is not None and rate * self.curvature < 2:
            largest = max(curved for time, curved in flow.curvatures if time <= rate * steps)
            if rate * largest < 2:
                at = rate * np.arange(steps + 1.0)
                norms = {name: np.interp(at, flow.times, norm) for name, norm in flow.norms.items()}
                return classified(norms, REDUCED if starts_even(run) else WORDS)
        descended = descent(self.start.world, self.start.weights, rate, steps)
        found = [(loss, self.start.squares(weights)) for loss, weights in descended]
        if len(found) <= steps:
            return PredictedPhase("diverged", DESCENT)
        norms = self.start.norms([squares for _, squares in found])
        return classified(norms, DESCENT, np.array([loss for loss, _ in found]))


def classified(norms: Curves, law: str, losses: Curve = FALLING) -> PredictedPhase:
    """By the rule of measured curves. A flow never raises its loss; descent may."""
    predicted, value = course("done", losses, float(losses[-1]), [norms]), norms["norm_value"]
    return PredictedPhase(predicted.phase, law, predicted, float(value[-1] / value[0] - 1) if value[0] else None)


def shared(run: RunSettings) -> str:
    """What a law depends on: everything but rate, epsilon and the number of steps; in closed form not the seed."""
    return repr((run.world, run.model, run.objective, run.optimizer.name, run.seed if by_flow(run) else 0))


def even_curvature(run: RunSettings) -> float:
    """The largest eigenvalue of the loss's Hessian in W_V and the output bias, where attention is even.

    With the squared loss it is 2 (1 + a g), g being E[xx']'s largest eigenvalue and a = 1 on one-hot words, without the
    1 where no bias is trained; an embedding from N(0, s^2) makes a = s^2 d s^2 (sqrt(d) + sqrt(V))^2. Cross entropy has
    half of it over V.
    """
    vocabulary = run.world.topic_model.vocabulary
    width, scale = run.model.width(vocabulary), run.model.start_scale(vocabulary)
    top = max(mode.eigenvalue for mode in optimum(run.world).modes)
    if run.model.embedding == "trained":
        top *= width * scale**4 * (math.sqrt(width) + math.sqrt(vocabulary)) ** 2
    top += run.model.prediction_bias == "trained"
    return top / vocabulary if run.objective.loss == "cross-entropy" else 2 * top


def law_of(run: RunSettings) -> Dynamics:
    """`dynamics` of the same world with infinite documents; W_V with its own."""
    model, vocabulary = run.model, run.world.topic_model.vocabulary
    width, scale = model.attention_width(vocabulary), model.start_scale(vocabulary)
    return replace(dynamics(run.world.endless(), attention_dim=width, init_scale=scale), best=optimum(run.world))


def sgd_norms(run: RunSettings, law: Dynamics) -> tuple[Curve, Curve]:
    """Norms of value and key (query is as key) by R1 and R3; InputError where these have nothing to say."""
    times = time_per_step(run) * np.arange(run.total_steps + 1.0)
    norms = law.norms(times)
    return norms["value"], norms["key"] if "key" in norms else early_key(norms["value"], law, times)


def early_key(value: Curve, law: Dynamics, times: Curve) -> Curve:
    """|W_K| where its half-time is not known: at one rate for LINEAR e-folds. It does not matter if value never rises.

    W_K + W_Q grows in topic contrasts and W_K - W_Q dies out, so the square of either has the factor cosh.
    """
    dim, scale, e_fold = law.training.attention_dim, law.training.init_scale, law.attention.e_fold
    late = e_fold is None or times[-1] > LINEAR * e_fold
    refuse(
        (
            late and not math.isnan(risen(value)),
            "; ".join(law.not_covered) or "the growth of key and query is not known",
        )
    )
    growing = 0.0 if e_fold is None or late else (law.attention.rank or 0) * (np.cosh(2 * times / e_fold) - 1)
    return np.sqrt(scale**2 * dim * (law.best.vocabulary + growing) * np.ones_like(times))


def adam_norms(run: RunSettings, law: Dynamics, batch_noise: float) -> tuple[Curve, Curve]:
    """R4: W_V goes its way at the rate; an entry of key and query by lr g / (|g| + eps), up to the second plateau."""
    growth, rate, optimizer = law.growth, law.value.rate, run.optimizer
    if growth is None or rate is None or growth.reason is not None:
        raise InputError("; ".join(law.not_covered))
    dim, vocabulary, scale = law.training.attention_dim, law.best.vocabulary, law.training.init_scale
    scaled = run.objective.scale(vocabulary)
    clock = adam_clock(
        growth,
        rate / 2,
        attention_dim=dim,
        init_scale=scale,
        lr=optimizer.lr,
        eps=optimizer.eps,
        loss_scale=scaled,
        batch_noise=batch_noise,
        output_bias=run.model.prediction_bias == "trained",
    )
    refuse(
        (
            clock.value < FEWEST_STEPS,
            f"Adam at rate {optimizer.lr:g}: W_V is half-way before {FEWEST_STEPS} steps, which its first mean spans",
        )
    )
    steps = np.arange(run.total_steps + 1.0)
    done = np.minimum(steps / (2 * clock.value), 1.0)
    left = scale**2 * vocabulary * (1 - done) ** 2
    value = np.sqrt(np.sum([mode.norm**2 * done**2 + mode.count * left for mode in law.best.modes], 0))
    pull, size = growth.sigma / math.sqrt(dim), math.sqrt(dim * vocabulary)
    start, end = scale * math.sqrt((growth.topics - 1) / (2 * vocabulary)), growth.plateau_norm(dim) / size
    refuse((not 0 < start < end, f"Adam from a start of {scale:g}: key and query do not start below their plateau"))
    entries = np.geomspace(start, end, ENTRIES)
    waiting = (clock.attention or 0.0) - (clock.sign or 0.0) - (clock.epsilon or 0.0)  # for value, if epsilon rules
    slow = optimizer.eps / scaled / pull * np.log(entries / start)
    reached = np.interp(steps, waiting + ((entries - start) / batch_noise + slow) / optimizer.lr, entries)
    return value, size * np.sqrt(scale**2 + reached**2 - start**2)
