"""Which heads stand out, and the controls read together."""

from __future__ import annotations

from dataclasses import replace

from topicscope.language import Probe
from topicscope.language.probe_rows import CONTROLS, Answer, Check, CheckRow, Grade, HeadRow, ModelVerdict
from topicscope.language.probes import heads_sentence
from topicscope.language.verdicts import best
from topicscope.measure import Effect
from topicscope.pages import head_table


def head(layer: int, number: int, difference: float, p: float | None, threshold: float = 0.001) -> HeadRow:
    effect = Effect(same=0.01 + difference, different=0.01, difference=difference, ratio=None, interval=None)
    about = {"model": "m/tiny", "threshold": threshold, "topics_per_word": "one", "part": "encoder"}
    return HeadRow(**about, layer=layer, head=number, effect=effect, corrected_p=p)  # type: ignore[arg-type]


HEADS = [head(2, 0, 0.009, 0.619), head(0, 2, 0.004, 0.048), head(0, 1, 0.003, None), head(0, 0, 0.002, 0.048)]


def test_heads_are_ordered_by_p_then_by_difference_and_topical_ones_are_marked() -> None:
    rows = head_table(HEADS).rows
    assert [(row[2], row[3], row[-1]) for row in rows] == [
        ("0", "2", "topical"),
        ("0", "0", "topical"),
        ("2", "0", "-"),
        ("0", "1", "-"),
    ]
    at_two = [*HEADS, head(0, 2, 0.004, 0.01, 0.002), head(0, 0, 0.002, 0.3, 0.002)]
    assert [row[-1] for row in head_table(at_two).rows[:2]] == ["topical", "-"]  # at every threshold, or not at all


def test_the_table_of_heads_says_which_are_topical_model_by_model() -> None:
    other = replace(HEADS[1], model="m/other", corrected_p=0.3)  # the same head of another model
    rows = Probe([], [*HEADS, other], [], []).records()["heads"]
    assert [row["topical"] for row in rows] == [False, True, False, True, False]


def test_the_sentence_on_heads() -> None:
    assert heads_sentence(HEADS, "encoder") == (
        "tiny: heads that stand out from chance: 0.2, 0.0 (of 4, as layer.head). "
        "The answer on attention asks for more: a size that matters, and all four controls."
    )
    assert heads_sentence(HEADS[:1], "encoder") == "tiny: no head stands out from chance (of 1)."
    assert heads_sentence([head(0, 0, 0.1, None)], "encoder") == ""  # nothing was shuffled
    assert heads_sentence([], "encoder") == ""


def answer(*grades: Grade) -> Answer:
    check = CheckRow(
        control="chance", threshold=0.001, topics_per_word="one", words=9, pairs=None, check=Check(answer=grades[0])
    )
    return Answer(answer="no", controls=dict(zip(CONTROLS, grades, strict=True)), sentence="", checks=[check])


def test_controls_are_read_together() -> None:
    told = "a real effect (beyond chance, word frequency and fresh weights) that cannot be told from co-occurrence"
    assert answer("yes", "yes", "no", "yes").reading == told
    assert answer("no", "no", "no", "no").reading == "no effect beyond chance"
    assert answer("off", "yes", "yes", "yes").reading == "not known to be more than chance"
    whole = "a real effect (beyond chance, word frequency, co-occurrence and fresh weights)"
    assert answer("yes", "yes", "yes", "yes").reading == whole
    assert answer("yes", "unsure", "yes", "off").reading == (
        "a real effect (beyond chance and co-occurrence); open: word frequency and fresh weights"
    )
    same, off = answer("yes", "yes", "no", "yes"), Answer(answer="off", controls={}, sentence="")
    verdict = ModelVerdict(model="m/tiny", embeddings=same, states=off, attention=same)
    assert verdict.reading == f"tiny, read together: embeddings, attention: {told}."


def test_of_equal_answers_that_which_passes_most_controls_is_reported() -> None:
    mean, heads = answer("unsure", "yes", "unsure", "off"), answer("yes", "yes", "unsure", "off")
    assert best([mean, heads]) is heads
    assert best([heads, mean]) is heads
    better = replace(mean, answer="unsure")  # an answer counts before the controls: both others say no
    assert best([heads, better]) is better
    assert best([off := replace(mean, checks=[])]) is off
