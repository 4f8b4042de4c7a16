"""Which heads stand out: their order in tables, and the sentence on them."""

from __future__ import annotations

from collections.abc import Sequence

from topicscope.language.probe_rows import HeadRow, place, short, topical_heads


def standing_heads(heads: Sequence[HeadRow]) -> list[tuple[HeadRow, bool]]:
    """Heads of one model at its first threshold, by p and then by difference; those that were not judged come last.

    Args:
        heads: Of one model, at all thresholds.

    Returns:
        Each head, and whether it is topical: stands out at every threshold.

    Example:
        >>> from topicscope.measure import Effect
        >>> effect = Effect(same=0.02, different=0.01, difference=0.01, ratio=2.0, interval=(0.005, 0.015))
        >>> about = {"model": "bert", "threshold": 0.001, "topics_per_word": "one", "part": "encoder", "effect": effect}
        >>> heads = [HeadRow(**about, layer=0, head=head, corrected_p=p) for head, p in enumerate((0.6, 0.04))]
        >>> [(head.head, topical) for head, topical in standing_heads(heads)]
        [(1, True), (0, False)]
    """
    first = [
        one for one in heads if (one.threshold, one.topics_per_word) == (heads[0].threshold, heads[0].topics_per_word)
    ]
    topical = topical_places(heads)
    return [(head, place(head) in topical) for head in sorted(first, key=by_p)]


def topical_places(heads: Sequence[HeadRow]) -> set[tuple[str, int, int]]:
    """Part, layer and head of one model's topical heads."""
    return {place(head) for part in {head.part for head in heads} for head in topical_heads(heads, part)}


def heads_sentence(heads: Sequence[HeadRow], part: str) -> str:
    """Which heads of one model's part stand out among all of them; '' where none was compared with chance."""
    judged = [head for head in heads if head.part == part and head.corrected_p is not None]
    if not judged:
        return ""
    count = len({place(head) for head in heads if head.part == part})
    names = ", ".join(f"{head.layer}.{head.head}" for head in sorted(topical_heads(heads, part), key=by_p))
    if not names:
        return f"{short(heads[0].model)}: no head stands out from chance (of {count})."
    return f"{short(heads[0].model)}: heads that stand out from chance: {names} (of {count}, as layer.head). {ASKS}"


ASKS = "The answer on attention asks for more: a size that matters, and all four controls."


def by_p(head: HeadRow) -> tuple[bool, float, float]:
    """Order of heads: those that were judged, then the smallest p, then the largest difference."""
    return bool(head.remark), 2.0 if head.corrected_p is None else head.corrected_p, -head.effect.difference
