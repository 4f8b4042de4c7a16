"""Attention to words of the same topic against attention to others, of one head, of some, or of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topicscope.language.attention import PartTally
from topicscope.language.relations import DIFFERENT, SAME_TOPIC, SAME_WORD
from topicscope.measure import Effect, effect


def attention_effect(tally: PartTally, heads: Sequence[int] | None = None, *, matched: bool = False) -> Effect | None:
    """Of the mean over all heads, or over some of them (then without the controls). Bootstrap over documents."""
    strata = tally.relation.strata

    def by_relation(table: Any) -> np.ndarray:
        array = table.cpu().numpy()
        return array.reshape(*array.shape[:-1], tally.relation.relations, strata).sum(-1)

    pairs, boot_pairs = by_relation(tally.pairs), by_relation(tally.boot_pairs)
    sums, boot = (
        tally.sums.cpu().numpy().reshape(tally.relation.relations, strata, -1).sum(1),
        tally.boot_sums.cpu().numpy(),
    )
    chosen = slice(None) if heads is None else list(heads)
    sums, boot = sums[:, chosen].mean(1), boot[:, :, chosen].mean(2)
    with np.errstate(invalid="ignore", divide="ignore"):
        means, resampled = sums / pairs, boot / boot_pairs
        null = None
        if heads is None and len(tally.null_sums):
            same, number = tally.null_sums.cpu().numpy(), tally.null_pairs.cpu().numpy()
            null = same / number, (float(tally.other_sums) - same) / (float(tally.other_pairs) - number)
        equal = None
        if matched and heads is None:
            left, right, (first, second) = matched_attention(tally)
            equal = (left, right, first - second)
    own = float(means[SAME_WORD]) if np.isfinite(means[SAME_WORD]) else None
    return effect(
        float(means[SAME_TOPIC]),
        float(means[DIFFERENT]),
        (resampled[:, SAME_TOPIC], resampled[:, DIFFERENT]),
        null=null,
        matched=equal,
        same_word=own,
    )


def matched_attention_effect(tally: PartTally) -> Effect | None:
    """The effect at equal word frequencies alone."""
    with np.errstate(invalid="ignore", divide="ignore"):
        same, different, boot = matched_attention(tally)
    return effect(same, different, boot)


def matched_attention(tally: PartTally) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
    """Same-topic and different-topic mean and their resamples, with the word frequencies of the same-topic pairs."""
    shape = (-1, tally.relation.relations, tally.relation.strata)

    def means(sums: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, pairs = sums.reshape(shape), pairs.reshape(shape)
        usable = np.where((pairs[:, SAME_TOPIC] > 0.5) & (pairs[:, DIFFERENT] > 0.5), pairs[:, SAME_TOPIC], 0.0)
        share = usable / usable.sum(-1, keepdims=True)
        each = np.where(usable[:, None] > 0, sums / np.where(pairs > 0, pairs, 1), 0)
        return (share * each[:, SAME_TOPIC]).sum(-1), (share * each[:, DIFFERENT]).sum(-1)

    whole = means(tally.sums.mean(1).cpu().numpy(), tally.pairs.cpu().numpy())
    resampled = means(tally.boot_strata.cpu().numpy(), tally.boot_pairs.cpu().numpy())
    return float(whole[0][0]), float(whole[1][0]), resampled
