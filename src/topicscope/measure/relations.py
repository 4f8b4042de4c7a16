"""Word relations (same word, same topic, different topic) and the means of a matrix over them.

[MASK] is in no relation.

>>> import torch
>>> topic = np.array([0, 1, 1, 2, 2])
>>> matrix_block_means(relation_masks(topic, torch.float32), torch.eye(5).view(1, 25)).tolist()
[[0.0, 0.0, 1.0]]
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
    """Rows that average a flattened V x V matrix over three relations: same topic, different topic, diagonal.

    Args:
        topic: Topic of each word (V), 0 for [MASK]; or, where words have several, which words share one (V x V).
        dtype: Floating-point type of the result.
        device: Device of the result.

    Returns:
        The rows (3 x V*V); NaN where no pair is in a relation.

    Example:
        >>> import torch
        >>> relation_masks(np.array([0, 1, 1, 2]), torch.float64).sum(1).tolist()
        [1.0, 1.0, 1.0]
    """
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
    """Means of flattened matrices over the three relations.

    Args:
        masks: From `relation_masks` (3 x V*V).
        matrices: (E x V*V).

    Returns:
        Same topic, different topic, diagonal (E x 3).

    Example:
        >>> import torch
        >>> masks = relation_masks(np.array([0, 1, 1, 2, 2]), torch.float32)
        >>> matrix_block_means(masks, torch.eye(5).view(1, 25)).tolist()
        [[0.0, 0.0, 1.0]]
    """
    return matrices @ masks.mT


def gram_block_means(topics: int, embedding: Float[torch.Tensor, "E d V"]) -> Float[torch.Tensor, "E 3"]:
    """Means of the Gram matrix W_E'W_E over the three relations, from sums of vectors. The matrix is not built.

    Args:
        topics: T; the words 1..Tv lie topic by topic.
        embedding: W_E of each model (E x d x V).

    Returns:
        Same topic, different topic, diagonal (E x 3).

    Example:
        >>> import torch
        >>> words = torch.tensor([[[0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]]])  # [MASK], then two topics
        >>> gram_block_means(2, words).tolist()
        [[1.0, 0.0, 1.0]]
    """
    import torch

    models, d, vocabulary = embedding.shape
    n, v = vocabulary - 1, (vocabulary - 1) // topics
    words = embedding[:, :, 1:]
    lengths = words.square().sum((1, 2))
    topic_sums = words.reshape(models, d, topics, v).sum(3)
    inside = topic_sums.square().sum((1, 2))
    total = topic_sums.sum(2).square().sum(1)
    nan = torch.full_like(total, torch.nan)
    same = (inside - lengths) / (n * (v - 1)) if v > 1 else nan
    different = (total - inside) / (n * (n - v)) if topics > 1 else nan
    return torch.stack([same, different, lengths / n], dim=1)


class WordKinds(NamedTuple):
    """Words that may have several topics, by kind: those of one kind have the same topics.

    Attributes:
        members: 1 at the kind of each word, without [MASK] (n x K).
        related: 1 where two kinds have a topic in common (K x K).
        pairs: Numbers of pairs that share a topic, that share none, and of words (3); NaN for none.

    Example:
        >>> import torch
        >>> kinds = WordKinds.of(np.array([0, 0, 1]), np.eye(2, dtype=bool), like=torch.zeros(1))
        >>> kinds.pairs.tolist()
        [2.0, 4.0, 3.0]
    """

    members: Float[torch.Tensor, "n K"]
    related: Float[torch.Tensor, "K K"]
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
    """As `gram_block_means`, where words have several topics, or topics differ in size.

    Args:
        words: The words by kind.
        embedding: W_E of each model (E x d x V).

    Returns:
        Same topic, different topic, diagonal (E x 3).

    Example:
        >>> import torch
        >>> kinds = WordKinds.of(np.array([0, 0, 1]), np.eye(2, dtype=bool), like=torch.zeros(1))
        >>> gram_relation_means(kinds, torch.tensor([[[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]])).tolist()
        [[1.0, 0.0, 1.0]]
    """
    import torch

    vectors = embedding[:, :, 1:]
    lengths, sums = vectors.square().sum((1, 2)), vectors @ words.members
    inside, total = ((sums @ words.related) * sums).sum((1, 2)), sums.sum(2).square().sum(1)
    return torch.stack([inside - lengths, total - inside, lengths], dim=1) / words.pairs
