"""The phase that theory predicts for a run: its norms by the laws of learning, classified as measured ones are.

In closed form for the squared loss and one-hot words: W(t) and the growth of attention (R1, R3), Adam's clocks (R4).
Runs with cross entropy or a trained embedding follow a flow (flows.py).

Documents of LONG words and more count as infinite for key and query, and with a trained embedding or cross entropy for
everything; W_V on one-hot words has the optimum of its own length (R5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topicscope.ground import InputError, Progress, refuse, silent
from topicscope.laws.coverage import LAWS, RunSettings, by_flow, starts_even
from topicscope.laws.flows import (
    Curve,
    Curves,
    FlowCourse,
    FlowStart,
    descent_course,
    flow_course,
    time_of,
    time_per_step,
)
from topicscope.measure import NOT_COVERED, Course, Phase, course, risen
from topicscope.theory import FEWEST_STEPS, Dynamics, adam_clock, dynamics, optimum

ENTRIES = 400  # points of Adam's curve
LINEAR = 0.5  # e-folds up to which key and query grow at one rate, whatever follows

CLOSED, REDUCED, WORDS, DESCENT = "closed form", "flow of topics", "flow of all words", "descent at the run's own rate"
UNSTABLE = "the rate is not stable at the start"
FALLING = np.array([1.0, 0.0])  # losses of a run that does not diverge


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
        separations = {f"predicted_{name}": known.get(name) for name in ("separation", "start_separation")}
        rise = {"predicted_rise": self.rise}
        return {"predicted_phase": self.phase or NOT_COVERED, "predicted_by": self.why, **separations, **rise}


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
        key = shared(run)
        if (starts_even(run) or not by_flow(run)) and unstable(run):
            return PredictedPhase("diverged", UNSTABLE)
        if by_flow(run):
            if key not in flows:
                alike = [other for other in runs if shared(other) == key and law.refusal(other) is None]
                flows[key] = SharedFlow.of(alike)
            return flows[key].phase(run)
        laws[key] = laws.get(key) or law_of(run)
        return classified(closed_norms(run, laws[key], batch_noise), CLOSED)

    phases = []
    for number, run in enumerate(runs):
        progress("predicted phases", number, len(runs), "")
        try:
            phases.append(prediction(run))
        except InputError as error:
            phases.append(PredictedPhase(None, str(error), code=error.code))
    return phases


@dataclass(frozen=True)
class SharedFlow:
    """Runs from one start: a flow as long as the longest of those that are stable at the start."""

    start: FlowStart
    curvature: float  # at the start
    flow: FlowCourse | None  # None: no rate is stable

    @classmethod
    def of(cls, runs: Sequence[RunSettings]) -> SharedFlow:
        start = FlowStart.of(runs[0])
        curved = even_curvature(runs[0]) if starts_even(runs[0]) else start.curvature
        times = [time_of(run) for run in runs if time_per_step(run) * curved < 2]
        return cls(start, curved, flow_course(start, max(times)) if times else None)

    def phase(self, run: RunSettings) -> PredictedPhase:
        """By the flow; where SGD leaves it, by descent at the run's own rate."""
        stable = time_per_step(run) * self.curvature < 2
        if self.flow is not None and stable and not self.flow.left_by(run):
            return classified(self.flow.at_steps(run), REDUCED if starts_even(run) else WORDS)
        losses, norms = descent_course(self.start, run)
        if len(losses) <= run.total_steps:
            return PredictedPhase("diverged", DESCENT)
        return classified(norms, DESCENT, losses)


def classified(norms: Curves, law: str, losses: Curve = FALLING) -> PredictedPhase:
    """By the rule of measured curves. A flow never raises its loss; descent may."""
    predicted, value = course("done", losses, float(losses[-1]), [norms]), norms["norm_value"]
    return PredictedPhase(predicted.phase, law, predicted, float(value[-1] / value[0] - 1) if value[0] else None)


def shared(run: RunSettings) -> str:
    """What a law depends on: everything but rate, epsilon and the number of steps; in closed form not the seed."""
    return repr((run.world, run.model, run.objective, run.optimizer.name, run.seed if by_flow(run) else 0))


def unstable(run: RunSettings) -> bool:
    """Whether SGD is unstable at a start where attention is even."""
    return run.optimizer.name == "sgd" and time_per_step(run) * even_curvature(run) >= 2


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
    law = dynamics(
        run.world.endless(),
        attention_dim=model.attention_width(vocabulary),
        init_scale=model.start_scale(vocabulary),
    )
    return replace(law, best=optimum(run.world))


def closed_norms(run: RunSettings, law: Dynamics, batch_noise: float) -> Curves:
    """Squared loss and one-hot words: InputError where the law that is needed has nothing to say."""
    curves = {"sgd": sgd_norms, "adam": adam_norms}  # no other optimiser is in the row of the table
    return curves[run.optimizer.name](run, law, batch_noise)


def sgd_norms(run: RunSettings, law: Dynamics, batch_noise: float) -> Curves:
    """R1 and R3."""
    times = time_per_step(run) * np.arange(run.total_steps + 1.0)
    norms = law.norms(times)
    return named(norms["value"], norms["key"] if "key" in norms else early_key(norms["value"], law, times))


def named(value: Curve, key: Curve) -> Curves:
    """Query is as key."""
    return {"norm_value": value, "norm_key": key, "norm_query": key}


def early_key(value: Curve, law: Dynamics, times: Curve) -> Curve:
    """|W_K| where its half-time is not known: at one rate for LINEAR e-folds. It does not matter if value never rises.

    W_K + W_Q grows in topic contrasts and W_K - W_Q dies out, so the square of either has the factor cosh.
    """
    dim, scale, e_fold = law.training.attention_dim, law.training.init_scale, law.attention.e_fold
    never = math.isnan(risen(value))
    late = e_fold is None or times[-1] > LINEAR * e_fold
    refuse((late and not never, "; ".join(law.not_covered) or "the growth of key and query is not known"))
    growing = 0.0 if e_fold is None or late else (law.attention.rank or 0) * (np.cosh(2 * times / e_fold) - 1)
    return np.sqrt(scale**2 * dim * (law.best.vocabulary + growing) * np.ones_like(times))


def adam_norms(run: RunSettings, law: Dynamics, batch_noise: float) -> Curves:
    """R4: W_V goes its way at the rate; an entry of key and query by lr g / (|g| + eps), up to the second plateau."""
    growth, rate, optimizer = law.growth, law.value.rate, run.optimizer
    refuse((growth is None or rate is None or growth.reason is not None, "; ".join(law.not_covered)))
    assert growth is not None
    assert rate is not None
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
    return named(value, size * np.sqrt(scale**2 + reached**2 - start**2))
