"""The exact population loss of any value matrix under any topic-wise attention, on infinite documents with fixed tau.

The loss is E|W y - e_w|^2 with y the attended word distribution. By symmetry over topics and over words inside a
topic only ten sums over W enter, so no document is enumerated: `population_loss` costs one pass over W.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float

from topicscope.theory.setting import Setting

if TYPE_CHECKING:
    from torch import Tensor


def population_loss(
    setting: Setting, matrix: Float[Tensor, "V V"], alpha: float = 1.0, beta: float = 1.0
) -> Float[Tensor, ""]:
    """The exact squared loss of any value matrix under topic-wise attention: infinite documents of tau topics.

    The cost is one pass over W. A bias b of every prediction is the same as b added to every column of W, since
    attention sums to 1.

    Args:
        setting: T, v, tau and masking.
        matrix: W_V (V x V), a tensor.
        alpha: Attention to another word of the same topic; 1 with beta = 1: uniform attention.
        beta: Attention to the same word.

    Returns:
        The loss, differentiable.

    Example:
        >>> import torch
        >>> from topicscope.theory import Setting, theorem2
        >>> setting = Setting.of(4, 3, 2)
        >>> round(float(population_loss(setting, torch.from_numpy(theorem2(setting).matrix()))), 6)  # 1 - 1 / (tau v)
        0.833333
    """
    s, topics, v, tau = setting, setting.T, setting.v, setting.tau
    p0, p1, p2 = s.p0, s.p1, s.p2
    alpha = 1.0 if v == 1 else alpha  # no other word in the topic: a large alpha would only cancel, and cost digits
    words, w0, columns, inner = topics * v, matrix[:, 0], matrix[:, 1:], matrix[1:, 1:]
    by_topic = columns.reshape(len(matrix), topics, v).sum(2)
    whole = by_topic.sum(1)
    square, topic_square, whole_square = columns.square().sum(), by_topic.square().sum(), whole.square().sum()
    cross = (whole_square - topic_square) / max(topics - 1, 1)  # sum_s W_s . (mean other topic)
    with_mask, mask_square = w0 @ whole, w0.square().sum()
    trace, total = inner.diagonal().sum(), inner.sum()
    block = inner.reshape(topics, v, topics, v).diagonal(dim1=0, dim2=2).sum()
    off = (total - block) / max(topics - 1, 1)
    document_sum = (block + (tau - 1) * off) / words  # mean over a word of the document of sum_{l in document} W_wl
    mask_entry, all_sum = matrix[1:, 0].sum() / words, total / words
    # W_wj and sum_{l in topic of j} W_wl: the true word w is j itself, another word of its topic, or of another topic
    # of the document
    entries = {
        "own": (trace / words, block / words),
        "same": ((block - trace) / (words * max(v - 1, 1)), block / words),
        "other": (off / (words * v), off / words),
    }

    def attended(p: float, here: int, gone: int) -> tuple[float, float, float, float, float]:
        """y of a word j of topic s with share p; `here` and `gone` other topics are in the document S and are not.

        y = e e_j + topic 1_s + document 1_S + everywhere 1 + mask e_0.
        """
        z = p * (beta + alpha * (v - 1)) + p1 * v * here + p2 * v * gone + p0
        return p * (beta - alpha) / z, p * (alpha - 1) / z, (p1 - p2) / z, p2 / z, p0 / z

    def quadratic(e: float, topic: float, document: float, everywhere: float, mask: float, own: bool = True) -> Tensor:
        """E|W y|^2; the word j is of a topic of the document (`own`) or not."""
        topic_document = (topic_square / topics if own else 0) + (tau - 1 if own else tau) * cross / topics
        document_square = tau * topic_square / topics + tau * (tau - 1) * cross / topics
        return (
            e**2 * square / words
            + topic**2 * topic_square / topics
            + document**2 * document_square
            + everywhere**2 * whole_square
            + 2 * e * topic * topic_square / words
            + 2 * (e / v + topic) * document * topic_document
            + 2 * (e / words + topic / topics + document * tau / topics) * everywhere * whole_square
            + mask**2 * mask_square
            + 2 * mask * (e / words + topic / topics + document * tau / topics + everywhere) * with_mask
        )

    def linear(e: float, topic: float, document: float, everywhere: float, mask: float, relation: str) -> Tensor:
        """E (W y)_w for the true word w."""
        word, in_topic = entries[relation]
        return e * word + topic * in_topic + document * document_sum + everywhere * all_sum + mask * mask_entry

    own, same, other, absent = s.shown_cases
    y = attended(p1, tau - 1, topics - tau)
    loss = (
        (own + same + other) * (quadratic(*y) + 1)
        - 2 * own * linear(*y, "own")
        - (2 * same * linear(*y, "same") if v > 1 else 0)
        - (2 * other * linear(*y, "other") if tau > 1 else 0)
    )
    if topics > tau:
        y = attended(p2, tau, topics - tau - 1)
        loss = loss + absent * (quadratic(*y, own=False) - 2 * linear(*y, "other") + 1)
    z = beta * p0 + 1 - p0
    y = (0.0, 0.0, (p1 - p2) / z, p2 / z, beta * p0 / z)
    return loss + s.masking.p_mask_word * (quadratic(*y) - 2 * linear(*y, "own") + 1)
