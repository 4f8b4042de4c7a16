"""Effects, their controls and intervals, and groups that separate: against plain loops and all permutations."""

import json
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.measure.samples import there
from topicscope.ground import adapter_of
from topicscope.measure import (
    BareEffect,
    Effect,
    Estimate,
    Matched,
    Membership,
    PairSums,
    columns,
    effect,
    embedding_effect,
    estimate,
    interval,
    matched_effect,
    pair_sums,
    separation,
    shuffled_means,
)
from topicscope.measure.effects import LEVEL, dealings


@pytest.fixture(scope="module")
def whole() -> Effect:
    """With every control."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(24, 5)) + np.repeat(rng.normal(size=(4, 5)), 6, 0)
    membership = Membership(np.arange(24), np.repeat(np.arange(4), 6), 24, 4)
    null = shuffled_means(vectors, membership, 30, 1)
    sums = pair_sums(vectors, membership, np.tile([0, 1], 12))
    return there(embedding_effect([sums], resamples=50, seed=1, null=null, matched=True))


def test_an_interval_is_the_middle_95_percent_of_what_is_finite() -> None:
    values = np.random.default_rng(0).permutation(np.arange(41.0))
    assert interval(values) == (1.0, 39.0)
    assert interval(np.concatenate([values, [np.nan, np.inf, -np.inf]])) == (1.0, 39.0)
    assert interval(np.array([5.0, 5.0])) == (5.0, 5.0)
    assert interval(np.array([5.0])) is None
    assert interval(np.array([5.0, np.nan])) is None


def test_an_effect_holds_means_difference_ratio_and_their_intervals() -> None:
    same, different = np.arange(41.0) + 100, np.linspace(50, 30, 41)
    found = there(effect(3.0, 1.5, (same, different), same_word=7.0))
    assert (found.same, found.different, found.difference, found.ratio, found.same_word) == (3.0, 1.5, 1.5, 2.0, 7.0)
    assert found.interval == pytest.approx((101 - 49.5, 139 - 30.5))
    assert found.ratio_interval == pytest.approx((101 / 49.5, 139 / 30.5))
    assert found.resamples == pytest.approx(same - different)
    assert (found.null_interval, found.p_value, found.matched) == (None, None, None)
    assert "resamples" not in repr(found)
    for means in ((math.nan, 1.0), (1.0, math.nan), (math.inf, 1.0), (math.nan, math.nan)):
        assert effect(*means, (np.ones(3), np.ones(3))) is None  # without pairs of both kinds


def test_a_p_value_is_the_share_of_shuffles_as_large() -> None:
    """The real assignment is one of them: 2 shuffles of 4 are as large as 1.0, so 3 of 5."""
    null = np.array([0.5, 1.5, 2.0, 0.25]), np.array([0.25, 0.5, 0.5, 0.5])
    found = there(effect(1.5, 0.5, (np.ones(3), np.ones(3)), null=null))
    assert found.p_value == 3 / 5
    assert found.null_interval == pytest.approx(np.quantile([0.25, 1.0, 1.5, -0.25], [0.025, 0.975]))
    none = there(effect(9.0, 0.5, (np.ones(3), np.ones(3)), null=null))
    assert none.p_value == 1 / 5


def test_the_matched_difference_stands_beside_the_plain_one() -> None:
    boot = np.ones(3), np.ones(3)
    found = there(effect(2.0, 1.0, boot, matched=(1.75, 1.5, (np.arange(41.0) + 7, np.full(41, 7.0)))))
    assert found.matched == Matched(1.75, 1.5, 0.25, (1.0, 39.0))
    for undefined in ((math.nan, 1.0), (1.0, math.nan)):
        without = there(effect(2.0, 1.0, boot, matched=(*undefined, boot)))
        assert without.matched is None


def constant_sums(same: float, different: float, topics: int = 12) -> PairSums:
    """Every topic alike: a bootstrap over topics changes nothing."""
    between = 1.0 - np.eye(topics)[:, :, None]
    return PairSums(np.full((topics, 1), 2 * same), np.full((topics, 1), 2.0), different * between, between)


def test_several_models_are_resampled_too() -> None:
    """Of two models, a resample has the first twice, the second twice, or both, with 1/4, 1/4, 1/2."""
    first, second = constant_sums(3.0, 1.0), constant_sums(7.0, 2.0)
    alone = there(embedding_effect([first], resamples=50, seed=0))
    assert (alone.same, alone.different) == pytest.approx((3.0, 1.0))
    assert alone.interval == pytest.approx((2.0, 2.0))
    assert alone.matched is None
    both = there(embedding_effect([first, second], resamples=4000, seed=0))
    assert (both.same, both.different, both.difference) == pytest.approx((5.0, 1.5, 3.5))
    values, times = np.unique(there(both.resamples).round(9), return_counts=True)
    assert values == pytest.approx([2.0, 3.5, 5.0])
    assert times / 4000 == pytest.approx([0.25, 0.5, 0.25], abs=0.04)


def test_a_bootstrap_draws_topics_as_often_as_there_are() -> None:
    """Same-topic sums 0 and 1 by topic: a resample's mean is a binomial share of topics."""
    topics = 16
    sums = constant_sums(0.0, 0.0, topics)
    sums.same[: topics // 2] = 2.0
    found = there(embedding_effect([sums], resamples=4000, seed=1))
    assert found.resamples is not None
    assert found.difference == 0.5
    assert found.resamples * topics == pytest.approx((found.resamples * topics).round(), abs=1e-9)
    assert found.resamples.mean() == pytest.approx(0.5, abs=0.01)
    assert found.resamples.var() == pytest.approx(0.25 / topics, rel=0.1)
    again, other = (there(embedding_effect([sums], resamples=4000, seed=seed)) for seed in (1, 2))
    assert again.interval == found.interval
    assert np.array_equal(there(again.resamples), found.resamples)
    assert not np.array_equal(there(other.resamples), found.resamples)


def test_an_effect_is_read_back_exactly(whole: Effect) -> None:
    assert isinstance(whole.matched, Matched)
    assert adapter_of(Effect).validate_python(json.loads(json.dumps(whole.as_dict()))) == whole
    bare = there(effect(0.1, 0.2, (np.empty(0), np.empty(0))))
    assert (bare.interval, bare.ratio, bare.matched) == (None, None, None)
    assert adapter_of(Effect).validate_python(json.loads(json.dumps(bare.as_dict()))) == bare
    assert "resamples" not in whole.as_dict()
    plain = adapter_of(BareEffect).dump_python(whole)
    assert set(whole.as_dict()) - set(plain) == {"null_interval", "p_value", "matched"}
    assert adapter_of(Effect).validate_python(plain).matched is None


def test_columns_do_not_depend_on_what_is_missing(whole: Effect) -> None:
    bare = there(effect(0.1, 0.2, (np.empty(0), np.empty(0))))
    assert list(bare.columns()) == list(whole.columns())
    found = whole.columns()
    assert (found["interval_low"], found["interval_high"]) == there(whole.interval)
    assert found["matched_difference"] == there(whole.matched).difference
    assert bare.columns()["matched_interval_high"] is None
    names = "same different difference ratio interval_low interval_high ratio_interval_low ratio_interval_high"
    assert list(columns(adapter_of(BareEffect).dump_python(bare))) == [
        *names.split(),
        "same_word",
        "pairs",
        "other_pairs",
    ]


def test_a_matched_effect_is_that_inside_the_whole_one() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(24, 5))
    membership = Membership(np.arange(24), np.repeat(np.arange(4), 6), 24, 4)
    sums = pair_sums(vectors, membership, np.tile([0, 1, 2], 8))
    whole = there(embedding_effect([sums], resamples=200, seed=3, matched=True))
    alone = there(matched_effect(sums, resamples=200, seed=3))
    assert whole.matched is not None
    assert alone.difference == pytest.approx(whole.matched.difference, rel=1e-12)
    assert there(alone.interval) == pytest.approx(there(whole.matched.interval), rel=1e-9)
    assert alone.difference != pytest.approx(whole.difference, rel=1e-3)


def test_a_ratio_over_what_may_be_zero_is_undefined() -> None:
    def of(different: float, resampled: list[float]) -> Effect:
        return there(effect(1.0, different, (np.array([1.0, 1.1, 0.9, 1.0]), np.array(resampled))))

    sound = of(0.5, [0.4, 0.5, 0.6, 0.5])
    assert (sound.ratio, sound.ratio_interval is None) == (2.0, False)
    for different, resampled in (
        (0.5, [-0.4, 0.5, 0.6, 0.5]),
        (-0.5, [-0.4, -0.5, -0.6, -0.5]),
        (0.5, [0, 0, 0.5, 0.5]),
    ):
        shaky = of(different, resampled)
        assert (shaky.ratio, shaky.ratio_interval, shaky.interval is None) == (None, None, False)


def test_intervals_are_students() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.low) == pytest.approx((2.0, 2 - 4.3026527 / math.sqrt(3)))
    assert found.runs == 3
    assert estimate([1.0]) == Estimate(1.0, -math.inf, math.inf, 1)
    assert str(Estimate(2.0, -0.48410001, 4.4841, 3)) == "2 [-0.4841, 4.484]"
    assert [Estimate(1.0, low, 2.0, 3).above_zero for low in (-0.1, 0.0, 0.1)] == [False, False, True]
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


def similarity(groups: list[int], inside: float, seed: int = 0) -> np.ndarray:
    """Noise of size .1, and `inside` more for two of one group."""
    rng, own = np.random.default_rng(seed), np.array(groups)
    noise = rng.normal(0, 0.1, (len(groups), len(groups)))
    return (noise + noise.T) / 2 + inside * (own[:, None] == own)


def difference(values: np.ndarray, groups: tuple[int, ...]) -> float:
    pairs = [(i, j) for i in range(len(groups)) for j in range(i)]
    same = [values[i, j] for i, j in pairs if groups[i] == groups[j]]
    other = [values[i, j] for i, j in pairs if groups[i] != groups[j]]
    return sum(same) / len(same) - sum(other) / len(other)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), groups=st.sampled_from([[0, 0, 1, 1, 1], [0, 0, 1, 1, 2], [0, 0, 0, 1, 1, 1]]))
def test_p_is_the_share_of_all_permutations(seed: int, groups: list[int]) -> None:
    values = similarity(groups, 0.05, seed)
    observed = difference(values, tuple(groups))
    all_ways = [difference(values, order) for order in permutations(groups)]
    found = separation(values, np.array(groups))
    assert found.p_value == pytest.approx(sum(way >= observed - 1e-12 for way in all_ways) / len(all_ways), abs=1e-12)
    assert there(found.inside) - there(found.between) == pytest.approx(observed, abs=1e-12)


@pytest.mark.parametrize(("sizes", "ways"), [((3, 3, 3), 1680), ((2, 2), 6), ((1, 4), 5), ((2, 1, 1), 12)])
def test_every_dealing_comes_once(sizes: tuple[int, ...], ways: int) -> None:
    dealt = [tuple(labels.tolist()) for labels in dealings(sum(sizes), sizes)]
    assert len(dealt) == len(set(dealt)) == ways
    assert all([labels.count(k) for k in range(len(sizes))] == list(sizes) for labels in dealt)


def test_groups_that_separate_and_groups_that_do_not() -> None:
    groups = [0] * 3 + [1] * 3 + [2] * 3
    apart, mixed = (separation(similarity(groups, inside), np.array(groups)) for inside in (0.5, 0))
    assert apart.answer == "yes"
    assert apart.p_value == apart.smallest == pytest.approx(6 / 1680)  # six ways to name three groups
    assert mixed.answer == "no"
    assert there(mixed.p_value) > LEVEL


def test_one_group_that_is_alike_does_not_make_all_of_them_separate() -> None:
    groups = np.array([0] * 3 + [1] * 3 + [2] * 3)
    values = similarity(groups.tolist(), 0.0)
    values[:3, :3] += 2.0  # the first group alone
    values[3:6, 3:6] -= 0.5
    found = separation(values, groups)
    assert there(found.p_value) <= LEVEL
    assert (found.answer, found.apart[0], found.apart[1]) == ("some", True, False)
    for group in range(3):
        own = [values[i, j] for i in range(9) for j in range(i) if groups[i] == groups[j] == group]
        other = [values[i, j] for i in range(9) for j in range(i) if (groups[i] == group) != (groups[j] == group)]
        assert found.apart[group] == (sum(own) / len(own) > sum(other) / len(other))
    assert separation(similarity([0, 0, 0, 0, 1], 1.0), np.array([0, 0, 0, 0, 1])).apart == {0: True}


def test_two_groups_of_two_cannot_be_told_apart() -> None:
    found = separation(similarity([0, 0, 1, 1], 5.0), np.array([0, 0, 1, 1]))
    assert found.answer == "undecided"
    assert [found.p_value, found.smallest] == pytest.approx([1 / 3, 1 / 3])
    for groups in ([0, 0, 0], [0, 1, 2]):
        alone = separation(similarity(groups, 1.0), np.array(groups))
        assert (alone.answer, alone.p_value) == ("undecided", None)
    assert separation(np.full((4, 4), math.nan), np.array([0, 0, 1, 1])).answer == "undecided"


def test_many_words_are_dealt_at_random_the_same_every_time() -> None:
    groups = [0] * 10 + [1] * 10
    one, two = (separation(similarity(groups, 0.3), np.array(groups)) for _ in range(2))
    assert one == two
    assert one.answer == "yes"
    assert one.p_value == pytest.approx(1 / 20_000)
    assert separation(similarity(groups, 0.0, 3), np.array(groups)).answer == "no"
