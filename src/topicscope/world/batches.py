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


@dataclass(frozen=True)
class Batch:
    """Batches of E models side by side; indices point into the flattened leading axes: one gather serves all models.

    `context` holds log counts of the words that attention sees, or their shares where attention is uniform.
    """

    context: Float[torch.Tensor, "E B V"]
    row_document: Int[torch.Tensor, " E*R"]  # e * B + document
    row_query: Int[torch.Tensor, " E*R"]  # e * V + word shown at the predicted positions
    row_weight: Float[torch.Tensor, "E R 1"]  # sums to 1 over a model's rows
    target: Int[torch.Tensor, " E*P"]  # (e * R + row) * V + true word
    target_weight: Float[torch.Tensor, " E*P"]

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


@np.errstate(divide="ignore")
def context_of(counts: Float[np.ndarray, "B V"], uniform: bool) -> Float[np.ndarray, "B V"]:
    return counts / counts.sum(1, keepdims=True) if uniform else np.log(counts)


def word_counts(words: Int[np.ndarray, "D N"], vocabulary: int) -> Float[np.ndarray, "D V"]:
    """How often each word occurs in each document (padding left out)."""
    counts = np.zeros((len(words), vocabulary), dtype=np.float32)
    slice_size = max(1, 1_000_000 // max(1, words.shape[1]))
    for start in range(0, len(words), slice_size):
        part = words[start : start + slice_size]
        flat = (np.arange(len(part))[:, None] * vocabulary + part)[part >= 0]
        counts[start : start + slice_size] = np.bincount(flat, minlength=len(part) * vocabulary).reshape(
            len(part), vocabulary
        )
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
    flat, base = counts.reshape(-1), masked.document * vocabulary
    np.subtract.at(flat, base + masked.true, np.float32(1))
    seen = (counts.sum(1) == 0)[masked.document] if hide_masked else slice(None)
    np.add.at(flat, (base + masked.shown)[seen], np.float32(1))
    starts = np.arange(0, documents, batch)
    sizes = np.diff(starts, append=documents)  # a last, smaller batch is a mean over its own documents
    weight = (1 / (np.repeat(sizes, sizes) * np.bincount(masked.document, minlength=documents)))[masked.document]
    pair = base + (MASK if uniform else masked.shown)
    present = np.zeros(documents * vocabulary, dtype=bool)
    present[pair] = True
    row = np.cumsum(present)[pair] - 1
    document, query = np.divmod(np.flatnonzero(present), vocabulary)
    row_edges, target_edges = (np.searchsorted(ordered, starts) for ordered in (document, masked.document))
    target = (row - row_edges[masked.document // batch]) * vocabulary + masked.true
    rows = (document % batch, query, np.bincount(row, weights=weight).astype(real))
    return [
        Rows(*part)
        for part in zip(
            np.split(context_of(counts.astype(real), uniform), starts[1:]),
            *(np.split(array, row_edges[1:]) for array in rows),
            *(np.split(array, target_edges[1:]) for array in (target, weight.astype(real))),
            strict=True,
        )
    ]


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
    counts = np.insert(p, MASK, 0, axis=1)
    if not hide_masked:
        counts[:, MASK] = masking.p_mask * masking.p_mask_word
        counts[:, 1:] = p * masking.k + masking.p_mask * masking.p_random / words
    query = np.array([MASK]) if uniform else np.arange(vocabulary)
    joint = p[:, None, :]  # B x 1 x Tv: the shown word does not matter
    if not uniform:
        joint = np.empty((documents, vocabulary, words))  # P(shown word, true word | masked)
        joint[:, MASK] = masking.p_mask_word * p
        joint[:, 1:] = masking.p_random / words * p[:, None, :]
        joint[:, np.arange(1, vocabulary), np.arange(words)] += masking.p_correct * p
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

    real = np.dtype(str(dtype).removeprefix("torch."))
    context, document, query, weight, target, target_weight = (
        _side_by_side(arrays, real) for arrays in zip(*members, strict=True)
    )
    (models, documents, vocabulary), rows = context.shape, weight.shape[1]
    model = np.arange(models)[:, None]
    return Batch(
        torch.from_numpy(context),
        torch.from_numpy((document + model * documents).ravel()),
        torch.from_numpy((query + model * vocabulary).ravel()),
        torch.from_numpy(weight[:, :, None]),
        torch.from_numpy((target + model * (rows * vocabulary)).ravel()),
        torch.from_numpy(target_weight.ravel()),
    )


def _side_by_side(arrays: Sequence[np.ndarray], real: np.dtype) -> np.ndarray:
    """One array for each model, as long as the longest, with zeros behind; numbers that are no indices as `real`."""
    dtype = real if arrays[0].dtype.kind == "f" else arrays[0].dtype
    if len(arrays) == 1:
        return arrays[0].astype(dtype, copy=False)[None]
    padded = np.zeros((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), dtype=dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded
