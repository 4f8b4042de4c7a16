"""A certificate: a named claim, the settings, the error, the tolerance, holds or not; and what certificates compute
with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.theory.population import population_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import Matrix

EXACT = 1e-12
"""Tolerance of claims that hold up to rounding."""

Bias = Float[np.ndarray, " V"]


@dataclass(frozen=True)
class Certificate:
    """`should_hold` is False where the paper's assumptions fail: whether the claim still holds there is only
    reported.
    """

    claim: str
    settings: dict[str, Any]
    error: float
    tolerance: float
    should_hold: bool = True
    note: str = ""
    holds: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", bool(self.error <= self.tolerance))  # NaN does not hold


def relative(computed: Any, exact: Any) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(np.asarray(computed) - np.asarray(exact)).max() / np.abs(np.asarray(exact)).max())


def gradient(s: Setting, matrix: Matrix, bias: Bias | None = None) -> Matrix:
    """Gradient of the population loss under uniform attention."""
    import torch

    w = torch.tensor(matrix, requires_grad=True)
    loss = population_loss(s, w, bias=None if bias is None else torch.from_numpy(bias))
    (slope,) = torch.autograd.grad(loss, w)
    return slope.numpy()


def loss_of(s: Setting, matrix: Matrix, bias: Bias | None = None, alpha: float = 1.0, beta: float = 1.0) -> float:
    """Population loss of a value matrix under topic-wise attention."""
    import torch

    b = None if bias is None else torch.from_numpy(bias)
    return float(population_loss(s, torch.from_numpy(matrix), alpha, beta, b))
