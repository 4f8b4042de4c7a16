"""Effects as JSON and as columns."""

from __future__ import annotations

import json

import numpy as np
import pytest

from topicscope.measure import Effect, Matched, effect, embedding_effect, pair_sums
from topicscope.measure.pairs import Membership, shuffled_means


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
