"""Do topical heads matter more than random ones? The rise of the loss without them, its intervals, and the rule.

The rule, the same at topic words and at other words. It was revised once after first looks at two small models: a yes
then came to need as many sets, and a no to look at the mean of random sets instead of at each.

yes     the 95% intervals of the topical heads' rise, and of its difference from the rise of one random set, lie
        above zero; the difference is worth naming (1% of the loss); and there are so many random sets that the topical
        one is seldom the largest by chance
no      the interval of the topical heads' rise, or of its difference from the mean of random sets, holds nothing worth
        naming
unsure  otherwise
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator
from topicscope.language.configs import FEWEST_SHUFFLES
from topicscope.language.controls import FEWEST_DOCUMENTS, Grade
from topicscope.language.probe_rows import interval_text, short
from topicscope.measure import Interval, interval, with_intervals

PLACES = ("topic words", "other words")
LOSS_WORTH = 0.01  # of the loss: the smallest rise worth naming
DRAWS = FEWEST_SHUFFLES  # sets of random heads: the topical one is the largest in 5% of models by chance
FEWEST_POSITIONS = 50  # with fewer there is no answer
DOCUMENTS, MOST_DOCUMENTS = 50, 1000  # that are predicted: a fifth of them, but within these
LENGTH = 128  # tokens at the start of each of them
PASSES = 21  # over these documents: where there are fewer draws, more words are masked


@dataclass(frozen=True, kw_only=True)
class AblationRow:
    """Rise of the mean loss (nats) at one kind of position where heads put out their mean. None: not measured.

    Attributes:
        model: Name of the model.
        heads: Number of topical heads, and of heads in each random draw.
        draws: Number of random sets of heads.
        at: 'topic words' or 'other words'.
        positions: Number of positions.
        documents: Number of documents.
        loss: Loss of the whole model.
        topical_rise: Rise without the topical heads.
        topical_interval: Its 95% interval.
        random_rise: Mean rise over the random draws.
        random_interval: 95% interval of one draw.
        difference: `topical_rise` less `random_rise`.
        interval: 95% interval of the difference from one draw.
        mean_interval: 95% interval of the difference from the mean over draws.
        answer: 'yes', 'unsure', 'no' or 'off'.
        why: The reason, in words.
        remark: How heads were drawn.
        which: The topical heads, as layer.head.

    Example:
        See `ablate`.
    """

    model: str
    heads: int
    draws: int
    at: str
    positions: int = 0
    documents: int = 0
    loss: float | None = None
    topical_rise: float | None = None
    topical_interval: Interval | None = None
    random_rise: float | None = None
    random_interval: Interval | None = None
    difference: float | None = None
    interval: Interval | None = None
    mean_interval: Interval | None = None
    answer: Grade = "off"
    why: str = ""
    remark: str = ""
    which: str = ""

    as_dict = asdict

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**with_intervals(data))


def ablated_documents(documents: int) -> int:
    """How many of the documents are predicted."""
    return min(documents, max(DOCUMENTS, min(documents // 5, MOST_DOCUMENTS)))


Resample = Float[np.ndarray, " R"]


@dataclass(frozen=True)
class Rises:
    """Losses by document. The first of the sets is none, the second the topical heads; the others are draws."""

    sums: Float[np.ndarray, "S D"]
    positions: Int[np.ndarray, " D"]

    def whole(self) -> Float[np.ndarray, " S"]:
        """The rise of the mean loss without each set."""
        return (self.sums - self.sums[0]).sum(1) / self.positions.sum()

    @np.errstate(invalid="ignore", divide="ignore")
    def resampled(self, resamples: int, seed: int) -> tuple[Resample, Resample, Resample]:
        """Of each resample of documents the topical rise, that of one draw of heads, and the mean over draws.

        One draw shows how random sets differ: any set differs from their mean, whether it has topics or not.
        """
        documents, draws = len(self.positions), len(self.sums) - 2
        drawing = generator(seed, Stream.BOOTSTRAP_ABLATION)
        times = drawing.multinomial(documents, np.full(documents, 1 / documents), resamples)
        one = 2 + drawing.integers(draws, size=resamples)
        rises = times @ (self.sums - self.sums[0]).T / (times @ self.positions)[:, None]
        return rises[:, 1], rises[np.arange(resamples), one], rises[:, 2:].mean(1)


def ablation_row(
    model: str, heads: int, at: str, rises: Rises, *, resamples: int, seed: int, remark: str = "", which: str = ""
) -> AblationRow:
    """The numbers of one kind of position, and the answer."""
    there = rises.positions > 0
    rises = Rises(rises.sums[:, there], rises.positions[there])
    draws = len(rises.sums) - 2
    about: dict[str, Any] = {"model": model, "heads": heads, "draws": draws, "at": at, "remark": remark, "which": which}
    about |= {"positions": int(rises.positions.sum()), "documents": len(rises.positions)}
    if not len(rises.positions):
        return AblationRow(**about, answer="unsure", why=f"no {at} were predicted: raise --documents")
    if not np.isfinite(rises.sums).all():
        return AblationRow(**about, answer="unsure", why="the loss is not a number (NaN) at some of the words")
    whole = rises.whole()
    topical, random, mean = rises.resampled(resamples, seed)
    numbers: dict[str, Any] = {
        "loss": float(rises.sums[0].sum() / rises.positions.sum()),
        "topical_rise": float(whole[1]),
        "topical_interval": interval(topical),
        "random_rise": float(whole[2:].mean()),
        "random_interval": interval(random),
        "difference": float(whole[1] - whole[2:].mean()),
        "interval": interval(topical - random),
        "mean_interval": interval(topical - mean),
    }
    answer, why = judged(AblationRow(**about, **numbers), int((whole[2:] >= whole[1]).sum()))
    return AblationRow(**about, **numbers, answer=answer, why=why)


def judged(row: AblationRow, as_much: int) -> tuple[Grade, str]:
    """The rule. `as_much`: draws without which the loss rises as much as without the topical heads."""
    if row.documents < FEWEST_DOCUMENTS or row.positions < FEWEST_POSITIONS:
        few = f"{row.positions} {row.at} in {row.documents} documents"
        enough = f"at least {FEWEST_POSITIONS} in {FEWEST_DOCUMENTS}"
        return "unsure", f"{few} are too few ({enough}): raise --documents"
    assert row.loss is not None
    assert row.difference is not None
    if row.topical_interval is None or row.interval is None or row.mean_interval is None:
        return "unsure", "there is nothing to resample: raise --documents"
    worth = LOSS_WORTH * row.loss
    if row.topical_interval[1] < worth:
        return "no", f"without them the loss hardly rises (the smallest rise that matters is {worth:.2g})"
    if row.mean_interval[1] < worth and row.remark:
        return "unsure", "it rises about as much without random heads, but some of these are topical ones"
    if row.mean_interval[1] < worth:
        as_much_or_more = "more" if row.mean_interval[1] < 0 else "about as much"
        said = f"without random heads of the same layers it rises {as_much_or_more}"
        return "no", f"{said} (the smallest difference that matters is {worth:.2g})"
    if row.interval[0] > 0 and row.topical_interval[0] > 0:
        if row.difference >= worth and row.draws >= DRAWS:
            return "yes", ""
        if row.difference >= worth:
            said = f"it rises more than without other heads, but these layers have only {sets_text(row.draws)} of them"
            return "unsure", f"{said}, and chance alone makes one of {row.draws + 1} sets the largest"
        return "unsure", f"the difference is below {worth:.2g}, the smallest that matters: raise --documents"
    if row.mean_interval[0] > 0 and row.topical_interval[0] > 0 and as_much:
        sets = f"{as_much} of {sets_text(row.draws)} of random heads"
        return "unsure", f"more than without random heads on average, but without {sets} it rises as much"
    few = f" (with {sets_text(row.draws)} of other heads in these layers, a yes is out of reach)"
    said = f"the difference {row.difference:.2g} {interval_text(row.interval)} may be zero"
    return "unsure", said + (few if row.draws < DRAWS else ": raise --documents")


def ablation_sentences(rows: Sequence[AblationRow]) -> Iterator[str]:
    """One for each model: the answer at topic words, with the rise at other words beside it."""
    for model in dict.fromkeys(row.model for row in rows):
        at = {row.at: row for row in rows if row.model == model}
        row, other = at[PLACES[0]], at[PLACES[1]]
        name = f"{short(model)}: use of topical heads: {row.answer}."
        if row.topical_rise is None:
            yield f"{name} {row.why[:1].upper()}{row.why[1:]}."
            continue
        heads = f"{'the topical head' if row.heads == 1 else f'{row.heads} topical heads'} ({row.which} as layer.head)"
        beside = "" if other.topical_rise is None else f" At other words: {rises_text(other)}."
        why = f" Reason: {row.why}." if row.why else " They matter more than random heads."
        yield (
            f"{name} Rise of the loss at topic words ({row.loss:.3g} nats, {row.positions} words in {row.documents} "
            f"documents) without {heads}, and without as many random ones of the same layers ({sets_text(row.draws)}): "
            f"{rises_text(row)}.{beside}{why}{f' Note: {row.remark}.' if row.remark else ''}"
        )


def sets_text(count: int) -> str:
    return "1 set" if count == 1 else f"{count} sets"


def rises_text(row: AblationRow) -> str:
    topical = f"{row.topical_rise:.2g} {interval_text(row.topical_interval)}"
    return f"{topical} and {row.random_rise:.2g} {interval_text(row.random_interval)}"
