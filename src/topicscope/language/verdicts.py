"""Does a model encode topics: in its embeddings, its hidden states, its attention? Yes, unsure or no, and why.

A control says yes only if it does so at all thresholds, and no if it does so at some and nowhere yes; else it is
unsure. 'Yes' needs every control. One 'no' is a no: then chance, frequency, co-occurrence or the architecture may
explain what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from topicscope.language.configs import SIGNIFICANT, Measurement
from topicscope.language.probe_rows import (
    CONTROLS,
    Answer,
    Check,
    CheckRow,
    CooccurrenceRow,
    Grade,
    HeadRow,
    MeasuredRow,
    ModelVerdict,
    PairContrast,
    ProbeRow,
    StateRow,
    place,
    topical_heads,
)
from topicscope.measure import Effect, Interval, corrected_p, interval

COSINE_WORTH = 0.02  # a difference of cosines worth naming
ATTENTION_WORTH = 0.05  # of attention, as a share of that to words of other topics
WORD_PAIRS, POSITION_PAIRS = 20, 100  # of one topic, and of different ones: with fewer there is no answer
LISTED_PAIRS = 10  # of words that stand together most often: five words of a topic make as many
FEWEST_DOCUMENTS = 10  # resamples of fewer do not show how much documents differ
HALF = 0.5  # what a control leaves of a difference, below which it explains it


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a control looks at: an effect at one threshold, and what it is compared with."""

    effect: Effect | None
    worth: float  # the smallest difference that counts as one
    shuffles: int  # that p comes from; 0: none
    level: float = SIGNIFICANT  # p has to be at most this
    p_value: float | None = None  # p that is corrected for several heads; None: that of the effect
    matched: bool = True  # whether pairs of equal frequencies were asked for
    contrast: PairContrast | None = None  # None: not measured, or no such pairs
    with_contrast: bool = True
    enough: int = WORD_PAIRS
    given: bool = False  # whether the user gave the topics word by word
    fresh: Effect | None = None  # of fresh weights
    with_fresh: bool = True
    more: str = "documents"  # what makes the interval narrower
    documents: int | None = None  # with pairs of one topic, where documents are resampled
    labels: bool = False  # whether the topics that the interval resamples are labels of a corpus

    def advice(self, *options: str) -> str:
        """What to raise. Given topics have no number and no threshold."""
        if self.given:
            return "give more words to the topics, or raise --documents"
        return f"raise {' or '.join(f'--{option}' for option in options)}"

    @property
    def more_pairs(self) -> str:
        return self.advice("threshold", "documents")


OFF = Check("off")


def too_few(of: Measured, effect: Effect | None) -> Check | None:
    """Unsure if there are too few pairs for any answer, or too few topics or documents for an interval."""
    if effect is None:
        return Check("unsure", f"too few pairs of words: {of.more_pairs}", code="no pairs")
    counts = [count for count in (effect.pairs, effect.other_pairs) if count is not None]
    if counts and min(counts) < of.enough:
        few = f"too few pairs ({min(counts):,.0f}; at least {of.enough} are needed)"
        return Check("unsure", f"{few}: {of.more_pairs}", code="few pairs")
    if of.documents is not None and of.documents < FEWEST_DOCUMENTS:
        few = f"{of.documents} documents have pairs of one topic (at least {FEWEST_DOCUMENTS} are needed)"
        return Check("unsure", f"{few}: raise --documents, or give more text", code="few documents")
    if is_flat(effect.interval):
        return nothing_to_resample(of)
    return None


def is_flat(between: Interval | None) -> bool:
    return between is None or between[0] == between[1]


def nothing_to_resample(of: Measured) -> Check:
    return Check(
        "unsure", f"there is nothing to resample: {of.advice('topics', 'documents')}", code="nothing to resample"
    )


def chance(of: Measured) -> Check:
    if not of.shuffles:
        return OFF
    effect, few = of.effect, too_few(of, of.effect)
    if few is not None or effect is None or effect.interval is None:
        return few or OFF
    p = effect.p_value if of.p_value is None else of.p_value
    if p is None:
        return Check("unsure", f"too few pairs to shuffle: {of.more_pairs}", code="no shuffled pairs")
    seen, (low, high) = (effect.difference, effect.interval), effect.interval
    smallest = 1 / (1 + of.shuffles)
    if p > of.level and smallest > of.level:
        few_shuffles = f"{of.shuffles} shuffles cannot give a p below {smallest:.2g}: raise --shuffles"
        return Check(
            "unsure", f"{few_shuffles} (at least {ceil(1 / of.level - 1)} are needed here)", *seen, code="few shuffles"
        )
    if p <= of.level:
        if high < of.worth:
            why = f"a difference of {effect.difference:.2g} is more than chance, but too small to matter (below "
            return Check("no", f"{why}{of.worth:.2g})", *seen, code="small")
        if low <= 0 or effect.difference < of.worth:
            why = "reaches zero" if low <= 0 else f"holds {of.worth:.2g}, the smallest that matters"
            code = "zero" if low <= 0 else "maybe small"
            return Check("unsure", f"its interval {why}: {of.advice(of.more)}", *seen, code=code)
        return Check("yes", f"p = {p:.2g}", *seen)
    reach = high if effect.null_interval is None else effect.null_interval[1]
    small = effect.difference < of.worth and effect.difference <= reach <= of.worth
    if high <= of.worth or small:
        return Check("no", f"shuffled topics give as much (p = {p:.2g})", *seen, code="shuffles")
    why = f"p = {p:.2g}, and shuffled topics alone give up to {reach:.2g}: {of.advice(of.more)}"
    return Check("unsure", why, *seen, code="maybe chance")


def frequency(of: Measured) -> Check:
    if not of.matched:
        return OFF
    few = too_few(of, of.effect)
    if few is not None or of.effect is None:
        return few or OFF
    matched = of.effect.matched
    if matched is None or matched.interval is None or is_flat(matched.interval):
        return Check("unsure", f"too few pairs of equal word frequencies: {of.more_pairs}", code="few matched pairs")
    return remains(matched.difference, matched.interval, of, of.effect, "at equal word frequencies")


def fresh_weights(of: Measured) -> Check:
    if not of.with_fresh:
        return OFF
    few = too_few(of, of.effect) or too_few(of, of.fresh)
    if few is not None or of.effect is None or of.fresh is None:
        return few or OFF
    ours, theirs = of.effect.resamples, of.fresh.resamples
    if ours is None or theirs is None:
        return OFF
    count = min(len(ours), len(theirs))
    between = interval(np.asarray(ours[:count]) - np.asarray(theirs[:count]))  # the same topics or documents are drawn
    if between is None:
        return nothing_to_resample(of)
    return remains(of.effect.difference - of.fresh.difference, between, of, of.effect, "beyond fresh weights")


def remains(number: float, between: Interval, of: Measured, effect: Effect, where: str) -> Check:
    """Whether enough remains of a difference: half of it, and so much that it matters.

    Word frequencies are compared in classes, so that a little of what they explain always remains.
    """
    enough = max(of.worth, HALF * effect.difference)
    left = f"{where} {number:.2g} of {effect.difference:.2g} remains"
    if between[0] > 0 and number >= enough:
        return Check("yes", f"{where} {number:.2g}", number, between)
    if between[1] < (of.worth if between[0] > 0 else enough):
        return Check("no", left, number, between, code="little remains")
    if between[0] > 0:
        return Check(
            "unsure", f"{left}: most of the effect may be something other than topics", number, between, code="half"
        )
    return Check("unsure", f"{left}, and its interval reaches zero: {of.advice(of.more)}", number, between, code="zero")


def cooccurrence(of: Measured) -> Check:
    if not of.with_contrast:
        return OFF
    contrast, few = of.contrast, too_few(of, of.effect)
    if few is not None:
        return few
    between = None if contrast is None or contrast.pairs < LISTED_PAIRS else contrast.margin_interval
    if (
        contrast is None
        or contrast.same_topic is None
        or contrast.cooccurring is None
        or between is None
        or is_flat(between)
    ):
        return Check("unsure", f"too few co-occurring pairs in these texts: {of.more_pairs}", code="few listed pairs")
    margin = contrast.same_topic - contrast.cooccurring
    both = f"{contrast.same_topic:.3g} against {contrast.cooccurring:.3g}"
    if between[0] > 0:
        return Check("yes", both, margin, between)
    if between[1] < 0:
        why = f"the pairs that co-occur most show more ({contrast.cooccurring:.3g}) than pairs of one topic"
        return Check("no", f"{why} ({contrast.same_topic:.3g})", margin, between, code="more")
    more = of.advice("documents" if of.more == "documents" else "threshold")  # it sets the number of pairs
    return Check(
        "unsure", f"the pairs that co-occur most show about as much ({both}): {more}", margin, between, code="as much"
    )


def checks_of(of: Measured) -> dict[str, Check]:
    rules = {"chance": chance, "frequency": frequency, "cooccurrence": cooccurrence, "fresh_weights": fresh_weights}
    checks = {control: rule(of) for control, rule in rules.items()}
    if not of.labels or of.effect is None or not is_flat(of.effect.interval):
        return checks
    if too_few(of, replace(of.effect, interval=(0.0, 1.0))) is not None:
        return checks
    # a corpus has no more labels than it has, so the advice to raise --topics would not help
    return {control: check if check.answer == "off" else FEW_LABELS for control, check in checks.items()}


def best(answers: Sequence[Answer]) -> Answer:
    """The best answer; of equal ones that which passes most controls, then that with the largest difference."""
    return max(answers, key=lambda one: (ORDER.index(one.answer), passed(one)))


def passed(answer: Answer) -> tuple[int, float]:
    """How many controls say yes, and the smallest difference."""
    differences = (row.check.number for row in answer.checks if row.control == "chance")
    return sum(grade == "yes" for grade in answer.controls.values()), min((x or 0.0 for x in differences), default=0.0)


ORDER = ("no", "unsure", "yes")
EXPLAINED = {
    "chance": "chance",
    "frequency": "word frequency",
    "cooccurrence": "co-occurrence",
    "fresh_weights": "the architecture",
}
SWITCHES = {
    "chance": "shuffled topics (--shuffles)",
    "frequency": "equal frequencies (--matched)",
    "cooccurrence": "co-occurring pairs (--cooccurrence)",
    "fresh_weights": "fresh weights (--random)",
}
FEW_LABELS = Check(
    "unsure", "two labels are too few for an interval over topics; about five or more are needed", code="few labels"
)
Looked = tuple[MeasuredRow | StateRow, Measured]  # an effect at one threshold, with the row that it belongs to


def answered(name: str, what: str, looked: Sequence[Looked]) -> Answer:
    """The answer on `name`, where the difference of pairs is `what`, from all thresholds."""
    if not looked:
        return Answer(answer="unsure", controls=dict.fromkeys(CONTROLS, "off"), sentence=f"{name}: not measured.")
    rows = [
        CheckRow(
            control=control,
            threshold=row.threshold,
            topics_per_word=row.topics_per_word,
            words=row.words,
            pairs=None if of.effect is None else of.effect.pairs,
            check=check,
        )
        for row, of in looked
        for control, check in checks_of(of).items()
    ]
    controls = {control: over_thresholds([row for row in rows if row.control == control]) for control in CONTROLS}
    grades = list(controls.values())
    grade: Grade = "no" if "no" in grades else "yes" if set(grades) == {"yes"} else "unsure"
    return Answer(answer=grade, controls=controls, sentence=sentence(name, what, grade, rows, looked[0]), checks=rows)


def over_thresholds(rows: Sequence[CheckRow]) -> Grade:
    """'yes' where a control says so at all thresholds at which it is on; 'no' where it says no and nowhere yes."""
    grades = {row.check.answer for row in rows} - {"off"}
    if not grades:
        return "off"
    if grades == {"yes"}:
        return "yes"
    return "no" if "no" in grades and "yes" not in grades else "unsure"


def sentence(name: str, what: str, answer: Grade, rows: Sequence[CheckRow], first: Looked) -> str:
    """The answer in words: the numbers where it is yes, else what stands against it and what to raise."""
    row, effect = first[0], first[1].effect
    if answer == "yes" and effect is not None:
        pairs = "" if effect.pairs is None else f", {effect.pairs:,.0f} pairs of {row.words} words"
        beyond = ", ".join(EXPLAINED.values())
        means = f"{effect.same:.3g} for two words of one topic, {effect.different:.3g} for words of different topics"
        return f"{name}: yes. {what[0].upper()}{what[1:]}: {means}{pairs}. Explained by none of: {beyond}."
    reasons = []
    for control in CONTROLS:
        mine = [row for row in rows if row.control == control]
        grade = over_thresholds(mine)
        if grade == "off" and answer == "unsure":  # what was switched off does not change a no
            reasons.append(not_compared(control, mine))
        elif grade == "no" or (grade == "unsure" and answer == "unsure"):
            reasons.append(f"{EXPLAINED[control]}{reason(mine)}")
    if over_thresholds([row for row in rows if row.control == "chance"]) == "no":
        reasons = reasons[:1]  # there is nothing that others could explain
    return f"{name}: {answer}. {'; '.join(reasons)}."


def not_compared(control: str, rows: Sequence[CheckRow]) -> str:
    if control == "cooccurrence" and all(row.topics_per_word == "many" for row in rows):
        return "co-occurrence needs one topic per word (--topics-per-word one)"
    return f"{SWITCHES[control]} were not compared"


def reason(rows: Sequence[CheckRow]) -> str:
    """What stands against a control's yes: the first no, or else what is unsure; and where the thresholds differ."""
    worst = min(rows, key=lambda row: ORDER.index(row.check.answer) if row.check.answer != "off" else len(ORDER))
    at = "" if worst.threshold is None or len(rows) == 1 else f" at threshold {worst.threshold:g}"
    passed = [f"{row.threshold:g}" for row in rows if row.check.answer == "yes" and row.threshold is not None]
    mixed = f" (but yes at {', '.join(passed)}: choose a threshold by how many words a topic should have)"
    return f"{at}: {worst.check.why}{mixed if worst.check.answer == 'no' and passed else ''}"


def verdict_of(
    rows: Sequence[ProbeRow],
    heads: Sequence[HeadRow],
    pairs: Sequence[CooccurrenceRow],
    settings: Measurement,
    states: Sequence[StateRow] = (),
    documents: int | None = None,
    *,
    labels: bool = False,
) -> ModelVerdict:
    """The verdict on a model: does it encode topics in embeddings, hidden states and attention?"""
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {setting(row): row for row in rows if row.variant != "trained"}
    contrasts = {setting(row): row for row in pairs}
    topical = topical_heads(heads, next(iter(trained[0].parts), ""))

    def looked(name: str) -> list[Looked]:
        effects: list[Looked] = []
        for row in trained:
            effect, control, other = getattr(row, name), contrasts.get(setting(row)), fresh.get(setting(row))
            compared = Measured(
                **shared(settings, row),
                effect=effect,
                worth=ATTENTION_WORTH * (0.01 if effect is None else effect.different),
                shuffles=settings.attention_shuffles,
                contrast=None if control is None else getattr(control, name),
                enough=POSITION_PAIRS,
                fresh=None if other is None else getattr(other, name),
                with_fresh=bool(fresh),
                p_value=largest_p(heads, topical, row) if name == "topical" else None,
                documents=documents,
            )
            if name == "cosine":
                of_words: dict[str, Any] = {"worth": COSINE_WORTH, "enough": WORD_PAIRS, "documents": None}
                more = "threshold" if labels else "topics"
                compared = replace(compared, **of_words, shuffles=settings.shuffles, more=more, labels=labels)
            effects.append((row, compared))
        return effects

    ways = [answered("attention (mean over heads)", ATTENTION, looked("attention"))]
    if topical:
        ways.append(answered(f"attention ({named(topical)})", ATTENTION, looked("topical")))
    return ModelVerdict(
        model=trained[0].model,
        embeddings=answered("embeddings", "the cosine of words", looked("cosine")),
        states=answer_on_states(states, settings, documents, labels),
        attention=best(ways),
    )


ATTENTION = "attention between words (.01 without preference)"
STATES = "the cosine of states in different documents"


def shared(settings: Measurement, row: MeasuredRow | StateRow) -> dict[str, Any]:
    one = row.topics_per_word == "one"
    return {
        "matched": settings.matched,
        "with_contrast": settings.cooccurrence and one,
        "given": row.threshold is None,
    }


def answer_on_states(
    rows: Sequence[StateRow], settings: Measurement, documents: int | None = None, labels: bool = False
) -> Answer:
    """The answer on the layer that shows most, where p is corrected for the number of layers."""
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {(setting(row), layer_of(row)): row for row in rows if row.variant != "trained"}
    corrected = layers_p(trained)

    def looked(row: StateRow) -> Looked:
        mean, other = row.cooccurring.get("raw"), fresh.get((setting(row), layer_of(row)))
        contrast = None
        if mean is not None and row.raw is not None:
            contrast = PairContrast(row.raw.same, mean.mean, mean.interval, mean.margin_interval, mean.pairs)
        return row, Measured(
            **shared(settings, row),
            effect=row.raw,
            worth=COSINE_WORTH,
            shuffles=settings.attention_shuffles,
            p_value=corrected.get((setting(row), layer_of(row))),
            contrast=contrast,
            documents=documents,
            fresh=None if other is None else other.raw,
            with_fresh=bool(fresh),
            labels=labels,
        )

    answers = [
        answered(
            f"hidden states ({part} layer {layer}{', embedding output' if layer == 0 else ''})",
            STATES,
            [looked(row) for row in trained if layer_of(row) == (part, layer)],
        )
        for part, layer in dict.fromkeys(map(layer_of, trained))
    ]
    return best(answers) if answers else answered("hidden states", STATES, [])


def layer_of(row: StateRow) -> tuple[str, int]:
    return row.part, row.layer


def layers_p(rows: Sequence[StateRow]) -> dict[tuple[tuple[float | None, str], tuple[str, int]], float]:
    """p of the raw effect at each threshold and layer, corrected for all layers."""
    found: dict[tuple[tuple[float | None, str], tuple[str, int]], float] = {}
    for here in dict.fromkeys(map(setting, rows)):
        mine = [(layer_of(row), row.raw) for row in rows if setting(row) == here]
        known = [(at, effect, effect.shuffled) for at, effect in mine if effect is not None]
        usable = [(at, effect.difference, null) for at, effect, null in known if null is not None]
        if usable:
            places, differences, nulls = zip(*usable, strict=True)
            p = corrected_p(np.array(differences), np.stack(nulls, 1))
            found |= {(here, at): float(one) for at, one in zip(places, p, strict=True) if np.isfinite(one)}
    return found


def setting(row: ProbeRow | HeadRow | CooccurrenceRow | StateRow) -> tuple[float | None, str]:
    return row.threshold, row.topics_per_word


def largest_p(heads: Sequence[HeadRow], topical: Sequence[HeadRow], row: ProbeRow) -> float | None:
    """The largest p of the topical heads at the threshold of a row, corrected for all heads."""
    places = {place(head) for head in topical}
    here = [head.corrected_p for head in heads if setting(head) == setting(row) and place(head) in places]
    return max((p for p in here if p is not None), default=None)


def named(heads: Sequence[HeadRow], most: int = 3) -> str:
    some = ", ".join(f"{head.layer}.{head.head}" for head in heads[:most])
    rest = f" and {len(heads) - most} more" if len(heads) > most else ""
    return f"{'head' if len(heads) == 1 else 'heads'} {some}{rest} as layer.head"
