"""Rows of hidden states as data: written and read back, the names of the contract, flat columns."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.language.samples import an_effect
from topicscope.language import CooccurringMean, MixtureScore, Probe, StateRow
from topicscope.measure import columns

SCORE = MixtureScore(
    mixture_r2=0.5,
    mixture_interval=(0.4, 0.6),
    bag_of_words_r2=0.3,
    bag_of_words_interval=(0.2, 0.4),
    half_document_r2=0.9,
    half_document_interval=None,
    shuffled_r2=-0.01,
    documents=40,
    by_position={"1/4": 0.1, "2/4": None},
)
ROW = StateRow(
    model="a/b",
    variant="trained",
    threshold=0.1,
    topics_per_word="one",
    part="encoder",
    layer=2,
    words=10,
    effects={"raw": an_effect(0.1, 0.01, 0.2), "centred": an_effect(0.2, 0.02), "all_but_top": None},
    cooccurring={"raw": CooccurringMean(0.5, (0.4, 0.6), 3), "centred": CooccurringMean(0.1, None, 3)},
    mixture=SCORE,
)
EMPTY = replace(
    ROW, effects={"raw": None, "centred": None, "all_but_top": None}, cooccurring={}, mixture=None, threshold=None
)


def test_rows_are_read_back_as_they_were() -> None:
    for row in (ROW, EMPTY, replace(ROW, mixture=None), replace(ROW, effects=EMPTY.effects)):
        assert StateRow.from_dict(json.loads(json.dumps(row.as_dict(), allow_nan=False))) == row
    probe = Probe(states=[ROW, EMPTY])
    assert Probe.from_dict(json.loads(json.dumps(probe.as_dict())), probe.config) == probe
    assert Probe.joined([probe, probe], [], probe.config).states == [ROW, EMPTY] * 2


def test_names_are_those_of_the_contract() -> None:
    names = ["model", "variant", "layer", "same", "different", "difference", "interval"]
    for row in (ROW, EMPTY):
        assert {*names, "mixture_r2", "mixture_interval", "bag_of_words_r2"} <= set(row.as_dict())
    data = ROW.as_dict()
    assert (data["same"], data["interval"], data["p_value"], data["matched"]["interval"]) == (
        *(1.0, (0.1, 1.0), 0.01),
        (0.2, 1.0),
    )
    assert (data["centred"]["p_value"], data["all_but_top"], data["mixture_r2"]) == (0.02, None, 0.5)
    assert (EMPTY.as_dict()["same"], EMPTY.as_dict()["mixture_r2"], EMPTY.as_dict()["documents"]) == (None, None, 0)
    assert ROW.raw == ROW.effects["raw"]


def test_records_are_flat() -> None:
    flat = columns(ROW.as_dict())
    assert (flat["interval_low"], flat["centred_interval_low"], flat["mixture_interval_high"]) == (0.1, 0.2, 0.6)
    assert (flat["cooccurring_raw_mean"], flat["by_position_1/4"], flat["matched_interval_low"]) == (0.5, 0.1, 0.2)
    assert not any(isinstance(value, dict | list | tuple) for value in flat.values())
