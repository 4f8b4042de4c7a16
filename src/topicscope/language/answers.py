"""What a probe says of a model, in words: does it encode topics, and does that survive the controls?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from topicscope.ground import InputError
from topicscope.measure import Effect, Interval

if TYPE_CHECKING:
    from topicscope.language.probes import HeadRow, ProbeRow

SIGNIFICANT = 0.05
Verdict = Literal["yes", "unsure", "no", "too few pairs"]


def verdict(effect: Effect | None) -> tuple[Verdict, list[str]]:
    """Whether an effect is seen, and in which of the controls that were on.

    'yes': above zero, and in all of them. 'no': not above zero. 'unsure': above zero, but not in all of them.
    """
    if effect is None or effect.interval is None:
        return "too few pairs", []
    checks = {"above zero": effect.interval[0] > 0}
    if effect.p_value is not None:
        checks["beyond shuffled topics"] = effect.p_value <= SIGNIFICANT
    if effect.matched is not None and effect.matched.interval is not None:
        checks["at equal frequencies"] = effect.matched.interval[0] > 0
    passed, failed = ([text for text, holds in checks.items() if holds is wanted] for wanted in (True, False))
    seen: Verdict = "yes" if not failed else "unsure" if checks["above zero"] else "no"
    return seen, [*passed, *(f"not {text}" for text in failed)]


def answer(rows: Sequence[ProbeRow], heads: Sequence[HeadRow], model: str) -> str:
    """What a model shows at the first threshold, and its strongest head."""
    row = next((row for row in rows if row.model == model and row.variant == "trained"), None)
    if row is None:
        raise InputError(f"no row of {model} with its trained weights")
    parts = []
    for name, effect in (("embeddings", row.cosine), ("attention", row.attention)):
        seen, reasons = verdict(effect)
        parts.append(f"{name}: {seen}" + (f" ({', '.join(reasons)})" if reasons else ""))
    ratios = [
        (head.effect.ratio, head)
        for head in heads
        if head.model == model and head.threshold == row.threshold and head.effect.ratio is not None
    ]
    where = ""
    if ratios:
        _, best = max(ratios, key=lambda pair: pair[0])
        where = f"; strongest head: {best.part} layer {best.layer}, head {best.head} (ratio {ratio_text(best.effect)})"
    return f"{short(model)} encodes topics? {'; '.join(parts)}{where}."


def short(model: str) -> str:
    """The last part of a model's name."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def interval_text(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{interval[0]:.4g}, {interval[1]:.4g}]"


def ratio_text(effect: Effect | None) -> str:
    """The ratio with its interval; 'undefined' where its denominator may be zero."""
    if effect is None:
        return "-"
    return "undefined" if effect.ratio is None else f"{effect.ratio:.4g} {interval_text(effect.ratio_interval)}"
