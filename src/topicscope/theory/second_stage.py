"""The second stage: W_V is frozen at an optimum of the first, attention is trained.

The best attention against the theorem.

>>> stage = second_stage(Setting.of(), "blocks")
>>> round(stage.optimum.alpha, 2), round(stage.optimum.loss, 6), stage.inside
(7.67, 0.96177, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from topicscope.ground import InputError
from topicscope.theory.attention_loss import Convention, Entries, attention_loss
from topicscope.theory.minimise import Optimum, best_attention
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import AttentionTheorem, ValueMatrix, assumptions, strain
from topicscope.theory.theorem3 import theorem3
from topicscope.theory.theorem5 import theorem5

THEOREMS: dict[ValueMatrix, Callable[[Setting], AttentionTheorem]] = {"blocks": theorem3, "diagonal": theorem5}
"""The theorem on the best attention for each frozen W_V."""


@dataclass(frozen=True)
class SecondStage:
    """The best attention, the loss of uniform attention, and the theorem; None where v is too small for Theorem 5."""

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
        best, lines = self.optimum, []
        if best.edge:
            lines.append(f"Where the minimum lies: {best.edge}.")
        if best.only_gamma:
            lines.append(
                "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; "
                "alpha = beta is shown."
            )
        if self.theorem is None:
            lines.append("Theorem 5's bounds are not defined for so small a v.")
        else:
            lines += self.theorem.says_of(best.alpha, best.beta)
        return lines + strain(assumptions(self.setting))


def second_stage(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool | None = None,
    theorem: Callable[[Setting], AttentionTheorem] | None = None,
) -> SecondStage:
    """`cap` predicts min(prediction, 1); by default only for the diagonal W_V in the paper's convention, as Figure 7
    does.

    `theorem` computes the bounds; by default Theorem 3's for the blocks and Theorem 5's for the diagonal.
    """
    capped = (value_matrix == "diagonal" and convention == "paper") if cap is None else cap
    optimum = best_attention(setting, value_matrix, convention, cap=capped)
    bounds: AttentionTheorem | None = None
    try:
        bounds = (theorem or THEOREMS[value_matrix])(setting)
    except InputError:
        if setting.v == 1:  # above that v may be too small for lambda4, but the loss is defined
            raise
    uniform = attention_loss(setting, Entries.of(value_matrix, setting), 1.0, 1.0, convention, cap=capped)
    return SecondStage(setting, value_matrix, convention, capped, optimum, float(uniform), bounds)
