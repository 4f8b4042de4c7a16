"""The logistic normal prior, theta = softmax(eta): its moments are exact where topics are independent, else numerical.

With g = exp(eta) of independent topics and 1 / (sum of g)^2 = int s exp(-s sum of g) ds (s = exp(x)), expectations of
theta are integrals over x of products of one factor per topic:

    E[theta_s theta_t] = int G_s G_t (product of F over the other topics) dx,  F = E[exp(-y)], G = E[y exp(-y)],
    E[theta_t^2] = int H_t (product of F over the other topics) dx,  H = E[y^2 exp(-y)],  y = exp(x + eta_t).

The trapezoidal rule converges to machine precision, since all of them are analytic. Posteriors are estimated from
draws.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view
from pydantic import BeforeValidator, Field

from topicscope.ground import (
    WIDEST,
    Matrix,
    PositiveRate,
    Stream,
    Text,
    expected,
    generator,
    number_only,
    refuse_if,
)
from topicscope.world.priors import (
    DRAWS,
    Asked,
    DocumentPrior,
    Evidence,
    Length,
    Moments,
    Posterior,
    Proportions,
    Proposal,
    from_proposals,
    of_rows,
    prior,
)
from topicscope.world.topics import TopicModel, matrix_of, plain

PRIOR_SHARE = 0.1  # of a proposal that is the prior itself
Centre = Annotated[float, Field(ge=-1000, le=1000), number_only]
Variance = Annotated[float, Field(ge=0, le=1e4), number_only]


@prior
class LogisticNormal(DocumentPrior):
    """theta = softmax(eta), where eta is normal: topics may be correlated.

    Moments are exact for independent topics; otherwise they are numerical, with their error.

    Attributes:
        kind: 'logistic-normal', the name in configuration files.
        mean: Mean of eta: one number for all topics, or a list with one per topic.
        covariance: A matrix (T x T), the path of one, or a number: the variance of independent topics.
        length: Words per document: a number, an inclusive range (low, high), or 'infinite'.

    Example:
        >>> from topicscope import LogisticNormal
        >>> moments = LogisticNormal(mean=[0.0, 1.0], covariance=0.5).moments(topics=2)
        >>> moments.mean.round(4).tolist(), moments.error
        ([0.3033, 0.6967], 0.0)
    """

    FORM: ClassVar = (Asked("covariance", PositiveRate, 1.0, "variance of topics", low=0.01, high=10, log=True),)

    kind: Literal["logistic-normal"] = "logistic-normal"
    mean: Annotated[Centre | Annotated[list[Centre], Field(max_length=WIDEST)], BeforeValidator(plain)] = 0.0
    covariance: Annotated[
        Variance | Matrix | Text,
        BeforeValidator(plain),
        expected(
            "documents.covariance",
            "a variance from 0 to 10,000, or a matrix: a row and a column per topic, or the file of one",
        ),
    ]
    length: Length = (100, 150)

    def check(self, topics: int) -> None:
        self._check_mean(topics)
        if not isinstance(self.covariance, float):  # a number fits any number of topics, however large
            self.law(topics)

    def _check_mean(self, topics: int) -> None:
        given = len(self.mean) if isinstance(self.mean, list) else topics
        refuse_if(given != topics, f"documents.mean has {given} numbers; expected one number per topic ({topics})")

    def law(self, topics: int) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "T k"]]:
        """Mean, and a root of the covariance: eta = mean + root z with z standard normal."""
        self._check_mean(topics)
        centre, name = np.full(topics, self.mean), "documents.covariance"
        if isinstance(self.covariance, float):
            return centre, math.sqrt(self.covariance) * np.eye(topics)
        matrix = matrix_of(self.covariance, name)
        refuse_if(
            matrix.shape != (topics, topics),
            f"{name} has shape {matrix.shape}; expected ({topics}, {topics}): a row and a column per topic",
        )
        largest = np.abs(matrix).max()
        refuse_if(
            largest > 1e4 or np.abs(matrix - matrix.T).max() > 1e-9 * largest,
            f"{name}: expected a symmetric matrix of numbers up to 10,000",
        )
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        refuse_if(
            values[0] < -1e-9 * max(largest, 1e-300),
            f"{name} is not positive semidefinite: its smallest eigenvalue is {values[0]:.3g}; "
            "no normal law has such a covariance",
        )
        kept = values > 1e-12 * largest
        return centre, vectors[:, kept] * np.sqrt(values[kept])

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Proportions:
        centre, root = self.law(topics)
        return softmax(centre + rng.standard_normal((count, root.shape[1])) @ root.T)

    def moments(self, topics: int) -> Moments:
        centre, root = self.law(topics)
        covariance = root @ root.T
        common = covariance[0, -1] if topics > 1 else 0.0  # a shift of all topics that all documents have alike
        rest = covariance - common
        variance = np.diagonal(rest)
        if np.abs(rest - np.diag(variance)).max() <= 1e-12 * np.abs(covariance).max() and variance.min() >= 0:
            return independent_normal(centre, variance)
        return correlated_normal(centre, root)

    def exact(self, topic_model: TopicModel) -> bool:
        return False

    def posterior(self, topic_model: TopicModel, evidence: Evidence, a: float, e: float) -> Posterior:
        """Proposals are Student's t around the mode of each row, and the prior."""
        centre, root = self.law(topic_model.topics)
        mode = np.zeros(root.shape[1])

        def proposal_of(words: Float[np.ndarray, "w T"], counts: Float[np.ndarray, " w"]) -> Proposal:
            nonlocal mode  # rows of one document follow one another, and have nearly the same mode
            mode, spread = normal_mode(words, counts, a, e, centre, root, mode)
            return functools.partial(normal_draws, mode, spread, centre, root)

        return from_proposals(topic_model, evidence, a, e, proposal_of)


STEP = 0.2  # of the trapezoidal rule: its error is about exp(-9 / STEP)
EXPONENT = 38.0  # steps over x may be larger where their error is at most exp(-38)
WIDTH = 9.0  # standard deviations of a normal variable that are looked at
AT_ONCE = 2**22  # numbers of a slice
SETS, PARTS = 16, 4  # of points of the quasi-Monte Carlo rule, and how many independent estimates are kept of them
POINTS, FEW_POINTS, MANY = 14, 11, 64  # of a set, as powers of two; few in more than 64 dimensions


def independent_normal(centre: Float[np.ndarray, " T"], variance: Float[np.ndarray, " T"]) -> Moments:
    """eta_t normal and independent; exact to rounding."""
    spread = np.sqrt(variance)
    if not spread.any():
        return of_rows(softmax(centre)[None])
    low, high = (float((centre + side * WIDTH * spread).max()) for side in (-1, 1))  # the largest eta lies between
    x = np.arange(-high - np.log(len(centre)) - 20, 5 - low, STEP * _coarser(spread))
    kinds, which = np.unique(np.stack([spread, centre]), axis=1, return_inverse=True)
    alike = np.split(kinds[1], np.flatnonzero(np.diff(kinds[0])) + 1)  # centres of each spread
    found = [_factors(x, centres, one) for one, centres in zip(np.unique(kinds[0]), alike, strict=True)]
    factors = np.concatenate(found)[which.ravel()]  # topics, F G H, x
    none, one, two = np.maximum(factors[:, 0], 1e-300), factors[:, 1], factors[:, 2]
    product = np.log(none).sum(0)
    first = one / none * np.exp(product / 2)
    second = first @ first.T
    np.fill_diagonal(second, (two * np.exp(product - np.log(none))).sum(1))
    second /= second.sum()
    return Moments(second.sum(1), second)


def _coarser(spread: Float[np.ndarray, " T"]) -> int:
    """How many steps at a time the integral over x may take.

    Wide normals make it smooth: a factor at x + iy is at most exp(y^2 / (2 spread^2)) times that at x. So the error of
    a step h is at most exp(-(2 pi / h)^2 / (2 q)) of the integral, q = sum of 1 / spread^2.
    """
    if not spread.all():
        return 1
    return max(1, int(2 * np.pi / np.sqrt(2 * EXPONENT * (1 / spread**2).sum()) / STEP))


def _factors(x: Float[np.ndarray, " n"], centres: Float[np.ndarray, " c"], spread: float) -> Float[np.ndarray, "c 3 n"]:
    """E[exp(-y)], E[y exp(-y)] and E[y^2 exp(-y)], y = exp(x + eta), for topics of one spread.

    The nodes of a wide normal lie on a grid that x is part of: x + eta takes few values, and each is looked at once.
    """
    step, found = min(STEP, spread / 3), np.empty((len(centres), 3, len(x)))
    reach = math.ceil(WIDTH * spread / step) if spread else 0
    z = step * np.arange(-reach, reach + 1)
    weight = np.exp(-((z / spread) ** 2) / 2) if spread else np.ones(1)
    weight /= weight.sum()
    stride = round((x[1] - x[0]) / step) if step == STEP else 0
    for start in range(0, len(x), rows := max(1, AT_ONCE // len(z))):
        part = x[start : start + rows]
        if not stride:
            for centre, into in zip(centres, found, strict=True):
                into[:, start : start + rows] = _powers(part[:, None] + centre + z) @ weight
            continue
        grid = part[0] + z[0] + step * np.arange((len(part) - 1) * stride + len(z))
        band, row = np.zeros((len(part), len(grid))), np.arange(len(part))
        sliding_window_view(band, len(z), axis=1, writeable=True)[row, stride * row] = weight  # from x_i on
        for first in range(0, len(centres), some := max(1, AT_ONCE // len(grid))):
            values = _powers(grid + centres[first : first + some, None])
            found[first : first + some, :, start : start + rows] = (values @ band.T).transpose(1, 0, 2)
    return found


def _powers(log_y: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "3 m n"]:
    y = np.exp(np.clip(log_y, -700, 7))  # exp(-exp(7)) is 0
    left = np.exp(-y)
    return np.stack([left, y * left, y * y * left])


def correlated_normal(centre: Float[np.ndarray, " T"], root: Float[np.ndarray, "T k"]) -> Moments:
    """eta = centre + root z, z normal, by quasi-Monte Carlo: Sobol points, scrambled SETS times.

    The spread over the sets is the error of entries. Half the difference of the means of odd and even sets has the law
    of the error itself: its spectral norm is the error of eigenvalues (and at least what the errors of entries leave).
    The means of a quarter of the sets each are `parts`.
    """
    return _from_points(centre.tobytes(), root.tobytes())


@functools.lru_cache(maxsize=2)  # a run asks several times
def _from_points(centre_bytes: bytes, root_bytes: bytes) -> Moments:
    from scipy.special import ndtri  # here, since not every command needs it
    from scipy.stats import qmc

    centre = np.frombuffer(centre_bytes)
    root = np.frombuffer(root_bytes).reshape(len(centre), -1)
    topics, k = root.shape
    mean, spread, turned = (np.zeros((topics + 1, topics)) for _ in range(3))  # E[theta] above E[theta theta']
    points, quarters = POINTS if k <= MANY else FEW_POINTS, np.zeros((PARTS, topics + 1, topics))
    for number in range(SETS):
        uniform = qmc.Sobol(k, rng=generator(0, Stream.MOMENT_POINTS, number)).random_base2(points)
        theta = softmax(centre + ndtri(np.clip(uniform, 1e-15, 1 - 1e-15)) @ root.T)
        part = np.vstack([theta.mean(0), theta.T @ theta / len(theta)])
        turned += (-1) ** number * part / SETS
        quarters[number % PARTS] += part * PARTS / SETS
        off = part - mean
        mean += off / (number + 1)
        spread += off * (part - mean)
    errors = np.sqrt(spread / (SETS * (SETS - 1)))
    norm = max(float(np.linalg.norm(turned[1:], 2)), float(np.linalg.norm(errors[1:])) / np.sqrt(topics))
    parts = tuple(Moments(quarter[0], quarter[1:]) for quarter in quarters)
    return Moments(mean[0], mean[1:], float(errors[1:].max()), float(errors[0].max()), float(norm), parts)


def normal_mode(
    words: Float[np.ndarray, "w T"],
    counts: Float[np.ndarray, " w"],
    a: float,
    e: float,
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
    start: Float[np.ndarray, " k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Mode of z by Gauss-Newton steps, halved where they lead down, and a root of the inverse curvature there."""
    z, identity = start, np.eye(root.shape[1])

    def value(z: Float[np.ndarray, " k"]) -> float:
        return float(counts @ np.log(np.maximum(a * words @ softmax(centre + root @ z) + e, 1e-300)) - z @ z / 2)

    best = value(z)
    for _ in range(30):
        theta = softmax(centre + root @ z)
        p = np.maximum(a * words @ theta + e, 1e-300)
        own = a * words * theta / p[:, None]  # share of a word's probability that each topic has; the rest is chance
        whole = own.sum(1)
        slope = own - whole[:, None] * theta  # of log p in the scores of topics
        information = identity + root.T @ ((slope * counts[:, None]).T @ slope) @ root
        step = np.linalg.solve(information, counts @ slope @ root - z)
        size = 1.0
        while size > 1e-3 and value(z + size * step) < best:
            size /= 2
        if size <= 1e-3 or size * np.abs(step).max() < 1e-3:
            break
        z = z + size * step
        best = value(z)
    # the second derivative itself, where it is that of a peak
    made, seen = counts @ own, counts @ whole
    curvature = np.diag(made - seen * theta) - np.outer(made, theta) - (own * counts[:, None]).T @ slope
    curvature += seen * np.outer(theta, theta) - np.outer(theta, (counts * (1 - whole)) @ slope)
    exact = identity - root.T @ ((curvature + curvature.T) / 2) @ root
    precision = exact if np.linalg.eigvalsh(exact)[0] > 0.1 else information
    return z, np.linalg.inv(np.linalg.cholesky(precision)).T


def normal_draws(
    mode: Float[np.ndarray, " k"],
    spread: Float[np.ndarray, "k k"],
    centre: Float[np.ndarray, " T"],
    root: Float[np.ndarray, "T k"],
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "n T"], Float[np.ndarray, " n"]]:
    """Draws of a mixture of a Student's t and the prior; and the log of prior over mixture."""
    from scipy.special import gammaln

    k, own, freedom = len(mode), round((1 - PRIOR_SHARE) * DRAWS), 10.0
    scale = np.sqrt(freedom / rng.chisquare(freedom, size=(own, 1)))
    near = mode + scale * rng.standard_normal((own, k)) @ spread.T
    z = np.concatenate([near, rng.standard_normal((DRAWS - own, k))])
    distance = (np.linalg.solve(spread, (z - mode).T) ** 2).sum(0)
    student = gammaln((freedom + k) / 2) - gammaln(freedom / 2) - k / 2 * np.log(freedom * np.pi)
    log_student = student - np.linalg.slogdet(spread)[1] - (freedom + k) / 2 * np.log1p(distance / freedom)
    log_prior = -(z**2).sum(1) / 2 - k / 2 * np.log(2 * np.pi)
    mixture = np.logaddexp(np.log(own / DRAWS) + log_student, np.log(1 - own / DRAWS) + log_prior)
    return softmax(centre + z @ root.T), log_prior - mixture


def softmax(scores: Float[np.ndarray, "*n T"]) -> Float[np.ndarray, "*n T"]:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)
