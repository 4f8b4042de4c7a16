"""The exact loss of topic-wise attention: for any value matrix, and for those of the first stage at any finite size.

Words that stand in the same relation to the document and to the word shown get the same prediction, so a handful of
numbers is the whole loss, whatever T and v. Two conventions for [MASK], because finite-size numbers differ:

- 'exact': [MASK] is a word of its own topic. It attends itself with beta and all else with 1, and is attended with 1.
- 'paper': as in Appendix D (F): words share the whole attention among themselves (z1, z2 leave [MASK] out), while the
  prediction q(x) = x / k - p_m p_r / (k T v) counts on the share that [MASK] has under uniform attention. Only
  positions that show a word are counted, and the loss is divided by their share p_c + p_r, as in Figures 7 and 8.

A minimum at the edge (alpha or beta to 0 or to infinity) is reported as such.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from topicscope.ground import (
    FORCE_NEEDS_OUT,
    InputError,
    Kind,
    Result,
    files,
    folders,
    load_settings,
    one_thread,
    open_folder,
    refuse_if,
)
from topicscope.theory.theorem import AttentionTheorem, Setting, ValueMatrix, assumptions, strain
from topicscope.theory.theorem2 import theorem2
from topicscope.theory.theorem3 import theorem3, theorem5

if TYPE_CHECKING:
    import pyarrow
    from torch import Tensor


def population_loss(
    setting: Setting, matrix: Float[Tensor, "V V"], alpha: float = 1.0, beta: float = 1.0
) -> Float[Tensor, ""]:
    """The exact squared loss of any value matrix under topic-wise attention: infinite documents of tau topics.

    A bias b of every prediction is the same as b added to every column of W, since attention sums to 1.

    Args:
        setting: T, v, tau and masking.
        matrix: W_V (V x V), a tensor.
        alpha: Attention to another word of the same topic; 1 with beta = 1: uniform attention.
        beta: Attention to the same word.

    Returns:
        The loss, differentiable.

    Example:
        >>> import torch
        >>> setting = Setting.of(4, 3, 2)
        >>> round(float(population_loss(setting, torch.from_numpy(theorem2(setting).matrix()))), 6)  # 1 - 1 / (tau v)
        0.833333
    """
    s, topics, v, tau = setting, setting.T, setting.v, setting.tau
    p0, p1, p2 = s.p0, s.p1, s.p2
    alpha = 1.0 if v == 1 else alpha  # no other word in the topic: a large alpha would only cancel, and cost digits
    words, w0, columns, inner = topics * v, matrix[:, 0], matrix[:, 1:], matrix[1:, 1:]
    by_topic = columns.reshape(len(matrix), topics, v).sum(2)
    whole = by_topic.sum(1)
    square, topic_square, whole_square = columns.square().sum(), by_topic.square().sum(), whole.square().sum()
    cross = (whole_square - topic_square) / max(topics - 1, 1)  # sum_s W_s . (mean other topic)
    with_mask, mask_square = w0 @ whole, w0.square().sum()
    trace, total = inner.diagonal().sum(), inner.sum()
    block = inner.reshape(topics, v, topics, v).diagonal(dim1=0, dim2=2).sum()
    off = (total - block) / max(topics - 1, 1)
    document_sum = (block + (tau - 1) * off) / words  # mean over a word of the document of sum_{l in document} W_wl
    mask_entry, all_sum = matrix[1:, 0].sum() / words, total / words
    # W_wj and sum_{l in topic of j} W_wl: the true word w is j itself, another word of its topic, or of another topic
    # of the document
    entries = {
        "own": (trace / words, block / words),
        "same": ((block - trace) / (words * max(v - 1, 1)), block / words),
        "other": (off / (words * v), off / words),
    }

    # y = e e_j + topic 1_s + document 1_S + everywhere 1 + mask e_0 of a word j of topic s with share p; `here` and
    # `gone` other topics are in the document S and are not
    def attended(p: float, here: int, gone: int) -> tuple[float, float, float, float, float]:
        z = p * (beta + alpha * (v - 1)) + p1 * v * here + p2 * v * gone + p0
        return p * (beta - alpha) / z, p * (alpha - 1) / z, (p1 - p2) / z, p2 / z, p0 / z

    # E|W y|^2; the word j is of a topic of the document (`own`) or not
    def quadratic(e: float, topic: float, document: float, everywhere: float, mask: float, own: bool = True) -> Tensor:
        topic_document = (topic_square / topics if own else 0) + (tau - 1 if own else tau) * cross / topics
        document_square = tau * topic_square / topics + tau * (tau - 1) * cross / topics
        return (
            e**2 * square / words
            + topic**2 * topic_square / topics
            + document**2 * document_square
            + everywhere**2 * whole_square
            + 2 * e * topic * topic_square / words
            + 2 * (e / v + topic) * document * topic_document
            + 2 * (e / words + topic / topics + document * tau / topics) * everywhere * whole_square
            + mask**2 * mask_square
            + 2 * mask * (e / words + topic / topics + document * tau / topics + everywhere) * with_mask
        )

    # E (W y)_w for the true word w
    def linear(e: float, topic: float, document: float, everywhere: float, mask: float, relation: str) -> Tensor:
        word, in_topic = entries[relation]
        return e * word + topic * in_topic + document * document_sum + everywhere * all_sum + mask * mask_entry

    own, same, other, absent = s.shown_cases
    y = attended(p1, tau - 1, topics - tau)
    loss = (
        (own + same + other) * (quadratic(*y) + 1)
        - 2 * own * linear(*y, "own")
        - (2 * same * linear(*y, "same") if v > 1 else 0)
        - (2 * other * linear(*y, "other") if tau > 1 else 0)
    )
    if topics > tau:
        y = attended(p2, tau, topics - tau - 1)
        loss = loss + absent * (quadratic(*y, own=False) - 2 * linear(*y, "other") + 1)
    z = beta * p0 + 1 - p0
    y = (0.0, 0.0, (p1 - p2) / z, p2 / z, beta * p0 / z)
    return loss + s.masking.p_mask_word * (quadratic(*y) - 2 * linear(*y, "own") + 1)


# A float, a complex number (for derivatives by a complex step) or an array of either: only +, -, * and / are used.
Numbers = Any

Convention = Literal["exact", "paper"]  # how [MASK] is treated, see above

LOW, HIGH = math.log(1e-9), math.log(1e12)  # range of log alpha and log beta that is searched
COARSE = 97  # points of the coarse grid in each direction
# Differences of the loss up to these are rounding, and what the lower end in place of alpha or beta = 0 may cause.
NOTHING, CLOSE = 1e-13, 1e-9

Point = Float[np.ndarray, "2"]  # log alpha, log beta


def entries(kind: ValueMatrix, setting: Setting) -> tuple[float, float, float, float]:
    """W_ii, W_il inside a topic, W_il between topics and W_i0; row 0 is zero.

    'blocks': Theorem 2. 'diagonal': Definition 2, the diagonal member of Lemma 1's family, with u = 0.
    """
    refuse_if(kind not in ("blocks", "diagonal"), f"value matrix {kind!r}: expected blocks or diagonal")
    if kind == "diagonal":
        return setting.constants.c3, 0.0, 0.0, -setting.constants.c1
    blocks = theorem2(setting)
    return blocks.same_topic, blocks.same_topic, blocks.different_topic, blocks.mask_column


def attention_loss(
    setting: Setting,
    kind: ValueMatrix,
    alpha: Numbers,
    beta: Numbers,
    convention: Convention = "exact",
    *,
    cap: bool = False,
) -> Numbers:
    """The exact squared loss (eq 1, eq 3) of topic-wise attention, with W_V frozen at an optimum of the first stage.

    Args:
        setting: T, v, tau and masking.
        kind: W_V: 'blocks' (Theorem 2) or 'diagonal' (Definition 2).
        alpha: Attention to another word of the same topic, relative to one of another topic; numbers or arrays.
        beta: Attention to the same word; broadcast against `alpha`.
        convention: 'exact' treats [MASK] as a word of its own topic; 'paper' is that of Appendix D.
        cap: Predict min(prediction, 1), which Figure 7 needs and the text does not say.

    Returns:
        The loss for every (alpha, beta).

    Example:
        >>> [round(float(attention_loss(Setting.of(), "blocks", alpha, 1.0)), 6) for alpha in (1.0, 7.67)]
        [0.966667, 0.96177]
    """
    s, (diagonal, same_topic, different_topic, mask_column) = setting, entries(kind, setting)
    p0, p1, p2, tau, topics, v = s.p0, s.p1, s.p2, s.tau, s.T, s.v
    own, same, other, absent = s.shown_cases
    outside = p0 if convention == "exact" else 0.0
    inside = beta + alpha * (v - 1)
    expected = s.constants.c1 * p0  # p_m p_r / (k T v): the share of every prediction that random words cause

    # f_i = (W_ii - W_same) y_i + (W_same - W_diff) Y_topic + W_diff Y + W_i0 y_0
    def predict(y: Numbers, topic_sum: Numbers, all_words: Numbers, mask: Numbers) -> Numbers:
        rest = different_topic * all_words + mask_column * mask if convention == "exact" else -expected
        f = (diagonal - same_topic) * y + (same_topic - different_topic) * topic_sum + rest
        if cap and isinstance(f, complex):
            return 1.0 if f.real > 1 else f
        return np.minimum(f, 1.0) if cap else f

    # predictions for the word shown, of share p, its topic, the document's other topics, other absent topics; and |f|^2
    def word_shown(p: float, here: int, gone: int) -> tuple[list[Numbers], Numbers]:
        z = p * inside + p1 * v * here + p2 * v * gone + outside
        sums = ((beta * p, inside * p), (alpha * p, inside * p), (p1, v * p1), (p2, v * p2))
        f = [predict(y / z, topic / z, 1 - outside / z, outside / z) for y, topic in sums]
        return f, f[0] * f[0] + (v - 1) * f[1] * f[1] + v * here * f[2] * f[2] + v * gone * f[3] * f[3]

    f, total = word_shown(p1, tau - 1, topics - tau)  # z1: a word of the document
    loss = own * (total - 2 * f[0] + 1) + same * (total - 2 * f[1] + 1) + other * (total - 2 * f[2] + 1)
    if topics > tau:
        f, total = word_shown(p2, tau, topics - tau - 1)  # z2: a word of an absent topic
        loss = loss + absent * (total - 2 * f[2] + 1)
    if convention == "paper":
        return loss / (s.masking.p_correct + s.masking.p_random)

    # [MASK] is shown: predictions for the document's words and for the others
    z = beta * p0 + 1 - p0
    f = [predict(p / z, v * p / z, (1 - p0) / z, beta * p0 / z) for p in (p1, p2)]
    total = v * tau * f[0] * f[0] + v * (topics - tau) * f[1] * f[1]
    return loss + s.masking.p_mask_word * (total - 2 * f[0] + 1)


def asymptotic_loss(setting: Setting, kind: ValueMatrix, alpha: Numbers, beta: Numbers) -> Numbers:
    """The terms of the 'paper' loss that stay as T, tau and T/tau grow (Appendix D.3 and D.4), divided by p_c + p_r.

    The paper's last display for the blocks (eq F.26) has lost the factor v of the v words of an absent topic.

    Args:
        setting: T, v, tau and masking.
        kind: W_V: 'blocks' or 'diagonal'.
        alpha: Attention to another word of the same topic.
        beta: Attention to the same word.

    Returns:
        The loss for every (alpha, beta).

    Example:
        >>> round(float(asymptotic_loss(Setting.of(1000, 10, 100), "blocks", 1.0, 1.0)), 4)
        0.9989
    """
    s, m, c4 = setting, setting.masking, 1 / setting.masking.k
    inside = beta + alpha * (s.v - 1)
    z1 = inside + s.v * (s.tau - 1) + c4 * s.v * m.p_mask * m.p_random * s.tau  # z1 / p1 where p2 << p1
    z2 = s.p2 * inside + s.p1 * s.v * s.tau + s.p2 * s.v * (s.T - s.tau - 1)
    if kind == "blocks":
        here, there = c4 * inside / s.v / z1, c4 * s.p2 * inside / s.v / z2
        own, absent = (1 - here) ** 2 + (s.v - 1) * here**2, 1 + s.v * there**2
    else:
        own = (1 - c4 * beta / z1) ** 2 + (s.v - 1) * (c4 * alpha / z1) ** 2
        absent = 1 + (c4 * s.p2 * beta / z2) ** 2 + (s.v - 1) * (c4 * s.p2 * alpha / z2) ** 2
    return (m.p_correct * own + m.p_random * absent) / (m.p_correct + m.p_random)


@dataclass(frozen=True)
class Optimum:
    """The attention of least loss.

    Attributes:
        alpha: Attention to another word of the same topic.
        beta: Attention to the same word.
        gamma: (v - 1)/v alpha + beta/v, the mean attention inside a topic.
        loss: The loss there.
        edge: What runs to 0 or infinity, or in which direction the loss is flat; None: nothing does.
        only_gamma: Whether alpha and beta are one of many pairs with this gamma.

    Example:
        See `best_attention`.
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
        """The 8 lowest local minima of a coarse grid: cells that no neighbour undercuts, of a plateau only one."""
        axis = np.exp(np.linspace(LOW, HIGH, COARSE))
        searched = np.eye(COARSE, dtype=bool) | (not self.only_gamma)  # where only gamma matters, alpha = beta
        grid = np.where(searched, self.loss(axis[:, None], axis), np.inf)
        near = np.lib.stride_tricks.sliding_window_view(np.pad(grid, 1, constant_values=np.inf), (3, 3)).min((2, 3))
        flat = np.flatnonzero(grid <= near)
        levels: dict[float, int] = {}  # cells of one height are one plateau
        for i in flat[np.argsort(grid.ravel()[flat], kind="stable")]:
            levels.setdefault(round(float(grid.ravel()[i]), 8), int(i))
        return [np.log([axis[i // COARSE], axis[i % COARSE]]) for i in list(levels.values())[:8]]

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
        """The lowest point on the lines along the axes: beside a plateau, which has no slope, may be a dip."""
        line = np.linspace(LOW, HIGH, 1001)
        points = np.exp(np.hstack([[line, np.full_like(line, point[1])], [np.full_like(line, point[0]), line]]))
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
    """Minimise `attention_loss` over alpha and beta.

    Args:
        setting: T, v, tau and masking.
        kind: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper', as in `attention_loss`.
        cap: Predict min(prediction, 1).

    Returns:
        The minimiser and its loss.

    Example:
        >>> best = best_attention(Setting.of(), "blocks")
        >>> round(best.alpha, 2), round(best.loss, 6)
        (7.67, 0.96177)
    """
    only_gamma = kind == "blocks" and convention == "paper"  # Remark 5

    def loss(alpha: Numbers, beta: Numbers) -> Numbers:
        return attention_loss(setting, kind, alpha, alpha if only_gamma else beta, convention, cap=cap)

    problem = Problem(loss, setting.v == 1, only_gamma)
    edges, log = problem.at_edges(problem.minimum())
    alpha, beta, lowest = problem.at(log)
    return Optimum(alpha, beta, setting.gamma(alpha, beta), lowest, ", ".join(edges) or None, only_gamma)


THEOREMS: dict[ValueMatrix, Callable[[Setting], AttentionTheorem]] = {"blocks": theorem3, "diagonal": theorem5}
ONLY_GAMMA = (
    "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; alpha = beta is shown."
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
        return None if self.theorem is None else self.theorem.contains(self.optimum.alpha, self.optimum.beta)

    def as_dict(self) -> dict[str, object]:
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
            *(
                ["Theorem 5's bounds are not defined for so small a v."]
                if self.theorem is None
                else self.theorem.says_of(best.alpha, best.beta)
            ),
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


GRID, TABLE = "landscape.npz", "landscape.csv"
LANDSCAPE = Kind("landscape", 2, ("landscape.*",), (GRID, TABLE))


@dataclass(frozen=True)
class Landscape:
    """The loss on a grid: loss[i, j] at alpha[i] and beta[j].

    Attributes:
        alpha: Values of alpha (n).
        beta: Values of beta (n).
        loss: The losses (n x n).

    Example:
        >>> Landscape(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([[0.5, 0.9], [0.4, 0.8]])).minimum
        (2.0, 3.0, 0.4)
    """

    alpha: Float[np.ndarray, " n"]
    beta: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, "n n"]

    @property
    def minimum(self) -> tuple[float, float, float]:
        i, j = np.unravel_index(np.argmin(self.loss), self.loss.shape)
        return float(self.alpha[i]), float(self.beta[j]), float(self.loss[i, j])

    def points(self) -> dict[str, Float[np.ndarray, " n*n"]]:
        alpha, beta = np.meshgrid(self.alpha, self.beta, indexing="ij")
        return {"alpha": alpha.ravel(), "beta": beta.ravel(), "loss": self.loss.ravel()}


def landscape(
    setting: Setting,
    kind: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool = False,
    low: float = -4.0,
    high: float = 6.9,
    per_decade: int = 10,
) -> Landscape:
    """The loss of topic-wise attention on a grid; by default on the paper's axes, 10^-4 to 10^6.9 (Figures 7 and 8).

    Args:
        setting: T, v, tau and masking.
        kind: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper'.
        cap: Predict min(prediction, 1).
        low: Smallest exponent of 10.
        high: Largest exponent of 10.
        per_decade: Points per factor of ten.

    Returns:
        The grid.

    Example:
        >>> [round(x, 4) for x in landscape(Setting.of(), "blocks", low=0.0, high=2.0, per_decade=2).minimum]
        [10.0, 1.0, 0.9618]
    """
    axis = 10 ** (low + np.arange(round((high - low) * per_decade) + 1) / per_decade)
    return Landscape(axis, axis, attention_loss(setting, kind, axis[:, None], axis, convention, cap=cap))


@dataclass(frozen=True, repr=False)
class AttentionLandscape(Result):
    """The loss on a grid of attentions, and the second stage that it shows.

    Attributes:
        stage: The best attention, against the theorem.
        grid: The losses.
        folder: Where it was written, or None.

    Example:
        See `attention_landscape`.
    """

    kind: ClassVar[str] = LANDSCAPE.name

    stage: SecondStage
    grid: Landscape
    folder: Path | None = None

    def as_dict(self) -> dict[str, object]:
        alpha, beta, loss = self.grid.minimum
        place = {"alpha": alpha, "beta": beta, "gamma": self.stage.setting.gamma(alpha, beta), "loss": loss}
        return self.stage.as_dict() | {"grid_minimum": place}

    def summary(self) -> list[str]:
        return self.stage.summary()

    def table(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.table(self.grid.points())

    def _about(self) -> str:
        return f"{self.stage.value_matrix} W_V, {self.stage.setting.letters}, {self.stage.convention} convention"


def attention_landscape(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    draw: Callable[[AttentionLandscape, Path], object] | None = None,
) -> AttentionLandscape:
    """The landscape on the paper's grid, written to a folder where `out` names one.

    Args:
        setting: T, v, tau and masking.
        value_matrix: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper'.
        cap: As in `second_stage`.
        out: Folder for the results; None: nothing is written.
        force: Replace what topicscope wrote there.
        draw: Adds pictures to the folder before it is finished.

    Returns:
        The landscape.

    Raises:
        InputError: The folder is in use, or `force` is given without a folder.

    Example:
        >>> found = attention_landscape(Setting.of(), "blocks")
        >>> found.table().num_rows, round(found.grid.minimum[2], 5), round(found.stage.optimum.loss, 5)
        (12100, 0.96177, 0.96177)
    """
    refuse_if(force and out is None, FORCE_NEEDS_OUT)
    config = {"value_matrix": value_matrix, "convention": convention, "cap": cap, **setting.as_dict()}
    with nullcontext() if out is None else open_folder(out, LANDSCAPE, config, force=force) as folder:
        stage = second_stage(setting, value_matrix, convention, cap=cap)
        grid = landscape(setting, value_matrix, convention, cap=stage.cap)
        result = AttentionLandscape(stage, grid, None if folder is None else folder.path)
        if folder is not None:
            folder.begin()
            files.write_npz(folder.file(GRID), vars(grid))
            rows = [f"{a:.10g},{b:.10g},{x:.17g}\n" for a, b, x in zip(*grid.points().values(), strict=True)]
            files.write(folder.file(TABLE), "".join(["alpha,beta,loss\n", *rows]).encode())
            if draw is not None:
                draw(result, folder.place)
            folder.finish(result.as_dict())
        return result


def read_landscape(folder: str | os.PathLike[str]) -> AttentionLandscape:
    """Read the landscape in a folder. The minimum is computed again, from the settings stored there.

    Args:
        folder: The folder.

    Returns:
        The landscape.

    Raises:
        InputError: The folder holds no landscape, or is damaged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = attention_landscape(Setting.of(), "blocks", out=f"{folder}/blocks")
        ...     read_landscape(f"{folder}/blocks").stage.setting.letters
        'T = 10, v = 10, tau = 3'
    """
    path = Path(folder)
    folders.finished_about(path, LANDSCAPE)
    config = load_settings(path / folders.CONFIG, own=True)
    try:
        with np.load(path / GRID, allow_pickle=False) as stored:
            grid = Landscape(stored["alpha"], stored["beta"], stored["loss"])
        kind, convention, cap = (config.pop(key) for key in ("value_matrix", "convention", "cap"))
        stage = second_stage(Setting.of(**config), kind, convention, cap=cap)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())}); make it again (--force)") from None
    return AttentionLandscape(stage, grid, path)
