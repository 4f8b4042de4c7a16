"""The rows of a probe, made by hand: read back, flattened, and put into words."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.language.samples import an_effect
from topicscope.language import (
    CONTROLS,
    Assignment,
    CooccurrenceRow,
    HeadRow,
    LoadedModel,
    Measurement,
    PairContrast,
    Probe,
    ProbeRow,
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
from topicscope.measure import Effect

ABOUT: dict[str, Any] = {
    "model": "a/b",
    "variant": "trained",
    "threshold": 0.1,
    "topics_per_word": "one",
    "words": 10,
    "topics": 2,
    "embedding": "matrix",
    "window": 8,
}
HEAD: dict[str, Any] = {"model": "a/b", "threshold": 0.1, "topics_per_word": "one", "part": "encoder"}


def head(ratio: float | None, layer: int = 0, **changes: Any) -> HeadRow:
    effect = Effect(same=1.0, different=0.5, difference=0.5, ratio=ratio, interval=(0.1, 1.0))
    return HeadRow(**{**HEAD, "layer": layer, "head": 1, "effect": effect, **changes})


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
TOPIC = TopicRow(
    model="a/b",
    threshold=0.1,
    topics_per_word="one",
    topic=1,
    name="sea",
    words=5,
    cosine=0.5,
    nearest="food",
    nearest_cosine=0.2,
    farthest=None,
    farthest_cosine=None,
)
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
    assert [line.split(".")[0] for line in PROBE.summary()[:2]] == [
        "b: embeddings: unsure",
        "b: attention (mean over heads): unsure",
    ]


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
    assert checks[2] == {
        "model": "a/b",
        "where": "embeddings",
        "control": "cooccurrence",
        "threshold": 0.1,
        "topics_per_word": "one",
        "words": 10,
        "pairs": None,
        "answer": "yes",
        "why": "0.5 against 0.25",
        "number": 0.25,
        "interval_low": 0.2,
        "interval_high": 0.4,
    }


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
