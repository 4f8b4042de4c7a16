"""The best that any predictor can do: the Bayes-optimal loss on given masked documents, under the prior that made
them.

The posterior mean of the topic proportions comes from the prior and is exact. The loss is that on these documents and
masks, a sample mean whose standard error is returned beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from topicscope.world import MASK, DocumentPrior, InfiniteDocuments, MaskedDocuments, Masking, TopicModel


@dataclass(frozen=True)
class BayesLoss:
    """Mean over documents, its standard error, and the number of documents."""

    loss: float
    standard_error: float
    documents: int


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
    """Loss of the Bayes-optimal predictor.

    With `hide_masked` it knows which positions are masked, as such a model does.

    Without `own_word` it predicts from the posterior of the document's topics alone, given all words shown. It does
    not use which of them its own position shows. Attention that is the same for every query comes near to that.
    """
    if isinstance(documents, InfiniteDocuments):
        return _infinite_loss(loss, topic_model, masking, documents, own_word)
    masks, count = documents.masks, len(documents)
    counts = documents.shown_counts(topic_model.vocabulary)
    a, e = masking.k, masking.p_mask * masking.p_random / topic_model.words
    if hide_masked:
        np.subtract.at(counts, (masks.document, masks.shown), 1)
        a, e = 1.0, 0.0
    looked_at = masks.shown if own_word else np.full_like(masks.shown, MASK)
    pair, row = np.unique(masks.document * topic_model.vocabulary + looked_at, return_inverse=True)
    document, shown = np.divmod(pair, topic_model.vocabulary)
    evidence = counts[document, 1:]
    if own_word and not hide_masked:  # the predicted position itself is judged apart, since it is known to be masked
        words = np.flatnonzero(shown != MASK)
        evidence[words, shown[words] - 1] -= 1
    mean = prior.posterior_mean(topic_model, evidence, a, e)
    cost = _position_costs(loss, topic_model, masking, mean, shown, row, masks.true)
    masked_positions = np.bincount(masks.document, minlength=count)
    per_document = np.bincount(masks.document, weights=cost, minlength=count) / masked_positions
    return BayesLoss(float(per_document.mean()), float(per_document.std() / math.sqrt(count)), count)


def _position_costs(
    loss: str,
    topic_model: TopicModel,
    masking: Masking,
    mean: Float[np.ndarray, "R T"],
    shown: Int[np.ndarray, " R"],
    row: Int[np.ndarray, " P"],
    true: Int[np.ndarray, " P"],
) -> Float[np.ndarray, " P"]:
    """Cost of each masked position: the prediction is spread * (mean_t q_w), with a bonus at the word that is shown."""
    topic, q = topic_model.topic_of_word - 1, topic_model.word_in_topic
    share = mean[np.arange(len(mean)), topic[shown]]
    own = np.where(shown == MASK, 0, masking.p_correct * share * q[shown])  # P(its own word, shown)
    other = np.where(shown == MASK, 1, masking.p_random / topic_model.words)  # P(shown | a replacement)
    spread, bonus = other / (other + own), own / (other + own)
    p = spread[row] * mean[row, topic[true]] * q[true] + np.where(shown[row] == true, bonus[row], 0)
    if loss == "cross-entropy":
        return -np.log(p)
    square = spread**2 * (mean**2 @ (topic_model.word_given_topic**2).sum(1))
    square += bonus * (bonus + 2 * spread * share * q[shown])
    cost = square[row] - 2 * p + 1
    return cost / topic_model.vocabulary if loss == "squared-mean" else cost


def _infinite_loss(
    loss: str, topic_model: TopicModel, masking: Masking, documents: InfiniteDocuments, own_word: bool
) -> BayesLoss:
    """An infinite document shows its proportions exactly; only the word given the word shown is still random."""
    total = 0.0
    for rows in documents.batches(topic_model, masking, uniform=not own_word):
        share = rows.target_weight / rows.weight[rows.target // topic_model.vocabulary]
        # expected -log p or 1 - |p|^2 of the true distribution p of each row
        cost = -(rows.target_weight @ np.log(share)) if loss == "cross-entropy" else 1 - rows.target_weight @ share
        total += cost * len(rows.context)
    mean = float(total) / len(documents)
    return BayesLoss(mean / topic_model.vocabulary if loss == "squared-mean" else mean, 0.0, len(documents))
