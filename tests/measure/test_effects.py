"""Effects as JSON and as columns, matched effects, ratios, and intervals over runs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from topicscope.measure import (
    Effect,
    Matched,
    Membership,
    effect,
    embedding_effect,
    estimate,
    matched_effect,
    pair_sums,
    shuffled_means,
)


@pytest.fixture(scope="module")
def whole() -> Effect:
    """With every control."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(24, 5)) + np.repeat(rng.normal(size=(4, 5)), 6, 0)
    membership = Membership(np.arange(24), np.repeat(np.arange(4), 6), 24, 4)
    null = shuffled_means(vectors, membership, 30, 1)
    sums = pair_sums(vectors, membership, np.tile([0, 1], 12))
    found = embedding_effect([sums], resamples=50, seed=1, null=null, matched=True)
    assert found is not None
    return found


def test_an_effect_is_read_back_exactly(whole: Effect) -> None:
    assert isinstance(whole.matched, Matched)
    assert Effect.from_dict(json.loads(json.dumps(whole.as_dict()))) == whole
    bare = effect(0.1, 0.2, (np.empty(0), np.empty(0)))
    assert bare is not None
    assert (bare.interval, bare.ratio, bare.matched) == (None, None, None)
    assert Effect.from_dict(json.loads(json.dumps(bare.as_dict()))) == bare
    assert "resamples" not in whole.as_dict()
    plain = whole.as_dict(controls=False)
    assert set(whole.as_dict()) - set(plain) == {"null_interval", "p_value", "matched"}
    assert Effect.from_dict(plain).matched is None


def test_columns_do_not_depend_on_what_is_missing(whole: Effect) -> None:
    bare = effect(0.1, 0.2, (np.empty(0), np.empty(0)))
    assert bare is not None
    assert list(bare.columns()) == list(whole.columns())
    found = whole.columns()
    assert whole.interval is not None
    assert (found["interval_low"], found["interval_high"]) == whole.interval
    assert whole.matched is not None
    assert found["matched_difference"] == whole.matched.difference
    assert bare.columns()["matched_interval_high"] is None
    assert list(bare.columns(controls=False)) == [
        "same",
        "different",
        "difference",
        "ratio",
        "interval_low",
        "interval_high",
        "ratio_interval_low",
        "ratio_interval_high",
        "same_word",
    ]


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


def test_intervals_are_students() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.low) == pytest.approx((2.0, 2 - 4.3026527 / math.sqrt(3)))
    assert estimate([1.0]).low == -math.inf
    many = np.random.default_rng(0).standard_normal((4000, 12)) + 1
    covered = np.mean([estimate(row.tolist()).low < 1 < estimate(row.tolist()).high for row in many])
    assert covered == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(
    ("runs", "quantile"),
    [(2, 12.706205), (6, 2.570582), (11, 2.228139), (12, 2.200985), (21, 2.085963), (61, 2.000298), (121, 1.979930)],
)
def test_quantiles_are_those_of_the_tables(runs: int, quantile: float) -> None:
    values = np.arange(runs, dtype=float)
    found = estimate(values.tolist())
    half = quantile * values.std(ddof=1) / math.sqrt(runs)
    assert found.high - found.mean == pytest.approx(half, rel=1e-6)
    assert found.mean - found.low == pytest.approx(half, rel=1e-6)
