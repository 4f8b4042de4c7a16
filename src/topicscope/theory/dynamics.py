"""`dynamics`: when value, then key and query are learnt, predicted for any setting (R1 to R4, R7, R8).

`LIMITS` says what the laws of the stages cover, and why a limit is one (`topicscope list laws`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from topicscope.ground import MOST, InputError, Result, arrow_table, refuse, refuse_if
from topicscope.theory.forces import Loss
from topicscope.theory.growth import (
    FEWEST_STEPS,
    SHOWS,
    AdamClock,
    EmbeddingClock,
    Growth,
    MaskFirst,
    adam_clock,
    embedding_clock,
    entry_steps,
    escape_rate,
    gain_by_half_time,
    mask_first,
    third_act_time,
)
from topicscope.theory.optimum import HasWorld, checked_length, optimum
from topicscope.theory.theorem import K_FROM, NO_K, Setting
from topicscope.theory.value_optimum import Mode, OptimumSettings, ValueOptimum, length_weights, symmetric_optimum
from topicscope.world import DocumentPrior, Fixed, Masking, TopicModel, World

if TYPE_CHECKING:
    import pyarrow

Optimizer = Literal["flow", "sgd", "adam"]
Embedding = Literal["one-hot", "trained"]


@dataclass(frozen=True)
class Training:
    """How the model is trained: what the dynamics depend on beside the world.

    Attributes:
        attention_dim: d_a.
        init_scale: Standard deviation of the initial weights.
        loss: 'squared' or 'cross-entropy'.
        embedding: 'one-hot' or 'trained'.
        width: d, of a trained embedding.
        optimizer: 'flow', 'sgd' or 'adam'.
        lr: Learning rate of SGD or Adam.
        eps: Epsilon of Adam.
        loss_scale: The loss is multiplied by it: 1 / V where outputs are averaged.
        batch_noise: |mean| / rms of a batch's gradient; 1 for full batches.
        output_bias: Whether the output has a trained bias.

    Example:
        >>> dynamics(Setting.of(4, 3, 2), optimizer="sgd", lr=0.1).training.attention_dim  # T v + 1 by default
        13
    """

    attention_dim: int
    init_scale: float
    loss: Loss = "squared"
    embedding: Embedding = "one-hot"
    width: int | None = None
    optimizer: Optimizer = "flow"
    lr: float | None = None
    eps: float = 1e-8
    loss_scale: float = 1.0
    batch_noise: float = 1.0
    output_bias: bool = False

    @property
    def of_adam(self) -> dict[str, Any]:
        names = ("attention_dim", "init_scale", "eps", "loss_scale", "output_bias")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class ValueStage:
    """How fast W_V learns topics. None: not known.

    Attributes:
        rate: W_V nears its optimum on topic contrasts as exp(-rate t): twice the eigenvalue.
        half_time: ln 2 / rate.
        modes: Parts of W* in the order of learning.

    Example:
        >>> stage = dynamics(Setting.of(4, 3, 2)).value
        >>> round(stage.rate * stage.half_time, 6)  # ln 2
        0.693147
    """

    rate: float | None
    half_time: float | None
    modes: tuple[Mode, ...]

    def as_dict(self) -> dict[str, object]:
        modes = [mode.as_dict() | {"rate": 2 * mode.eigenvalue} for mode in self.modes]
        return {"rate": self.rate, "half_time": self.half_time, "modes": modes}


@dataclass(frozen=True)
class AttentionStage:
    """When key and query rise under gradient flow. None: not known.

    Attributes:
        sigma: Force on topic contrasts once W_V is learnt (R2).
        rank: Number of modes that grow.
        e_fold: Time in which key and query grow by the factor e.
        l_star: Scores on the plateau: l* times the projector on topic contrasts.
        alpha_star: Attention to a word of the same topic over that to one of another, on the plateau.
        plateau_norm: |W_K| = |W_Q| on the plateau (Frobenius).
        constant: c of t50 = e_fold ln(c / s), where s is the initial scale.
        half_time: t50, when key and query are half-way to the plateau.
        loss: On the plateau.
        third_act_rate: Rate at which differences inside topics grow on the plateau, which is a saddle.
        third_act_gain: E-folds by which they have grown at the half-time.
        third_act_time: When they show in W_V, with a norm of 0.1.

    Example:
        >>> stage = dynamics(Setting.of(4, 3, 2), init_scale=0.001).attention
        >>> stage.rank, round(stage.alpha_star, 3), round(stage.half_time)
        (3, 4.254, 13120)
    """

    sigma: float | None = None
    rank: int | None = None
    e_fold: float | None = None
    l_star: float | None = None
    alpha_star: float | None = None
    plateau_norm: float | None = None
    constant: float | None = None
    half_time: float | None = None
    loss: float | None = None
    third_act_rate: float | None = None
    third_act_gain: float | None = None
    third_act_time: float | None = None


@dataclass(frozen=True)
class Steps:
    """Half-times in steps of the optimiser. None: not known.

    Attributes:
        value: Steps of W_V.
        attention: Steps of key and query.

    Example:
        >>> round(dynamics(Setting.of(4, 3, 2), optimizer="sgd", lr=0.1).steps.value)  # half-time / lr
        167
    """

    value: float | None
    attention: float | None


# By stage and quantity. Time is learning rate x steps.
MEANINGS = {
    ("value", "rate"): "W_V nears its optimum on topic contrasts as exp(-rate x time)",
    ("value", "half_time"): "time at which W_V has learnt half of the topic contrasts",
    ("attention", "sigma"): "force on attention, on topic contrasts, once W_V is learnt",
    ("attention", "rank"): "number of topic contrasts that key and query learn",
    ("attention", "e_fold"): "time in which key and query grow by the factor e",
    ("attention", "l_star"): "l*, size of the attention scores on the plateau",
    ("attention", "alpha_star"): "attention to a word of the same topic over one of another, on the plateau",
    ("attention", "plateau_norm"): "Frobenius norm of W_K and of W_Q on the plateau",
    ("attention", "constant"): "c in half_time = e_fold ln(c / s), s the initial scale",
    ("attention", "half_time"): "time at which key and query are half-way to the plateau",
    ("attention", "loss"): "loss on the plateau",
    ("attention", "third_act_rate"): "rate at which differences inside topics then grow (the third act)",
    ("attention", "third_act_gain"): "e-folds by which these have grown at half_time",
    ("attention", "third_act_time"): "time at which these have the norm 0.1 in W_V",
    ("steps", "value"): "steps until W_V is half-way",
    ("steps", "attention"): "steps until key and query are half-way",
}


@dataclass(frozen=True, repr=False)
class Dynamics(Result):
    """What `dynamics` predicts.

    Attributes:
        world: The world, in plain numbers.
        training: How the model is trained.
        value: How fast W_V learns topics.
        attention: When key and query rise.
        steps: Half-times in steps; None under gradient flow.
        sentences: The prediction in words.
        not_covered: What the theory does not cover, and why.
        best: W* and W_V(t).
        growth: How attention grows, where it is known.
        adam: Times under Adam.
        mask_first: When [MASK] learns first, under cross entropy.
        trained_embedding: Times with a trained embedding.

    Example:
        >>> found = dynamics(Setting.of(4, 3, 2), init_scale=0.001)
        >>> found.norms(np.array([0.0, 1e3, 1e5]))["key"].round(2).tolist()
        [0.01, 0.01, 6.85]
    """

    kind: ClassVar[str] = "dynamics"

    world: dict[str, object]
    training: Training
    value: ValueStage
    attention: AttentionStage
    steps: Steps | None
    sentences: tuple[str, ...]
    not_covered: tuple[str, ...]
    best: ValueOptimum
    growth: Growth | None
    adam: AdamClock | None = None
    mask_first: MaskFirst | None = None
    trained_embedding: EmbeddingClock | None = None

    def as_dict(self) -> dict[str, Any]:
        parts = {"adam": self.adam, "mask_first": self.mask_first, "trained_embedding": self.trained_embedding}
        return {
            "settings": self.world | asdict(self.training),
            "value": self.value.as_dict(),
            "attention": asdict(self.attention),
            "steps": None if self.steps is None else asdict(self.steps),
            **{name: part._asdict() for name, part in parts.items() if part is not None},
            "sentences": list(self.sentences),
            "not_covered": list(self.not_covered),
        }

    def summary(self) -> list[str]:
        return [*self.sentences, *(f"Not covered: {reason}" for reason in self.not_covered)]

    def rows(self) -> list[dict[str, float | str | None]]:
        steps = {} if self.steps is None else vars(self.steps)
        stages = {"value": vars(self.value), "attention": vars(self.attention), "steps": steps}
        return [
            {
                "stage": stage,
                "quantity": name,
                "value": None if (value := stages[stage][name]) is None else float(value),
                "meaning": meaning,
            }
            for (stage, name), meaning in MEANINGS.items()
            if name in stages[stage]
        ]

    def table(self) -> pyarrow.Table:
        return arrow_table(self.rows())

    def _about(self) -> str:
        world = ", ".join(f"{key} {value}" for key, value in self.world.items() if key != "prior")
        return f"{world}, {self.training.optimizer}"

    def norms(self, times: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
        """Expected Frobenius norms of value and key (query is as key) under flow, from N(0, s^2) entries.

        One-hot words and squared loss. Key is left out where its growth is not known.
        """
        s2, size = self.training.init_scale**2, self.best.vocabulary
        left = [np.exp(-2 * mode.eigenvalue * times) for mode in self.best.modes]
        squares = [
            mode.norm**2 * (1 - rest) ** 2 * (mode.eigenvalue > 0) + s2 * size * mode.count * rest**2
            for mode, rest in zip(self.best.modes, left, strict=True)
        ]
        norms = {"value": np.sqrt(np.sum(squares, 0))}
        if self.growth is not None and self.attention.half_time is not None:
            growth, dim = self.growth, self.training.attention_dim
            ell = growth.course(times, dim, growth.expected_start(dim, self.training.init_scale))
            modes = growth.topics - 1
            apart = np.exp(-2 * growth.sigma * times / math.sqrt(dim)) / 2  # W_K - W_Q dies out in the modes
            rest = s2 * dim * (size - modes + modes * apart)
            norms["key"] = np.sqrt(math.sqrt(dim) * modes * ell + rest)
        return norms

    def more(self, sentences: Sequence[str] = (), reasons: Sequence[str] = (), **parts: Any) -> Dynamics:
        said, not_covered = (*self.sentences, *sentences), (*self.not_covered, *reasons)
        return replace(self, sentences=said, not_covered=not_covered, **parts)

    def without_steps(self, reason: str) -> Dynamics:
        return self.more(reasons=[reason], steps=Steps(None, None))


class Limit(NamedTuple):
    covers: str
    reason: str  # where it is not covered, with places for numbers


# By code. Each stage has some of them: see `laws.LAWS`.
LIMITS = {
    "finite-documents": Limit(
        "infinite documents",
        "key and query, at documents of length {length}: finite documents teach W_V a diagonal, which adds to the "
        "force on attention; only infinite documents are analysed (length infinite)",
    ),
    "topics-not-alike": Limit("disjoint, exchangeable topics of equal words", "key and query: {error}"),
    "no-force": Limit("a force on attention", "key and query: {reason}"),
    "few-dimensions": Limit(
        "attention_dim of T - 1 or more",
        "the plateau, at attention_dim = {dim}: {modes} topic contrasts do not fit into fewer dimensions",
    ),
    "zero-start": Limit(
        "a start above 0", "the half-time of key and query, at init_scale = 0: they stay at zero, an unstable balance"
    ),
    "large-start": Limit(
        "starts up to .03",
        "the half-time of key and query, at init_scale = {scale:g}: the law was measured up to {largest:g}; larger "
        "starts mix the stages",
    ),
    "above-plateau": Limit(
        "starts below half of the plateau",
        "the half-time of key and query, at init_scale = {scale:g}: in topic contrasts they start above half of the "
        "plateau's norm, so there is no rise to be half-way on",
    ),
    "slow-value": Limit(
        "W_V ten times as fast as key and query",
        "the half-time of key and query under gradient flow: W_V is less than ten times as fast as they are, so it "
        "does not follow them at once",
    ),
    "overtaken": Limit(
        "key and query before differences inside topics",
        "the half-time of key and query under gradient flow: before it differences inside topics grow by "
        "exp({gain:.3g}), from init_scale = {scale:g} to the size of the weights; a smaller start keeps the acts apart",
    ),
    "early-third-act": Limit(
        "a third act after the plateau",
        "the third act's time: from this start it shows before key and query are on their plateau",
    ),
    "entropy-half-times": Limit(
        "the start under cross entropy alone",
        "half-times under cross entropy: they depend on the length of the run; only the start is known",
    ),
    "entropy-topics": Limit(
        "infinite documents and topics that are alike",
        "the start under cross entropy: known for infinite documents and topics that are alike",
    ),
    "entropy-same-topics": Limit(
        "documents that differ in their topics",
        "the start under cross entropy: all documents have the same topics, so none is learnt",
    ),
    "entropy-no-mask": Limit(
        "masked positions that show [MASK]", "the start under cross entropy: no masked position shows [MASK]"
    ),
    "entropy-start": Limit(
        "starts above 0 and up to .03",
        "the start under cross entropy at init_scale = {scale:g}: the law holds above 0 and was measured up to "
        "{largest:g}",
    ),
    "embedding-topics": Limit(
        "infinite documents and topics that are alike",
        "a trained embedding: known for infinite documents and topics that are alike",
    ),
    "embedding-same-topics": Limit(
        "documents that differ in their topics",
        "a trained embedding: all documents have the same topics, so none is learnt",
    ),
    "embedding-adam": Limit("flow or SGD", "a trained embedding with Adam: its steps do not feel the saddle at zero"),
    "embedding-start": Limit(
        "starts above 0, up to init_scale x sqrt(width) = .3",
        "a trained embedding at init_scale x sqrt(width) = {size:.3g}: the law holds above 0 and up to {largest:g}",
    ),
    "embedding-entropy": Limit(
        "key and query with squared loss",
        "key and query with a trained embedding under cross entropy: their later course is not known",
    ),
    "adam-setting": Limit(
        "one-hot words, squared loss, infinite documents, topics that are alike",
        "steps of Adam: known for one-hot words, squared loss, infinite documents and topics that are alike",
    ),
    "adam-fast": Limit(
        "ten steps of Adam or more",
        "steps of Adam at lr = {lr:g}: the clocks give {fewest:.2g}, and they hold from {least} on, which is how many "
        "gradients Adam's first mean spans",
    ),
    "sgd-diverges": Limit(
        "rates of SGD below 1 over the largest eigenvalue",
        "steps of SGD: at lr = {lr:g} W_V diverges; it is stable below {stable:.4g}",
    ),
}


def passed(code: str, **numbers: object) -> str:
    return LIMITS[code].reason.format(**numbers)


LARGEST_SCALE = 0.03  # of the start, up to which the laws of one-hot words were measured
WIDEST_START = 0.3  # s sqrt(d) of a trained embedding up to which the law was measured


def with_cross_entropy(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    """R7: no finite optimum of W_V; the [MASK] query is first."""
    growth, scale = prediction.growth, prediction.training.init_scale
    prediction = prediction.more(
        ["Under cross entropy W_V has no finite optimum on infinite documents: absent words want -infinity."],
        [passed("entropy-half-times")],
    )
    if growth is None or topic is None:
        return prediction.more(reasons=[passed("entropy-topics" if growth is None else "entropy-same-topics")])
    if growth.masking.p_mask_word == 0:
        return prediction.more(reasons=[passed("entropy-no-mask")])
    if not 0 < scale <= LARGEST_SCALE:
        return prediction.more(reasons=[passed("entropy-start", scale=scale, largest=LARGEST_SCALE)])
    first = mask_first(growth, topic.eigenvalue, prediction.training.attention_dim)
    said = (
        f"At first W_V grows evenly on topic contrasts, {first.speed:.4g} per unit of time. [MASK] then learns not "
        f"to look at [MASK]: |W_K| is three times its start near time {first.time:.4g} (measured: a third later)."
    )
    return prediction.more([said], mask_first=first)


def with_embedding(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    """R8: value and embedding leave zero together, after a time in proportion to 1 / s."""
    growth, how = prediction.growth, prediction.training
    width = how.width or prediction.best.vocabulary
    size, squared = how.init_scale * math.sqrt(width), how.loss == "squared"
    if growth is None or topic is None:
        return prediction.more(reasons=[passed("embedding-topics" if growth is None else "embedding-same-topics")])
    if how.optimizer == "adam":
        return prediction.more(reasons=[passed("embedding-adam")])
    if not 0 < size <= WIDEST_START:
        return prediction.more(reasons=[passed("embedding-start", size=size, largest=WIDEST_START)])
    dim = how.attention_dim
    clock = embedding_clock(
        growth, topic.eigenvalue, squared=squared, width=width, attention_dim=dim, init_scale=how.init_scale
    )
    said = (
        f"With a trained embedding value and embedding leave zero together: topics are half-way at time "
        f"{clock.escape:.5g}, in proportion to 1 / (s sqrt(d)), d = {width} (10% to 40% off at small d)."
    )
    prediction = prediction.more(
        [said], value=ValueStage(None, clock.escape, prediction.value.modes), trained_embedding=clock
    )
    if clock.attention is None:
        reason = passed("no-force", reason=growth.reason) if squared else passed("embedding-entropy")
        return prediction.more(reasons=[reason])
    said = (
        f"Then key and query grow {clock.square:.4g} times as fast as on one-hot words: half-way near "
        f"{clock.attention:.5g} (measured: up to a quarter earlier)."
    )
    stage = AttentionStage(
        growth.sigma, min(growth.topics - 1, dim), growth.e_fold(dim) / clock.square, half_time=clock.attention
    )
    return prediction.more([said], attention=stage)


def with_adam(prediction: Dynamics, rate: float, topic: Mode | None) -> Dynamics:
    how, growth = prediction.training, prediction.growth
    if how.loss != "squared" or how.embedding != "one-hot" or growth is None or topic is None:
        return prediction.without_steps(passed("adam-setting"))
    clock = adam_clock(growth, topic.eigenvalue, lr=rate, batch_noise=how.batch_noise, **how.of_adam)
    known = prediction.attention.plateau_norm is not None and how.init_scale <= LARGEST_SCALE
    attention = clock.attention if known else None
    fewest = min(clock.value, attention or math.inf)
    if fewest < FEWEST_STEPS:
        return prediction.without_steps(passed("adam-fast", lr=rate, fewest=fewest, least=FEWEST_STEPS))
    said = [f"Adam: W_V is half-way after {clock.value:.4g} steps"]
    if attention is not None:
        said[0] += (
            f", key and query after {attention:.4g}: {clock.sign:.4g} at the full rate, {clock.epsilon:.4g} more for "
            f"epsilon, which delays them above {clock.delays_attention_from:.2g} and rules them above "
            f"{clock.rules_attention_from:.2g} (over the scale of the loss)"
        )
        if how.batch_noise == 1:
            clock = clock._replace(followed=entry_steps(growth, value=clock.value, lr=rate, **how.of_adam))
    if clock.followed is not None:
        said.append(
            f"With Adam's own averages, which make its steps longer where gradients grow, key and query are half-way "
            f"after {clock.followed:.4g} steps (full batches; measured: .84 to 1.15 of it)"
        )
    return prediction.more([f"{one}." for one in said], steps=Steps(clock.value, attention), adam=clock)


def with_sgd(prediction: Dynamics, rate: float) -> Dynamics:
    fastest = max(mode.eigenvalue for mode in prediction.best.modes)
    if rate * fastest >= 1:
        stable = 1 / (fastest * prediction.training.loss_scale)
        return prediction.without_steps(passed("sgd-diverges", lr=prediction.training.lr, stable=stable))
    times = {"W_V is half-way": prediction.value.half_time, "key and query": prediction.attention.half_time}
    steps = {name: None if time is None else time / rate for name, time in times.items()}
    parts = [f"{name} after {number:.5g} steps" for name, number in steps.items() if number is not None]
    return prediction.more([f"SGD: {', '.join(parts)}."] if parts else [], steps=Steps(*steps.values()))


SMALLEST_SCALE, LARGEST_RATE = 1e-100, 1e6  # of what is given: nothing beyond overflows
APART = 10  # times that W_V must be faster than key and query, to follow them at once
EARLY = -2.0  # log of what differences inside topics have grown to at the half-time, from which no plateau shows
# The same, from which they come first. Measured half-times: 2% late at -0.3 and 2% early at 1.4 (s = .01); 9% and
# 20% early at 0.8 and 2.5 (s = .03).
OVERTAKEN = 3.0


def dynamics(
    world: Setting | World | HasWorld | TopicModel,
    prior: DocumentPrior | None = None,
    masking: Masking | None = None,
    *,
    attention_dim: int | None = None,
    init_scale: float = 1e-3,
    **training: Any,
) -> Dynamics:
    """When each stage of learning comes, predicted from the world and the training alone (R1 to R4, R7, R8).

    Args:
        world: A `Setting`, a `World`, a RunConfig, which has one, or a topic model.
        prior: Prior of documents, where `world` is a topic model.
        masking: The masking scheme, where `world` is a topic model.
        attention_dim: d_a; None: T v + 1.
        init_scale: All three matrices start from N(0, init_scale^2).
        **training: Other settings of `Training`, such as optimizer, lr and loss.

    Returns:
        Times of W_V and of attention. What the theory does not cover is None, with the reason in `not_covered`.

    Raises:
        InputError: A setting is unknown or out of range.

    Example:
        >>> from topicscope import theory
        >>> prediction = theory.dynamics(theory.Setting.of(4, 3, 2), optimizer="sgd", lr=0.1)
        >>> round(prediction.steps.value), round(prediction.steps.attention)
        (167, 131197)
    """
    topics, prior, masking = parts_of(world, prior, masking)
    how = checked(topics, attention_dim, init_scale, training)
    refuse_if(masking.k < K_FROM, NO_K)
    growth, why_not = growth_of(topics, prior, masking)
    best = value_optimum(topics, prior, masking, growth)
    modes = [mode for mode in best.modes if mode.eigenvalue > 0]
    topic = next((mode for mode in modes if mode.name == "topic contrasts"), None)
    if topic is None and growth is None and best.settings.infinite:
        topic = min(modes, key=lambda mode: mode.eigenvalue)  # topics that are not alike: the last one that is learnt
    numbers = {name: value for name, value in vars(best.settings).items() if name != "weighting"}
    value = ValueStage(None, None, best.modes)
    prediction = Dynamics(numbers, how, value, AttentionStage(), None, (), why_not, best, growth)
    if how.embedding == "trained":
        prediction = with_embedding(prediction, topic)
    elif how.loss == "cross-entropy":
        prediction = with_cross_entropy(prediction, topic)
    else:
        prediction = with_attention(with_value(prediction, topic), topic)
    if how.lr is None:
        return prediction
    if how.optimizer == "adam":
        return with_adam(prediction, how.lr, topic)
    return with_sgd(prediction, how.lr * how.loss_scale)


def parts_of(
    world: Setting | World | HasWorld | TopicModel, prior: DocumentPrior | None, masking: Masking | None
) -> tuple[TopicModel, DocumentPrior, Masking]:
    if isinstance(world, Setting):
        return world.topic_model, Fixed(topics_per_document=world.tau, length="infinite"), world.masking
    if isinstance(world, TopicModel) and prior is not None:
        return world, prior, masking or Masking()
    if isinstance(world, TopicModel):
        raise InputError("a topic model needs a prior: give the law of theta, or a Setting or World")
    here = world if isinstance(world, World) else world.world
    return here.topic_model, prior or here.prior, masking or here.masking


def checked(topics: TopicModel, attention_dim: int | None, init_scale: float, training: dict[str, Any]) -> Training:
    dim = topics.vocabulary if attention_dim is None else attention_dim
    names = Training.__dataclass_fields__
    unknown = [name for name in training if name not in names]
    refuse_if(bool(unknown), f"unknown setting {unknown[:1]}; expected one of {', '.join(names)}")
    how = Training(dim, init_scale, **training)
    lr_range = how.lr is not None and SMALLEST_SCALE <= how.lr <= LARGEST_RATE
    refuse(
        (
            attention_dim is not None and not 1 <= dim <= MOST,
            f"attention_dim = {dim}: expected a number from 1 to {MOST:,}",
        ),
        (
            not (init_scale == 0 or SMALLEST_SCALE <= init_scale <= LARGEST_RATE),
            f"init_scale = {init_scale:g}: expected 0, or a number from {SMALLEST_SCALE:g} to {LARGEST_RATE:,.0f}",
        ),
        (how.loss not in get_args(Loss), f"loss = {how.loss!r}: expected {' or '.join(get_args(Loss))}"),
        (
            how.embedding not in get_args(Embedding),
            f"embedding = {how.embedding!r}: expected {' or '.join(get_args(Embedding))}",
        ),
        (
            how.optimizer not in get_args(Optimizer),
            f"optimizer = {how.optimizer!r}: expected {', '.join(get_args(Optimizer))}",
        ),
        (
            how.optimizer != "flow" and not lr_range,
            f"{'' if how.lr is None else f'lr = {how.lr:g}: '}{how.optimizer} needs a learning rate (--lr) above 0",
        ),
        (how.optimizer == "flow" and how.lr is not None, "lr: gradient flow has no learning rate; choose sgd or adam"),
        (not 0 <= how.eps <= LARGEST_RATE, f"eps = {how.eps:g}: expected a number from 0 to {LARGEST_RATE:,.0f}"),
        (
            not SMALLEST_SCALE <= how.loss_scale <= LARGEST_RATE,
            f"loss_scale = {how.loss_scale:g}: expected a number above 0",
        ),
        (
            how.optimizer == "flow" and how.loss_scale != 1,
            "loss_scale: times of gradient flow are those of the loss itself; choose sgd or adam",
        ),
        (
            how.embedding != "trained" and how.width is not None,
            "width belongs to a trained embedding; one-hot words have none",
        ),
        (
            how.optimizer != "adam" and (how.batch_noise != 1 or how.output_bias),
            "batch_noise and output_bias belong to adam; leave them out",
        ),
        (not 0 < how.batch_noise <= 1, f"batch_noise = {how.batch_noise:g}: expected a number above 0 and at most 1"),
        (how.width is not None and how.width < 1, f"width = {how.width}: expected a number from 1"),
    )
    return how


def growth_of(topics: TopicModel, prior: DocumentPrior, masking: Masking) -> tuple[Growth | None, tuple[str, ...]]:
    if checked_length(prior.length) != "infinite":
        return None, (passed("finite-documents", length=prior.length),)
    try:
        return Growth.of(topics, prior, masking), ()
    except InputError as error:
        return None, (passed("topics-not-alike", error=error),)


def value_optimum(topics: TopicModel, prior: DocumentPrior, masking: Masking, growth: Growth | None) -> ValueOptimum:
    """W*; where the topics are alike nothing of the size of T x T is made."""
    if growth is None:
        return optimum(topics, prior, masking)
    settings = OptimumSettings.of(topics.topics, topics.words, prior, "infinite", masking)
    return symmetric_optimum(settings, growth.shares.contrast, masking, length_weights("infinite", masking.p_mask))


def with_value(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    modes = prediction.best.modes
    if topic is None:
        said = "W_V never learns topics: all documents show them alike."
        return prediction.more([said], value=ValueStage(0.0, None, modes))
    said = (
        f"W_V learns {topic.name} at the rate {2 * topic.eigenvalue:.5g}: half of it at time {topic.half_time:.5g} "
        "(learning rate x steps), under gradient flow, squared loss and uniform attention."
    )
    return prediction.more([said], value=ValueStage(2 * topic.eigenvalue, topic.half_time, modes))


def with_attention(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    growth = prediction.growth
    if growth is None:
        return prediction
    if growth.reason is not None or topic is None:
        stage = AttentionStage() if topic is None else AttentionStage(sigma=0.0, rank=0)
        return prediction.more(reasons=[passed("no-force", reason=growth.reason)], attention=stage)
    dim, scale, modes = prediction.training.attention_dim, prediction.training.init_scale, growth.topics - 1
    e_fold = growth.e_fold(dim)
    stage = AttentionStage(growth.sigma, min(modes, dim), e_fold)
    said = [
        f"The force on attention is then {growth.sigma:.6g} times the projector on {modes} topic contrasts: key and "
        f"query grow by e in time {e_fold:.5g}."
    ]
    if dim < modes:
        return prediction.more(said, [passed("few-dimensions", dim=dim, modes=modes)], attention=stage)
    first, leaving, gain = growth.expected_start(dim, scale), escape_rate(growth, dim), gain_by_half_time(growth, dim)
    unknown = no_half_time(growth, first, scale, topic, e_fold, gain)
    stage = replace(
        stage,
        l_star=growth.l_star,
        alpha_star=growth.alpha_star,
        plateau_norm=growth.plateau_norm(dim),
        constant=growth.constant(dim),
        half_time=None if unknown else growth.half_time(dim, first),
        loss=growth.loss(growth.l_star),
        third_act_rate=leaving,
        third_act_gain=gain,
        third_act_time=None if unknown else third_act_time(growth, dim, scale),
    )
    said += [
        f"They end on a plateau: norm {stage.plateau_norm:.5g}, {modes} equal singular values, {growth.alpha_star:.4g} "
        f"times as much attention to a word of the same topic, loss {stage.loss:.5f}.",
        f"They are half-way at {e_fold:.5g} ln({stage.constant:.4g} / s)"
        + (
            "."
            if stage.half_time is None
            else f" = {stage.half_time:.5g}, {stage.half_time * 2 * topic.eigenvalue / math.log(2):.4g} times as late "
            "as contrasts in W_V."
        )
        + " s is the scale of the start.",
    ]
    if leaving > 0:
        said.append(third_act_sentence(leaving, gain, scale, stage.third_act_time))
        if not unknown and stage.third_act_time is None:
            unknown = passed("early-third-act")
    return prediction.more(said, [unknown] if unknown else [], attention=stage)


def third_act_sentence(leaving: float, gain: float, scale: float, time: float | None) -> str:
    reached = math.log(scale) + gain if scale > 0 else -math.inf
    if reached > EARLY:
        then = "From this start they are not small then: the norms rise past the plateau without resting there"
        then += ", and half-way comes 2% to 20% earlier." if reached > 0 else "."
    elif time is None:
        then = "They show before the plateau is reached."
    else:
        then = f"In W_V their norm is {SHOWS:g} near time {time:.5g} (measured: up to 16% earlier)."
    return (
        "The plateau is a saddle, which training leaves again (the third act): on it differences inside topics "
        f"grow by e in time {1 / leaving:.5g}; when key and query are half-way they have grown by exp({gain:.3g}). "
        f"{then}"
    )


def no_half_time(growth: Growth, first: float, scale: float, topic: Mode, e_fold: float, gain: float) -> str | None:
    limits = (
        (scale == 0, "zero-start"),
        (scale > LARGEST_SCALE, "large-start"),
        (first >= growth.l_star / 4, "above-plateau"),
        (2 * topic.eigenvalue * e_fold < APART, "slow-value"),
        (scale > 0 and math.log(scale) + gain > OVERTAKEN, "overtaken"),
    )
    numbers = {"scale": scale, "gain": gain, "largest": LARGEST_SCALE}
    return next((passed(code, **numbers) for beyond, code in limits if beyond), None)
