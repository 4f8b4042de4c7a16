"""Laws of theta: worlds that can be listed, one topic's share, rates of the first stage, the force on attention.

The topics must be exchangeable: alike, in every order. Attention that treats them alike looks at one topic and at all
the others, so the joint law of theta_1 and |theta|^2 decides the force on it (R2) and how it grows (R3). The force is
-dLoss/dL, with L[i, j] the score that query word j gives to key word i.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, refuse
from topicscope.theory.theorem import Matrix, Setting
from topicscope.theory.value_optimum import ValueArray, Weighting
from topicscope.world import Dirichlet, DocumentPrior, Fixed, Masking, Moments

Values = Any  # A number, or an array of numbers

SHARE_NODES = 32  # of the quadrature over a Dirichlet share: exact for polynomials up to degree 63
SAME = 1e-12  # difference of proportions and probabilities that are equal


@dataclass(frozen=True, eq=False)
class SmallWorld:
    """A world whose law of theta has few values, so that all its documents can be listed."""

    word_topics: Float[np.ndarray, "words T"]  # A
    thetas: Float[np.ndarray, "L T"]  # the values of theta
    probabilities: Float[np.ndarray, " L"]  # their probabilities

    def moments(self) -> Moments:
        p = self.probabilities
        return Moments(p @ self.thetas, self.thetas.T @ (p[:, None] * self.thetas))

    def infinite(self, masking: Masking) -> tuple[Float[np.ndarray, "L V"], Float[np.ndarray, "L V"]]:
        """What infinite documents show (x), and their words' distributions (P), from the masking scheme (3.2)."""
        words = len(self.word_topics)
        p = np.hstack([np.zeros((len(self.thetas), 1)), self.thetas @ self.word_topics.T])
        x = (1 - masking.p_mask) * p + masking.p_mask * masking.p_correct * p
        x[:, 1:] += masking.p_mask * masking.p_random / words
        x[:, 0] += masking.p_mask * masking.p_mask_word
        return x, p


def subset_world(topics: int, v: int, subsets: dict[tuple[int, ...], float]) -> SmallWorld:
    """A small world of disjoint topics of v equally probable words, whose documents share a set of topics equally."""
    thetas = np.array([[float(t in subset) / len(subset) for t in range(topics)] for subset in subsets])
    p = np.array(list(subsets.values()))
    return SmallWorld(np.kron(np.eye(topics), np.full((v, 1), 1 / v)), thetas, p / p.sum())


def grouped_subsets(topics: int, tau: int, groups: int = 1, rho: float = 0.0) -> dict[tuple[int, ...], float]:
    """All sets of tau topics with their probabilities, where topics may come in groups."""
    every, h = list(itertools.combinations(range(topics), tau)), topics // groups
    inside = [subset for subset in every if len({t // h for t in subset}) == 1]
    return {subset: (1 - rho) / len(every) + (rho / len(inside) if subset in inside else 0.0) for subset in every}


def every_subset(s: Setting) -> SmallWorld:
    return subset_world(s.T, s.v, grouped_subsets(s.T, s.tau))


def random_world(rng: np.random.Generator, words: int = 3, topics: int = 2, laws: int = 3) -> SmallWorld:
    return SmallWorld(
        rng.dirichlet(np.ones(words), topics).T, rng.dirichlet(np.ones(topics), laws), rng.dirichlet(np.ones(laws))
    )


def every_order(rows: Sequence[Sequence[float]]) -> Float[np.ndarray, "K T"]:
    return np.array([order for row in rows for order in itertools.permutations(row)])


def every_masked_document(
    world: SmallWorld, masking: Masking, length: int, weighting: Weighting
) -> tuple[Float[np.ndarray, "R V"], Float[np.ndarray, "R V"], Float[np.ndarray, " R"]]:
    """Every masked document of N words: what it shows (x), the mean of its masked true words (y), and its weight."""
    words = len(world.word_topics)
    shown_as = np.full((words + 1, words + 1), masking.p_random / words)  # true word, word shown
    shown_as[:, 0] = masking.p_mask_word
    shown_as[np.arange(words + 1), np.arange(words + 1)] += masking.p_correct
    text = np.array(list(itertools.product(range(1, words + 1), repeat=length)))
    text_probability = world.probabilities @ (world.thetas @ world.word_topics.T)[:, text - 1].prod(2)
    eye, rows = np.eye(words + 1), []
    for chosen in itertools.product((False, True), repeat=length):
        drawn = np.flatnonzero(chosen)
        if not len(drawn) and weighting != "run":
            continue
        masks = [drawn] if len(drawn) else [np.array([position]) for position in range(length)]  # `draw` picks one
        probability = masking.p_mask ** len(drawn) * (1 - masking.p_mask) ** (length - len(drawn))
        for masked in masks:
            share = probability / len(masks) * (len(masked) if weighting == "positions" else 1)
            for shown in itertools.product(range(words + 1), repeat=len(masked)):
                seen = text.copy()
                seen[:, masked] = shown
                chance = text_probability * share * shown_as[text[:, masked], np.array(shown)].prod(1)
                rows.append((eye[seen].mean(1), eye[text[:, masked]].mean(1), chance))
    x, y, weight = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return x, y, weight / weight.sum()


def shown_moment(world: SmallWorld, masking: Masking) -> ValueArray:
    """E[xx'] of infinite documents."""
    x, _ = world.infinite(masking)
    return (x * world.probabilities[:, None]).T @ x


@dataclass(frozen=True, eq=False)
class TopicShares:
    """The law of one topic's share of a document, and what the other topics have then.

    Attributes:
        topics: T.
        share: Values of theta_1 (n).
        others: E[sum of theta_s^2 over the other topics], given each value (n).
        probability: Probability of each value (n).

    Example:
        See `topic_shares`.
    """

    topics: int
    share: Float[np.ndarray, " n"]
    others: Float[np.ndarray, " n"]
    probability: Float[np.ndarray, " n"]

    def mean(self, values: Float[np.ndarray, "... n"]) -> Values:
        expected = values @ self.probability
        return float(expected) if expected.ndim == 0 else expected

    @property
    def contrast(self) -> float:
        """Eigenvalue of E[theta theta'] on topic contrasts: E[theta_1^2] - E[theta_1 theta_2]."""
        square = self.mean(self.share**2)
        pair = self.mean(self.share * (1 - self.share)) / max(self.topics - 1, 1)
        return max(square - pair, 0.0) if square - pair > SAME * square else 0.0


def fixed_shares(topics: int, tau: int) -> TopicShares:
    inside = tau / topics
    return TopicShares(
        topics, np.array([1 / tau, 0.0]), np.array([(tau - 1) / tau**2, 1 / tau]), np.array([inside, 1 - inside])
    )


def dirichlet_shares(topics: int, alpha: float) -> TopicShares:
    """theta_1 is Beta(alpha, (T-1) alpha); the others, divided by 1 - theta_1, are Dirichlet again."""
    if topics == 1:
        return TopicShares(1, np.ones(1), np.zeros(1), np.ones(1))
    rest = (topics - 1) * alpha
    share, probability = beta_quadrature(alpha, rest)
    return TopicShares(topics, share, (1 - share) ** 2 * (alpha + 1) / (rest + 1), probability)


def beta_quadrature(a: float, b: float) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Gauss's nodes and weights for Beta(a, b): eigenvalues of the matrix of its orthogonal polynomials' recurrence.

    scipy.special.roots_jacobi has the same, but overflows for large a + b and loses digits for small a.
    """
    n, total = np.arange(1, SHARE_NODES), a + b
    middle = ((a - 1) ** 2 - (b - 1) ** 2) / ((2 * n + total - 2) * (2 * n + total))
    side = np.sqrt(
        n
        * (n + a - 1)
        * (n + b - 1)
        / ((2 * n + total - 2) ** 2 * (2 * n + total - 1))
        * np.where(n == 1, 1.0, (n + total - 2) / np.where(n == 1, 1.0, 2 * n + total - 3))
    )  # of n = 1 the last quotient is 1, also where it is 0 / 0
    matrix = np.diag(np.concatenate([[a / total], (1 + middle) / 2]))
    nodes, vectors = np.linalg.eigh(matrix + np.diag(side, 1) + np.diag(side, -1))
    return np.clip(nodes, 0, 1), vectors[0] ** 2


def listed_shares(thetas: Float[np.ndarray, "K T"], probability: Float[np.ndarray, " K"]) -> TopicShares:
    topics, others = thetas.shape[1], (thetas**2).sum(1)[:, None] - thetas**2
    return TopicShares(topics, thetas.ravel(), others.ravel(), np.repeat(probability / topics, topics))


def topic_shares(prior: DocumentPrior, topics: int) -> TopicShares:
    """The law of one topic's share, which is all that the second stage needs of a prior.

    Args:
        prior: An exchangeable prior: the topics are alike, in every order.
        topics: T.

    Returns:
        The values of theta_1 with their probabilities.

    Raises:
        InputError: The prior is not exchangeable, or its law is known only by draws.

    Example:
        >>> shares = topic_shares(Fixed(topics_per_document=2), topics=4)
        >>> shares.share.tolist(), shares.probability.tolist()
        ([0.5, 0.0], [0.5, 0.5])
    """
    prior.check(topics)
    if isinstance(prior, Fixed) and (prior.weights is None or np.ptp(prior.weights) == 0):
        return fixed_shares(topics, prior.topics_per_document)
    if isinstance(prior, Dirichlet) and np.ptp(prior.alpha) == 0:
        return dirichlet_shares(topics, float(np.ravel(prior.alpha)[0]))
    finite = prior.support(topics)
    if finite is not None and exchangeable_rows(*finite):
        return listed_shares(*finite)
    raise InputError(
        f"documents.kind = {getattr(prior, 'kind', type(prior).__name__)!r}: the force on attention is known in closed "
        "form where all topics are alike: kind fixed or dirichlet, or a finite law that is the same in every order"
    )


def exchangeable_rows(thetas: Float[np.ndarray, "K T"], probability: Float[np.ndarray, " K"]) -> bool:
    """Whether a swap of two topics and a turn of all of them, which make every order, leave the law as it is."""

    def law(rows: Float[np.ndarray, "K T"]) -> Float[np.ndarray, "u c"]:
        different, place = np.unique(np.round(rows, 11), axis=0, return_inverse=True)
        return np.hstack([different, np.bincount(place.ravel(), probability)[:, None]])

    topics, here = thetas.shape[1], law(thetas)
    orders = [1, 0, *range(2, topics)][-topics:], [*range(1, topics), 0]  # of one topic there is one order
    return all(
        here.shape == there.shape and bool(np.abs(here - there).max() <= SAME)
        for there in (law(thetas[:, order]) for order in orders)
    )


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
        >>> float(f"{first_stage_rates(Setting.of(10, 10, 3)).topics:.6g}")  # k^2 (T - tau) / (tau T (T - 1)) / v
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
    pairs, one = s.tau * (s.tau - 1), s.tau / s.T
    apart = (1 - rho) * pairs / (s.T * (s.T - 1)) if s.T > 1 else 0.0
    together = apart + (rho * pairs / (s.T * (h - 1)) if h > 1 else 0.0)
    scale = s.masking.k**2 / (s.v * s.tau**2)
    return GroupRates(scale * (one + (h - 1) * together - h * apart), scale * (one - together))


Loss = Literal["squared", "cross-entropy"]


def topic_contrasts(topics: int, v: int) -> Matrix:
    """Pi: the projector on topic contrasts, zero at [MASK].

    Args:
        topics: T.
        v: Words per topic.

    Returns:
        The projector (V x V), of rank T - 1.

    Example:
        >>> topic_contrasts(topics=2, v=1).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.5, -0.5], [0.0, -0.5, 0.5]]
    """
    return np.pad(np.kron(np.eye(topics) - 1 / topics, np.full((v, v), 1 / v)), ((1, 0), (1, 0)))


def force_formula(world: SmallWorld, masking: Masking, value: Matrix) -> Matrix:
    """R2: 2 p_c E[P_j x_i (e_i - x)' W' (e_j - P)], the force at L = 0, for W with W x = P in every document.

    Given the document and the word j shown, the expected error is p_c P_j (P - e_j); at [MASK] it is 0.

    Args:
        world: A small world.
        masking: The masking scheme.
        value: W_V (V x V), optimal for infinite documents.

    Returns:
        The force (V x V): key word, query word.

    Example:
        >>> from topicscope.theory import score_force, theorem2
        >>> world, setting = subset_world(4, 3, grouped_subsets(4, 2)), Setting.of(4, 3, 2)
        >>> value = theorem2(setting).matrix()
        >>> difference = force_formula(world, setting.masking, value) - score_force(world, setting.masking, value)
        >>> bool(abs(difference).max() < 1e-15)
        True
    """
    eye, documents = np.eye(len(value)), zip(*world.infinite(masking), world.probabilities, strict=True)
    forces = (chance * x[:, None] * ((eye - x) @ value.T @ (eye - p).T) * p for x, p, chance in documents)
    return 2 * masking.p_correct * np.asarray(sum(forces))


def contrast_force(shares: TopicShares, v: int, masking: Masking) -> float:
    """sigma: at W* of disjoint topics of v equally probable words, -dLoss/dL = sigma Pi (R2).

    With x_1 = k theta_1 / v + p_2 and q = |theta|^2, sigma = 2 p_c / (k v) (E[theta_1 x_1 (1 - theta_1 - k (theta_1 -
    q))] + E[theta_2 x_1 (theta_1 + k (theta_2 - q))]). For tau topics of equal shares this is 2 p_c p_1 (tau - 1) / (k
    v tau (T - 1)).

    Args:
        shares: The law of one topic's share.
        v: Words per topic.
        masking: The masking scheme.

    Returns:
        sigma.

    Example:
        >>> float(f"{contrast_force(topic_shares(Fixed(topics_per_document=2), 4), 3, Masking()):.6g}")
        0.00186791
    """
    if shares.topics == 1:
        return 0.0
    k, theta = masking.k, shares.share
    x = k * theta / v + masking.p_mask * masking.p_random / (shares.topics * v)
    q = theta**2 + shares.others
    own = theta * x * (1 - theta - k * (theta - q))
    other = x * ((1 - theta) * theta + k * (shares.others - (1 - theta) * q)) / (shares.topics - 1)
    return 2 * masking.p_correct / (k * v) * shares.mean(own + other)


def inside_force(shares: TopicShares, v: int, masking: Masking) -> float:
    """delta: at the optimum of long documents -dLoss/dL = sigma Pi + delta Pi_w, Pi_w: differences inside topics.

    That optimum has a diagonal b = p_c / (k + p_m p_r) (R5), which adds 2 p_c b E[P_j x_i] for two words of one topic.
    For tau topics delta / sigma = b k tau (T - 1) / (T (tau - 1)).

    Args:
        shares: The law of one topic's share.
        v: Words per topic.
        masking: The masking scheme.

    Returns:
        delta.

    Example:
        >>> shares, m = topic_shares(Fixed(topics_per_document=2), 4), Masking()
        >>> round(inside_force(shares, 3, m) / contrast_force(shares, 3, m), 6)
        0.147443
    """
    k, theta = masking.k, shares.share
    x = k * theta / v + masking.p_mask * masking.p_random / (shares.topics * v)
    diagonal = masking.p_correct / (k + masking.p_mask * masking.p_random)
    return 2 * masking.p_correct * diagonal * shares.mean(theta / v * x)


class MaskForce(NamedTuple):
    """Force on the [MASK] query per unit of w where W = w Pi, under cross entropy near zero (R7).

    Attributes:
        word: At every word as key.
        mask: At [MASK] as key.
        size: Size of the whole column: one singular value.

    Example:
        See `mask_force`.
    """

    word: float
    mask: float
    size: float


def mask_force(shares: TopicShares, v: int, masking: Masking) -> MaskForce:
    """p_0 E[x_i (e_i - x)' Pi P]: once topics show in W_V, [MASK] learns not to attend [MASK] (R7).

    Args:
        shares: The law of one topic's share.
        v: Words per topic.
        masking: The masking scheme.

    Returns:
        The force on the [MASK] query.

    Example:
        >>> force = mask_force(topic_shares(Fixed(topics_per_document=2), 4), 3, Masking())
        >>> float(f"{force.size:.6g}"), force.mask < 0 < force.word
        (0.00720256, True)
    """
    p0, topics, k, theta = masking.p_mask_word, shares.topics, masking.k, shares.share
    x = k * theta / v + masking.p_mask * masking.p_random / (topics * v)
    spread = k / v * (theta**2 + shares.others - 1 / topics)  # x' Pi P
    word = p0 * shares.mean(x * ((theta - 1 / topics) / v - spread))
    mask = -p0 * masking.p_mask * p0 * shares.mean(spread)
    return MaskForce(word, mask, float(np.hypot(mask, np.sqrt(topics * v) * word)))
