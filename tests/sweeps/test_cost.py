"""What a grid would cost: straight lines through trials whose seconds and bytes are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sweeps.samples import Bakery, baking
from topicscope import InputError
from topicscope.ground import Cost
from topicscope.sweeps import Estimate, PointResult, estimate, pack, run as runs


def measured(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float]) -> list[int]:
    """Trials that take so many seconds by their sugar; gives the list of those that were made."""
    made: list[int] = []

    def timed(_task: Any, sizes: dict[str, int]) -> float:
        made.append(sizes["sugar"])
        return seconds(sizes["sugar"])

    monkeypatch.setattr(runs, "timed", timed)
    return made


@pytest.mark.parametrize(
    ("sugar", "trials"), [(1, [1, 1]), (2, [2, 2]), (4, [2, 2, 4]), (6, [2, 2, 6]), (50, [2, 2, 6])]
)
def test_a_line_through_two_trials_gives_the_seconds_of_any_size(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery, sugar: int, trials: list[int]
) -> None:
    """Also of a run that is shorter than the longer trial; one warms up, and no trial is longer than the run."""
    bakery(knobs={"sugar": (2, 6)})
    made = measured(monkeypatch, lambda size: 7 + 3 * size)
    assert runs.trial(pack(baking(sugar=[sugar]))[0]) == pytest.approx(7 + 3 * sugar)
    assert made == trials


def test_a_longer_trial_that_happens_to_be_quicker_makes_nothing_cheaper(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    measured(monkeypatch, lambda size: 5 - size)
    assert runs.trial(pack(baking(sugar=[50]))[0]) == 4


def test_an_estimate_tries_four_packs_from_the_first_to_the_last(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    monkeypatch.setattr(runs, "trial", lambda task: task[0].config["sugar"])
    bakery(cost=lambda cakes: Cost(disk=5 * len(cakes)))
    grid = baking(sugar=[1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**7, 10**8], seed={"seeds": 2})
    everything = {point.name for point in grid.points}
    assert estimate(grid, everything) == Estimate(9, 9 / 4 * 100_101_001, 90)
    assert estimate(grid, {grid.points[0].name, grid.points[3].name}) == Estimate(2, 11.0, 20)  # packs, whole
    assert estimate(grid, set()) == Estimate(0, 0.0, 0)


def test_a_trial_counts_the_seconds_of_its_run_alone(monkeypatch: pytest.MonkeyPatch, bakery: Bakery) -> None:
    clock = iter([10.0, 12.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    assert runs.timed(pack(baking(sugar=[9]))[0], {"sugar": 1}) == 2.5


def test_a_point_that_cannot_be_run_is_told_before_the_sweep(bakery: Bakery) -> None:
    def burnt(_configs: Any, _homes: Any) -> list[PointResult]:
        raise InputError("the oven is cold")

    bakery(run=burnt)
    grid = baking(seed=[1])
    with pytest.raises(InputError, match=f"a trial of the point {grid.points[0].name} failed: the oven is cold"):
        estimate(grid, {grid.points[0].name})
