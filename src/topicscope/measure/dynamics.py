"""How a matrix moves during training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float

if TYPE_CHECKING:
    from torch import Tensor

ROTATION_SPAN = 10
"""Steps between the two matrices that the rotation compares (Figure 5)."""


def rotation(now: Float[Tensor, "*E n"], before: Float[Tensor, "*E n"]) -> Float[Tensor, "*E"]:
    """(1 - cos(now, before)) / 2, with matrices as vectors: 0 the same direction, 1/2 orthogonal, 1 opposite."""
    cosine = (now * before).sum(-1) / (now.norm(dim=-1) * before.norm(dim=-1))
    return (1 - cosine.clamp(-1, 1)) / 2
