"""Does a model encode topics: in its embeddings, its hidden states, its attention? Yes, unsure or no, and why.

A control says yes only if it does so at all thresholds, and no if it does so at some and nowhere yes; else it is
unsure. 'Yes' needs every control. One 'no' is a no: then chance, frequency, co-occurrence or the architecture may
explain what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topicscope.language.answers import ORDER, Answer, CheckRow, ModelVerdict, best
from topicscope.language.configs import Measurement
from topicscope.language.controls import (
    ATTENTION_WORTH,
    CONTROLS,
    COSINE_WORTH,
    POSITION_PAIRS,
    WORD_PAIRS,
    Check,
    Grade,
    Measured,
    PairContrast,
    checks_of,
    too_few,
)
from topicscope.language.probe_rows import CooccurrenceRow, HeadRow, MeasuredRow, ProbeRow, place, topical_heads
from topicscope.language.state_rows import StateRow
from topicscope.measure import corrected_p

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
    answer="unsure", why="two labels are too few for an interval over topics; about five or more are needed"
)


@dataclass(frozen=True)
class Looked:
    """An effect at one threshold, with the row that it belongs to."""

    row: MeasuredRow | StateRow
    measured: Measured
    labels: bool = False  # whether the topics that its interval resamples are labels of a corpus

    def checks(self) -> dict[str, Check]:
        """By control. Of labels there are no more than there are: to raise --topics is no advice."""
        every, effect = checks_of(self.measured), self.measured.effect
        flat = effect is not None and (effect.interval is None or effect.interval[0] == effect.interval[1])
        if not (self.labels and flat and effect is not None):
            return every
        if too_few(replace(self.measured, effect=replace(effect, interval=(0.0, 1.0)))) is not None:
            return every  # something else comes first
        return {control: check if check.answer == "off" else FEW_LABELS for control, check in every.items()}


def answered(name: str, what: str, looked: Sequence[Looked]) -> Answer:
    """The answer on `name`, where the difference of pairs is `what`, from all thresholds."""
    if not looked:
        return Answer(answer="unsure", controls=dict.fromkeys(CONTROLS, "off"), sentence=f"{name}: not measured.")
    rows = [
        CheckRow(
            control=control,
            threshold=one.row.threshold,
            topics_per_word=one.row.topics_per_word,
            words=one.row.words,
            pairs=None if one.measured.effect is None else one.measured.effect.pairs,
            check=check,
        )
        for one in looked
        for control, check in one.checks().items()
    ]
    controls = {control: over_thresholds([row for row in rows if row.control == control]) for control in CONTROLS}
    grades = list(controls.values())
    found: Grade = "no" if "no" in grades else "yes" if set(grades) == {"yes"} else "unsure"
    return Answer(answer=found, controls=controls, sentence=sentence(name, what, found, rows, looked), checks=rows)


def over_thresholds(rows: Sequence[CheckRow]) -> Grade:
    """'yes' where a control says so at all thresholds at which it is on; 'no' where it says no and nowhere yes."""
    grades = {row.check.answer for row in rows} - {"off"}
    if not grades:
        return "off"
    if grades == {"yes"}:
        return "yes"
    return "no" if "no" in grades and "yes" not in grades else "unsure"


def sentence(name: str, what: str, found: Grade, rows: Sequence[CheckRow], looked: Sequence[Looked]) -> str:
    """The answer in words: the numbers where it is yes, else what stands against it and what to raise."""
    if found == "yes":
        effect = looked[0].measured.effect
        assert effect is not None
        pairs = "" if effect.pairs is None else f", {effect.pairs:,.0f} pairs of {looked[0].row.words} words"
        beyond = ", ".join(EXPLAINED.values())
        means = f"{effect.same:.3g} for two words of one topic, {effect.different:.3g} for words of different topics"
        return f"{name}: yes. {what[0].upper()}{what[1:]}: {means}{pairs}. Explained by none of: {beyond}."
    reasons = []
    for control in CONTROLS:
        mine = [row for row in rows if row.control == control]
        grade = over_thresholds(mine)
        if grade == "off" and found == "unsure":  # of a no, what was switched off changes nothing any more
            reasons.append(not_compared(control, mine))
        elif grade == "no" or (grade == "unsure" and found == "unsure"):
            reasons.append(f"{EXPLAINED[control]}{reason(mine)}")
    if over_thresholds([row for row in rows if row.control == "chance"]) == "no":
        reasons = reasons[:1]  # there is nothing that others could explain
    return f"{name}: {found}. {'; '.join(reasons)}."


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
    """The verdict on a model: does it encode topics in embeddings, hidden states and attention?

    Args:
        rows: Effects of the model, trained and with fresh weights.
        heads: Effects by head.
        pairs: Pairs that stand together most often.
        settings: What was measured.
        states: Effects in hidden states.
        documents: Number of documents with pairs of one topic.
        labels: Whether the topics are labels of the corpus.

    Returns:
        Three answers, each with four controls.

    Example:
        See `probe_model`.
    """
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {setting(row): row for row in rows if row.variant != "trained"}
    contrasts = {setting(row): row for row in pairs}
    topical = topical_heads(heads, next(iter(trained[0].parts), ""))

    def looked(name: str, contrast: str, **compared: Any) -> list[Looked]:
        """An effect of every row, with its controls."""
        found = []
        for row in trained:
            effect, control, other = getattr(row, name), contrasts.get(setting(row)), fresh.get(setting(row))
            even = 0.01 if effect is None else effect.different
            measured = Measured(
                effect=effect,
                worth=COSINE_WORTH if name == "cosine" else ATTENTION_WORTH * even,
                matched=settings.matched,
                contrast=None if control is None else getattr(control, contrast),
                with_contrast=settings.cooccurrence and row.topics_per_word == "one",
                enough=WORD_PAIRS if name == "cosine" else POSITION_PAIRS,
                given=row.threshold is None,
                fresh=None if other is None else getattr(other, name),
                with_fresh=bool(fresh),
                p_value=largest_p(heads, topical, row) if name == "topical" else None,
                **compared,
            )
            found.append(Looked(row, measured, labels and name == "cosine"))
        return found

    of_attention: dict[str, Any] = {
        "more": "documents",
        "shuffles": settings.attention_shuffles,
        "documents": documents,
    }
    ways = [answered("attention (mean over heads)", ATTENTION, looked("attention", "attention", **of_attention))]
    if topical:
        name = f"attention ({named(topical)})"
        ways.append(answered(name, ATTENTION, looked("topical", "topical", **of_attention)))
    cosines = looked("cosine", "cosine", more="threshold" if labels else "topics", shuffles=settings.shuffles)
    return ModelVerdict(
        model=trained[0].model,
        embeddings=answered("embeddings", "the cosine of words", cosines),
        states=answer_on_states(states, settings, documents, labels),
        attention=best(ways),
    )


ATTENTION = "attention between words (.01 without preference)"
STATES = "the cosine of states in different documents"


def answer_on_states(
    rows: Sequence[StateRow], settings: Measurement, documents: int | None = None, labels: bool = False
) -> Answer:
    """The answer on the layer that shows most, where p is corrected for the number of layers."""
    trained = [row for row in rows if row.variant == "trained"]
    fresh = {(setting(row), layer_of(row)): row for row in rows if row.variant != "trained"}
    corrected = layers_p(trained)

    def looked(row: StateRow) -> Looked:
        mean, other = row.cooccurring.get("raw"), fresh.get((setting(row), layer_of(row)))
        measured = Measured(
            effect=row.raw,
            worth=COSINE_WORTH,
            shuffles=settings.attention_shuffles,
            p_value=corrected.get((setting(row), layer_of(row))),
            matched=settings.matched,
            contrast=None
            if mean is None or row.raw is None
            else PairContrast(row.raw.same, mean.mean, mean.interval, mean.margin_interval, mean.pairs),
            documents=documents,
            with_contrast=settings.cooccurrence and row.topics_per_word == "one",
            given=row.threshold is None,
            fresh=None if other is None else other.raw,
            with_fresh=bool(fresh),
            more="documents",
        )
        return Looked(row, measured, labels)

    layers = dict.fromkeys(map(layer_of, trained))
    answers = [
        answered(
            f"hidden states ({part} layer {layer}{', embedding output' if layer == 0 else ''})",
            STATES,
            [looked(r) for r in trained if layer_of(r) == (part, layer)],
        )
        for part, layer in layers
    ]
    if not answers:
        return answered("hidden states", STATES, [])
    return best(answers)


def layer_of(row: StateRow) -> tuple[str, int]:
    return row.part, row.layer


def layers_p(rows: Sequence[StateRow]) -> dict[tuple[tuple[float | None, str], tuple[str, int]], float]:
    """p of the raw effect at each threshold and layer, corrected for all layers of all parts."""
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
    """Of the topical heads at the threshold of a row, corrected for all heads."""
    places = {place(head) for head in topical}
    here = [head.corrected_p for head in heads if setting(head) == setting(row) and place(head) in places]
    return max((p for p in here if p is not None), default=None)


def named(heads: Sequence[HeadRow], most: int = 3) -> str:
    """The heads in words, the strongest first."""
    some = ", ".join(f"{head.layer}.{head.head}" for head in heads[:most])
    rest = f" and {len(heads) - most} more" if len(heads) > most else ""
    return f"{'head' if len(heads) == 1 else 'heads'} {some}{rest} as layer.head"
