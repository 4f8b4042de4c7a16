"""What the laws predict of a run: W* and W(t), the norms at every step, and the phase that they are classified as."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import FLOPS, InputError, Progress, refuse_if, silent
from topicscope.laws.coverage import LAWS, RunSettings, by_flow, covered_world, starts_even
from topicscope.measure import (
    NOT_COVERED,
    Course,
    Phase,
    course,
    partner_means,
    risen,
    shared_topic_means,
    topic_pair_means,
)
from topicscope.theory import (
    FEWEST_STEPS,
    Dynamics,
    Growth,
    NamedWeights,
    Population,
    ValueOptimum,
    adam_clock,
    curvature,
    descent,
    dynamics,
    gradient_flow,
    optimum,
    topic_contrasts,
    topics_alike,
)
from topicscope.world import Groups

MOST_WORDS = 2000  # of a world without symmetry, for which `train` computes W*: five seconds
SOLVED = 25  # operations per V^3 to decompose E[xx'] and to multiply by its parts
MOST_MAPPED = 100  # topics of the map that results hold: T x T numbers
MOST_ENTRIES = 20_000_000  # of A, up to which means are made: seconds
ELSEWHERE = ("architecture", "attention", "cross-entropy")  # runs that end elsewhere; their results do not name W*

ValueArray = Float[np.ndarray, "V V"]
Curve = Float[np.ndarray, " S"]
Curves = dict[str, Curve]


class TrainingOptimum(NamedTuple):
    """W* and its loss, as the run counts it; or why they are not given."""

    matrix: ValueArray | None = None
    loss: float | None = None
    why_not: str = ""


def contributions(run: RunSettings, weights: Mapping[str, np.ndarray]) -> ValueArray:
    """W_V in words: what word j of a document adds to the prediction of word i.

    Biases are added to every column: a document's shares sum to 1, so that W x + b = (W + b 1') x.

    >>> from topicscope.training import RunConfig
    >>> config = RunConfig.of({"topic_model": {"topics": 2, "words_per_topic": 1}})
    >>> contributions(config, {"value": np.eye(3), "prediction_bias": np.array([0.0, 0.5, 0.5])}).tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.5, 0.5], [0.5, 0.5, 1.5]]
    """
    embedding, model = weights.get("embedding"), run.model
    words = np.eye(run.world.topic_model.vocabulary) if embedding is None else np.asarray(embedding, dtype=float)
    value = np.asarray(weights.get("value", np.eye(len(words))), dtype=float) @ words
    value = value + np.asarray(weights.get("value_bias", 0.0), dtype=float).reshape(-1, 1)
    head = weights.get("head", words.T if model.head == "tied" else np.eye(len(value)))
    bias = np.asarray(weights.get("prediction_bias", 0.0), dtype=float).reshape(-1, 1)
    return np.asarray(head, dtype=float) @ value + bias


def world_optimum(run: RunSettings) -> ValueOptimum:
    """W* of a run's world, with documents weighted as `train` does; InputError where the table rules it out."""
    return optimum(covered_world(run, "optimum"))


def training_optimum(run: RunSettings) -> TrainingOptimum:
    """W* where a run's value matrix should end in it, if it takes at most a few seconds; else nothing, or the reason.

    >>> from topicscope.training import RunConfig
    >>> model = {"key": "zero", "query": "zero", "prediction_bias": "none"}
    >>> squared = {"objective": {"loss": "squared"}, "topic_model": {"topics": 3, "words_per_topic": 2}}
    >>> best = training_optimum(RunConfig.of(squared, model=model))
    >>> best.matrix.shape, round(best.loss, 4), best.why_not
    ((7, 7), 0.5778, '')
    """
    refusal = LAWS["end"].refusal(run)
    if refusal is not None:
        return TrainingOptimum(why_not="" if refusal.code in ELSEWHERE else refusal.reason)
    try:
        best = optimum(run.world, most_words=MOST_WORDS)
    except InputError as error:  # moments or matrices that are too large
        return TrainingOptimum(why_not=str(error))
    return TrainingOptimum(best.matrix(), best.loss * run.objective.scale(run.world.topic_model.vocabulary))


def predicted_value(run: RunSettings, best: ValueOptimum, weights: Mapping[str, np.ndarray], steps: int) -> ValueArray:
    """W(t) after `steps` steps, from the run's own start; InputError says why it does not hold for the run."""
    LAWS["course"].require(run)
    start = run.model.initial(best.vocabulary, run.seed)
    time = run.optimizer.lr * steps * run.objective.scale(best.vocabulary)
    return best.value_at(time, contributions(run, {**weights, **start}))


def needs_matrix(run: RunSettings) -> bool:
    """Whether W* may be a matrix that is solved for. Moments, which decide it, are not made here."""
    topics, known = run.world.topic_model, LAWS["end"].refusal(run) is None
    return topics.words <= MOST_WORDS and known and not topics_alike(topics, run.world.prior)


def optimum_seconds(run: RunSettings) -> float:
    """Of W*, where it is more than a handful of numbers."""
    return SOLVED * run.world.topic_model.vocabulary**3 / FLOPS if needs_matrix(run) else 0.0


def optimum_bytes(run: RunSettings) -> float:
    """Of W* and what it is made of."""
    refusal = LAWS["end"].refusal(run)
    matrices = 0 if refusal is not None and refusal.code in ELSEWHERE else 8 if needs_matrix(run) else 3
    return 8.0 * matrices * run.world.topic_model.vocabulary**2


def topic_relations(run: RunSettings, matrix: ValueArray) -> dict[str, Any]:
    """Means of a matrix over pairs of different words, by how their topics are related; None where there are none.

    Empty where topics are alike, A is too large, or the matrix is not finite. Else:

    - `topics`: T x T means by pair of topics, output word in rows. A word with several topics counts in each by its
      share A[w, t] / sum of A[w, :].
    - `shared`: means by the number of topics that two words have in common, where words have several.
    - `partners`: under the prior `groups`; words of one topic, of two topics of one group, of different groups.

    >>> from topicscope.training import RunConfig
    >>> world = {"topic_model": {"topics": 4, "words_per_topic": 1}, "documents": {"kind": "groups", "groups": 2}}
    >>> matrix = np.pad(np.kron(np.eye(2), np.ones((2, 2))), ((1, 0), (1, 0)))  # 1 inside a group, 0 across
    >>> topic_relations(RunConfig.of(world), matrix)["partners"]
    {'same': None, 'partner': 1.0, 'other': 0.0}
    """
    topics, prior = run.world.topic_model, run.world.prior
    if topics.words * topics.topics > MOST_ENTRIES or not np.isfinite(matrix).all() or topics_alike(topics, prior):
        return {}
    relations: dict[str, Any] = {}
    if topics.topics <= MOST_MAPPED:
        rows = topic_pair_means(matrix, topics.word_topics / topics.word_topics.sum(1, keepdims=True)).tolist()
        relations["topics"] = [[None if math.isnan(mean) else mean for mean in row] for row in rows]
    if not topics.disjoint:
        means = shared_topic_means(matrix, topics.word_topics > 0)
        relations["shared"] = {str(count): mean for count, mean in means.items()}
    if isinstance(prior, Groups) and run.data.train_file is None:
        group = np.arange(topics.topics) // (topics.topics // prior.groups)
        relations["partners"] = partner_means(matrix, topics.word_topics > 0, group)
    return relations


POINTS = 60  # of a curve: evenly, and as many on a logarithmic scale for its start
HALF_POINTS = 80  # at which |W(t)| is looked for its half-way point
SLOWEST = 1e-9  # rates below this share of the fastest are never learnt


@dataclass(frozen=True)
class PredictedNorms:
    """Steps of a run, Frobenius norms at them by part, and the step at which each part is half-way to its plateau."""

    steps: Curve
    norms: Curves
    half_way: dict[str, float]


def predicted_norms(run: RunSettings) -> PredictedNorms:
    """The norms that theory predicts for a run, from its own start (R1 and R3); InputError where it does not cover it.

    >>> from topicscope.training import RunConfig
    >>> settings = {
    ...     "topic_model": {"topics": 5, "words_per_topic": 4},
    ...     "documents": {"kind": "infinite", "topics_per_document": 2},
    ...     "objective": {"loss": "squared"},
    ...     "model": {"prediction_bias": "none", "init_scale": 0.001},
    ...     "optimizer": {"name": "sgd", "lr": 1.0},
    ... }
    >>> predicted = predicted_norms(RunConfig.of(settings, steps=100_000))
    >>> {part: round(step) for part, step in predicted.half_way.items()}  # first value, then key and query
    {'value': 19, 'key': 40251, 'query': 40251}
    """
    LAWS["norms"].require(run)
    vocabulary = run.world.topic_model.vocabulary
    dim, scale, lr = run.model.attention_width(vocabulary), run.objective.scale(vocabulary), run.optimizer.lr
    start_scale, rate = run.model.start_scale(vocabulary), lr * scale
    stages = dynamics(run.world, attention_dim=dim, init_scale=start_scale, loss_scale=scale, optimizer="sgd", lr=lr)
    start, growth = run.model.initial(vocabulary, run.seed), stages.growth
    ends = (1, run.total_steps, POINTS)
    steps = np.unique(np.concatenate([[0.0], np.geomspace(*ends), np.linspace(*ends)]))
    times, factor = rate * steps, np.zeros_like(steps)
    norms: Curves = {}
    half_way = value_half_way(stages, start["value"], rate)
    if growth is not None and {"key", "query"} <= set(start) and stages.attention.half_time is not None:
        first = growth.realised_start(start["key"], start["query"])
        course = growth.course(times, dim, first)
        norms = attention_norms(growth, start["key"], start["query"], course, times)
        half_way |= dict.fromkeys(("key", "query"), growth.half_time(dim, first) / rate)
        factor = np.array([growth.moments(ell).best - growth.moments(0.0).best for ell in course])
    return PredictedNorms(steps, {"value": value_norms(stages, start["value"], factor, times)} | norms, half_way)


def value_half_way(stages: Dynamics, start: Float[np.ndarray, "V V"], rate: float) -> dict[str, float]:
    """The step at which |W(t)| is half-way from its start to its plateau, where it rises.

    Earlier than half of the topic contrasts (`value.half_time`): the mean is learnt first.
    """
    modes = stages.best.modes
    rates = [mode.eigenvalue for mode in modes if mode.eigenvalue > SLOWEST * modes[0].eigenvalue]
    times = np.concatenate([[0.0], np.geomspace(1e-3 / max(rates), 20 / min(rates), HALF_POINTS)])
    norm = value_norms(stages, start, np.zeros_like(times), times)
    half = (norm[0] + norm[-1]) / 2
    if not norm[-1] > norm[0]:
        return {}
    after = int(np.argmax(norm >= half))
    return {"value": float(np.interp(half, norm[after - 1 : after + 1], times[after - 1 : after + 1]) / rate)}


def value_norms(stages: Dynamics, start: Float[np.ndarray, "V V"], factor: Curve, times: Curve) -> Curve:
    """|W(t)|, with `factor` more of topic contrasts once attention has grown."""
    best, topics = stages.best, stages.best.settings.topics
    pi = topic_contrasts(topics, best.settings.words // topics) if factor.any() else 0.0
    grown = zip(times, factor, strict=True)
    return np.array([np.linalg.norm(best.value_at(time, start) + more * pi) for time, more in grown])


def attention_norms(
    growth: Growth, key: Float[np.ndarray, "d V"], query: Float[np.ndarray, "d V"], course: Curve, times: Curve
) -> Curves:
    """In topic contrasts W_K + W_Q grows with l and W_K - W_Q dies out; the rest of both stands still."""
    pi, dim, modes = topic_contrasts(growth.topics, growth.v), len(key), growth.topics - 1
    both, apart = (key + query) @ pi / 2, (key - query) @ pi / 2
    shrunk = np.exp(-2 * times / growth.e_fold(dim)) * np.sum(apart**2)
    grown = math.sqrt(dim) * modes * course
    return {
        name: np.sqrt(np.sum((part - part @ pi) ** 2) + grown + shrunk + sign * 2 * np.sum(both * apart))
        for name, part, sign in (("key", key, 1), ("query", query, -1))
    }


def prediction_or_none(run: RunSettings) -> PredictedNorms | None:
    """As `predicted_norms`, but None where the theory does not cover the run. Recent answers are kept."""
    parts = (run.world, run.model, run.objective, run.optimizer, run.schedule, run.seed, run.total_steps)
    return _prediction(Asked(repr(parts), run))


@dataclass(frozen=True)
class Asked:
    """A run, and what its norms depend on: runs that are equal in it have one answer."""

    key: str
    run: RunSettings = field(compare=False)


@lru_cache(maxsize=16)
def _prediction(asked: Asked) -> PredictedNorms | None:
    try:
        return predicted_norms(asked.run)
    except InputError:
        return None


ENTRIES = 400  # points of Adam's curve
LINEAR = 0.5  # e-folds up to which key and query grow at one rate, whatever follows
FLOW_TOLERANCE = 1e-3
CURVATURES = 10  # states of a flow at which the stability of SGD is looked at

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
    refuse_if(
        late and not math.isnan(risen(value)), "; ".join(law.not_covered) or "the growth of key and query is not known"
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
    refuse_if(
        clock.value < FEWEST_STEPS,
        f"Adam at rate {optimizer.lr:g}: W_V is half-way before {FEWEST_STEPS} steps, which its first mean spans",
    )
    steps = np.arange(run.total_steps + 1.0)
    done = np.minimum(steps / (2 * clock.value), 1.0)
    left = scale**2 * vocabulary * (1 - done) ** 2
    value = np.sqrt(np.sum([mode.norm**2 * done**2 + mode.count * left for mode in law.best.modes], 0))
    pull, size = growth.sigma / math.sqrt(dim), math.sqrt(dim * vocabulary)
    start, end = scale * math.sqrt((growth.topics - 1) / (2 * vocabulary)), growth.plateau_norm(dim) / size
    refuse_if(not 0 < start < end, f"Adam from a start of {scale:g}: key and query do not start below their plateau")
    entries = np.geomspace(start, end, ENTRIES)
    waiting = (clock.attention or 0.0) - (clock.sign or 0.0) - (clock.epsilon or 0.0)  # for value, if epsilon rules
    slow = optimizer.eps / scaled / pull * np.log(entries / start)
    reached = np.interp(steps, waiting + ((entries - start) / batch_noise + slow) / optimizer.lr, entries)
    return value, size * np.sqrt(scale**2 + reached**2 - start**2)
