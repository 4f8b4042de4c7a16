"""What `dynamics` returns: when value, then key and query are learnt, in time and in steps, and what is not covered."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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
    """How the model is trained: what the dynamics depend on beside the world."""

    attention_dim: int
    init_scale: float
    loss: Loss = "squared"
    embedding: Embedding = "one-hot"
    width: int | None = None  # of a trained embedding
    optimizer: Optimizer = "flow"
    lr: float | None = None
    eps: float = 1e-8
    loss_scale: float = 1.0  # the loss is multiplied by it: 1 / V where outputs are averaged
    batch_noise: float = 1.0  # |mean| / rms of a batch's gradient: 1 for full batches
    output_bias: bool = False


@dataclass(frozen=True)
class ValueStage:
    """How fast W_V learns topics. None: not known."""

    rate: float | None  # W_V nears its optimum on topic contrasts as exp(-rate t): twice the eigenvalue
    half_time: float | None
    modes: tuple[Mode, ...]

    def as_dict(self) -> dict[str, Any]:
        modes = [mode.as_dict() | {"rate": 2 * mode.eigenvalue} for mode in self.modes]
        return {"rate": self.rate, "half_time": self.half_time, "modes": modes}


@dataclass(frozen=True)
class AttentionStage:
    """When key and query rise, under gradient flow. None: not known."""

    sigma: float | None = None  # force on topic contrasts once W_V is learnt (R2)
    rank: int | None = None  # number of modes that grow
    e_fold: float | None = None
    l_star: float | None = None  # scores on the plateau: l* times the projector on topic contrasts
    alpha_star: float | None = None  # attention to a word of the same topic over that to one of another
    plateau_norm: float | None = None
    constant: float | None = None  # c of t50 = e_fold ln(c / s)
    half_time: float | None = None
    loss: float | None = None  # on the plateau
    third_act_rate: float | None = None  # at which differences inside topics grow on the plateau: it is a saddle
    third_act_gain: float | None = None  # e-folds by which they have grown at the half-time
    third_act_time: float | None = None  # when they show in W_V on the plateau: a norm of .1


@dataclass(frozen=True)
class Steps:
    """Half-times in steps of the optimiser. None: not known."""

    value: float | None
    attention: float | None


@dataclass(frozen=True, repr=False)
class Dynamics(Result):
    """The prediction. `best` has W_V(t), `growth` the growth of attention where it is known."""

    kind: ClassVar[str] = "dynamics"

    world: dict[str, Any]
    training: Training
    value: ValueStage
    attention: AttentionStage
    steps: Steps | None  # None under gradient flow
    sentences: tuple[str, ...]
    not_covered: tuple[str, ...]
    best: ValueOptimum
    growth: Growth | None
    adam: AdamClock | None = None
    mask_first: MaskFirst | None = None
    trained_embedding: EmbeddingClock | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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

    def rows(self) -> list[dict[str, Any]]:
        """One per quantity: its stage, its name, its value."""
        rows = [("value", name, value) for name, value in self.value.as_dict().items() if name != "modes"]
        rows += [("attention", name, value) for name, value in asdict(self.attention).items()]
        rows += [("steps", name, value) for name, value in ({} if self.steps is None else asdict(self.steps)).items()]
        return [
            {"stage": stage, "quantity": name, "value": None if value is None else float(value)}
            for stage, name, value in rows
        ]

    def table(self) -> pyarrow.Table:
        """One row per quantity."""
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
        found = {"value": np.sqrt(np.sum(squares, 0))}
        if self.growth is not None and self.attention.half_time is not None:
            growth, dim = self.growth, self.training.attention_dim
            ell = growth.course(times, dim, growth.expected_start(dim, self.training.init_scale))
            modes = growth.topics - 1
            apart = np.exp(-2 * growth.sigma * times / math.sqrt(dim)) / 2  # W_K - W_Q dies out in the modes
            rest = s2 * dim * (size - modes + modes * apart)
            found["key"] = np.sqrt(math.sqrt(dim) * modes * ell + rest)
        return found

    def changed(self, **parts: Any) -> Dynamics:
        return replace(self, **parts)
