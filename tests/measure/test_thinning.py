"""Long curves with fewer points."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.measure import extremes, thinned


@pytest.mark.parametrize(
    ("length", "most"), [(1, 10), (10, 10), (11, 10), (500, 500), (501, 500), (99_991, 500), (40, 6)]
)
def test_ends_and_extremes_stay_and_there_are_not_too_many(length: int, most: int) -> None:
    values = np.random.default_rng(length).normal(size=length)
    places = thinned(values, most)
    assert len(places) <= most
    assert (places[0], places[-1]) == (0, length - 1)
    assert length == 1 or (np.diff(places) > 0).all()
    assert values[places].max() == values.max()
    assert values[places].min() == values.min()
    if length <= most:
        assert len(places) == length
    else:
        assert np.diff(places).max() <= 2 * (-(-(length - 2) // ((most - 2) // 2)))  # no gap of more than two groups


def test_each_group_gives_its_lowest_and_highest() -> None:
    values = np.array([3.0, 1.0, 2.0, 0.0, np.nan, 5.0, 5.0, np.nan, 7.0, 7.0, 7.0, 7.0])
    assert extremes(values, 4).tolist() == [0, 3, 5, 6, 8, 9]
    marked = np.zeros(12, dtype=bool)
    marked[[1, 2, 9]] = True
    assert extremes(values, 4, marked).tolist() == [0, 2, 5, 6, 8, 9]
    assert extremes(np.full(4, np.nan), 4).tolist() == [0, 1]
