"""Groups that separate, groups that do not, and groups too small to say, against all permutations."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope.measure import separation
from topicscope.measure.groups import LEVEL, dealings


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
    assert found.inside is not None
    assert found.between is not None
    assert found.inside - found.between == pytest.approx(observed, abs=1e-12)


@pytest.mark.parametrize(("sizes", "ways"), [((3, 3, 3), 1680), ((2, 2), 6), ((1, 4), 5), ((2, 1, 1), 12)])
def test_every_dealing_comes_once(sizes: tuple[int, ...], ways: int) -> None:
    dealt = [tuple(labels.tolist()) for labels in dealings(sum(sizes), sizes)]
    assert len(dealt) == len(set(dealt)) == ways
    assert all([labels.count(k) for k in range(len(sizes))] == list(sizes) for labels in dealt)


def test_groups_that_separate_and_groups_that_do_not() -> None:
    groups = [0] * 3 + [1] * 3 + [2] * 3
    apart, mixed = (
        separation(similarity(groups, 0.5), np.array(groups)),
        separation(similarity(groups, 0), np.array(groups)),
    )
    assert apart.answer == "yes"
    assert apart.p_value == apart.smallest == pytest.approx(6 / 1680)  # six ways to name three groups
    assert mixed.answer == "no"
    assert mixed.p_value is not None
    assert mixed.p_value > LEVEL


def test_one_group_that_is_alike_does_not_make_all_of_them_separate() -> None:
    groups = np.array([0] * 3 + [1] * 3 + [2] * 3)
    values = similarity(groups.tolist(), 0.0)
    values[:3, :3] += 2.0  # the first group alone
    values[3:6, 3:6] -= 0.5
    found = separation(values, groups)
    assert found.p_value is not None
    assert found.p_value <= LEVEL
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
