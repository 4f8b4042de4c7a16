"""When something appears, pair sums of matrices, and matched effects, against the plain way."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.measure import (
    appears,
    attention_means,
    attention_pair_sums,
    embedding_effect,
    half_way,
    matrix_pair_sums,
)
from topicscope.measure.effects import effect, matched_effect
from topicscope.measure.pairs import Membership, pair_sums

TOPIC = np.array([0, 1, 1, 1, 2, 2, 3, 3, 3, 3])


def test_appears_is_the_start_of_the_last_stretch_above_zero() -> None:
    steps = np.array([0, 1, 3, 10, 30])
    assert appears(steps, np.array([-1.0, 2, 2, 2, 2])) == 1
    assert appears(steps, np.array([1.0, 2, 2, 2, 2])) == 0
    assert appears(steps, np.array([-1.0, 2, np.nan, 2, 2])) == 10  # where nothing is known nothing has appeared
    assert appears(steps, np.array([1.0, 2, 2, 2, 0])) is None


def test_half_way_is_where_the_straight_line_crosses() -> None:
    steps = np.array([0, 10, 100, 200])
    curves = np.array(
        [[0.0, 0.0, 4.0, 4.0], [1.0, 3.0, 3.0, 3.0], [0.0, 9.0, 0.0, 2.0], [3.0, 2.0, 1.0, 0.0], [5.0, 5.0, 5.0, 5.0]]
    )
    found = half_way(steps, curves)
    assert found[:3] == pytest.approx([55.0, 5.0, 10 / 9])  # the third passes half of its end early, and falls back
    assert np.isnan(found[3:]).all()  # it falls, it stays


def test_sums_of_a_matrix_over_words_are_those_of_a_double_loop() -> None:
    rng = np.random.default_rng(0)
    matrix, times = rng.normal(size=(10, 10)), rng.integers(0, 4, (10, 10)).astype(float)
    sums = matrix_pair_sums(matrix * times, times, TOPIC)
    same = [(matrix[i, j], times[i, j]) for i in range(1, 10) for j in range(1, 10) if i != j and TOPIC[i] == TOPIC[j]]
    different = [(matrix[i, j], times[i, j]) for i in range(1, 10) for j in range(1, 10) if TOPIC[i] != TOPIC[j]]
    expected = [np.average([m for m, _ in pairs], weights=[w for _, w in pairs]) for pairs in (same, different)]
    assert [float(x) for x in sums.means()] == pytest.approx(expected, rel=1e-12)
    # topic 2 twice and topic 3 not at all: its pairs count twice, those between topics as often as both
    weight = np.array([1.0, 2.0, 0.0])
    inside = [(i, j) for i in range(1, 10) for j in range(1, 10) if i != j and TOPIC[i] == TOPIC[j]]
    doubled = [(matrix[i, j], times[i, j] * weight[TOPIC[i] - 1]) for i, j in inside]
    assert float(sums.means(weight)[0]) == pytest.approx(
        np.average([m for m, _ in doubled], weights=[w for _, w in doubled]), rel=1e-12
    )


def test_attention_topic_by_topic_is_the_attention_of_all_positions() -> None:
    """Against softmax over positions, one document after another."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(10, 10)) * 2
    documents = [rng.integers(1, 10, 12) for _ in range(5)]
    counts = np.stack([np.bincount(d, minlength=10) for d in documents]).astype(float)
    kinds: dict[str, list[float]] = {"own": [], "same": [], "different": []}
    for d in documents:
        weight = np.exp(scores[np.ix_(d, d)])
        weight /= weight.sum(1, keepdims=True)
        for q, i in enumerate(d):
            for k, j in enumerate(d):
                kinds["own" if i == j else "same" if TOPIC[i] == TOPIC[j] else "different"].append(weight[q, k])
    same, different = attention_pair_sums(scores, TOPIC, counts).means()
    assert float(same) == pytest.approx(np.mean(kinds["same"]), rel=1e-12)
    assert float(different) == pytest.approx(np.mean(kinds["different"]), rel=1e-12)
    means = attention_means(scores, TOPIC, counts)
    assert [means.same_word, means.same_topic, means.different_topic] == pytest.approx(
        [np.mean(values) for values in kinds.values()], rel=1e-12
    )


def test_a_matched_effect_is_that_inside_the_whole_one() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(24, 5))
    membership = Membership(np.arange(24), np.repeat(np.arange(4), 6), 24, 4)
    sums = pair_sums(vectors, membership, np.tile([0, 1, 2], 8))
    whole = embedding_effect([sums], resamples=200, seed=3, matched=True)
    alone = matched_effect(sums, resamples=200, seed=3)
    assert whole is not None
    assert alone is not None
    assert whole.matched is not None
    assert whole.matched.interval is not None
    assert alone.interval is not None
    assert alone.difference == pytest.approx(whole.matched.difference, rel=1e-12)
    assert alone.interval == pytest.approx(whole.matched.interval, rel=1e-9)
    assert alone.difference != pytest.approx(whole.difference, rel=1e-3)


def test_a_ratio_over_what_may_be_zero_is_undefined() -> None:
    boot = np.array([1.0, 1.1, 0.9, 1.0])
    sound, shaky, negative = (
        effect(1.0, different, (boot, np.array(resampled)))
        for different, resampled in (
            (0.5, [0.4, 0.5, 0.6, 0.5]),
            (0.5, [-0.4, 0.5, 0.6, 0.5]),
            (-0.5, [-0.4, -0.5, -0.6, -0.5]),
        )
    )
    assert sound is not None
    assert shaky is not None
    assert negative is not None
    assert sound.ratio == 2.0
    assert sound.ratio_interval is not None
    assert (shaky.ratio, shaky.ratio_interval, negative.ratio) == (None, None, None)
    assert shaky.interval is not None  # the difference is still there
