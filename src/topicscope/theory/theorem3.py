"""Theorem 3: W_V frozen at Theorem 2's blocks. The best attention inside a topic lies in an interval that grows with tau and T.

>>> [round(number, 5) for number in lambdas(Setting.of())]
[0.57734, 5866.66667]
"""

from __future__ import annotations

from topicscope.theory.setting import Setting


def lambdas(setting: Setting) -> tuple[float, float]:
    """lambda1 and lambda2."""
    m = setting.masking
    noise = m.p_mask * m.p_random
    return (m.k + noise) * (1 + (1 - m.p_correct) * m.p_mask) / (2 * m.k), 100 * (m.k / noise + 1)


def bounds(setting: Setting) -> tuple[float, float]:
    """(lambda1 (tau - 1), lambda2 T), in which gamma = (v - 1)/v alpha + beta/v of the optimum lies."""
    low, high = lambdas(setting)
    return low * (setting.tau - 1), high * setting.T


def contains(setting: Setting, alpha: float, beta: float) -> bool:
    low, high = bounds(setting)
    return low < setting.gamma(alpha, beta) < high


def assumptions(setting: Setting) -> list[str]:
    """Which of Assumptions 3 and 4 a finite setting strains or breaks; the asymptotic ones at a factor of ten."""
    m, broken = setting.masking, []
    if not m.p_mask < 0.5:
        broken.append(f"p_mask = {m.p_mask:g} is not below 1/2")
    if m.p_correct != m.p_random or not m.p_correct < 0.5:
        broken.append(f"p_correct = {m.p_correct:g} and p_random = {m.p_random:g} are not equal and below 1/2")
    least = (1 / m.k + 1) ** 2 + 1
    if not setting.v > least:
        broken.append(f"words_per_topic = {setting.v} is not above {least:.3g}")
    if setting.tau < 10:
        broken.append(f"topics_per_document = {setting.tau} is not large")
    if 10 * setting.tau > setting.T:
        broken.append(f"topics = {setting.T} is not much larger than topics_per_document = {setting.tau}")
    return broken
