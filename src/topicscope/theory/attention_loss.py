"""The exact loss of topic-wise attention at any finite size, when W_V is frozen at one of the first stage's optima.

All words that stand in the same relation to the document and to the word shown get the same prediction, so a handful
of numbers is the whole loss: no matrix, whatever T and v. Two conventions for [MASK], because finite-size numbers
differ:

- 'exact': [MASK] is a word of its own topic. It attends itself with beta and all else with 1, and is attended with 1.
- 'paper': as in Appendix D (F): words share the whole attention among themselves (z1, z2 leave [MASK] out), while the
  prediction q(x) = x / k - p_m p_r / (k T v) counts on the share that [MASK] has under uniform attention. Only
  positions that show a word are counted, and the loss is divided by their share p_c + p_r, as in Figures 7 and 8.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from topicscope.ground import InputError
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import ValueMatrix
from topicscope.theory.theorem2 import theorem2

Numbers = Any
"""A float, a complex number (for derivatives by a complex step) or an array of either: only +, -, * and / are used."""

Convention = Literal["exact", "paper"]  # how [MASK] is treated, see above


def entries(kind: ValueMatrix, setting: Setting) -> tuple[float, float, float, float]:
    """W_ii, W_il inside a topic, W_il between topics and W_i0; row 0 is zero.

    'blocks': Theorem 2. 'diagonal': Definition 2, the diagonal member of Lemma 1's family, with u = 0.
    """
    if kind == "blocks":
        optimum = theorem2(setting)
        return optimum.same_topic, optimum.same_topic, optimum.different_topic, optimum.mask_column
    if kind == "diagonal":
        return setting.constants.c3, 0.0, 0.0, -setting.constants.c1
    raise InputError(f"value matrix {kind!r}: expected blocks or diagonal")


def attention_loss(
    setting: Setting,
    kind: ValueMatrix,
    alpha: Numbers,
    beta: Numbers,
    convention: Convention = "exact",
    *,
    cap: bool = False,
) -> Numbers:
    """Squared loss (eq 1, eq 3) for every (alpha, beta).

    `cap` predicts min(prediction, 1), which Figure 7 needs and the text does not say.
    """
    s, (diagonal, same_topic, different_topic, mask_column) = setting, entries(kind, setting)
    p0, p1, p2, tau, topics, v = s.p0, s.p1, s.p2, s.tau, s.T, s.v
    own, same, other, absent = s.shown_cases
    outside = p0 if convention == "exact" else 0.0
    inside = beta + alpha * (v - 1)
    expected = s.constants.c1 * p0  # p_m p_r / (k T v): the share of every prediction that random words cause

    def predict(y: Numbers, topic_sum: Numbers, all_words: Numbers, mask: Numbers) -> Numbers:
        """f_i = (W_ii - W_same) y_i + (W_same - W_diff) Y_topic + W_diff Y + W_i0 y_0."""
        rest = different_topic * all_words + mask_column * mask if convention == "exact" else -expected
        f = (diagonal - same_topic) * y + (same_topic - different_topic) * topic_sum + rest
        if isinstance(f, complex):
            return 1.0 if cap and f.real > 1 else f
        return np.minimum(f, 1.0) if cap else f

    def word_shown(p: float, here: int, gone: int) -> tuple[list[Numbers], Numbers]:
        """Predictions for the word shown, its topic, the document's other topics, other absent topics; and |f|^2.

        The word has the share p; `here` and `gone` other topics are in the document and are not.
        """
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

    At a position that shows its own word the predictions inside its topic remain, at one that shows a word of an
    absent topic those inside that topic. The paper's last display for the blocks (eq F.26) has lost the factor v of
    the v words there; it is kept here.
    """
    s, c4 = setting, 1 / setting.masking.k
    inside = beta + alpha * (s.v - 1)
    z1 = inside + s.v * (s.tau - 1) + c4 * s.v * s.masking.p_mask * s.masking.p_random * s.tau  # z1 / p1 where p2 << p1
    z2 = s.p2 * inside + s.p1 * s.v * s.tau + s.p2 * s.v * (s.T - s.tau - 1)
    if kind == "blocks":
        here, there = c4 * inside / s.v / z1, c4 * s.p2 * inside / s.v / z2
        own, absent = (1 - here) ** 2 + (s.v - 1) * here**2, 1 + s.v * there**2
    else:
        own = (1 - c4 * beta / z1) ** 2 + (s.v - 1) * (c4 * alpha / z1) ** 2
        absent = 1 + (c4 * s.p2 * beta / z2) ** 2 + (s.v - 1) * (c4 * s.p2 * alpha / z2) ** 2
    correct, random = s.masking.p_correct, s.masking.p_random
    return (correct * own + random * absent) / (correct + random)
