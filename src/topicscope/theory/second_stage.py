"""The second stage: W_V is frozen at an optimum of the first, attention is trained; the best one and the theorem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from topicscope.ground import (
    InputError,
)
from topicscope.theory.attention_loss import Convention, Optimum, attention_loss, best_attention
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import AttentionTheorem, ValueMatrix, assumptions, strain
from topicscope.theory.theorem3 import theorem3
from topicscope.theory.theorem5 import theorem5

THEOREMS: dict[ValueMatrix, Callable[[Setting], AttentionTheorem]] = {"blocks": theorem3, "diagonal": theorem5}
ONLY_GAMMA, UNDEFINED = (
    "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; alpha = beta is shown.",
    "Theorem 5's bounds are not defined for so small a v.",
)


@dataclass(frozen=True)
class SecondStage:
    """The second stage: the best attention where W_V is frozen, and what the theorem says of it.

    Attributes:
        setting: T, v, tau and masking.
        value_matrix: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper'.
        cap: Whether predictions are capped at 1.
        optimum: The best attention.
        uniform_loss: Loss of uniform attention.
        theorem: The bounds; None where v is too small for Theorem 5.

    Example:
        See `second_stage`.
    """

    setting: Setting
    value_matrix: ValueMatrix
    convention: Convention
    cap: bool
    optimum: Optimum
    uniform_loss: float
    theorem: AttentionTheorem | None

    @property
    def inside(self) -> bool | None:
        """Whether the theorem's bounds contain the best attention."""
        return None if self.theorem is None else self.theorem.contains(self.optimum.alpha, self.optimum.beta)

    def as_dict(self) -> dict[str, Any]:
        best = self.optimum
        return {
            "value_matrix": self.value_matrix,
            "convention": self.convention,
            "cap": self.cap,
            "settings": self.setting.as_dict(),
            "minimum": {"alpha": best.alpha, "beta": best.beta, "gamma": best.gamma, "loss": best.loss},
            "edge": best.edge,
            "only_gamma": best.only_gamma,
            "uniform_loss": self.uniform_loss,
            "bounds": None if self.theorem is None else self.theorem.flat_bounds(),
            "inside_bounds": self.inside,
            "assumptions_strained": assumptions(self.setting),
        }

    def summary(self) -> list[str]:
        best = self.optimum
        return [
            *([f"Where the minimum lies: {best.edge}."] if best.edge else []),
            *([ONLY_GAMMA] if best.only_gamma else []),
            *([UNDEFINED] if self.theorem is None else self.theorem.says_of(best.alpha, best.beta)),
            *strain(self.setting),
        ]


def second_stage(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool | None = None,
    theorem: Callable[[Setting], AttentionTheorem] | None = None,
) -> SecondStage:
    """The best attention where W_V is frozen at an optimum of the first stage, against the theorem.

    Args:
        setting: T, v, tau and masking.
        value_matrix: W_V: 'blocks' (Theorem 2) or 'diagonal' (Definition 2).
        convention: 'exact' or 'paper'; see `attention_loss`.
        cap: Predict min(prediction, 1); None: only for the diagonal W_V in the paper's convention, as Figure 7 does.
        theorem: Computes the bounds; None: Theorem 3 for the blocks, Theorem 5 for the diagonal.

    Returns:
        The best attention, its loss, and whether the bounds contain it.

    Example:
        >>> stage = second_stage(Setting.of(), "blocks")
        >>> round(stage.optimum.alpha, 2), round(stage.uniform_loss, 6), stage.inside
        (7.67, 0.966667, True)
    """
    capped = (value_matrix == "diagonal" and convention == "paper") if cap is None else cap
    optimum = best_attention(setting, value_matrix, convention, cap=capped)
    bounds: AttentionTheorem | None = None
    try:
        bounds = (theorem or THEOREMS[value_matrix])(setting)
    except InputError:
        if setting.v == 1:  # above that v may be too small for lambda4, but the loss is defined
            raise
    uniform = attention_loss(setting, value_matrix, 1.0, 1.0, convention, cap=capped)
    return SecondStage(setting, value_matrix, convention, capped, optimum, float(uniform), bounds)
