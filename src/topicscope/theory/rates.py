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
    """Eigenvalues of E[xx'] (R1); all others are zero."""

    topics: float  # T - 1 topic contrasts
    mean: float  # once


class GroupRates(NamedTuple):
    """Eigenvalues of E[xx'] on topic contrasts where topics come in groups (R6 ii)."""

    between: float  # g - 1 contrasts of groups
    within: float  # T - g contrasts of topics inside a group


def first_stage_rates(setting: Setting) -> FirstStageRates:
    """For tau distinct topics with equal shares."""
    s = setting
    contrast = (s.T - s.tau) / (s.tau * s.T * (s.T - 1)) if s.T > 1 else 0.0
    return FirstStageRates(s.masking.k**2 * contrast / s.v, s.p0**2 + (1 - s.p0) ** 2 / (s.T * s.v))


def group_rates(setting: Setting, groups: int, rho: float) -> GroupRates:
    """For groups of T / g topics: with probability rho all tau topics come from one group, else from all."""
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
