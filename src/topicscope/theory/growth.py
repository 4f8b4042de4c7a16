"""How key and query grow once the value matrix is there (R3): gradient flow, one-hot words, squared loss.

The scores stay L = l Pi, and W_V follows at once: it is the best one for attention at l. With
g(l) = -<dLoss/dL, Pi> / (T - 1) there, dl/dt = 2 l g(l) / sqrt(d_a). g(0) is sigma of R2; g(l*) = 0 is the plateau.

Attention at l gives a word of the query's topic f1 = exp((1 - 1/T) l / v), one of another topic f0 = exp(-l / (T v)),
and [MASK] 1. By symmetry W_V = a Pi + u 1', so the least loss is 1 - 1/(Tv) - A^2 / B with A = E[y' Pi x'] and
B = E[x' Pi x'], x' what is attended: nothing grows with the vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import refuse_if
from topicscope.theory.forces import TopicShares, Values, contrast_force, mask_force, topic_shares
from topicscope.world import DocumentPrior, Masking, TopicModel

NODES = 400  # of the quadratures and of the curve

Numbers = float | Float[np.ndarray, " m"]  # One l, or several at once


class ScoreMoments(NamedTuple):
    """A and B at l, and their slopes in l: numbers, or arrays where several l are given."""

    joint: Values
    square: Values
    joint_slope: Values
    square_slope: Values

    @property
    def best(self) -> Values:
        """The factor a of W_V = a Pi + u 1' that is best at l."""
        return self.joint / self.square


class Attended(NamedTuple):
    """Masses that a query word attends, z times its shares: its own topic's, and sums over all other topics."""

    own: Float[np.ndarray, "... n"]
    other: Float[np.ndarray, "... n"]
    other_square: Float[np.ndarray, "... n"]  # of mass^2
    other_joint: Float[np.ndarray, "... n"]  # of theta_s mass
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
        >>> round(growth.l_star, 4), round(growth.half_time(13, growth.expected_start(attention_dim=13, scale=0.001)))
        (4.3436, 13120)
    """

    v: int
    masking: Masking
    shares: TopicShares

    @classmethod
    def of(cls, topic_model: TopicModel, prior: DocumentPrior, masking: Masking | None = None) -> Growth:
        refuse_if(
            not topic_model.uniform,
            "the growth of attention is known only for disjoint topics of equally many, equally probable words "
            "(no overlap, no Zipf exponent, no common words)",
        )
        return cls(topic_model.block_size, masking or Masking(), topic_shares(prior, topic_model.topics))

    @property
    def topics(self) -> int:
        return self.shares.topics

    @cached_property
    def sigma(self) -> float:
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
        return (1 - 1 / self.topics) / self.v, -1 / (self.topics * self.v)

    @property
    def shown(self) -> tuple[float, Float[np.ndarray, " n"]]:
        """How often a masked position shows a random word of a topic, and its own; T times, by the topic's share."""
        return self.masking.p_random, self.masking.p_correct * self.topics * self.shares.share

    def moments(self, ell: Numbers) -> ScoreMoments:
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
        return ScoreMoments(
            (at_mask + mean(joint / z)) / self.v,
            (at_mask * self.masking.k + mean((random + correct) * square / z**2)) / self.v,
            mean((joint_slope - shrink * joint) / z) / self.v,
            mean((random + correct) * (square_slope - 2 * shrink * square) / z**2) / self.v,
        )

    def force(self, ell: Numbers) -> Values:
        """g(l): at the best W_V the slope of the loss is that of A and B alone."""
        at = self.moments(ell)
        return (2 * at.best * at.joint_slope - at.best**2 * at.square_slope) / (self.topics - 1)

    def loss(self, ell: float) -> float:
        moments = self.moments(ell)
        return 1 - 1 / (self.topics * self.v) - moments.joint**2 / moments.square

    @property
    def reason(self) -> str | None:
        if self.topics == 1 or self.shares.contrast == 0:
            return "all documents have the same topics, so nothing shows topic contrasts and W_V never learns them"
        if self.masking.p_correct == 0:
            return "p_correct = 0: uniform attention is optimal already, and no second stage follows"
        if self.sigma <= 1e-12 * self.masking.p_correct / self.v**2:
            return (
                "every document has one topic, so the force on attention is 0 at the first plateau; attention and "
                "W_V pull each other out of it, in a time in proportion to 1/s whose factor is not known"
            )
        # a plateau at which attention has a ratio above exp(20) is not looked for
        if self.masking.p_mask_word + self.masking.p_random == 0 or self.force(20 * self.v) >= 0:
            return (
                "nearly all masked positions show their own word: attention to its topic grows without end, and there "
                "is no plateau"
            )
        return None

    @cached_property
    def l_star(self) -> float:
        refuse_if(self.reason is not None, f"no second stage is predicted: {self.reason}")
        low, high = 0.0, float(self.v)
        while self.force(high) > 0:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if self.force(middle) > 0 else (low, middle)
        return low

    @property
    def alpha_star(self) -> float:
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
        z = np.linspace(math.log(start / (top - start)), -math.log(1e-9), NODES + 1)  # l* itself is never reached
        ls = top / (1 + np.exp(-z))
        pace = math.sqrt(attention_dim) / 2 * (1 - ls / top) / self.force(ls)  # dt / dz
        t = np.concatenate([[0.0], np.cumsum(np.diff(z) * (pace[1:] + pace[:-1]) / 2)])
        return top / (1 + np.exp(-np.interp(times, t, z)))


ACT_NODES = 60  # of the quadrature
SHOWS = 0.1  # norm of W_V inside topics at which the third act shows: growth is still linear
SETTLED, STEPS = 8.0, 4000  # e-folds of key after its half-time at which l is l*, and steps up to there


class Coupling(NamedTuple):
    """Of a difference inside a topic in W_V (c) and in W_K (q): dc/dt = pull q, dq/dt = pull c + 2 bend q."""

    bend: Values
    pull: Values

    @property
    def rate(self) -> Values:
        return self.bend + np.hypot(self.bend, self.pull)


def escape_rate(growth: Growth, attention_dim: int, ell: float | None = None) -> float:
    """How fast the second plateau is left: differences inside topics grow as exp(rate t) there (R3, the third act).

    Args:
        growth: How attention grows in this world.
        attention_dim: d_a.
        ell: Size l of the scores; None: on the plateau.

    Returns:
        The rate; 0 where v = 1.

    Example:
        >>> from topicscope.world import Fixed
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> round(1 / escape_rate(growth, attention_dim=13))  # time of an e-fold
        11043
    """
    ell = growth.l_star if ell is None else ell
    return float(coupling(growth, attention_dim, ell).rate) if growth.v > 1 else 0.0


def coupling(growth: Growth, attention_dim: int, ell: Numbers) -> Coupling:
    """At L = l Pi, for v from 2 on."""
    topics, v, theta, mean = growth.topics, growth.v, growth.shares.share, growth.shares.mean
    random, correct = growth.shown
    best = growth.moments(ell).best
    a = np.asarray(best)[..., None]  # beside arrays by the share of the topic
    own, other, other_square, other_joint, z = growth.attended(ell)
    level = 1 / topics - a * (own + other) / z / topics  # a topic of mass X is predicted as a X + level
    same, different = math.sqrt((1 - 1 / topics) / v), -1 / math.sqrt(v * topics * (topics - 1))  # q, of norm 1
    # error of topic s times its attended mass, for s the query's topic and summed over the others
    here, there = -(level + a * own / z) * own / z, -(level * other / z + a * other_square / z**2)
    pulls = random * (same * (here + theta * own / z) + different * (there + other_joint / z))
    pulls += correct * (same * (here + own / z) + different * there)
    b = 2 / (topics * v**1.5) * mean(pulls) * math.sqrt(topics / (topics - 1))  # c has a part in the other topics too
    # A difference in W_K makes topic s heavier in second order. The force on [MASK] as key is
    # -2 a E[x'_0 (y - W x')' Pi x']; with g it gives that on topic s, as columns of the force sum to 0.
    square = (own**2 + other_square - (own + other) ** 2 / topics) / z**2
    joint = random * (theta * own + other_joint) + correct * own - (random + correct) * (own + other) / topics
    at_mask = growth.masking.p_mask * growth.masking.p_mask_word / z
    force = 2 * best / (topics**2 * v**2) * mean(at_mask * (joint / z - a * (random + correct) * square))
    w2 = np.asarray(ell) / math.sqrt(attention_dim)
    return Coupling(bend=w2 * (force + growth.force(ell) * (1 - 2 / topics)) / (2 * v), pull=np.sqrt(w2) * b)


def gain_by_half_time(growth: Growth, attention_dim: int) -> float:
    """E-folds by which differences inside topics have grown at l = l*/4: the integral of the rate over time.

    dt = sqrt(d_a) dl / (2 l g), and l = u^2 makes it smooth.
    """
    nodes, weights = np.polynomial.legendre.leggauss(ACT_NODES)
    end = math.sqrt(growth.l_star) / 2
    us = end / 2 * (nodes + 1)
    rates = coupling(growth, attention_dim, us**2).rate if growth.v > 1 else np.zeros(ACT_NODES)
    return float(end / 2 * math.sqrt(attention_dim) * weights @ (rates / (us * growth.force(us**2))))


def third_act_time(growth: Growth, attention_dim: int, scale: float, level: float = SHOWS) -> float | None:
    """When W_V inside topics has the norm `level` on the plateau, from weights of N(0, scale^2).

    T (v - 1) differences inside topics are followed from their start, with their coupling at l(t). The pull changes its
    sign shortly before l*: what has grown until then dies out first. Measured in three worlds: up to 16% earlier.

    Args:
        growth: How attention grows in this world.
        attention_dim: d_a.
        scale: Standard deviation of the initial weights.
        level: The norm.

    Returns:
        The time; None where `level` is reached before the plateau, or v = 1.

    Example:
        >>> from topicscope.world import Fixed
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> round(third_act_time(growth, attention_dim=13, scale=0.001))
        55141
    """
    count = growth.topics * (growth.v - 1)
    if growth.v == 1 or scale <= 0 or scale * math.sqrt(count) >= level:
        return None
    goal, first = level / (scale * math.sqrt(count)), growth.expected_start(attention_dim, scale)
    end = growth.half_time(attention_dim, first) + SETTLED * growth.e_fold(attention_dim)
    step = end / STEPS
    middle = growth.course((np.arange(STEPS) + 0.5) * step, attention_dim, first)
    grid = growth.l_star * np.linspace(1e-6, 1, ACT_NODES) ** 2  # smooth in the root of l
    table = coupling(growth, attention_dim, grid)
    bends, pulls = (np.interp(np.sqrt(middle), np.sqrt(grid), column) for column in table)
    from_value, from_key = (1.0, 0.0), (0.0, 1.0)  # c and q, from 1 in c and from 1 in q
    for bend, pull in zip((2 * step * bends).tolist(), (step * pulls).tolist(), strict=True):
        if math.hypot(from_value[0], from_key[0]) >= goal:
            return None
        # 1 + M + M^2 / 2 with M = ((0, pull), (pull, bend))
        cc, cq, qq = 1 + pull * pull / 2, pull + pull * bend / 2, 1 + bend + (pull * pull + bend * bend) / 2
        from_value, from_key = ((cc * c + cq * q, cq * c + qq * q) for c, q in (from_value, from_key))
    last = coupling(growth, attention_dim, growth.l_star)
    fast = np.array([last.pull, last.rate]) / math.hypot(last.pull, last.rate)  # the mode that grows on the plateau
    grown = abs(fast[0]) * math.hypot(float(fast @ from_value), float(fast @ from_key))
    return float(end + math.log(goal / grown) / last.rate)


# Clocks of Adam (R4), cross entropy (R7) and a trained embedding (R8): numerical laws, less exact than the flow's.
# Time at which e' = (B + B')e, B' = ee' blows up from |e| = 1 and B of entries N(0, 1/d): .836 +- .009 at d = 600.
ESCAPE = 0.836

# Of Adam, below which its clocks do not hold: so many gradients are in its first mean, 1 / (1 - beta_1). Key at 8.5
# and 9.5 predicted steps was half-way after 18 and 17.
FEWEST_STEPS = 10


class AdamClock(NamedTuple):
    """When Adam reaches half of each plateau, in steps (R4), and at which epsilon (over the loss's scale) this changes.

    Attributes:
        value: Steps of W_V.
        attention: Steps of key and query; None where nothing starts them.
        sign: Part of `attention` in which entries move by the learning rate at every step.
        epsilon: Part of it in which they move in proportion to their gradient.
        delays_attention_from: Epsilon from which on attention is delayed.
        rules_attention_from: Epsilon from which on it decides the time of attention.
        delays_value_from: Epsilon from which on W_V is delayed.
        followed: `attention` of an entry followed with Adam's own averages, for full batches (`entry_steps`).

    Example:
        See `adam_clock`.
    """

    value: float
    attention: float | None
    sign: float | None
    epsilon: float | None
    delays_attention_from: float | None
    rules_attention_from: float | None
    delays_value_from: float
    followed: float | None = None


def adam_clock(
    growth: Growth,
    eigenvalue: float,
    *,
    attention_dim: int,
    init_scale: float,
    lr: float,
    eps: float,
    loss_scale: float = 1.0,
    batch_noise: float = 1.0,
    output_bias: bool = False,
) -> AdamClock:
    """When Adam reaches half of each plateau (R4): an entry moves by lr g / (|g| + eps) at each step.

    Measured with full batches: value within 13%; attention within 16% where epsilon rules it, .62 to 1 of this where it
    does not (growing gradients make Adam's steps longer: `entry_steps` follows them), up to 1.4 at lr = .01 (momentum).
    `attention` is None where nothing starts it.

    Args:
        growth: How attention grows in this world.
        eigenvalue: Eigenvalue of E[xx'] on topic contrasts.
        attention_dim: d_a.
        init_scale: Standard deviation of the initial weights.
        lr: Learning rate.
        eps: Epsilon of Adam.
        loss_scale: The loss is multiplied by it: 1 / V where outputs are averaged.
        batch_noise: |mean| / rms of a batch's gradient; 1 for full batches.
        output_bias: Whether the output has a trained bias.

    Returns:
        Steps, and where epsilon matters.

    Example:
        >>> from topicscope.theory import Setting, first_stage_rates
        >>> from topicscope.world import Fixed
        >>> growth = Growth.of(TopicModel(4, 3), Fixed(topics_per_document=2))
        >>> rate = first_stage_rates(Setting.of(4, 3, 2)).topics
        >>> round(adam_clock(growth, rate, attention_dim=13, init_scale=0.001, lr=0.001, eps=1e-8).value)
        276
    """
    k, v, vocabulary, eps = growth.masking.k, growth.v, growth.topics * growth.v + 1, eps / loss_scale
    to_go = 1 / (2 * k * v) + (0 if output_bias else 1 / (growth.topics * v))
    value = (to_go + eps * math.log(2) / (2 * eigenvalue)) / lr
    slow_value = eigenvalue / (k * v)
    if growth.reason is not None or init_scale <= 0:
        return AdamClock(value, None, None, None, None, None, slow_value)
    pull = growth.sigma / math.sqrt(attention_dim)  # gradient of an entry over the entry
    half = growth.plateau_norm(attention_dim) / (2 * math.sqrt(attention_dim * vocabulary))
    start = init_scale * math.sqrt((growth.topics - 1) / (2 * vocabulary))
    sign = half / (lr * batch_noise)
    slow = eps / (lr * pull) * max(math.log(half / start), 0.0)
    attention = sign + slow + (value if slow > sign else 0.0)  # where epsilon rules, key and query wait for value
    return AdamClock(value, attention, sign, slow, pull * start, pull * half, slow_value)


class MaskFirst(NamedTuple):
    """Cross entropy (R7): [MASK] learns not to attend [MASK] while topic contrasts of W_V still grow evenly.

    Attributes:
        speed: Growth of W_V on topic contrasts, per unit of time.
        force: On the [MASK] query, per unit of W_V.
        time: When |W_K| is three times its start.

    Example:
        See `mask_first`.
    """

    speed: float
    force: float
    time: float


def mask_first(growth: Growth, eigenvalue: float, attention_dim: int) -> MaskFirst:
    """When [MASK] learns not to attend [MASK] under cross entropy (R7).

    W_K gains exp(force speed t^2 / (2 sqrt(d_a))) in one direction of its V. In (T, v, tau) = (5, 4, 2) the time is
    513; measured were 683 and 687, since W_V slows down meanwhile.

    Args:
        growth: How attention grows in this world.
        eigenvalue: Eigenvalue of E[xx'] on topic contrasts.
        attention_dim: d_a.

    Returns:
        Speed, force and time.

    Example:
        >>> from topicscope.theory import Setting, first_stage_rates
        >>> from topicscope.world import Fixed
        >>> growth = Growth.of(TopicModel(5, 4), Fixed(topics_per_document=2))
        >>> round(mask_first(growth, first_stage_rates(Setting.of(5, 4, 2)).topics, attention_dim=21).time)
        513
    """
    vocabulary, speed = growth.topics * growth.v + 1, eigenvalue / growth.masking.k
    force = mask_force(growth.shares, growth.v, growth.masking).size
    exponent = math.log(3 * math.sqrt(2 * vocabulary))  # |W_K| is three times its start
    return MaskFirst(speed, force, math.sqrt(2 * exponent * math.sqrt(attention_dim) / (force * speed)))


class EmbeddingClock(NamedTuple):
    """A trained embedding, used for words in and out: value and embedding leave a cubic saddle together."""

    escape: float  # t50 of the topic contrast of W_E' W_V W_E
    square: float  # |W_E c|^2 of a topic contrast c afterwards
    attention: float | None  # t50 of key and query; None under cross entropy


def embedding_clock(
    growth: Growth, eigenvalue: float, *, squared: bool, width: int, attention_dim: int, init_scale: float
) -> EmbeddingClock:
    """t_esc = C / (f s sqrt(d)), f = 2 lambda / k (squared loss) or lambda / k (cross entropy): 1/s, not ln 1/s.

    Measured: .90 to 1.12 of it at d = 60, .94 to 1.43 at d = 13 to 21; under cross entropy .58 to .79. Key and query
    then grow |W_E c|^2 times as fast as on one-hot words; c = 1 is assumed, which was 9% and 33% late.
    """
    pull = (2 if squared else 1) * eigenvalue / growth.masking.k
    escape = ESCAPE / (pull * init_scale * math.sqrt(width))
    square = 2 ** (1 / 3) * growth.masking.k ** (-2 / 3)  # from |e|^2 - 2 b^2 = const and |e|^2 b = 1 / k
    if not squared or growth.reason is not None:
        return EmbeddingClock(escape, square, None)
    return EmbeddingClock(escape, square, escape + growth.e_fold(attention_dim) / square * math.log(1 / init_scale))


MOST_STEPS = 20_000  # later epsilon rules, and the formula of `adam_clock` is as good
GRID = 200  # values of l up to a quarter of l*, where the norm is half of the plateau's


def entry_steps(
    growth: Growth,
    *,
    value: float,
    attention_dim: int,
    init_scale: float,
    lr: float,
    eps: float,
    loss_scale: float = 1.0,
    output_bias: bool = False,
) -> int | None:
    """Steps until |W_K| is half of its plateau, for full batches; None: not within MOST_STEPS, or no way to go.

    Topic contrasts of W_V rise evenly once the mean is learnt, which takes 1 / (T v) over the rate where no output bias
    learns it. Measured: .84 to 1.15 of it in four worlds, at rates from .0003 to .01 and epsilons from 1e-20 to 1e-4.
    """
    if growth.reason is not None or init_scale <= 0:
        return None
    topics, words, (first, second) = growth.topics, growth.topics * growth.v, (0.9, 0.999)  # of Adam
    waits = 0.0 if output_bias else 1 / (words * lr)
    entries = words * math.sqrt(attention_dim) / (topics - 1)  # l over the square of an entry; [MASK] does not move
    half = math.sqrt(growth.l_star / 4 / entries)
    at = growth.moments(np.linspace(0, growth.l_star / 4, GRID + 1))
    joint, square, best = at.joint_slope.tolist(), at.square_slope.tolist(), at.best.tolist()
    entry = init_scale * math.sqrt((topics - 1) / (2 * words))
    if entry >= half:
        return None
    pull, small, mean, mean_square = 1 / ((topics - 1) * math.sqrt(attention_dim)), eps / loss_scale, 0.0, 0.0
    for step in range(1, MOST_STEPS + 1):
        place = round(min(entry / half, 1.0) ** 2 * GRID)
        a = best[place] * min(max((step - waits) / (2 * (value - waits)), 0.0), 1.0)
        gradient = entry * pull * (2 * a * joint[place] - a**2 * square[place])
        mean = first * mean + (1 - first) * gradient
        mean_square = second * mean_square + (1 - second) * gradient**2
        root = math.sqrt(mean_square / (1 - second**step)) + small
        entry += lr * mean / (1 - first**step) / root if root > 0 else 0.0
        if entry >= half:
            return step
    return None
