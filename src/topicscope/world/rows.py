"""Batches in numpy, one data set's each: of infinite documents (Assumption 1), where every expectation over masks is
taken exactly, and of development sets. `stack` puts them side by side for several models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.world.batches import Batch
from topicscope.world.masking import Masking
from topicscope.world.topics import MASK, TopicModel

if TYPE_CHECKING:
    import torch


class Rows(NamedTuple):
    """One model's batch in numpy, before models are put side by side by `stack`.

    Attributes:
        context: (B x V) Log counts of the words that attention sees, or their shares.
        document: (R) Document of each row.
        query: (R) Word shown at the predicted positions.
        weight: (R) Weight in the objective.
        target: (P) row * V + true word.
        target_weight: (P) Weight of each target.

    Example:
        >>> from topicscope.world import InfiniteDocuments
        >>> [rows] = InfiniteDocuments(np.array([[1.0, 0.0]])).batches(TopicModel(2, 1), Masking())
        >>> rows.query.tolist(), rows.weight.round(6).tolist()  # [MASK] and words 1 and 2, by how often they are shown
        ([0, 1, 2], [0.8, 0.15, 0.05])
    """

    context: Float[np.ndarray, "B V"]
    document: Int[np.ndarray, " R"]
    query: Int[np.ndarray, " R"]
    weight: Float[np.ndarray, " R"]
    target: Int[np.ndarray, " P"]
    target_weight: Float[np.ndarray, " P"]


@np.errstate(divide="ignore")
def context_of(counts: Float[np.ndarray, "B V"], uniform: bool) -> Float[np.ndarray, "B V"]:
    return counts / counts.sum(1, keepdims=True) if uniform else np.log(counts)


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


def stack(sets: Sequence[Rows], dtype: torch.dtype, data: Int[torch.Tensor, " E"] | None = None) -> Batch:
    """Put batches side by side for E models; shorter ones are padded with rows and targets of weight zero.

    Args:
        sets: One batch per data set.
        dtype: Floating-point type of the result.
        data: The data set of each model; None: one model per data set.

    Returns:
        One batch for all models.

    Example:
        >>> import torch
        >>> from topicscope.world import InfiniteDocuments
        >>> [rows] = InfiniteDocuments(np.array([[1.0, 0.0]])).batches(TopicModel(2, 1), Masking())
        >>> batch = stack([rows, rows], torch.float64)
        >>> batch.row_query.tolist()  # of the second model: 3 more, the size of the vocabulary
        [0, 1, 2, 3, 4, 5]
    """
    import torch

    real = np.dtype(str(dtype).removeprefix("torch."))
    context, *parts = (_side_by_side(arrays, real) for arrays in zip(*sets, strict=True))
    of = np.arange(len(sets)) if data is None else data.cpu().numpy()
    document, query, weight, target, target_weight = (part[of] for part in parts)
    (_, documents, vocabulary), rows = context.shape, weight.shape[1]
    model = np.arange(len(of))[:, None]
    return Batch(
        torch.from_numpy(context),
        torch.from_numpy((document + of[:, None] * documents).ravel()),
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
