"""What `dynamics` returns: when value, then key and query are learnt, in time and in steps, and what is not covered.

`LIMITS` says what the laws of the stages cover, and why a limit is one (`topicscope list laws`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import Result, arrow_table
from topicscope.theory.clocks import AdamClock, EmbeddingClock, MaskFirst
from topicscope.theory.forces import Loss
from topicscope.theory.growth import Growth
from topicscope.theory.value_optimum import Mode, ValueOptimum

if TYPE_CHECKING:
    import pyarrow

Optimizer = Literal["flow", "sgd", "adam"]
Embedding = Literal["one-hot", "trained"]
OPTIMIZERS: tuple[Optimizer, ...] = ("flow", "sgd", "adam")
EMBEDDINGS: tuple[Embedding, ...] = ("one-hot", "trained")
LOSSES: tuple[Loss, ...] = ("squared", "cross-entropy")


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
        >>> from topicscope.theory import Setting, dynamics
        >>> training = dynamics(Setting.of(4, 3, 2), optimizer="sgd", lr=0.1).training
        >>> training.optimizer, training.lr, training.attention_dim, training.init_scale  # d_a is T v + 1 by default
        ('sgd', 0.1, 13, 0.001)
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
        """What Adam's clocks need beside the rate and the noise of batches."""
        return {
            name: getattr(self, name) for name in ("attention_dim", "init_scale", "eps", "loss_scale", "output_bias")
        }


@dataclass(frozen=True)
class ValueStage:
    """How fast W_V learns topics. None: not known.

    Attributes:
        rate: W_V nears its optimum on topic contrasts as exp(-rate t): twice the eigenvalue.
        half_time: ln 2 / rate.
        modes: Parts of W* in the order of learning.

    Example:
        >>> from topicscope.theory import Setting, dynamics
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
        >>> from topicscope.theory import Setting, dynamics
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
        >>> from topicscope.theory import Setting, dynamics
        >>> steps = dynamics(Setting.of(4, 3, 2), optimizer="sgd", lr=0.1).steps
        >>> round(steps.value)  # half-time / lr
        167
    """

    value: float | None
    attention: float | None


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
"""By stage and quantity. Time is learning rate x steps."""


def number(value: float | None) -> float | None:
    return None if value is None else float(value)


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
        >>> import numpy as np
        >>> from topicscope.theory import Setting, dynamics
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
        """The numbers of each stage, with their meanings; gradient flow has no steps."""
        steps = {} if self.steps is None else vars(self.steps)
        stages = {"value": vars(self.value), "attention": vars(self.attention), "steps": steps}
        return [
            {"stage": stage, "quantity": name, "value": number(stages[stage][name]), "meaning": meaning}
            for (stage, name), meaning in MEANINGS.items()
            if name in stages[stage]
        ]

    def table(self) -> pyarrow.Table:
        return arrow_table(self.rows())

    def _about(self) -> str:
        world = ", ".join(f"{key} {value}" for key, value in self.world.items() if key != "prior")
        return f"{world}, {self.training.optimizer}"

    def norms(self, times: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
        """Expected Frobenius norms of value and key under flow, from N(0, s^2) entries; query is as key.

        One-hot words and squared loss. Parts of a matrix that are never learnt keep their start. Key is left out where
        its growth is not known.
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
        """With other parts, more sentences, and more reasons why something is not covered."""
        said, not_covered = (*self.sentences, *sentences), (*self.not_covered, *reasons)
        return replace(self, sentences=said, not_covered=not_covered, **parts)

    def without_steps(self, reason: str) -> Dynamics:
        return self.more(reasons=[reason], steps=Steps(None, None))


class Limit(NamedTuple):
    """What is covered, and the reason where it is not, with places for numbers."""

    covers: str
    reason: str


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
        "a start above 0",
        "the half-time of key and query, at init_scale = 0: they stay at zero, an unstable balance",
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
"""By code. Each stage has some of them: see `laws.LAWS`."""


def passed(code: str, **numbers: object) -> str:
    """The reason where a limit is passed."""
    return LIMITS[code].reason.format(**numbers)
