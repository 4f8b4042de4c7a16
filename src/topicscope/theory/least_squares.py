"""The exact optimum of a data set under uniform attention and squared loss: a (ridge) least-squares problem.

The prediction for a document is U x, x the word distribution that it shows, wanted is the mean y of the one-hot true
words:
    loss = mean_b |U x_b + c - y_b|^2 + mean_b (1 - |y_b|^2)  (up to the factor 1 / V of 'squared-mean'). Without
ridge the solution of least norm is taken: Theorem 2's limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.world import Rows


@dataclass(frozen=True)
class UniformOptimum:
    """U and c of the best prediction U x + c, and what it costs."""

    matrix: Float[np.ndarray, "V V"]
    bias: Float[np.ndarray, " V"]
    loss: float  # without the penalty
    objective: float  # with it


def uniform_optimum(
    batches: Iterable[Rows], *, ridge: float = 0.0, bias: Float[np.ndarray, " V"] | None = None, free_bias: bool = False
) -> UniformOptimum:
    """Least squares over batches made with `uniform=True`.

    `bias` fixes c (default 0); `free_bias` fits it, without penalty.

    The loss is the sum over outputs. For 'squared-mean' give V * ridge and divide both results by V.
    """
    shown, wanted, spread, sizes = [], [], 0.0, []
    for rows in batches:
        documents, vocabulary = rows.context.shape
        y = (
            np.bincount(rows.target, weights=rows.target_weight, minlength=documents * vocabulary).reshape(
                documents, vocabulary
            )
            * documents
        )
        shown.append(rows.context.astype(float))
        wanted.append(y)
        spread += float((1 - (y**2).sum(1)).sum())
        sizes.append(documents)
    x, y, total = np.concatenate(shown), np.concatenate(wanted), sum(sizes)
    fixed = np.zeros(x.shape[1]) if bias is None else bias
    design = np.hstack([x, np.ones((total, 1))]) if free_bias else x
    scale = 1 / np.sqrt(total)
    penalty = np.sqrt(ridge) * np.eye(x.shape[1], design.shape[1])
    left = np.vstack([design * scale, penalty]) if ridge > 0 else design * scale
    right = np.vstack([(y - fixed) * scale, np.zeros((x.shape[1], y.shape[1]))]) if ridge > 0 else (y - fixed) * scale
    solution = np.linalg.lstsq(left, right, rcond=1e-11)[0].T
    matrix = solution[:, : x.shape[1]]
    c = fixed + solution[:, -1] if free_bias else fixed
    loss = float(((x @ matrix.T + c - y) ** 2).sum() + spread) / total
    return UniformOptimum(matrix, c, loss, loss + ridge * float((matrix**2).sum()))
