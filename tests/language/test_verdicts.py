"""What a probe says of its effects: for every control numbers that must give each answer, and how answers add up."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.language.samples import head_row
from tests.measure.samples import there
from topicscope.ground import adapter_of
from topicscope.language import (
    CONTROLS,
    Answer,
    CooccurrenceRow,
    HeadRow,
    Measured,
    Measurement,
    ModelVerdict,
    PairContrast,
    ProbeRow,
    verdict_of,
)
from topicscope.language.probe_rows import place, topical_heads
from topicscope.language.verdicts import checked
from topicscope.measure import Effect, Matched, Membership, embedding_effect, frequency_bins, pair_sums

SURE = (0.08, 0.12)  # an interval above zero
ABOUT: dict[str, Any] = {"variant": "trained", "topics_per_word": "one", "words": 40, "topics": 4}
MORE: dict[str, Any] = {"embedding": "matrix", "window": 8}


def effect(
    between: tuple[float, float] | None = SURE,
    p: float | None = 0.01,
    null: tuple[float, float] | None = (-0.01, 0.01),
    matched: tuple[float, float] | None = SURE,
    difference: float = 0.1,
) -> Effect:
    """0.3 in a topic and 0.2 elsewhere, or another difference; resamples around it as wide as the interval."""
    means: dict[str, Any] = {"same": 0.2 + difference, "different": 0.2, "difference": difference, "ratio": None}
    counts: dict[str, Any] = {"pairs": 300.0, "other_pairs": 900.0, "interval": between, "null_interval": null}
    equal = None if matched is None else Matched(0.3, 0.2, sum(matched) / 2, matched)
    spread = np.zeros(1) if between is None else np.linspace(*between, 401)
    return Effect(**means, **counts, p_value=p, matched=equal, resamples=spread)


def measured(of: Effect | None, **more: Any) -> Measured:
    return Measured(**{"effect": of, "worth": 0.02, "shuffles": 100, **more})


@pytest.mark.parametrize(
    ("of", "answer", "code"),
    [
        (measured(effect()), "yes", ""),
        (measured(effect(p=0.05)), "yes", ""),
        (measured(effect(p=0.051)), "unsure", "maybe chance"),
        (measured(effect(p=0.01), p_value=0.06), "unsure", "maybe chance"),
        (measured(effect((0.0, 0.2))), "unsure", "zero"),
        (measured(effect((0.001, 0.019), difference=0.01)), "no", "small"),
        (measured(effect((0.001, 0.021), difference=0.01)), "unsure", "maybe small"),
        (measured(effect((-0.1, 0.2), 0.3, (-0.1, 0.1))), "unsure", "maybe chance"),
        (measured(effect((-0.1, 0.01), 0.3, (-0.1, 0.1))), "no", "shuffles"),
        (measured(effect((0.025, 0.035), 0.06, (-0.02, 0.0195), difference=0.03)), "unsure", "maybe chance"),
        (measured(effect((-0.01, 0.06), 0.3, (-0.02, 0.0195), difference=0.01)), "no", "shuffles"),
        (measured(effect((-0.01, 0.06), 0.3, (-0.02, 0.03), difference=0.01)), "unsure", "maybe chance"),
        (measured(effect(), documents=9), "unsure", "few documents"),
        (measured(effect(), documents=10), "yes", ""),
        (measured(effect(p=0.09), shuffles=18), "unsure", "few shuffles"),
        (measured(effect(p=0.09), shuffles=19), "unsure", "maybe chance"),
        (measured(effect(p=None)), "unsure", "no shuffled pairs"),
        (measured(effect(p=None), off={"chance"}), "off", ""),
        (measured(effect(None)), "unsure", "nothing to resample"),
        (measured(effect((0.1, 0.1))), "unsure", "nothing to resample"),
        (measured(effect((0.1, 0.1)), labels=True), "unsure", "few labels"),
        (measured(replace(effect(), pairs=19.0)), "unsure", "few pairs"),
        (measured(replace(effect(), pairs=20.0)), "yes", ""),
        (measured(replace(effect(), pairs=99.0), enough=100), "unsure", "few pairs"),
        (measured(None, off={"chance"}), "off", ""),
        (measured(None), "unsure", "no pairs"),
    ],
)
def test_chance(of: Measured, answer: str, code: str) -> None:
    check = checked("chance", of)
    assert (check.answer, check.code) == (answer, code)
    unmeasured = code.startswith(("few", "no")) and code != "few shuffles"
    seen = None if of.effect is None or answer == "off" or unmeasured else of.effect
    assert (check.number, check.interval) == ((seen.difference, seen.interval) if seen else (None, None))


def test_what_to_raise() -> None:
    assert "raise --documents" in checked("chance", measured(effect((0.0, 0.2)))).why
    assert "raise --topics" in checked("chance", measured(effect((0.0, 0.2)), more="topics")).why
    assert "at least 19 are needed" in checked("chance", measured(effect(p=0.09), shuffles=10)).why
    assert "raise --topics or --documents" in checked("chance", measured(effect(None))).why
    assert "raise --threshold or --documents" in checked("chance", measured(None)).why
    assert "more words to the topics" in checked("chance", measured(None, given=True)).why


def test_the_numbers_in_reasons() -> None:
    def against(same: float, other: float, between: tuple[float, float]) -> str:
        contrast = PairContrast(same, other, (other - 0.01, other + 0.01), between, 20)
        return checked("cooccurrence", measured(effect(), contrast=contrast)).why

    assert "show more (0.4) than pairs of one topic (0.3)" in against(0.3, 0.4, (-0.2, -0.001))
    assert "about as much (0.3 against 0.28)" in against(0.3, 0.28, (-0.01, 0.1))
    assert "0.025 of 0.1 remains" in checked("frequency", measured(effect(matched=(0.0, 0.049)))).why
    assert "cannot give a p below 0.091" in checked("chance", measured(effect(p=0.09), shuffles=10)).why
    assert "(19; at least 20 are" in checked("chance", measured(replace(effect(), pairs=19.0))).why
    small, same = effect((0.001, 0.019), difference=0.01), effect((-0.1, 0.01), 0.3, (-0.1, 0.1))
    assert "0.01 is more than chance, but too small" in checked("chance", measured(small)).why
    assert "give as much (p = 0.3)" in checked("chance", measured(same)).why


@pytest.mark.parametrize(
    ("of", "answer", "code"),
    [
        (measured(effect(matched=(0.001, 0.2))), "yes", ""),
        (measured(effect(matched=(0.0, 0.049))), "no", "little remains"),
        (measured(effect(matched=(0.0, 0.052))), "unsure", "zero"),
        (measured(effect(matched=(0.04, 0.058))), "unsure", "half"),
        (measured(effect(matched=(0.04, 0.062))), "yes", ""),
        (measured(effect(matched=(0.001, 0.019))), "no", "little remains"),
        (measured(effect(matched=(0.01, 0.026), difference=0.03)), "unsure", "half"),
        (measured(effect(matched=(-0.2, 0.018), difference=0.03)), "no", "little remains"),
        (measured(effect(matched=(-0.2, 0.021), difference=0.03)), "unsure", "zero"),
        (measured(effect(matched=None)), "unsure", "few matched pairs"),
        (measured(effect(), off={"frequency"}), "off", ""),
        (measured(effect(matched=(0.1, 0.1))), "unsure", "few matched pairs"),
        (measured(None), "unsure", "no pairs"),
    ],
)
def test_frequency(of: Measured, answer: str, code: str) -> None:
    check = checked("frequency", of)
    assert (check.answer, check.code) == (answer, code)
    if check.number is not None:
        matched = there(there(of.effect).matched)
        assert (check.number, check.interval) == (matched.difference, matched.interval)


@pytest.mark.parametrize(
    ("contrast", "answer", "code"),
    [
        (PairContrast(0.3, 0.2, (0.19, 0.21), (0.001, 0.2), 10), "yes", ""),
        (PairContrast(0.3, 0.28, (0.27, 0.29), (-0.01, 0.1), 20), "unsure", "as much"),
        (PairContrast(0.3, 0.4, (0.39, 0.41), (-0.2, -0.001), 20), "no", "more"),
        (PairContrast(0.3, 0.2, (0.19, 0.21), (0.001, 0.2), 9), "unsure", "few listed pairs"),
        (PairContrast(0.3, 0.2, (0.2, 0.2), (0.1, 0.1), 10), "unsure", "few listed pairs"),
        (PairContrast(0.3, None, None), "unsure", "few listed pairs"),
        (None, "unsure", "few listed pairs"),
    ],
)
def test_cooccurrence(contrast: PairContrast | None, answer: str, code: str) -> None:
    check = checked("cooccurrence", measured(effect(), contrast=contrast))
    assert (check.answer, check.code) == (answer, code)
    assert checked("cooccurrence", measured(effect(), contrast=contrast, off=CONTROLS)).answer == "off"
    if contrast is not None and check.number is not None and contrast.cooccurring is not None:
        assert check.number == pytest.approx(0.3 - contrast.cooccurring)
        assert check.interval == contrast.margin_interval


@pytest.mark.parametrize(
    ("fresh", "answer", "code"),
    [
        (effect((-0.001, 0.001), difference=0.0), "yes", ""),
        (effect((0.03, 0.06), difference=0.045), "yes", ""),
        (effect((0.04, 0.07), difference=0.055), "unsure", "half"),
        (effect(SURE), "no", "little remains"),  # the same draws: nothing is left in any of them
        (effect((0.3, 0.0), difference=0.15), "unsure", "zero"),
        (None, "unsure", "no pairs"),
    ],
)
def test_fresh_weights(fresh: Effect | None, answer: str, code: str) -> None:
    check = checked("fresh_weights", measured(effect(), fresh=fresh))
    assert (check.answer, check.code) == (answer, code)
    assert checked("fresh_weights", measured(effect(), fresh=fresh, off=["fresh_weights"])).answer == "off"


def row(threshold: float = 0.1, **changes: Any) -> ProbeRow:
    found = effect()
    whole = {"embeddings": {"cosine": found, "dot": None}, "attention": found, "parts": {"encoder": found}}
    return ProbeRow(**{"model": "a/b", "threshold": threshold, **ABOUT, **MORE, **whole, **changes})


def fresh_row(threshold: float = 0.1) -> ProbeRow:
    nothing = effect((-0.001, 0.001), 0.5, difference=0.0)
    return row(
        threshold, variant="random", embeddings={"cosine": nothing, "dot": None}, attention=nothing, topical=nothing
    )


def pairs(threshold: float = 0.1, cosine: float = 0.1) -> CooccurrenceRow:
    contrast, less = (
        PairContrast(0.3, mean, (mean - 0.01, mean + 0.01), (0.25 - mean, 0.35 - mean), 100) for mean in (cosine, 0.1)
    )
    about = {"model": "a/b", "threshold": threshold, **ABOUT, **MORE}
    return CooccurrenceRow(**about, pairs=9, cosine=contrast, attention=less, topical=less)


def head(number: int, p: float | None, threshold: float = 0.1) -> HeadRow:
    return head_row(1, number, p, threshold=threshold)


SETTINGS = Measurement()


def codes(answer: Answer) -> dict[str, str]:
    return {check.control: check.check.code for check in answer.checks}


def test_yes_needs_every_control_at_every_threshold() -> None:
    rows, listed = [row(0.1), row(0.2), fresh_row(0.1), fresh_row(0.2)], [pairs(0.1), pairs(0.2)]
    verdict = verdict_of(rows, [], listed, SETTINGS)
    assert verdict.embeddings.answer == verdict.attention.answer == "yes"
    assert set(verdict.embeddings.controls.values()) == {"yes"}
    assert verdict.embeddings.sentence == (
        "embeddings: yes. The cosine of words: 0.3 for two words of one topic, 0.2 for words of different topics, 300 "
        "pairs of 40 words. Explained by none of: chance, word frequency, co-occurrence, the architecture."
    )
    assert verdict.sentences[0] == f"b: {verdict.embeddings.sentence}"
    # co-occurring pairs beat those of a topic at one of two thresholds, then at both
    mixed = verdict_of(rows, [], [pairs(0.1), pairs(0.2, cosine=0.4)], SETTINGS).embeddings
    assert (mixed.answer, mixed.controls["cooccurrence"]) == ("unsure", "unsure")
    assert codes(mixed) == {"chance": "", "frequency": "", "cooccurrence": "more", "fresh_weights": ""}
    assert "(but yes at 0.1: choose a threshold" in mixed.sentence
    half = verdict_of(rows, [], [pairs(0.1, cosine=0.28), pairs(0.2, cosine=0.4)], SETTINGS).embeddings
    assert (half.answer, half.controls["cooccurrence"]) == ("no", "no")  # about as much, and more: nowhere less
    assert "at threshold 0.2" in half.sentence
    beaten = verdict_of(rows, [], [pairs(0.1, cosine=0.4), pairs(0.2, cosine=0.4)], SETTINGS).embeddings
    assert (beaten.answer, beaten.controls["cooccurrence"]) == ("no", "no")
    assert beaten.controls["chance"] == "yes"


def test_a_control_that_is_off_leaves_it_open_unless_another_says_no() -> None:
    off = verdict_of([row(), fresh_row()], [], [], replace(SETTINGS, cooccurrence=False)).embeddings
    assert (off.answer, off.controls["cooccurrence"]) == ("unsure", "off")
    assert off.sentence == "embeddings: unsure. co-occurring pairs (--cooccurrence) were not compared."
    by_chance = row(embeddings={"cosine": effect((-0.01, 0.015), 0.4, difference=0.005), "dot": None})
    no = verdict_of([by_chance, fresh_row()], [], [], replace(SETTINGS, cooccurrence=False)).embeddings
    assert (no.answer, codes(no)["chance"]) == ("no", "shuffles")
    assert "--cooccurrence" not in no.sentence
    bare = replace(SETTINGS, shuffles=0, matched=False, random=False, cooccurrence=False)
    nothing = verdict_of([row(attention=None)], [], [], bare)
    assert nothing.embeddings.controls == dict.fromkeys(nothing.embeddings.controls, "off")
    assert nothing.embeddings.answer == nothing.attention.answer == "unsure"
    without = verdict_of([row(attention=None)], [], [], SETTINGS).attention
    assert (without.answer, without.controls["chance"]) == ("unsure", "unsure")


def test_a_single_head_can_carry_topics() -> None:
    flat = effect((-0.001, 0.001), 0.6, (-0.0005, 0.0005), (-0.001, 0.001), difference=0.0)
    rows = [row(threshold, attention=flat, topical=effect()) for threshold in (0.1, 0.2)]
    rows += [fresh_row(threshold) for threshold in (0.1, 0.2)]
    listed = [pairs(0.1), pairs(0.2)]
    heads = [head(0, 0.01, t) for t in (0.1, 0.2)] + [head(1, 0.01, 0.1), head(1, 0.06, 0.2), head(2, None, 0.1)]
    assert [place(one) for one in topical_heads(heads, "encoder")] == [("encoder", 1, 0)]
    assert topical_heads(heads, "decoder") == []
    answer = verdict_of(rows, heads, listed, SETTINGS).attention
    assert answer.answer == "yes"
    assert answer.sentence.startswith("attention (head 1.0 as layer.head): yes.")
    # the corrected p counts, not that of the chosen heads
    late = [head(0, 0.01, 0.1), head(0, 0.051, 0.2)]
    assert verdict_of(rows, late, listed, SETTINGS).attention.answer == "no"


def test_a_verdict_is_read_back_as_it_was() -> None:
    verdict = verdict_of([row(), fresh_row()], [head(0, 0.01)], [pairs()], SETTINGS)
    assert adapter_of(ModelVerdict).validate_python(verdict.as_dict()) == verdict
    assert list(verdict.as_dict()) == ["model", "embeddings", "states", "attention"]
    assert list(verdict.as_dict()["states"])[:3] == ["answer", "controls", "sentence"]
    check = verdict.as_dict()["embeddings"]["checks"][0]
    assert list(check)[-4:] == ["answer", "why", "number", "interval"]  # the code is not stored


def test_two_labels_are_said_to_be_too_few_and_no_option_is_blamed() -> None:
    """A bootstrap over two topics always draws the same pair of them: its interval has no width."""
    flat: dict[str, Any] = {"embeddings": {"cosine": effect((0.1, 0.1)), "dot": None}}
    of: dict[str, Any] = {"settings": SETTINGS, "pairs": [pairs()]}
    rows = [row(**flat), fresh_row()]
    labelled = verdict_of(rows, [], **of, labels=True)
    assert labelled.embeddings.answer == "unsure"
    assert codes(labelled.embeddings)["chance"] == "few labels"
    assert "--topics" not in labelled.embeddings.sentence
    assert labelled.attention.answer == "yes"  # it is resampled over documents
    assert codes(verdict_of(rows, [], **of).embeddings)["chance"] == "nothing to resample"
    few: dict[str, Any] = {"embeddings": {"cosine": replace(effect((0.1, 0.1)), pairs=3.0), "dot": None}}
    assert codes(verdict_of([row(**few), fresh_row()], [], **of, labels=True).embeddings)["chance"] == "few pairs"
    wide: dict[str, Any] = {"embeddings": {"cosine": effect((-0.1, 0.3)), "dot": None}}
    answer = verdict_of([row(**wide), fresh_row()], [], **of, labels=True).embeddings
    assert codes(answer)["chance"] == "zero"
    assert "raise --threshold" in answer.sentence
    assert verdict_of([row(), fresh_row()], [], **of, labels=True).embeddings.answer == "yes"


def test_many_topics_per_word_are_named_where_cooccurrence_is_not_compared() -> None:
    many: dict[str, Any] = {"topics_per_word": "many"}
    rows = [replace(one, **many) for one in (row(), fresh_row())]
    answer = verdict_of(rows, [], [], SETTINGS).embeddings
    assert (answer.answer, answer.controls["cooccurrence"]) == ("unsure", "off")
    assert answer.sentence == "embeddings: unsure. co-occurrence needs one topic per word (--topics-per-word one)."
    chance = row(embeddings={"cosine": effect((-0.01, 0.015), 0.4, difference=0.005), "dot": None}, **many)
    no = verdict_of([chance, rows[1]], [], [], SETTINGS).embeddings
    assert (no.answer, "--topics-per-word" in no.sentence) == ("no", False)


TOPICS, WORDS = 60, 20


@pytest.mark.parametrize("seed", range(10))
def test_what_classes_of_frequency_leave_over_is_not_taken_for_topics(seed: int) -> None:
    """A topic's words are of similar frequency, and so are their vectors. Classes hold most of that, not all."""
    rng = np.random.default_rng(seed)
    topic = np.repeat(np.arange(TOPICS), WORDS)
    log_frequency = rng.normal(size=TOPICS)[topic] + rng.normal(scale=0.5, size=len(topic))
    angle = log_frequency
    vectors = np.stack([np.cos(angle), np.sin(angle)], 1)
    members = Membership(np.arange(len(topic)), topic, len(topic), TOPICS)
    sums = pair_sums(vectors, members, frequency_bins(np.exp(log_frequency)))
    found = there(embedding_effect([sums], resamples=200, seed=seed, matched=True))
    assert found.matched is not None
    assert found.difference > 0.2
    assert there(found.matched.interval)[0] > 0  # so the interval alone would say yes
    assert checked("frequency", Measured(effect=found, worth=0.02, shuffles=100)).answer in ("no", "unsure")
