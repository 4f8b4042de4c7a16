"""The best topic-wise attention: a coarse grid finds where to start, L-BFGS-B on (log alpha, log beta) goes on from there.

The gradient is a complex step's, exact to rounding. A minimum at the edge (alpha or beta to 0 or to infinity) is reported as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import one_thread
from topicscope.theory.attention_loss import Convention, Entries, ValueMatrix, attention_loss
from topicscope.theory.setting import Setting

SMALLEST, LARGEST = 1e-9, 1e12
"""Range of alpha and beta that is searched."""

STARTS = 8
"""How many of the grid's local minima are followed up, the lowest first; of a plateau only one."""


@dataclass(frozen=True)
class Optimum:
    """The minimiser. `edge` names what runs to 0 or infinity, or in which direction the loss is flat.

    `only_gamma`: alpha and beta are one of many pairs with this gamma.
    """

    alpha: float
    beta: float
    gamma: float
    loss: float
    edge: str | None
    only_gamma: bool


@one_thread()
def best_attention(
    setting: Setting, kind: ValueMatrix, convention: Convention = "exact", *, cap: bool = False
) -> Optimum:
    """Minimise `attention_loss` over alpha and beta."""
    from scipy.optimize import minimize  # a quarter of a second that training does not need

    entries = Entries.of(kind, setting)
    only_gamma = kind == "blocks" and convention == "paper"  # Remark 5
    no_alpha = setting.v == 1  # there is no other word in the topic

    def loss_at(alpha: complex, beta: complex) -> complex:
        return complex(attention_loss(setting, entries, alpha, alpha if only_gamma else beta, convention, cap=cap))

    def value(log: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient: f(x + ih) = f(x) + ih f'(x) + O(h^2), without the cancellation of differences."""
        a, b, h = math.exp(log[0]), math.exp(log[1]), 1e-30
        by_alpha, by_beta = loss_at(complex(a, a * h), complex(b)), loss_at(complex(a), complex(b, b * h))
        return by_alpha.real, np.array([by_alpha.imag, by_beta.imag]) / h

    low, high = math.log(SMALLEST), math.log(LARGEST)
    axis = np.exp(np.linspace(low, high, 97))
    grid = attention_loss(setting, entries, axis[:, None], axis, convention, cap=cap)
    if only_gamma:
        grid = np.where(np.eye(97, dtype=bool), grid, np.inf)

    def descend(start: np.ndarray) -> tuple[float, np.ndarray]:
        found = minimize(
            value,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(low, high)] * 2,
            options={"maxiter": 200, "ftol": 1e-15, "gtol": 1e-12},
        )
        return min(((value(point)[0], point) for point in (start, found.x)), key=lambda pair: pair[0])

    def look_along(point: np.ndarray) -> np.ndarray:
        """The lowest point on the two lines through `point` along the axes: a plateau has no slope, but may have a dip beside it."""
        line = np.linspace(low, high, 1001)
        candidates = [np.stack([line, np.full_like(line, point[1])]), np.stack([np.full_like(line, point[0]), line])]
        alphas, betas = np.exp(np.concatenate(candidates, axis=1))
        losses = attention_loss(setting, entries, alphas, alphas if only_gamma else betas, convention, cap=cap)
        return np.log([alphas[np.argmin(losses)], betas[np.argmin(losses)]])

    best: tuple[float, np.ndarray] | None = None
    for flat in local_minima(grid)[:STARTS]:
        here = descend(np.log([axis[flat // 97], axis[flat % 97]]))
        best = here if best is None or here[0] < best[0] else best
    for _ in range(3):
        assert best is not None
        again = descend(look_along(best[1]))
        if not again[0] < best[0] - 1e-14:
            break
        best = again
    assert best is not None
    edges = []
    log = best[1].copy()
    if only_gamma:
        log[1] = log[0]
    for i, name in enumerate(("alpha", "beta")):
        if (only_gamma and i == 1) or (no_alpha and i == 0):
            continue
        # at an edge when going all the way there costs nothing that a float can tell
        for end, words in ((low, f"{name} -> 0"), (high, f"{name} -> infinity")):
            there = log.copy()
            there[i] = end
            if value(there)[0] <= best[0] + 1e-13:
                edges.append(words)
                log = there
                break
    flat = value(np.zeros(2))[0] <= best[0] + 1e-13
    if flat:  # attention does not matter: say so instead of naming one of many points
        edges, log = ["flat: no attention is better than uniform"], np.zeros(2)
    elif not edges and all(value(log + shift)[0] <= best[0] + 1e-13 for shift in (-1.0, 1.0)):
        edges = ["only alpha / beta matters"]
    alpha, beta = (0.0 if x == low else math.exp(x) for x in log)
    loss = loss_at(complex(alpha), complex(beta)).real
    return Optimum(alpha, beta, setting.gamma(alpha, beta), loss, ", ".join(edges) or None, only_gamma)


def local_minima(grid: Float[np.ndarray, "n n"]) -> list[int]:
    """Flat indices of the cells that no neighbour undercuts, lowest first."""
    padded = np.pad(grid, 1, constant_values=np.inf)
    near = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).min((2, 3))
    flat = np.flatnonzero(grid <= near)
    levels: dict[float, int] = {}  # cells of one height are one plateau
    for i in flat[np.argsort(grid.ravel()[flat], kind="stable")]:
        levels.setdefault(round(float(grid.ravel()[i]), 8), int(i))
    return list(levels.values())
