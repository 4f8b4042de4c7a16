"""The phase that theory predicts for a run: its norms by the laws of learning, classified as measured ones are.

>>> sgd = {"optimizer": {"name": "sgd", "lr": 0.3}, "objective": {"loss": "squared"}, "steps": 1000}
>>> predicted_phase(RunConfig.of(sgd)).phase
'first stage only'
>>> predicted_phase(RunConfig.of(sgd, schedule="two-stage")).why
'the laws are for runs in which all parts train throughout'

Documents of LONG words and more count as infinite for key and query, and with a trained embedding or cross entropy for
everything; W_V on one-hot words has the optimum of its own length (R5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topicscope.ground import InputError, Progress, refuse, silent
from topicscope.measure import NOT_COVERED, Course, Phase, course
from topicscope.theory import Dynamics, optimum, topics_alike
from topicscope.training.config import Optimizer, RunConfig
from topicscope.training.flow_curves import MOST_WORDS, FlowCourse, FlowStart, descent_course, even, flow_course
from topicscope.training.law_curves import Curve, Curves, closed_norms, law_of, time_of, time_per_step

LONG = 100
"""Words from which documents count as infinite, as in the paper's. What differs inside topics is learnt last."""

CLOSED, REDUCED, WORDS, DESCENT = "closed form", "flow of topics", "flow of all words", "descent at the run's own rate"
UNSTABLE = "the rate is not stable at the start"
FALLING = np.array([1.0, 0.0])  # losses of a run that does not diverge


@dataclass(frozen=True)
class PredictedPhase:
    """The phase that theory predicts for a run.

    Attributes:
        phase: Its name; None where no law applies.
        why: The law that says so, or why none applies.
        course: The predicted course, with half-way steps by part.
        rise: Rise of W_V's norm, relative to its start.

    Example:
        See `predicted_phase`.
    """

    phase: Phase | None
    why: str
    course: Course | None = None
    rise: float | None = None

    def as_dict(self) -> dict[str, float | str | None]:
        """Columns of a table, each with 'predicted_' before its name."""
        known = {} if self.course is None else self.course.as_dict()
        separations = {f"predicted_{name}": known.get(name) for name in ("separation", "start_separation")}
        rise = {"predicted_rise": self.rise}
        return {"predicted_phase": self.phase or NOT_COVERED, "predicted_by": self.why, **separations, **rise}


def predicted_phase(config: RunConfig, *, batch_noise: float = 1.0) -> PredictedPhase:
    """The phase that theory predicts for one run: its norms by the laws of learning, classified as measured ones are.

    Args:
        config: Config of the run.
        batch_noise: |mean| / rms of the gradients of key and query that Adam sees (R4); 1 for full batches.

    Returns:
        The phase, or the reason why none is predicted.

    Example:
        >>> sgd = {"optimizer": {"name": "sgd", "lr": 0.3}, "objective": {"loss": "squared"}}
        >>> predicted_phase(RunConfig.of(sgd, steps=1000)).phase
        'first stage only'
    """
    return predicted_phases([config], batch_noise=batch_noise)[0]


def predicted_phases(
    configs: Sequence[RunConfig], *, batch_noise: float = 1.0, progress: Progress = silent
) -> list[PredictedPhase]:
    """The phases that theory predicts for many runs. Runs that differ only in rate and steps share their computation.

    Args:
        configs: Configs of the runs.
        batch_noise: As in `predicted_phase`.
        progress: Called as progress(phase, done, total, note).

    Returns:
        One prediction per config.

    Example:
        >>> sgd = {"optimizer": {"name": "sgd", "lr": 0.3}, "objective": {"loss": "squared"}}
        >>> [found.phase for found in predicted_phases([RunConfig.of(sgd, steps=steps) for steps in (1, 1000)])]
        ['never', 'first stage only']
    """
    laws: dict[str, Dynamics] = {}
    flows: dict[str, SharedFlow] = {}

    def prediction(config: RunConfig) -> PredictedPhase:
        check(config)
        key = shared(config)
        if (even(config) or not by_flow(config)) and unstable(config):
            return PredictedPhase("diverged", UNSTABLE)
        if by_flow(config):
            if key not in flows:
                flows[key] = SharedFlow.of([other for other in configs if shared(other) == key])
            return flows[key].phase(config)
        laws[key] = laws.get(key) or law_of(config)
        return classified(closed_norms(config, laws[key], batch_noise), CLOSED)

    found = []
    for number, config in enumerate(configs):
        progress("predicted phases", number, len(configs), "")
        try:
            found.append(prediction(config))
        except InputError as error:
            found.append(PredictedPhase(None, str(error)))
    return found


@dataclass(frozen=True)
class SharedFlow:
    """Runs from one start: a flow as long as the longest of those that are stable at the start."""

    start: FlowStart
    curvature: float  # at the start
    flow: FlowCourse | None  # None: no rate is stable

    @classmethod
    def of(cls, configs: Sequence[RunConfig]) -> SharedFlow:
        start = FlowStart.of(configs[0])
        curved = even_curvature(configs[0]) if even(configs[0]) else start.curvature
        times = [time_of(config) for config in configs if time_per_step(config) * curved < 2]
        return cls(start, curved, flow_course(start, max(times)) if times else None)

    def phase(self, config: RunConfig) -> PredictedPhase:
        """By the flow; where SGD leaves it, by descent at the run's own rate."""
        stable = time_per_step(config) * self.curvature < 2
        if self.flow is not None and stable and not self.flow.left_by(config):
            return classified(self.flow.at_steps(config), REDUCED if even(config) else WORDS)
        losses, norms = descent_course(self.start, config)
        if len(losses) <= config.total_steps:
            return PredictedPhase("diverged", DESCENT)
        return classified(norms, DESCENT, losses)


def classified(norms: Curves, law: str, losses: Curve = FALLING) -> PredictedPhase:
    """By the rule of measured curves. A flow never raises its loss; descent may."""
    made, value = course("done", losses, float(losses[-1]), [norms]), norms["norm_value"]
    return PredictedPhase(made.phase, law, made, float(value[-1] / value[0] - 1) if value[0] else None)


def by_flow(config: RunConfig) -> bool:
    """Cross entropy and trained embeddings have no closed form of a whole course."""
    entropy, embedded = config.objective.loss == "cross-entropy", config.model.embedding == "trained"
    return config.optimizer.name == "sgd" and (entropy or embedded)


def shared(config: RunConfig) -> str:
    """What a law depends on: everything but rate, epsilon and the number of steps; in closed form not the seed."""
    seed = config.seed if by_flow(config) else 0
    return repr(replace(config, steps=1, epochs=None, seed=seed, optimizer=Optimizer(name=config.optimizer.name)))


def check(config: RunConfig) -> None:
    """InputError, with the reason, for a run to which no law applies."""
    model, optimizer, objective = config.model, config.optimizer, config.objective
    length = config.documents.length
    shortest = length[0] if isinstance(length, tuple) else length
    adam, entropy = optimizer.name == "adam", objective.loss == "cross-entropy"
    inner = (model.key_bias, model.query_bias, model.value_bias)
    refuse(
        (not config.topic_model.uniform, "the laws are for disjoint topics of equally many, equally probable words"),
        (
            config.topic_model.uniform and not topics_alike(config.topic_model, config.documents),
            "the laws are for topics that are alike in every order",
        ),
        (not isinstance(shortest, str) and shortest < LONG, f"documents of {shortest} words are not nearly infinite"),
        (bool(config.no_optimum), config.no_optimum),
        (bool(objective.l2), "the laws are without an L2 penalty"),
        (optimizer.momentum > 0, "the laws are for SGD without momentum"),
        ({model.key, model.query, model.value} != {"trained"}, "the laws are for trained key, query and value"),
        (model.head != "tied", "the laws are for a head that is the embedding"),
        (any(bias not in ("none", 0) for bias in inner), "the laws are for key, query and value without biases"),
        (model.prediction_bias not in ("none", 0, "trained"), "the output bias is fixed"),
        (bool(config.schedule.phases), "the laws are for runs in which all parts train throughout"),
        (
            adam and model.embedding == "trained",
            "Adam with a trained embedding: its steps do not feel the saddle at zero that R8 describes",
        ),
        (adam and entropy, "Adam with cross entropy: no law of its steps is known"),
        (
            by_flow(config) and not even(config) and config.topic_model.words > MOST_WORDS,
            f"{config.topic_model.words:,} words from a large start: all words are followed up to {MOST_WORDS}",
        ),
    )


def unstable(config: RunConfig) -> bool:
    """Whether SGD is unstable at a start where attention is even."""
    return config.optimizer.name == "sgd" and time_per_step(config) * even_curvature(config) >= 2


def even_curvature(config: RunConfig) -> float:
    """The largest eigenvalue of the loss's Hessian in W_V and the output bias, where attention is even.

    With the squared loss it is 2 (1 + a g), g being E[xx']'s largest eigenvalue and a = 1 on one-hot words, without the
    1 where no bias is trained; an embedding from N(0, s^2) makes a = s^2 d s^2 (sqrt(d) + sqrt(V))^2. Cross entropy has
    half of it over V.
    """
    vocabulary = config.topic_model.vocabulary
    width, scale = config.model.width(vocabulary), config.model.start_scale(vocabulary)
    top = max(mode.eigenvalue for mode in optimum(config).modes)
    if config.model.embedding == "trained":
        top *= width * scale**4 * (math.sqrt(width) + math.sqrt(vocabulary)) ** 2
    top += config.model.prediction_bias == "trained"
    return top / vocabulary if config.objective.loss == "cross-entropy" else 2 * top
