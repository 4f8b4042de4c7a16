"""How fast the first stage learns, in closed form: squared loss, uniform attention, infinite documents.

A part of W on an eigenspace of E[xx'] with eigenvalue lambda approaches its optimum as exp(-2 lambda t).

>>> round(first_stage_rates(Setting.of(10, 10, 3)).topics, 8)
0.00193984
"""

from __future__ import annotations

from typing import NamedTuple

from topicscope.ground import refuse
from topicscope.theory.setting import Setting


class FirstStageRates(NamedTuple):
    """Eigenvalues of E[xx'] (R1); all others are zero.

    Attributes:
        topics: Eigenvalue of the T - 1 topic contrasts.
        mean: Eigenvalue of the mean over words, once.

    Example:
        See `first_stage_rates`.
    """

    topics: float
    mean: float


class GroupRates(NamedTuple):
    """Eigenvalues of E[xx'] on topic contrasts where topics come in groups (R6 ii).

    Attributes:
        between: Eigenvalue of the g - 1 contrasts of groups.
        within: Eigenvalue of the T - g contrasts of topics inside a group.

    Example:
        See `group_rates`.
    """

    between: float
    within: float


def first_stage_rates(setting: Setting) -> FirstStageRates:
    """How fast the first stage learns (R1), for tau distinct topics with equal shares.

    A part of W on an eigenspace with eigenvalue lambda nears its optimum as exp(-2 lambda t).

    Args:
        setting: T, v, tau and masking.

    Returns:
        The eigenvalues of E[xx'].

    Example:
        >>> float(f"{first_stage_rates(Setting.of(10, 10, 3)).topics:.6g}")
        0.00193984
        >>> float(f"{0.865**2 * (10 - 3) / (3 * 10 * (10 - 1)) / 10:.6g}")  # k^2 (T - tau) / (tau T (T - 1)) / v
        0.00193984
    """
    s = setting
    contrast = (s.T - s.tau) / (s.tau * s.T * (s.T - 1)) if s.T > 1 else 0.0
    return FirstStageRates(s.masking.k**2 * contrast / s.v, s.p0**2 + (1 - s.p0) ** 2 / (s.T * s.v))


def group_rates(setting: Setting, groups: int, rho: float) -> GroupRates:
    """How fast the first stage learns groups and topics (R6 ii).

    Args:
        setting: T, v, tau and masking.
        groups: g, a divisor of T.
        rho: Probability that all tau topics come from one group, else from all.

    Returns:
        The eigenvalues of E[xx'] between and within groups.

    Raises:
        InputError: g does not divide T, rho is no probability, or a group has fewer than tau topics.

    Example:
        >>> rates = group_rates(Setting.of(10, 10, 2), groups=5, rho=0.5)
        >>> round(rates.between / rates.within, 3)  # groups are learnt first
        3.25
    """
    s, h = setting, setting.T // max(groups, 1)
    refuse(
        (groups < 1 or s.T % max(groups, 1) != 0, f"groups = {groups}: expected a divisor of topics = {s.T}"),
        (not 0 <= rho <= 1, f"rho = {rho:g}: expected a probability"),
        (rho > 0 and s.tau > h, f"topics_per_document = {s.tau}: a group has only {h} topics"),
    )
    pairs = s.tau * (s.tau - 1)
    one = s.tau / s.T
    apart = (1 - rho) * pairs / (s.T * (s.T - 1)) if s.T > 1 else 0.0
    together = apart + (rho * pairs / (s.T * (h - 1)) if h > 1 else 0.0)
    scale = s.masking.k**2 / (s.v * s.tau**2)
    return GroupRates(scale * (one + (h - 1) * together - h * apart), scale * (one - together))
