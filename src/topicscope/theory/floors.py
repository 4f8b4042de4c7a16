"""How good a model can get on given documents: the Bayes-optimal loss, and the optimum under uniform attention.

Bayes: the posterior mean of the topic proportions comes from the prior. It is exact for infinite documents, for
disjoint topics under all priors but the logistic normal, and for any topics under a finite law that is small. Elsewhere
it is estimated by importance sampling. A predictor that is slightly off can only be worse on average, so the
estimate errs upwards: the first-order error vanishes at the optimum, and the second-order one is seen in two halves of
the draws. Both are in `numerical_error`. Where the draws are worth too few, there is no floor, and `NoFloor` says why.

Uniform attention and squared loss: a (ridge) least-squares problem. The prediction for a document is U x, x the word
distribution that it shows, wanted is the mean y of the one-hot true words:
    loss = mean_b |U x_b + c - y_b|^2 + mean_b (1 - |y_b|^2)  (up to the factor 1 / V of 'squared-mean').
Without ridge the solution of least norm is taken: Theorem 2's limit.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError
from topicscope.world import MASK, DocumentPrior, InfiniteDocuments, MaskedDocuments, Masking, Rows, TopicModel


@dataclass(frozen=True)
class BayesLoss:
    """The Bayes-optimal loss on given masked documents.

    Attributes:
        loss: Mean over documents.
        standard_error: Standard error of that mean.
        documents: Number of documents.
        numerical_error: Error of an estimated posterior; None: the posterior is exact.
        costs: Loss of each finite document (D).

    Example:
        See `bayes_loss`.
    """

    loss: float
    standard_error: float
    documents: int
    numerical_error: float | None = None
    costs: Float[np.ndarray, " D"] | None = field(default=None, repr=False, compare=False)


class NoFloor(InputError):  # noqa: N818  (nothing is wrong)
    """There is no sound number; the message says why.

    Example:
        >>> issubclass(NoFloor, InputError)
        True
    """


FEWEST_EFFECTIVE = 100  # draws that the posterior of a row has to be worth, in the harmonic mean over rows


def bayes_loss(
    loss: Literal["cross-entropy", "squared", "squared-mean"],
    topic_model: TopicModel,
    prior: DocumentPrior,
    masking: Masking,
    documents: MaskedDocuments | InfiniteDocuments,
    *,
    hide_masked: bool = False,
    own_word: bool = True,
) -> BayesLoss:
    """The least loss that any predictor can have on these masked documents, under the prior that made them.

    Args:
        loss: 'cross-entropy', 'squared' or 'squared-mean'.
        topic_model: Words and topics.
        prior: The prior that made the documents.
        masking: The masking scheme.
        documents: Masked documents, or infinite ones.
        hide_masked: The predictor sees which positions are masked, as a model with `hide_masked` does.
        own_word: Use which word the predicted position shows; without it, only the posterior of the document's topics.

    Returns:
        The loss, with its standard error.

    Raises:
        NoFloor: The posterior is not known well enough.

    Example:
        >>> from topicscope.world import Fixed, every_document
        >>> model, prior = TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite")
        >>> documents = every_document(model, 2)
        >>> only_mask = Masking(p_correct=0.0, p_random=0.0)
        >>> round(bayes_loss("cross-entropy", model, prior, only_mask, documents).loss, 6)  # ln(tau v)
        1.791759
    """
    if isinstance(documents, InfiniteDocuments):
        return _infinite_loss(loss, topic_model, masking, documents, own_word)
    masks, count = documents.masks, len(documents)
    counts, a, e = shown_evidence(topic_model, masking, documents, hide_masked=hide_masked)
    looked_at = masks.shown if own_word else MASK
    pair, row = np.unique(masks.document * topic_model.vocabulary + looked_at, return_inverse=True)
    document, shown = np.divmod(pair, topic_model.vocabulary)
    evidence = counts[document, 1:]
    if own_word and not hide_masked:  # the predicted position itself is judged apart, since it is known to be masked
        words = np.flatnonzero(shown != MASK)
        evidence[words, shown[words] - 1] -= 1
    posterior = prior.posterior(topic_model, evidence, a, e)

    def per_document(mean: Float[np.ndarray, "R T"]) -> Float[np.ndarray, " D"]:
        cost = _position_costs(loss, topic_model, masking, mean, shown, row, masks.true)
        return np.bincount(masks.document, cost, count) / np.bincount(masks.document, minlength=count)

    costs = per_document(posterior.mean)
    error = None
    if posterior.halves is not None and posterior.effective is not None:
        worth = float(1 / (1 / posterior.effective).mean())
        if worth < FEWEST_EFFECTIVE:
            raise NoFloor(
                f"the posterior of the topic proportions is not known: its draws are worth {worth:.3g} "
                f"(harmonic mean over rows), fewer than {FEWEST_EFFECTIVE}; shorter documents or fewer topics would do"
            )
        first, second = (float(per_document(half).mean()) for half in posterior.halves)
        # the mean of two has half of their excess; the difference shows what is left of chance
        error = abs((first + second) / 2 - float(costs.mean())) + abs(first - second) / 2
    return BayesLoss(float(costs.mean()), float(costs.std() / math.sqrt(count)), count, error, costs)


def shown_evidence(
    topic_model: TopicModel, masking: Masking, documents: MaskedDocuments, *, hide_masked: bool
) -> tuple[Float[np.ndarray, "D V"], float, float]:
    """How often each document shows each word, and how probable that is."""
    counts = documents.shown_counts(topic_model.vocabulary)
    if not hide_masked:
        return counts, masking.k, masking.p_mask * masking.p_random / topic_model.words
    np.subtract.at(counts, (documents.masks.document, documents.masks.shown), 1)
    return counts, 1.0, 0.0


def _position_costs(
    loss: str,
    topic_model: TopicModel,
    masking: Masking,
    mean: Float[np.ndarray, "R T"],
    shown: Int[np.ndarray, " R"],
    row: Int[np.ndarray, " P"],
    true: Int[np.ndarray, " P"],
) -> Float[np.ndarray, " P"]:
    """Cost of each masked position: the prediction is spread * (A mean)_w, with a bonus at the word that is shown."""
    if not topic_model.disjoint:
        return _general_costs(loss, topic_model, masking, mean, shown, row, true)
    topic, q = topic_model.topic_of_word - 1, topic_model.word_in_topic
    share = mean[np.arange(len(mean)), topic[shown]]
    own = np.where(shown == MASK, 0, masking.p_correct * share * q[shown])  # P(its own word, shown)
    other = np.where(shown == MASK, 1, masking.p_random / topic_model.words)  # P(shown | a replacement)
    spread, bonus = other / (other + own), own / (other + own)
    p = spread[row] * mean[row, topic[true]] * q[true] + np.where(shown[row] == true, bonus[row], 0)
    if loss == "cross-entropy":
        return -np.log(p)
    square = spread**2 * (mean**2 @ (topic_model.by_topic(q[1:]) ** 2).sum(1))
    cost = (square + bonus * (bonus + 2 * spread * share * q[shown]))[row] - 2 * p + 1
    return cost / topic_model.vocabulary if loss == "squared-mean" else cost


def _general_costs(
    loss: str,
    topic_model: TopicModel,
    masking: Masking,
    mean: Float[np.ndarray, "R T"],
    shown: Int[np.ndarray, " R"],
    row: Int[np.ndarray, " P"],
    true: Int[np.ndarray, " P"],
) -> Float[np.ndarray, " P"]:
    """The same where words have several topics, by the whole distribution of each row."""
    p = np.insert(topic_model.word_distribution(mean), MASK, 0, axis=1)  # R x V, of the true word
    rows = np.arange(len(mean))
    own = np.where(shown == MASK, 0, masking.p_correct * p[rows, shown])
    p *= np.where(shown == MASK, 1, masking.p_random / topic_model.words)[:, None]
    p[rows, shown] += own
    p /= p.sum(1, keepdims=True)
    if loss == "cross-entropy":
        return -np.log(p[row, true])
    cost = (p**2).sum(1)[row] - 2 * p[row, true] + 1
    return cost / topic_model.vocabulary if loss == "squared-mean" else cost


def _infinite_loss(
    loss: str, topic_model: TopicModel, masking: Masking, documents: InfiniteDocuments, own_word: bool
) -> BayesLoss:
    """An infinite document shows its proportions exactly; only the word given the word shown is still random."""
    vocabulary, costs = topic_model.vocabulary, []
    for rows in documents.batches(topic_model, masking, uniform=not own_word):
        row, count = rows.target // vocabulary, len(rows.context)
        p = rows.target_weight / rows.weight[row]  # the true distribution of each row
        cost = -np.log(p) if loss == "cross-entropy" else 1 - p  # sums to -p log p, or to 1 - |p|^2
        costs.append(np.bincount(rows.document[row], rows.target_weight * cost, count) * count)
    each = np.concatenate(costs) / (vocabulary if loss == "squared-mean" else 1)
    return BayesLoss(float(each.mean()), float(each.std() / math.sqrt(len(each))), len(each), None, each)


@dataclass(frozen=True)
class UniformOptimum:
    """The best prediction U x + c under uniform attention, by least squares.

    Attributes:
        matrix: U (V x V).
        bias: c (V).
        loss: Squared loss, without the penalty.
        objective: Squared loss with the penalty.

    Example:
        See `uniform_optimum`.
    """

    matrix: Float[np.ndarray, "V V"]
    bias: Float[np.ndarray, " V"]
    loss: float
    objective: float


def uniform_optimum(
    batches: Iterable[Rows], *, ridge: float = 0.0, bias: Float[np.ndarray, " V"] | None = None, free_bias: bool = False
) -> UniformOptimum:
    """The best prediction U x + c under uniform attention, by least squares over batches.

    Args:
        batches: Made with `uniform=True`.
        ridge: Penalty on U. For 'squared-mean' give V * ridge and divide both losses by V.
        bias: c, fixed; None: 0.
        free_bias: Fit c, without penalty.

    Returns:
        U, c and the squared loss, summed over outputs.

    Example:
        >>> from topicscope.theory import Setting, theorem2
        >>> from topicscope.world import every_document
        >>> setting = Setting.of(4, 3, 2)
        >>> documents = every_document(setting.topic_model, 2)
        >>> best = uniform_optimum(documents.batches(setting.topic_model, setting.masking, uniform=True))
        >>> round(best.loss, 6), bool(abs(best.matrix - theorem2(setting).matrix()).max() < 1e-9)
        (0.833333, True)
    """

    def wanted(rows: Rows) -> Float[np.ndarray, "D V"]:
        size = rows.context.shape
        return np.bincount(rows.target, rows.target_weight, math.prod(size)).reshape(size) * size[0]

    parts = [(rows.context.astype(float), wanted(rows)) for rows in batches]
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    spread = sum(float((1 - (part**2).sum(1)).sum()) for _, part in parts)
    total, vocabulary = x.shape
    scale, fixed = 1 / np.sqrt(total), np.zeros(vocabulary) if bias is None else bias
    left, right = (np.hstack([x, np.ones((total, 1))]) if free_bias else x) * scale, (y - fixed) * scale
    if ridge > 0:
        left = np.vstack([left, np.sqrt(ridge) * np.eye(vocabulary, left.shape[1])])
        right = np.vstack([right, np.zeros((vocabulary, vocabulary))])
    solution = np.linalg.lstsq(left, right, rcond=1e-11)[0].T
    matrix = solution[:, :vocabulary]
    c = fixed + solution[:, -1] if free_bias else fixed
    loss = float(((x @ matrix.T + c - y) ** 2).sum() + spread) / total
    return UniformOptimum(matrix, c, loss, loss + ridge * float((matrix**2).sum()))
