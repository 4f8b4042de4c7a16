"""What a grid would cost: straight lines through trials whose seconds and bytes are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sweeps.samples import Bakery, Cake, bake, baking
from topicscope import InputError
from topicscope.sweeps import Cost, PointResult, cost, estimate, pack, points

BLOCKS = 2 * 4096  # of the two files of a point


def measured(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float], stored: float = 100) -> list[int]:
    """Trials that take so many seconds by their sugar; gives the list of those that were made."""
    made: list[int] = []

    def timed(_task: Any, sizes: dict[str, int]) -> tuple[float, float]:
        made.append(sizes["sugar"])
        return seconds(sizes["sugar"]), stored

    monkeypatch.setattr(cost, "timed", timed)
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
    assert cost.trial(pack(baking(sugar=[sugar]))[0])[0] == pytest.approx(7 + 3 * sugar)
    assert made == trials


def test_a_longer_trial_that_happens_to_be_quicker_makes_nothing_cheaper(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    measured(monkeypatch, lambda size: 5 - size)
    assert cost.trial(pack(baking(sugar=[50]))[0])[0] == 4


def test_bytes_grow_with_what_is_stored_and_every_file_takes_a_block(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    bakery(knobs={"sugar": (2, 6)}, stored=lambda cake: 5 + cake.sugar)
    measured(monkeypatch, lambda _: 1)
    task = pack(baking(sugar=[9], seed={"seeds": 3}))[0]
    assert cost.trial(task)[1] == pytest.approx(100 * (5 + 9) / (5 + 2) + 3 * BLOCKS)


def test_an_estimate_tries_four_packs_from_the_first_to_the_last(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    monkeypatch.setattr(cost, "trial", lambda task: (task.points[0].config["sugar"], 10.2))
    grid = baking(sugar=[1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**7, 10**8], seed={"seeds": 2})
    everything = {point.name for point in grid.points}
    assert estimate(grid, everything) == Cost(9, 9 / 4 * 100_101_001, 92)
    assert estimate(grid, {grid.points[0].name, grid.points[3].name}) == Cost(2, 11.0, 20)  # packs, whole
    assert estimate(grid, set()) == Cost(0, 0.0, 0)


def test_a_trial_counts_the_bytes_of_the_runs_own_folders_and_of_the_curves(
    monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    def with_folders(configs: Any, homes: list[Path]) -> list[PointResult]:
        for home in homes:
            (home / "inner").mkdir(parents=True)
            (home / "inner" / "snapshot").write_bytes(b"x" * 1000)
        return bake(configs, homes)

    bakery(run=with_folders)
    clock = iter([10.0, 12.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    task = pack(baking(sugar=[9], seed={"seeds": 2}))[0]
    curves = len(points.npz(bake([Cake()], [])[0].curves))
    assert cost.timed(task, {"sugar": 1}) == (2.5, 2 * (1000 + curves))


def test_a_point_that_cannot_be_run_is_told_before_the_sweep(bakery: Bakery) -> None:
    def burnt(_configs: Any, _homes: Any) -> list[PointResult]:
        raise InputError("the oven is cold")

    bakery(run=burnt)
    grid = baking(seed=[1])
    with pytest.raises(InputError, match=f"a trial of the point {grid.points[0].name} failed: the oven is cold"):
        estimate(grid, {grid.points[0].name})
