"""A sweep of cakes: packs, what is run again, progress, errors of points, and estimates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sweeps.samples import Bakery, Cake, bake, baking
from topicscope import InputError
from topicscope.ground import Cost, serial
from topicscope.sweeps import (
    Estimate,
    Place,
    Point,
    PointResult,
    Sweep,
    compute,
    estimate,
    pack,
    read_sweep,
    run as runs,
    sweep,
)
from topicscope.sweeps.run import point_home

pytestmark = pytest.mark.usefixtures("bakery")


class Watch:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.shown: list[tuple[Any, ...]] = []

    def __call__(self, phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        self.shown.append((phase, done, total, note))


def burning(*seeds: int) -> Any:
    """Cakes with these seeds burn, each alone."""

    def run(configs: Any, homes: Any) -> list[PointResult]:
        if any(config.seed in seeds for config in configs):
            raise InputError("burnt")
        return bake(configs, homes)

    return run


def test_progress_counts_what_is_there_and_what_fails(tmp_path: Path, bakery: Bakery) -> None:
    bakery(run=burning(1))
    grid = baking(sugar=[1], seed={"seeds": 5})
    first, again, retried = Watch(), Watch(), Watch()
    assert sweep(grid, tmp_path, progress=first).counts == {"done": 4, "failed": 1, "missing": 0}
    read = [("reading points", i, 5, "") for i in range(5)]
    end = ("reading results", 0, None, "")
    running = [("running points", 0, 5, ""), ("running points", 3, 5, "1 failed"), ("running points", 5, 5, "1 failed")]
    assert first.shown == [*read, *running, end]
    sweep(grid, tmp_path, progress=again)
    assert again.shown == [*read, ("running points", 5, 5, "1 failed"), end]
    bakery()
    assert sweep(grid, tmp_path, progress=retried, retry_failed=True).counts["done"] == 5
    assert retried.shown == [*read, ("running points", 4, 5, ""), ("running points", 5, 5, ""), end]


def test_a_pack_is_run_whole_and_only_what_is_missing_of_it_is_written(tmp_path: Path, bakery: Bakery) -> None:
    ran: list[list[int]] = []

    def noted(configs: Any, homes: Any) -> list[PointResult]:
        ran.append([config.seed for config in configs])
        return bake(configs, homes)

    bakery(run=noted)
    grid = baking(sugar=[1], seed={"seeds": 5})
    sweep(grid, tmp_path)
    assert ran == [[0, 1, 2], [3, 4]]
    (point_home(tmp_path, grid.points[1]) / "curves.npz").unlink()
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")}
    sweep(grid, tmp_path)
    assert ran[2:] == [[0, 1, 2]]
    changed = [path.parent.name for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp]
    assert changed == [grid.points[1].name]


def test_a_grid_may_be_settings_or_configs_and_an_engine_an_open_one(tmp_path: Path) -> None:
    asked: list[tuple[Any, int]] = []

    def engine(work: Any, common: Any, items: Any) -> Any:
        asked.append((common, len(items)))
        return serial(work, common, items)

    found = sweep({"kind": "bake", "axes": {"seed": {"seeds": 4}}}, tmp_path / "one", engine)
    assert [row["sweetness"] for row in found.rows] == [10, 11, 12, 13]
    assert asked == [(Place(str(tmp_path / "one" / "runs"), str(Path.cwd())), 2)]
    assert sweep(found.grid, tmp_path / "two").rows == found.rows
    with pytest.raises(InputError, match="at least one config"):
        sweep([], tmp_path / "three")
    with pytest.raises(InputError, match="holds a sweep folder; resume it"):
        sweep(found.grid, tmp_path / "one", resume=False)
    assert sweep(found.grid, tmp_path / "new", resume=False).counts["done"] == 4
    (tmp_path / "one" / "notes.txt").write_text("mine")
    other = baking(seed=[9, 3])
    both = sweep(other, tmp_path / "one")
    assert both.counts == {"done": 2, "failed": 0, "missing": 0}
    assert both.summary()[-1].startswith("3 points of other grids are also in")
    assert read_sweep(tmp_path / "one").grid == other  # that of the last use
    assert sweep(other, tmp_path / "one", force=True).summary() == ["Points: 2 done, 0 failed."]
    assert read_sweep(tmp_path / "one").rows == Sweep.of(other, tmp_path / "one").rows
    assert (tmp_path / "one" / "notes.txt").read_text() == "mine"


def test_a_kind_that_gives_too_few_results_is_wrong(tmp_path: Path, bakery: Bakery) -> None:
    bakery(run=lambda configs, homes: bake(configs, homes)[1:])
    with pytest.raises(ValueError, match="shorter"):
        sweep(baking(seed=[1, 2]), tmp_path)


def test_the_error_of_a_point_is_one_line_that_says_where(bakery: Bakery) -> None:
    def run(configs: Any, _homes: Any) -> list[PointResult]:
        if configs[0].seed == 0:
            raise InputError("too\n  hot")
        if configs[0].seed == 1:
            raise ZeroDivisionError
        raise RuntimeError("too\n  cold")

    bakery(run=run)
    errors = [result.error or "" for result in compute(Place(".", "."), pack(baking(seed=[0, 1, 2]))[0])]
    line = run.__code__.co_firstlineno
    assert errors == [
        "too hot",
        f"ZeroDivisionError: ZeroDivisionError (test_run.py, line {line + 4})",
        f"RuntimeError: too cold (test_run.py, line {line + 5})",
    ]


def test_points_of_a_pack_fail_alone_and_trouble_of_the_machine_is_raised(bakery: Bakery) -> None:
    task = pack(baking(seed=[0, 1, 2]))[0]
    bakery(run=burning(1))
    results = compute(Place(".", "."), task)
    assert [result.error for result in results] == [None, "burnt", None]
    assert [result.measures.get("together") for result in results] == [1, None, 1]
    two = compute(Place(".", "."), task[:2])
    assert [result.error for result in two] == [None, "burnt"]
    for trouble in (OSError(28, "No space left on device"), MemoryError()):

        def full(_configs: Any, _homes: Any, trouble: BaseException = trouble) -> list[PointResult]:
            raise trouble

        bakery(run=full)
        with pytest.raises(type(trouble)):
            compute(Place(".", "."), task)


def test_a_point_runs_where_its_paths_start_in_a_folder_that_depends_on_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bakery: Bakery
) -> None:
    places: list[tuple[Path, list[Path]]] = []

    def run(configs: Any, homes: list[Path]) -> list[PointResult]:
        places.append((Path.cwd(), homes))
        return bake(configs, homes)

    bakery(run=run)
    (tmp_path / "kitchen").mkdir()
    (tmp_path / "kitchen" / "recipe.txt").write_text("flour")
    monkeypatch.chdir(tmp_path)
    point = Point("bake", Cake(recipe="recipe.txt").as_dict(), {})
    compute(Place("scratch", str(tmp_path / "kitchen")), (point,))
    compute(Place("scratch", str(tmp_path / "gone")), (point,))
    assert Path.cwd() == tmp_path
    assert [place for place, _ in places] == [tmp_path / "kitchen", tmp_path]
    [[one], [other]] = [homes for _, homes in places]
    assert one.parent == Path("scratch")
    assert one.name.startswith(f"{point.name}-")
    assert one != other  # the recipe is not there


def test_points_that_differ_in_more_than_they_may_do_not_run_together() -> None:
    grid = baking(seed={"seeds": 7}, sugar=[1, 2])
    packs = [[(p.config["sugar"], p.config["seed"]) for p in task] for task in pack(grid)]
    assert packs == [[(s, i) for i in seeds] for s in (1, 2) for seeds in ((0, 1, 2), (3, 4, 5), (6,))]


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
    shown = Watch()
    assert estimate(grid, everything, shown) == Estimate(9, 9 / 4 * 100_101_001, 90)
    assert shown.shown == [("short trials of a few points, up to a minute", number, 4, "") for number in range(4)]
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
