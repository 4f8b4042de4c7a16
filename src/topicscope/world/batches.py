"""What the collapsed forward pass reads: word counts, and the distinct (document, query word) pairs to be predicted.

The model has no positions, so a document is its word counts, and all positions that show the same word get the same
prediction. A `Batch` lists each pair once (a 'row'), with the true words wanted there and how much each weighs in the
objective (eq 1): a masked position of document b weighs 1 / (documents * |M_b|). Infinite documents have
probabilities in place of counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.world.masking import Masked, Masking
from topicscope.world.topics import MASK, TopicModel

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Batches of E models side by side; indices point into the flattened leading axes: one gather serves all models.

    `context` holds log counts of the words that attention sees, or their shares where attention is uniform.
    """

    context: Float[Tensor, "E B V"]
    row_document: Int[Tensor, " E*R"]  # e * B + document
    row_query: Int[Tensor, " E*R"]  # e * V + word shown at the predicted positions
    row_weight: Float[Tensor, "E R 1"]  # sums to 1 over a model's rows
    target: Int[Tensor, " E*P"]  # (e * R + row) * V + true word
    target_weight: Float[Tensor, " E*P"]

    def to(self, device: torch.device) -> Batch:
        return Batch(*(getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)))


class Rows(NamedTuple):
    """One model's batch in numpy, before models are put side by side."""

    context: Float[np.ndarray, "B V"]
    document: Int[np.ndarray, " R"]
    query: Int[np.ndarray, " R"]
    weight: Float[np.ndarray, " R"]
    target: Int[np.ndarray, " P"]  # row * V + true word
    target_weight: Float[np.ndarray, " P"]


def context_of(counts: Float[np.ndarray, "B V"], uniform: bool) -> Float[np.ndarray, "B V"]:
    if uniform:
        return counts / counts.sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(counts)


def real_type(dtype: torch.dtype) -> np.dtype:
    return np.dtype(str(dtype).removeprefix("torch."))


def word_counts(words: Int[np.ndarray, "D N"], vocabulary: int) -> Float[np.ndarray, "D V"]:
    """How often each word occurs in each document (padding left out)."""
    counts = np.zeros((len(words), vocabulary), dtype=np.float32)
    slice_size = max(1, 1_000_000 // max(1, words.shape[1]))
    for start in range(0, len(words), slice_size):
        part = words[start : start + slice_size]
        flat = (np.arange(len(part))[:, None] * vocabulary + part)[part >= 0]
        occurrences = np.bincount(flat, minlength=len(part) * vocabulary)
        counts[start : start + slice_size] = occurrences.reshape(len(part), vocabulary)
    return counts


def masked_rows(
    counts: Float[np.ndarray, "D V"], masked: Masked, batch: int, real: np.dtype, *, uniform: bool, hide_masked: bool
) -> list[Rows]:
    """Split masked documents into batches of `batch` documents. `counts`, of the words before masking, are overwritten.

    Indices are exact; shares and weights are computed in the type `real`.
    `uniform`: attention does not depend on the query, so a document needs one row only.
    `hide_masked`: attention does not see masked positions (as in the authors' code), unless the document has no other.
    """
    documents, vocabulary = counts.shape
    flat = counts.reshape(-1)
    base = masked.document * vocabulary
    np.subtract.at(flat, base + masked.true, np.float32(1))
    if hide_masked:
        blind = flat.reshape(documents, vocabulary).sum(1) == 0
        seen = blind[masked.document]
        np.add.at(flat, (base + masked.shown)[seen], np.float32(1))
    else:
        np.add.at(flat, base + masked.shown, np.float32(1))
    step = masked.document // batch
    sizes = np.full(-(-documents // batch), batch)
    sizes[-1] = documents - batch * (len(sizes) - 1)  # a last, smaller batch is a mean over its own documents
    weight = (1 / (np.repeat(sizes, sizes) * np.bincount(masked.document, minlength=documents)))[masked.document]
    pair = base + (MASK if uniform else masked.shown)
    present = np.zeros(documents * vocabulary, dtype=bool)
    present[pair] = True
    distinct = np.flatnonzero(present)
    row_of_pair = np.empty(documents * vocabulary, dtype=np.int64)
    row_of_pair[distinct] = np.arange(len(distinct))
    row = row_of_pair[pair]
    row_weight = np.bincount(row, weights=weight, minlength=len(distinct)).astype(real)
    row_document = distinct // vocabulary
    query = distinct - row_document * vocabulary
    starts = np.arange(0, documents, batch)
    row_edges = np.append(np.searchsorted(row_document, starts), len(distinct))
    target_edges = np.append(np.searchsorted(masked.document, starts), len(row))
    document = row_document % batch
    target = (row - row_edges[step]) * vocabulary + masked.true
    weight = weight.astype(real)
    context = context_of(counts.astype(real), uniform)
    result = []
    r0 = t0 = 0
    for start, r1, t1 in zip(starts.tolist(), row_edges[1:].tolist(), target_edges[1:].tolist(), strict=True):
        result.append(
            Rows(
                context[start : start + batch],
                document[r0:r1],
                query[r0:r1],
                row_weight[r0:r1],
                target[t0:t1],
                weight[t0:t1],
            )
        )
        r0, t0 = r1, t1
    return result


def infinite_rows(
    topic_model: TopicModel,
    masking: Masking,
    proportions: Float[np.ndarray, "B T"],
    *,
    uniform: bool,
    hide_masked: bool,
) -> Rows:
    """The batch of infinite documents (Assumption 1): every expectation over masks taken exactly."""
    documents, words, vocabulary = len(proportions), topic_model.words, topic_model.vocabulary
    p = topic_model.word_distribution(proportions)  # B x Tv
    counts = np.zeros((documents, vocabulary))
    if hide_masked:
        counts[:, 1:] = p
    else:
        counts[:, MASK] = masking.p_mask * masking.p_mask_word
        counts[:, 1:] = p * masking.k + masking.p_mask * masking.p_random / words
    if uniform:
        joint = p[:, None, :]  # B x 1 x Tv: the shown word does not matter
        query = np.array([MASK])
    else:
        joint = np.empty((documents, vocabulary, words))  # P(shown word, true word | masked)
        joint[:, MASK] = masking.p_mask_word * p
        joint[:, 1:] = masking.p_random / words * p[:, None, :]
        joint[:, np.arange(1, vocabulary), np.arange(words)] += masking.p_correct * p
        query = np.arange(vocabulary)
    joint = joint.reshape(-1, words) / documents
    target_row, target_word = np.nonzero(joint)
    return Rows(
        context_of(counts, uniform),
        np.repeat(np.arange(documents), len(query)),
        np.tile(query, documents),
        joint.sum(1),
        target_row * vocabulary + target_word + 1,
        joint[target_row, target_word],
    )


def stack(members: Sequence[Rows], dtype: torch.dtype) -> Batch:
    """Put the batches of E models side by side; shorter ones are padded with rows and targets of weight zero."""
    import torch

    real = real_type(dtype)
    if len(members) == 1:
        (m,) = members
        context, weight, target_weight = (
            array.astype(real, copy=False) for array in (m.context, m.weight, m.target_weight)
        )
        single = (context[None], m.document, m.query, weight[None, :, None], m.target, target_weight)
        return Batch(*map(torch.from_numpy, single))
    models, vocabulary = len(members), members[0].context.shape[1]
    documents = max(len(m.context) for m in members)
    rows = max(len(m.document) for m in members)
    targets = max(len(m.target) for m in members)
    context = np.zeros((models, documents, vocabulary), dtype=real)
    row_document = np.zeros((models, rows), dtype=np.int64)
    row_query = np.zeros((models, rows), dtype=np.int64)
    row_weight = np.zeros((models, rows, 1), dtype=real)
    target = np.zeros((models, targets), dtype=np.int64)
    target_weight = np.zeros((models, targets), dtype=real)
    for e, m in enumerate(members):
        r, p = len(m.document), len(m.target)
        context[e, : len(m.context)] = m.context
        row_document[e, :r] = m.document
        row_query[e, :r] = m.query
        row_weight[e, :r, 0] = m.weight
        target[e, :p] = m.target
        target_weight[e, :p] = m.target_weight
    model = np.arange(models)[:, None]
    row_document += model * documents
    row_query += model * vocabulary
    target += model * (rows * vocabulary)
    numpy = (context, row_document.ravel(), row_query.ravel(), row_weight, target.ravel(), target_weight.ravel())
    return Batch(*map(torch.from_numpy, numpy))
