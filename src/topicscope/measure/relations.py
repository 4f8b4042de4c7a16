"""Means of a matrix over pairs of words by their relation: same word, same topic, different topic.

[MASK], the first word, is in no relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    import torch


@np.errstate(invalid="ignore")
def relation_masks(
    topic: Int[np.ndarray, " V"] | Bool[np.ndarray, "V V"], dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Float[torch.Tensor, "3 V*V"]:
    """Rows that average a flattened V x V matrix over three relations: same topic, different topic, diagonal."""
    import torch

    there = topic > 0 if topic.ndim == 1 else np.arange(len(topic)) > 0
    both = np.outer(there, there)
    same_topic = topic[:, None] == topic if topic.ndim == 1 else topic
    diagonal = np.eye(len(topic), dtype=bool)
    masks = np.stack([both & same_topic & ~diagonal, both & ~same_topic, both & diagonal]).reshape(3, -1).astype(float)
    return torch.tensor(masks / masks.sum(1, keepdims=True), dtype=dtype, device=device)


def matrix_block_means(
    masks: Float[torch.Tensor, "3 V*V"], matrices: Float[torch.Tensor, "*E V*V"]
) -> Float[torch.Tensor, "*E 3"]:
    return matrices @ masks.mT


def gram_block_means(topics: int, embedding: Float[torch.Tensor, "E d V"]) -> Float[torch.Tensor, "E 3"]:
    """Means of the Gram matrix W_E'W_E over the three relations, from sums of vectors. The matrix is not built."""
    import torch

    models, d, vocabulary = embedding.shape
    n, v = vocabulary - 1, (vocabulary - 1) // topics
    words = embedding[:, :, 1:]
    topic_sums = words.reshape(models, d, topics, v).sum(3)
    lengths, inside = (vectors.square().sum((1, 2)) for vectors in (words, topic_sums))
    total, nan = topic_sums.sum(2).square().sum(1), torch.full_like(lengths, torch.nan)
    same = (inside - lengths) / (n * (v - 1)) if v > 1 else nan
    different = (total - inside) / (n * (n - v)) if topics > 1 else nan
    return torch.stack([same, different, lengths / n], dim=1)


class WordKinds(NamedTuple):
    """Words that may have several topics, by kind: those of one kind have the same topics."""

    members: Float[torch.Tensor, "n K"]  # 1 at the kind of each word, without [MASK]
    related: Float[torch.Tensor, "K K"]  # 1 where two kinds have a topic in common
    pairs: Float[torch.Tensor, " 3"]

    @classmethod
    def of(cls, kind: Int[np.ndarray, " n"], related: Bool[np.ndarray, "K K"], like: torch.Tensor) -> WordKinds:
        """Of type and device of `like`."""
        import torch

        size = np.bincount(kind, minlength=len(related)).astype(float)
        n, mates = len(kind), size @ related @ size  # a word with itself among them
        pairs = np.array([mates - n, n * n - mates, n])
        parts = (np.eye(len(related))[kind], related.astype(float), np.where(pairs > 0, pairs, np.nan))
        return cls(*(torch.from_numpy(part).to(like) for part in parts))


def gram_relation_means(words: WordKinds, embedding: Float[torch.Tensor, "E d V"]) -> Float[torch.Tensor, "E 3"]:
    """As `gram_block_means`, where words have several topics, or topics differ in size."""
    import torch

    vectors = embedding[:, :, 1:]
    lengths, sums = vectors.square().sum((1, 2)), vectors @ words.members
    inside, total = ((sums @ words.related) * sums).sum((1, 2)), sums.sum(2).square().sum(1)
    return torch.stack([inside - lengths, total - inside, lengths], dim=1) / words.pairs


Square = Float[np.ndarray, "V V"]
Has = Bool[np.ndarray, "words T"]


def topic_pair_means(matrix: Square, weight: Float[np.ndarray, "words T"]) -> Float[np.ndarray, "T T"]:
    """The mean entry of a matrix over words in rows of one topic and columns of another."""
    weight, words = np.asarray(weight, dtype=float), np.asarray(matrix, dtype=float)[1:, 1:]
    total = weight.T @ words @ weight - (weight * np.diag(words)[:, None]).T @ weight
    pairs = np.outer(weight.sum(0), weight.sum(0)) - weight.T @ weight
    # a topic of one word has no pair; rounding may leave a little of nothing
    there = pairs > 1e-12 * np.outer(weight.sum(0), weight.sum(0))
    return np.divide(total, pairs, out=np.full_like(total, np.nan), where=there)


def shared_topic_means(matrix: Square, has: Has) -> dict[int, float]:
    """The mean entry over pairs of different words, by how many topics the two have in common."""
    patterns, kind = _kinds(has)
    return _means_by_code(matrix, kind, (patterns @ patterns.T).astype(int))


def partner_means(matrix: Square, has: Has, group: Int[np.ndarray, " T"]) -> dict[str, float | None]:
    """The mean entry over pairs of different words, where topics come in groups."""
    patterns, kind = _kinds(has)
    groups = patterns @ np.eye(int(group.max()) + 1)[group]
    means = _means_by_code(matrix, kind, np.where(patterns @ patterns.T > 0, 0, np.where(groups @ groups.T > 0, 1, 2)))
    return {name: means.get(number) for number, name in enumerate(("same", "partner", "other"))}


def _kinds(has: Has) -> tuple[Float[np.ndarray, "K T"], Int[np.ndarray, " words"]]:
    """Words that are in the same topics are of one kind: the topics of each kind, and the kind of each word."""
    patterns, kind = np.unique(has, axis=0, return_inverse=True)
    return patterns.astype(float), kind.reshape(-1)


def _means_by_code(matrix: Square, kind: Int[np.ndarray, " words"], code: Int[np.ndarray, "K K"]) -> dict[int, float]:
    """`code` of two kinds of words; a sum over pairs of words is one over pairs of kinds."""
    words = np.asarray(matrix, dtype=float)[1:, 1:]
    order, size = np.argsort(kind, kind="stable"), np.bincount(kind)
    starts = np.cumsum(size) - size
    sums = np.add.reduceat(np.add.reduceat(words[order], starts, axis=0)[:, order], starts, axis=1)
    pairs, own = np.outer(size, size), np.arange(len(size))
    pairs[own, own] -= size
    sums[own, own] -= np.bincount(kind, np.diag(words))
    flat = code.ravel()
    total, count = np.bincount(flat, sums.ravel()), np.bincount(flat, pairs.ravel())
    return {int(one): float(total[one] / count[one]) for one in np.flatnonzero(count)}
