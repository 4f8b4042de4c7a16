"""Theorems 3 and 5: bounds of the best attention, with W_V frozen at Theorem 2's blocks or at the diagonal optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topicscope.ground import refuse
from topicscope.theory.theorem import AttentionTheorem, Entry, Matrix, Setting, ValueMatrix
from topicscope.theory.theorem2 import theorem2
from topicscope.world import Masking, TopicModel


@dataclass(frozen=True, repr=False)
class Theorem3(AttentionTheorem):
    """Theorem 3: lambda1 (tau - 1) < gamma < lambda2 T, where gamma = (v - 1)/v alpha + beta/v.

    Attributes:
        setting: T, v, tau and masking.
        lambda1: Factor of the lower bound.
        lambda2: Factor of the upper bound.

    Example:
        See `theorem3`.
    """

    value_matrix: ClassVar[ValueMatrix] = "blocks"

    setting: Setting
    lambda1: float
    lambda2: float

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        return {"gamma": (self.lambda1 * (self.setting.tau - 1), self.lambda2 * self.setting.T)}

    @property
    def sentence(self) -> str:
        low, high = self.bounds["gamma"]
        return f"Theorem 3: gamma lies in ({low:.5g}, {high:.5g})."

    def matrix(self) -> Matrix:
        return theorem2(self.setting).matrix()

    def says_of(self, alpha: float, beta: float) -> list[str]:
        gamma, where = self.setting.gamma(alpha, beta), "inside" if self.contains(alpha, beta) else "OUTSIDE"
        return [
            f"{self.sentence} The best gamma {gamma:.5g} is {where}.",
            "How to read it: with block-wise W_V it is best to attend to words of the same topic "
            f"{gamma:.3g} times as much as others.",
        ]

    def entries(self) -> list[Entry]:
        low, high = self.bounds["gamma"]
        return [
            Entry("lambda1", self.lambda1, "gamma > lambda1 (tau - 1)"),
            Entry("lambda2", self.lambda2, "gamma < lambda2 T"),
            Entry("lambda1 (tau - 1)", low, "lower end of gamma"),
            Entry("lambda2 T", high, "upper end of gamma"),
        ]


def theorem3(setting: Setting) -> Theorem3:
    """Theorem 3: bounds of the best attention where W_V is frozen at Theorem 2's blocks.

    Args:
        setting: T, v, tau and masking.

    Returns:
        The theorem with its bounds.

    Example:
        >>> [round(bound, 4) for bound in theorem3(Setting.of(topics_per_document=3)).bounds["gamma"]]
        [1.1547, 58666.6667]
    """
    m = setting.masking
    noise = m.p_mask * m.p_random
    return Theorem3(
        setting, lambda1=(m.k + noise) * (1 + (1 - m.p_correct) * m.p_mask) / (2 * m.k), lambda2=100 * (m.k / noise + 1)
    )


@dataclass(frozen=True, repr=False)
class Theorem5(AttentionTheorem):
    """Theorem 5: lambda3 tau < beta < lambda4 T, and alpha < lambda5 beta.

    Attributes:
        setting: T, v, tau and masking.
        lambda3: Factor of the lower bound of beta.
        lambda4: Factor of the upper bound of beta.
        lambda5: Upper bound of alpha / beta.

    Example:
        See `theorem5`.
    """

    value_matrix: ClassVar[ValueMatrix] = "diagonal"

    setting: Setting
    lambda3: float
    lambda4: float
    lambda5: float

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        return {
            "beta": (self.lambda3 * self.setting.tau, self.lambda4 * self.setting.T),
            "alpha_over_beta": (-math.inf, self.lambda5),
        }

    @property
    def sentence(self) -> str:
        low, high = self.bounds["beta"]
        return f"Theorem 5: beta lies in ({low:.5g}, {high:.5g}) and alpha < {self.lambda5:.4g} beta."

    def matrix(self) -> Matrix:
        return diagonal_value_matrix(self.setting.topic_model, self.setting.masking)

    def says_of(self, alpha: float, beta: float) -> list[str]:
        where = "inside" if self.contains(alpha, beta) else "OUTSIDE"
        return [
            f"{self.sentence} The best attention is {where}.",
            "How to read it: with diagonal W_V it is best for a word to attend to itself "
            f"{beta:.3g} times as much as words of other topics.",
        ]

    def entries(self) -> list[Entry]:
        low, high = self.bounds["beta"]
        return [
            Entry("lambda3", self.lambda3, "beta > lambda3 tau"),
            Entry("lambda4", self.lambda4, "beta < lambda4 T"),
            Entry("lambda5", self.lambda5, "alpha < lambda5 beta"),
            Entry("lambda3 tau", low, "lower end of beta"),
            Entry("lambda4 T", high, "upper end of beta"),
        ]


def theorem5(setting: Setting) -> Theorem5:
    """Theorem 5: bounds of the best attention where W_V is frozen at the diagonal optimum (Definition 2).

    Args:
        setting: T, v, tau and masking.

    Returns:
        The theorem with its bounds.

    Raises:
        InputError: v is too small for lambda4; v = 10 suffices.

    Example:
        >>> theorem = theorem5(Setting.of())
        >>> [round(bound, 4) for bound in theorem.bounds["beta"]], round(theorem.lambda5, 4)
        ([0.264, 4471.072], 0.1285)
    """
    m, v = setting.masking, setting.v
    gap = math.sqrt(v - 1) - 2 + (1 - m.p_correct) * m.p_mask
    refuse(
        (v == 1, "words_per_topic = 1: Theorem 5 divides by v - 1; choose at least 2"),
        (
            gap <= 0,
            f"words_per_topic = {v}: Theorem 5's lambda4 needs sqrt(v - 1) > 2 - (1 - p_c) p_m; "
            "choose a larger v (10 suffices)",
        ),
    )
    noise = m.p_mask * m.p_random
    return Theorem5(
        setting,
        lambda3=v * (m.k + noise) / 100,
        lambda4=v * m.k / gap * (1 - m.p_mask_word * m.p_mask) / noise,
        lambda5=1 / ((v - 1) * m.k),
    )


def diagonal_value_matrix(topic_model: TopicModel, masking: Masking) -> Matrix:
    """Definition 2: W_ii = c3 and W_i0 = -c1 for words, row 0 zero (u = 0 in Lemma 1). Defined for every v.

    Args:
        topic_model: T and v.
        masking: The masking scheme.

    Returns:
        The matrix (V x V).

    Example:
        >>> diagonal_value_matrix(TopicModel(2, 1), Masking()).round(3).tolist()
        [[0.0, 0.0, 0.0], [-0.072, 1.156, 0.0], [-0.072, 0.0, 1.156]]
    """
    c = Setting(topic_model, 1, masking).constants
    matrix = np.diag([0.0] + [c.c3] * topic_model.words)
    matrix[1:, 0] = -c.c1
    return matrix
