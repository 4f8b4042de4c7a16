"""The rise of the loss without heads: numbers of double loops, and a rule that can say yes, no and unsure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from topicscope.ground import Stream, generator
from topicscope.language import AblationRow
from topicscope.language.ablation import Rises, ablation_row, judged
from topicscope.language.probe_rows import DRAWS, ablated_documents
from topicscope.language.probes import ablation_sentences


def drawn(topical: float, random: float, spread: float = 0.0, documents: int = 40, seed: int = 0) -> Rises:
    """Losses of about 4 nats; without the topical heads they rise by `topical`, without random ones by `random`."""
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, 12, documents)
    base = rng.gamma(4.0, 1.0, documents) * positions
    rises = np.array([0.0, topical, *(random + spread * rng.standard_normal(DRAWS))])
    noise = 0.05 * rng.standard_normal((2 + DRAWS, documents))
    noise[0] = 0
    return Rises(base + (rises[:, None] + noise) * positions, positions)


def row_of(rises: Rises) -> AblationRow:
    return ablation_row("bert", 3, "topic words", rises, resamples=400, seed=7)


def test_numbers_are_those_of_double_loops() -> None:
    rises = drawn(0.3, 0.1, 0.05)
    row = row_of(rises)
    documents = [d for d in range(40) if rises.positions[d]]
    assert len(documents) < 40
    count = sum(int(rises.positions[d]) for d in documents)

    def rise(which: int, times: list[int]) -> float:
        total = number = 0.0
        for d, n in zip(documents, times, strict=True):
            for _ in range(n):
                total += rises.sums[which, d] - rises.sums[0, d]
                number += rises.positions[d]
        return total / number

    once = [1] * len(documents)
    mean = sum(rise(2 + r, once) for r in range(DRAWS)) / DRAWS
    assert (row.positions, row.documents, row.draws, row.heads) == (count, len(documents), DRAWS, 3)
    assert row.loss == pytest.approx(sum(rises.sums[0, d] for d in documents) / count, rel=1e-10)
    assert row.topical_rise == pytest.approx(rise(1, once), rel=1e-10)
    assert row.random_rise == pytest.approx(mean, rel=1e-10)
    assert row.difference == pytest.approx(rise(1, once) - mean, rel=1e-10)
    stream = generator(7, Stream.BOOTSTRAP_ABLATION)
    every = stream.multinomial(len(documents), [1 / len(documents)] * len(documents), 400).tolist()
    one = stream.integers(DRAWS, size=400).tolist()
    topical = [rise(1, times) for times in every]
    random = [rise(2 + r, times) for r, times in zip(one, every, strict=True)]
    means = [sum(rise(2 + r, times) for r in range(DRAWS)) / DRAWS for times in every]
    for found, values in (
        (row.topical_interval, topical),
        (row.random_interval, random),
        (row.interval, [a - b for a, b in zip(topical, random, strict=True)]),
        (row.mean_interval, [a - b for a, b in zip(topical, means, strict=True)]),
    ):
        assert found == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), rel=1e-10)


@pytest.mark.parametrize(
    ("topical", "random", "spread", "answer", "why"),
    [
        (0.5, 0.1, 0.02, "yes", ""),
        (0.0, 0.0, 0.0, "no", "hardly rises"),
        (-0.2, 0.0, 0.0, "no", "hardly rises"),
        (0.3, 0.3, 0.0, "no", "rises about as much"),
        (0.1, 0.5, 0.1, "no", "rises more"),
        (0.3, 0.1, 0.3, "unsure", "sets of random heads it rises as much"),
        (0.055, 0.03, 0.0, "no", "smallest difference that matters"),
    ],
)
def test_the_rule(topical: float, random: float, spread: float, answer: str, why: str) -> None:
    for seed in range(5):
        row = row_of(drawn(topical, random, spread, documents=200, seed=seed))
        assert (row.answer, why in row.why) == (answer, True), row


def test_equal_heads_are_seldom_called_topical() -> None:
    """The topical set is one more random one: at most one in ten may be called more than the others."""
    answers = []
    for seed in range(100):
        topical = 0.3 + 0.2 * np.random.default_rng(1000 + seed).standard_normal()
        answers.append(row_of(drawn(topical, 0.3, 0.2, seed=seed)).answer)
    assert answers.count("yes") <= 10


ROW = AblationRow(
    model="x/bert",
    heads=2,
    draws=DRAWS,
    at="topic words",
    positions=300,
    documents=50,
    loss=4.0,
    topical_rise=0.5,
    topical_interval=(0.4, 0.6),
    random_rise=0.1,
    random_interval=(0.0, 0.2),
    difference=0.4,
    interval=(0.2, 0.6),
    mean_interval=(0.3, 0.5),
    answer="yes",
)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, "yes"),
        ({"documents": 9}, "unsure"),
        ({"positions": 49}, "unsure"),
        ({"draws": DRAWS - 1}, "unsure"),
        ({"interval": (0.0, 0.6)}, "unsure"),
        ({"topical_interval": (-0.1, 0.6)}, "unsure"),
        ({"topical_interval": (-0.1, 0.039)}, "no"),
        ({"mean_interval": (-0.3, 0.039)}, "no"),
        ({"difference": 0.039}, "unsure"),
        ({"interval": None}, "unsure"),
    ],
)
def test_each_condition_can_fail(changes: dict[str, Any], answer: str) -> None:
    found, why = judged(replace(ROW, **changes), 0)
    assert (found, bool(why)) == (answer, answer != "yes")


def test_few_sets_are_said_before_more_documents_are_asked_for() -> None:
    _, why = judged(replace(ROW, interval=(-0.1, 0.6)), 0)
    assert why == "the difference 0.4 [-0.1, 0.6] may be zero: raise --documents"
    _, few = judged(replace(ROW, interval=(-0.1, 0.6), draws=3), 0)
    zero = why.removesuffix(": raise --documents")
    assert few == f"{zero} (with 3 sets of other heads in these layers, a yes is out of reach)"


def test_sentences() -> None:
    other = replace(ROW, at="other words", topical_rise=0.01, random_rise=0.02)
    (said,) = ablation_sentences([replace(ROW, which="1.0, 1.3"), other])
    assert said == (
        "bert: use of topical heads: yes. Rise of the loss at topic words (4 nats, 300 words in 50 documents) without "
        "2 topical heads (1.0, 1.3 as layer.head), and without as many random ones of the same layers (19 sets): "
        "0.5 [0.4, 0.6] and 0.1 [0, 0.2]. At other words: 0.01 [0.4, 0.6] and 0.02 [0, 0.2]. They matter more than "
        "random heads."
    )
    few = replace(ROW, draws=1, answer="unsure", remark="layer 0 has few heads")
    few = replace(few, why=judged(few, 0)[1])
    (said,) = ablation_sentences([few, other])
    assert said.endswith(
        "Reason: it rises more than without other heads, but these layers have only 1 set of them, and chance alone "
        "makes one of 2 sets the largest. Note: layer 0 has few heads."
    )
    off = [AblationRow(model="bert", heads=0, draws=0, at=at, why="no head") for at in ("topic words", "other words")]
    assert list(ablation_sentences(off)) == ["bert: use of topical heads: off. No head."]
    none = row_of(Rises(np.zeros((3, 4)), np.zeros(4, dtype=np.int64)))
    assert (none.answer, none.loss, none.positions) == ("unsure", None, 0)


def test_rows_are_read_as_written() -> None:
    for row in (ROW, AblationRow(model="bert", heads=0, draws=0, at="topic words", why="no head")):
        assert AblationRow.from_dict(row.as_dict()) == row


def test_documents_that_are_predicted_are_bounded() -> None:
    assert [ablated_documents(n) for n in (1, 49, 250, 251, 1000, 10**6)] == [1, 49, 50, 50, 200, 1000]


@pytest.mark.parametrize(("which", "loss"), [(0, np.inf), (1, np.nan), (5, np.inf)])
def test_a_loss_that_is_no_number_is_said_and_can_be_stored(which: int, loss: float) -> None:
    """Of the whole model, without the topical heads, or without random ones."""
    rises = drawn(0.5, 0.1)
    rises.sums[which, int(rises.positions.argmax())] = loss
    row = row_of(rises)
    assert (row.answer, row.why) == ("unsure", "the loss is not a number (NaN) at some of the words")
    assert (row.loss, row.topical_rise, row.difference) == (None, None, None)
    assert row_of(drawn(0.5, 0.1)).answer == "yes"
    assert "unsure" in next(ablation_sentences([row, replace(row, at="other words")]))
    json.dumps(row.as_dict(), allow_nan=False)
