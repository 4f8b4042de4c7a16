"""How key and query grow once the value matrix is there (R3): gradient flow, one-hot words, squared loss.

The scores stay L = l Pi, and W_V follows at once: it is the best one for attention at l. With
g(l) = -<dLoss/dL, Pi> / (T - 1) there, dl/dt = 2 l g(l) / sqrt(d_a). g(0) is sigma of R2; g(l*) = 0 is the plateau.

Attention at l gives a word of the query's topic f1 = exp((1 - 1/T) l / v), one of another topic f0 = exp(-l / (T v)),
and [MASK] 1. By symmetry W_V = a Pi + u 1', so the least loss is 1 - 1/(Tv) - A^2 / B with A = E[y' Pi x'] and
B = E[x' Pi x'], x' what is attended: nothing grows with the vocabulary.

>>> from topicscope.world import Fixed
>>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
>>> round(growth.l_star, 4), round(growth.alpha_star, 3), round(growth.loss(growth.l_star), 5)
(4.3436, 4.254, 0.8223)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.forces import contrast_force
from topicscope.theory.shares import TopicShares, topic_shares
from topicscope.world import DocumentPrior, Masking, TopicModel

NODES = 400  # of the quadratures and of the curve
END = 1e-9  # share of l* at which the curve stops: it never arrives
NOTHING = 1e-12  # force below this share of p_c / v^2 is none
STRONGEST = 20  # l / v, of which exp is the ratio of attention: a plateau further up is not looked for

Numbers = float | Float[np.ndarray, " m"]
"""One l, or several at once."""


class Moments(NamedTuple):
    """A and B at l, and their slopes in l: numbers, or arrays where several l are given."""

    joint: Any
    square: Any
    joint_slope: Any
    square_slope: Any


class Attended(NamedTuple):
    """Masses that a query word attends: its own topic's, and sums over all other topics.

    Divided by z they are shares; other_square and other_joint are sums of mass^2 and of theta_s mass.
    """

    own: Float[np.ndarray, "... n"]
    other: Float[np.ndarray, "... n"]
    other_square: Float[np.ndarray, "... n"]
    other_joint: Float[np.ndarray, "... n"]
    z: Float[np.ndarray, "... n"]


@dataclass(frozen=True, eq=False)
class Growth:
    """How key and query grow once the value matrix is learnt (R3), for exchangeable topics of v equal words.

    Scores stay L = l Pi. W_V is the best one for attention at l, and dl/dt = 2 l g(l) / sqrt(d_a) with the force g.

    Attributes:
        v: Words per topic.
        masking: The masking scheme.
        shares: The law of one topic's share.

    Example:
        >>> from topicscope.world import Fixed
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> start = growth.expected_start(attention_dim=13, scale=0.001)
        >>> round(growth.l_star, 4), round(growth.half_time(13, start))
        (4.3436, 13120)
    """

    v: int
    masking: Masking
    shares: TopicShares

    @classmethod
    def of(cls, topic_model: TopicModel, prior: DocumentPrior, masking: Masking | None = None) -> Growth:
        """InputError where the topics are not alike, or attention has no force to start with."""
        if not topic_model.uniform:
            raise InputError(
                "the growth of attention is known only for disjoint topics of equally many, equally probable words "
                "(no overlap, no Zipf exponent, no common words)"
            )
        return cls(topic_model.block_size, masking or Masking(), topic_shares(prior, topic_model.topics))

    @property
    def topics(self) -> int:
        return self.shares.topics

    @cached_property
    def sigma(self) -> float:
        """Force on topic contrasts at l = 0, where W_V is optimal (R2)."""
        return contrast_force(self.shares, self.v, self.masking)

    def attended(self, ell: Numbers) -> Attended:
        """What a query word attends, by the share of its topic; of several l one row each."""
        m, topics, theta, rest = self.masking, self.topics, self.shares.share, self.shares.others
        f1, f0 = (np.exp(np.asarray(ell)[..., None] * slope) for slope in self.slopes)
        k, noise = m.k, m.p_mask * m.p_random / topics  # a topic's mass in the document is k theta + noise
        own, other = f1 * (k * theta + noise), f0 * (k * (1 - theta) + (topics - 1) * noise)
        return Attended(
            own,
            other,
            f0**2 * (k**2 * rest + 2 * k * noise * (1 - theta) + (topics - 1) * noise**2),
            f0 * (k * rest + noise * (1 - theta)),
            own + other + m.p_mask * m.p_mask_word,
        )

    @property
    def slopes(self) -> tuple[float, float]:
        """Entries of Pi: two words of one topic, of two topics."""
        return (1 - 1 / self.topics) / self.v, -1 / (self.topics * self.v)

    @property
    def shown(self) -> tuple[float, Float[np.ndarray, " n"]]:
        """How often a masked position shows a random word of a topic, and its own; T times, by the topic's share."""
        return self.masking.p_random, self.masking.p_correct * self.topics * self.shares.share

    def moments(self, ell: Numbers) -> Moments:
        """E[y' Pi x'] and E[x' Pi x'] over documents, masked words and words shown: [MASK], any word, their own."""
        topics, theta, mean, (random, correct) = self.topics, self.shares.share, self.shares.mean, self.shown
        (slope1, slope0), (own, other, other_square, other_joint, z) = self.slopes, self.attended(ell)
        total, total_slope = own + other, slope1 * own + slope0 * other
        shrink = total_slope / z  # slope of log z
        square = own**2 + other_square - total**2 / topics
        square_slope = 2 * (slope1 * own**2 + slope0 * other_square - total * total_slope / topics)
        # the true word is any of the document, or (correct) the word shown
        joint = random * (theta * own + other_joint - total / topics) + correct * (own - total / topics)
        joint_slope = (
            random * (slope1 * theta * own + slope0 * other_joint)
            + correct * slope1 * own
            - (random + correct) * total_slope / topics
        )
        # at [MASK] attention is uniform: x' = x
        at_mask = self.masking.p_mask_word * self.masking.k * mean(theta**2 + self.shares.others - 1 / topics)
        return Moments(
            (at_mask + mean(joint / z)) / self.v,
            (at_mask * self.masking.k + mean((random + correct) * square / z**2)) / self.v,
            mean((joint_slope - shrink * joint) / z) / self.v,
            mean((random + correct) * (square_slope - 2 * shrink * square) / z**2) / self.v,
        )

    def force(self, ell: Numbers) -> Any:
        """g(l): at the best W_V the slope of the loss is that of A and B alone."""
        joint, square, joint_slope, square_slope = self.moments(ell)
        a = joint / square
        return (2 * a * joint_slope - a**2 * square_slope) / (self.topics - 1)

    def loss(self, ell: float) -> float:
        """Squared loss at l with the best W_V."""
        found = self.moments(ell)
        return 1 - 1 / (self.topics * self.v) - found.joint**2 / found.square

    @property
    def reason(self) -> str | None:
        """Why nothing is predicted, where nothing is."""
        if self.topics == 1 or self.shares.contrast == 0:
            return "all documents have the same topics, so nothing shows topic contrasts and W_V never learns them"
        if self.masking.p_correct == 0:
            return "p_correct = 0: uniform attention is optimal already, and no second stage follows"
        if self.sigma <= NOTHING * self.masking.p_correct / self.v**2:
            return (
                "every document has one topic, so the force on attention is 0 at the first plateau; attention and "
                "W_V pull each other out of it, in a time in proportion to 1/s whose factor is not known"
            )
        if self.masking.p_mask_word + self.masking.p_random == 0 or self.force(STRONGEST * self.v) >= 0:
            return (
                "nearly all masked positions show their own word: attention to its topic grows without end, and there "
                "is no plateau"
            )
        return None

    @cached_property
    def l_star(self) -> float:
        """Where the force ends: by bisection, to the last digit."""
        if self.reason is not None:
            raise InputError(f"no second stage is predicted: {self.reason}")
        low, high = 0.0, float(self.v)
        while self.force(high) > 0:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if self.force(middle) > 0 else (low, middle)
        return low

    @property
    def alpha_star(self) -> float:
        """Attention to a word of the same topic over that to one of another, on the plateau."""
        return math.exp(self.l_star / self.v)

    def plateau_norm(self, attention_dim: int) -> float:
        """|W_K| = |W_Q| on the plateau (Frobenius)."""
        return math.sqrt(math.sqrt(attention_dim) * (self.topics - 1) * self.l_star)

    @cached_property
    def chi(self) -> float:
        """int_0^(l*/4) (sigma / g - 1) dl / l: how much later than at constant force a norm is half-way."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES // 4)
        ls = self.l_star / 8 * (nodes + 1)
        return float(self.l_star / 8 * weights @ ((self.sigma / self.force(ls) - 1) / ls))

    def e_fold(self, attention_dim: int) -> float:
        """Time in which key and query grow by e at first."""
        return math.sqrt(attention_dim) / self.sigma

    def constant(self, attention_dim: int) -> float:
        """c of t50 = e_fold ln(c / s)."""
        return math.sqrt(self.l_star / (2 * math.sqrt(attention_dim))) * math.exp(self.chi / 2)

    def expected_start(self, attention_dim: int, scale: float) -> float:
        """l at the start, where W_K and W_Q are normal with standard deviation `scale`: its mean."""
        return math.sqrt(attention_dim) * scale**2 / 2

    def realised_start(self, key: Float[np.ndarray, "d V"], query: Float[np.ndarray, "d V"]) -> float:
        """l at the start of these matrices: |(W_K + W_Q) Pi|^2 / (4 (T - 1) sqrt(d_a))."""
        both = np.asarray(key, dtype=float) + np.asarray(query, dtype=float)
        means = both[:, 1:].reshape(len(both), self.topics, self.v).mean(2)
        contrasts = means - means.mean(1, keepdims=True)
        return float(self.v * (contrasts**2).sum() / (4 * (self.topics - 1) * math.sqrt(len(both))))

    def half_time(self, attention_dim: int, start: float) -> float:
        """When the norms of key and query are half of the plateau's (l is a quarter of l*), from l = `start`."""
        return self.e_fold(attention_dim) / 2 * (math.log(self.l_star / (4 * start)) + self.chi)

    def course(self, times: Float[np.ndarray, " n"], attention_dim: int, start: float) -> Float[np.ndarray, " n"]:
        """l at these times. In z = log(l / (l* - l)) the flow is nearly straight, so t(z) is summed on an even grid."""
        top = self.l_star
        z = np.linspace(math.log(start / (top - start)), -math.log(END), NODES + 1)
        ls = top / (1 + np.exp(-z))
        pace = math.sqrt(attention_dim) / 2 * (1 - ls / top) / self.force(ls)  # dt / dz
        t = np.concatenate([[0.0], np.cumsum(np.diff(z) * (pace[1:] + pace[:-1]) / 2)])
        return top / (1 + np.exp(-np.interp(times, t, z)))
