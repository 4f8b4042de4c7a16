"""The rows of a probe, made by hand: read back, flattened, and put into words."""

import dataclasses
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.language.samples import an_effect, head_row
from topicscope.ground import adapter_of
from topicscope.language import (
    CONTROLS,
    Answer,
    Assignment,
    Check,
    CheckRow,
    CooccurrenceRow,
    CooccurringMean,
    HeadRow,
    LoadedModel,
    Measurement,
    MixtureScore,
    ModelVerdict,
    PairContrast,
    Probe,
    ProbeRow,
    StateRow,
    TopicFit,
    TopicRow,
    Topics,
    Vocabulary,
    Window,
    WordMap,
    interval_text,
    ratio_text,
    short,
    verdict_of,
)
from topicscope.language.probe_rows import Grade
from topicscope.language.probes import heads_sentence
from topicscope.language.verdicts import best
from topicscope.measure import Effect, columns
from topicscope.pages import head_table

HERE: dict[str, Any] = {"threshold": 0.1, "topics_per_word": "one"}
ABOUT: dict[str, Any] = {"model": "a/b", "variant": "trained", **HERE, "words": 10, "topics": 2}
ABOUT |= {"embedding": "matrix", "window": 8}


def head(ratio: float | None, layer: int = 0) -> HeadRow:
    return head_row(layer, 1, None, effect=replace(head_row(0, 0, None).effect, ratio=ratio))


ROW = ProbeRow(
    **ABOUT,
    embeddings={"cosine": an_effect(0.1, 0.01, 0.2), "dot": None, "dot_centred": an_effect(0.2)},
    attention=an_effect(0.3),
    parts={"encoder": an_effect(0.3), "decoder": None},
)
PAIRS = CooccurrenceRow(
    **ABOUT,
    pairs=30,
    cosine=PairContrast(0.5, 0.25, (0.1, 0.3), (0.2, 0.4), 30),
    attention=PairContrast(None, None, None),
    commonest=[["boat", "anchor"], ["honey", "salt"]],
)
NEAR: dict[str, Any] = {"nearest": "food", "nearest_cosine": 0.2, "farthest": None, "farthest_cosine": None}
TOPIC = TopicRow(model="a/b", **HERE, topic=1, name="sea", words=5, cosine=0.5, **NEAR)
VERDICT = verdict_of([ROW], [head(1.5)], [PAIRS], Measurement(seed=3))
PROBE = Probe([ROW], [head(1.5), head(None, 1)], [PAIRS], [TOPIC], ["a note"], Measurement(seed=3), [VERDICT])


def test_rows_are_read_back_as_they_were() -> None:
    assert Probe.from_dict(json.loads(json.dumps(PROBE.as_dict(), allow_nan=False)), PROBE.config) == PROBE
    assert list(PROBE.as_dict()["rows"][0]) == [*ABOUT, "cosine", "dot", "dot_centred", "attention", "topical", "parts"]
    joined = Probe.joined([PROBE, PROBE], ["other"], Measurement())
    assert (joined.rows, joined.heads) == ([ROW] * 2, PROBE.heads * 2)
    assert (joined.cooccurrence, joined.topics, joined.notes) == ([PAIRS] * 2, [TOPIC] * 2, ["other"])
    assert joined.verdicts == [VERDICT] * 2
    assert PROBE.summary()[3:] == ["a note"]
    assert PROBE.summary()[2].startswith("b, read together: embeddings: a real effect (beyond chance, ")
    answers = ["b: embeddings: unsure", "b: attention (mean over heads): unsure"]
    assert [line.split(".")[0] for line in PROBE.summary()[:2]] == answers


def test_records_are_flat_and_empty_tables_are_left_out() -> None:
    records = PROBE.records()
    assert list(records) == ["effects", "heads", "cooccurrence", "topics", "checks"]
    assert [record["measure"] for record in records["effects"]] == ["cosine", "attention", "dot_centred"]
    assert {name: records["effects"][0][name] for name in ABOUT} == ABOUT
    assert (records["effects"][0]["interval_low"], records["effects"][0]["matched_interval_low"]) == (0.1, 0.2)
    assert [(record["layer"], record["ratio"]) for record in records["heads"]] == [(0, 1.5), (1, None)]
    assert records["cooccurrence"][0]["cosine_interval_high"] == 0.3
    assert records["cooccurrence"][0]["attention_interval_low"] is None
    assert records["cooccurrence"][0]["commonest"] == "boat anchor; honey salt"
    assert list(dataclasses.replace(PROBE, heads=[], topics=[]).records()) == ["effects", "cooccurrence", "checks"]
    assert PROBE.table().num_rows == 3


def test_checks_have_a_line_each() -> None:
    checks = PROBE.records()["checks"]
    assert [(one["where"], one["control"]) for one in checks] == [
        (where, control) for where in ("embeddings", "attention") for control in CONTROLS
    ]
    about = {"model": "a/b", "where": "embeddings", "control": "cooccurrence", "threshold": 0.1}
    about |= {"topics_per_word": "one", "words": 10, "pairs": None, "answer": "yes", "why": "0.5 against 0.25"}
    assert checks[2] == about | {"number": 0.25, "interval_low": 0.2, "interval_high": 0.4}


def test_numbers_in_words() -> None:
    assert interval_text(None) == "-"
    assert interval_text((0.123456, 12345.6)) == "[0.1235, 1.235e+04]"
    assert ratio_text(None) == "-"
    assert ratio_text(head(None).effect) == "undefined"
    assert ratio_text(an_effect(0.1)) == "2 [1.5, 2.5]"
    assert [short(name) for name in ("a/b/c/", "c", "a/c")] == ["c"] * 3


NAMED = (Assignment, CooccurrenceRow, HeadRow, ProbeRow, TopicFit, TopicRow, Topics)


@pytest.mark.parametrize("kind", [*NAMED, LoadedModel, PairContrast, Probe, Vocabulary, Window, WordMap])
def test_results_are_not_changed_and_long_ones_are_made_by_name(kind: Any) -> None:
    blank = object.__new__(kind)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(blank, dataclasses.fields(kind)[0].name, None)
    if kind in NAMED:
        with pytest.raises(TypeError, match="positional argument"):
            kind("x")


def head_at(layer: int, number: int, difference: float, p: float | None, threshold: float = 0.001) -> HeadRow:
    effect = Effect(same=0.01 + difference, different=0.01, difference=difference, ratio=None, interval=None)
    return head_row(layer, number, p, model="m/tiny", threshold=threshold, effect=effect)


PLACES = ((2, 0, 0.009, 0.619), (0, 2, 0.004, 0.048), (0, 1, 0.003, None), (0, 0, 0.002, 0.048))
HEADS = [head_at(*place) for place in PLACES]


def test_heads_are_ordered_by_p_then_by_difference_and_topical_ones_are_marked() -> None:
    rows = head_table(HEADS).rows
    assert [row[2] + row[3] for row in rows] == ["02", "00", "20", "01"]
    assert [row[-1] for row in rows] == ["topical", "topical", "-", "-"]
    at_two = [*HEADS, head_at(0, 2, 0.004, 0.01, 0.002), head_at(0, 0, 0.002, 0.3, 0.002)]
    assert [row[-1] for row in head_table(at_two).rows[:2]] == ["topical", "-"]  # at every threshold, or not at all
    other = replace(HEADS[1], model="m/other", corrected_p=0.3)  # the same head of another model
    records = Probe([], [*HEADS, other], [], []).records()["heads"]
    assert [row["topical"] for row in records] == [False, True, False, True, False]


def test_the_sentence_on_heads() -> None:
    assert heads_sentence(HEADS, "encoder") == (
        "tiny: heads that stand out from chance: 0.2, 0.0 (of 4, as layer.head). "
        "The answer on attention asks for more: a size that matters, and all four controls."
    )
    assert heads_sentence(HEADS[:1], "encoder") == "tiny: no head stands out from chance (of 1)."
    assert heads_sentence([head_at(0, 0, 0.1, None)], "encoder") == ""  # nothing was shuffled
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


BAG: dict[str, Any] = {"bag_of_words_r2": 0.3, "bag_of_words_interval": (0.2, 0.4), "half_document_r2": 0.9}
MIXTURE: dict[str, Any] = {"mixture_r2": 0.5, "mixture_interval": (0.4, 0.6), "shuffled_r2": -0.01, "documents": 40}
SCORE = MixtureScore(**BAG, **MIXTURE, by_position={"1/4": 0.1, "2/4": None})
STATES = StateRow(
    model="a/b",
    variant="trained",
    **HERE,
    part="encoder",
    layer=2,
    words=10,
    effects={"raw": an_effect(0.1, 0.01, 0.2), "centred": an_effect(0.2, 0.02), "all_but_top": None},
    cooccurring={"raw": CooccurringMean(0.5, (0.4, 0.6), 3), "centred": CooccurringMean(0.1, None, 3)},
    mixture=SCORE,
)
EMPTY = replace(
    STATES, effects={"raw": None, "centred": None, "all_but_top": None}, cooccurring={}, mixture=None, threshold=None
)


def test_rows_of_states_are_read_back_as_they_were() -> None:
    for row in (STATES, EMPTY, replace(STATES, mixture=None), replace(STATES, effects=EMPTY.effects)):
        assert adapter_of(StateRow).validate_python(json.loads(json.dumps(row.as_dict(), allow_nan=False))) == row
    probe = Probe(states=[STATES, EMPTY])
    assert Probe.from_dict(json.loads(json.dumps(probe.as_dict())), probe.config) == probe
    assert Probe.joined([probe, probe], [], probe.config).states == [STATES, EMPTY] * 2
    names = ["model", "variant", "layer", "same", "different", "difference", "interval"]
    for row in (STATES, EMPTY):
        assert {*names, "mixture_r2", "mixture_interval", "bag_of_words_r2"} <= set(row.as_dict())
    data = STATES.as_dict()
    assert (data["same"], data["interval"], data["p_value"]) == (1.0, (0.1, 1.0), 0.01)
    assert data["matched"]["interval"] == (0.2, 1.0)
    assert (data["centred"]["p_value"], data["all_but_top"], data["mixture_r2"]) == (0.02, None, 0.5)
    assert (EMPTY.as_dict()["same"], EMPTY.as_dict()["mixture_r2"], EMPTY.as_dict()["documents"]) == (None, None, 0)
    flat = columns(STATES.as_dict())
    assert (flat["interval_low"], flat["centred_interval_low"], flat["mixture_interval_high"]) == (0.1, 0.2, 0.6)
    assert (flat["cooccurring_raw_mean"], flat["by_position_1/4"], flat["matched_interval_low"]) == (0.5, 0.1, 0.2)
    assert not any(isinstance(value, dict | list | tuple) for value in flat.values())
