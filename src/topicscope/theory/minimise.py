"""The best topic-wise attention: a coarse grid gives the starts, L-BFGS-B on (log alpha, log beta) goes on from
there.

The gradient is a complex step's, exact to rounding. A minimum at the edge (alpha or beta to 0 or to infinity) is
reported as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from topicscope.ground import one_thread
from topicscope.theory.attention_loss import Convention, Numbers, attention_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import ValueMatrix

LOW, HIGH = math.log(1e-9), math.log(1e12)  # range of log alpha and log beta that is searched
GRID = 97  # points of the coarse grid in each direction
STARTS = 8  # how many of the grid's local minima are followed up, the lowest first; of a plateau only one
NOTHING, CLOSE = 1e-13, 1e-9
"""Differences of the loss up to these are rounding, and what the lower end in place of alpha or beta = 0 may cause."""

Point = Float[np.ndarray, "2"]  # log alpha, log beta


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


@dataclass(frozen=True)
class Problem:
    """The loss to minimise over (log alpha, log beta). Where only gamma matters (Remark 5), beta follows alpha."""

    loss: Callable[[Numbers, Numbers], Numbers]
    one_word: bool  # a topic has no other word that alpha could be given to
    only_gamma: bool

    def value(self, log: Point) -> tuple[float, Point]:
        """Loss and gradient: f(x + ih) = f(x) + ih f'(x) + O(h^2), without the cancellation of differences."""
        a, b, h = math.exp(log[0]), math.exp(log[1]), 1e-30
        by_alpha, by_beta = self.loss(complex(a, a * h), complex(b)), self.loss(complex(a), complex(b, b * h))
        return by_alpha.real, np.array([by_alpha.imag, by_beta.imag]) / h

    def height(self, log: Point) -> float:
        return self.value(log)[0]

    def at(self, log: Point) -> tuple[float, float, float]:
        """alpha, beta and loss; the lower end of the range stands for 0."""
        alpha, beta = (0.0 if x == LOW else math.exp(x) for x in log)
        return alpha, beta, self.loss(complex(alpha), complex(beta)).real

    def starts(self) -> list[Point]:
        """Local minima of a coarse grid, the lowest first: cells that no neighbour undercuts."""
        axis = np.exp(np.linspace(LOW, HIGH, GRID))
        searched = np.eye(GRID, dtype=bool) if self.only_gamma else True
        grid = np.where(searched, self.loss(axis[:, None], axis), np.inf)
        near = np.lib.stride_tricks.sliding_window_view(np.pad(grid, 1, constant_values=np.inf), (3, 3)).min((2, 3))
        flat = np.flatnonzero(grid <= near)
        levels: dict[float, int] = {}  # cells of one height are one plateau
        for i in flat[np.argsort(grid.ravel()[flat], kind="stable")]:
            levels.setdefault(round(float(grid.ravel()[i]), 8), int(i))
        return [np.log([axis[i // GRID], axis[i % GRID]]) for i in list(levels.values())[:STARTS]]

    def descend(self, start: Point) -> Point:
        from scipy.optimize import minimize  # a quarter of a second that training does not need

        end = minimize(
            self.value,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(LOW, HIGH)] * 2,
            options={"maxiter": 200, "ftol": 1e-15, "gtol": 1e-12},
        )
        return min((start, end.x), key=self.height)

    def look_along(self, point: Point) -> Point:
        """The lowest point on the lines through `point` along the axes: beside a plateau, which has no slope, may be
        a dip.
        """
        line = np.linspace(LOW, HIGH, 1001)
        candidates = [np.stack([line, np.full_like(line, point[1])]), np.stack([np.full_like(line, point[0]), line])]
        points = np.exp(np.concatenate(candidates, axis=1))
        return np.log(points[:, np.argmin(self.loss(*points))])

    def minimum(self) -> Point:
        best = min(map(self.descend, self.starts()), key=self.height)
        for _ in range(3):
            again = self.descend(self.look_along(best))
            if not self.height(again) < self.height(best) - 1e-14:
                break
            best = again
        return best

    def at_edges(self, point: Point) -> tuple[list[str], Point]:
        """What runs to 0 or infinity at no cost that a float shows, and the minimum moved all the way there."""
        lowest = self.height(point)
        if self.height(np.zeros(2)) <= lowest + NOTHING:  # attention does not matter: any point would do
            return ["flat: no attention is better than uniform"], np.zeros(2)
        log, edges = np.full(2, point[0]) if self.only_gamma else point, []
        for i, (name, fixed) in enumerate((("alpha", self.one_word), ("beta", self.only_gamma))):
            for end, words in () if fixed else ((LOW, f"{name} -> 0"), (HIGH, f"{name} -> infinity")):
                there = np.where(np.arange(2) == i, end, log)
                if self.height(there) <= lowest + NOTHING and self.at(there)[2] <= lowest + CLOSE:
                    edges.append(words)
                    log = there
                    break
        if not edges and all(self.height(log + shift) <= lowest + NOTHING for shift in (-1.0, 1.0)):
            edges = ["only alpha / beta matters"]
            log = log - log.max() if LOW in log else log  # away from the end that stands for 0
        return edges, log


@one_thread()
def best_attention(
    setting: Setting, kind: ValueMatrix, convention: Convention = "exact", *, cap: bool = False
) -> Optimum:
    """Minimise `attention_loss` over alpha and beta."""
    only_gamma = kind == "blocks" and convention == "paper"  # Remark 5

    def loss(alpha: Numbers, beta: Numbers) -> Numbers:
        return attention_loss(setting, kind, alpha, alpha if only_gamma else beta, convention, cap=cap)

    problem = Problem(loss, setting.v == 1, only_gamma)
    edges, log = problem.at_edges(problem.minimum())
    alpha, beta, lowest = problem.at(log)
    return Optimum(alpha, beta, setting.gamma(alpha, beta), lowest, ", ".join(edges) or None, only_gamma)
