"""The objective (eqs 1 to 4): what a prediction costs, and the L2 penalty with its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from jaxtyping import Float, Int
from pydantic import Field

from topicscope.ground import section

if TYPE_CHECKING:
    from torch import Tensor

Rate = Annotated[float, Field(ge=0)]
Loss = Literal["cross-entropy", "squared", "squared-mean"]


@section
class Objective:
    """The loss and the L2 penalty.

    `loss` is 'cross-entropy' (eq 4), 'squared' summed over the V outputs (eq 3), or 'squared-mean' averaged over them
    (the authors' code). `l2` is lambda of eq 2: a number for all trained parts, or {part: number} for those named.
    """

    loss: Loss = "cross-entropy"
    l2: Rate | dict[str, Rate] = 0.0

    def penalties(self, trained: tuple[str, ...]) -> dict[str, float]:
        """lambda of each trained part that has one."""
        named = self.l2 if isinstance(self.l2, dict) else dict.fromkeys(trained, self.l2)
        return {part: rate for part, rate in named.items() if rate > 0}


def value_and_slope(
    loss: Loss,
    output: Float[Tensor, "E R V"],
    weight: Float[Tensor, "E R 1"],
    target: Int[Tensor, " E*P"],
    target_weight: Float[Tensor, " E*P"],
) -> tuple[Float[Tensor, " E"], Float[Tensor, "E R V"]]:
    """Loss of each model, and its derivative by the outputs. The targets are sparse: a row wants a few words out of V.

    Overwrites `output`.
    """
    models, _, vocabulary = output.shape
    if loss == "cross-entropy":
        output = output.log_softmax(-1)
        wanted = output.view(-1).index_select(0, target)
        value = -(wanted * target_weight).view(models, -1).sum(1)
        slope = output.exp_().mul_(weight)
        slope.view(-1).index_add_(0, target, target_weight, alpha=-1)
        return value, slope
    scale = 1 / vocabulary if loss == "squared-mean" else 1.0
    wanted = output.view(-1).index_select(0, target)
    slope = output * weight
    # sum_w y_w |f - e_w|^2 = (sum_w y_w) |f|^2 - 2 sum_w y_w f_w + sum_w y_w
    value = (slope * output).sum((1, 2)) + (target_weight * (1 - 2 * wanted)).view(models, -1).sum(1)
    slope.view(-1).index_add_(0, target, target_weight, alpha=-1)
    return value.mul_(scale), slope.mul_(2 * scale)
