"""Grids: lists, ranges, zipped axes and seeds, checked as a whole."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topicscope import InputError, RunConfig
from topicscope.sweeps import Point, build_grid, grid as grids, grid_of, pack, read_grid
from topicscope.sweeps.grid import axis_steps, axis_values, placed

NAN = math.nan
BASE = {"steps": 20, "data": {"documents": 100, "dev_documents": 20}}


def test_axes_are_written_out_in_order() -> None:
    grid = build_grid(
        {
            "base": BASE,
            "axes": {
                "optimizer.lr": {"log": ["1e-3", 0.1], "points": 3},
                "masking.p_mask": {"range": [0.1, 0.3], "points": 2},
                "seed": {"seeds": 2, "first": 5},
            },
            "zipped": [{"objective.loss": ["squared", "cross-entropy"], "batch_size": [10, 20]}],
        }
    )
    assert grid.axes["optimizer.lr"] == [0.001, 0.01, 0.1]
    assert grid.axes["masking.p_mask"] == [0.1, 0.3]
    assert grid.axes["seed"] == [5, 6]
    assert len(grid.points) == 3 * 2 * 2 * 2
    assert [point.config["batch_size"] for point in grid.points[:4]] == [10, 20, 10, 20]  # the last axis moves fastest
    together = {(p.config["objective"]["loss"], p.config["batch_size"]) for p in grid.points}
    assert together == {("squared", 10), ("cross-entropy", 20)}
    sections = {"optimizer": {"lr": 0.001}, "masking": {"p_mask": 0.1}, "objective": {"loss": "squared"}}
    first = RunConfig.of(BASE | sections, seed=5, batch_size=10, device="cpu")
    assert grid.points[0].config == first.as_dict()
    assert len({point.name for point in grid.points}) == 24


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([3, "1e-3", "usual", None, True], [3, 0.001, "usual", None, True]),
        ({"seeds": 1}, [0]),
        ({"seeds": 3}, [0, 1, 2]),
        ({"seeds": 3, "first": 0}, [0, 1, 2]),
        ({"seeds": 1, "first": 10}, [10]),
        ({"range": [-1, 1], "points": 3}, [-1.0, 0.0, 1.0]),
        ({"range": [0, 0.3], "points": 4}, [0.0, 0.1, 0.2, 0.3]),
        ({"range": [2, 1], "points": 1}, [2.0]),
        ({"log": ["1e-6", 1], "points": 3}, [1e-6, 1e-3, 1.0]),
        ({"log": [100, 0.5], "points": 1}, [100.0]),
    ],
)
def test_values_along_an_axis(given: Any, values: list[Any]) -> None:
    assert list(axis_values("x", given)) == values
    assert len(axis_values("x", given)) == len(values)


def test_axes_of_words_keep_their_order_and_numbers_are_sorted() -> None:
    assert axis_steps([3, 1, 2.5, 1]) == [1, 2.5, 3]
    assert axis_steps([3, "usual", 1, "usual"]) == [3, "usual", 1]
    assert axis_steps([[2, 1], None, [2, 1]]) == [[2, 1], None]


def test_a_grid_may_have_as_many_points_as_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MOST_POINTS", 4)
    assert len(build_grid({"base": BASE, "axes": {"seed": {"seeds": 4}}}).points) == 4
    with pytest.raises(InputError, match="the grid has 5 points; at most 4 are allowed"):
        build_grid({"base": BASE, "axes": {"seed": {"seeds": 5}}})
    assert [point.axes for point in build_grid({"base": BASE, "zipped": [{}]}).points] == [{}]


def test_the_base_of_a_grid_is_not_touched() -> None:
    base: dict[str, Any] = {"optimizer": {"lr": 0.1}}
    assert placed(base, {"optimizer.lr": 0.2, "seed": 3}) == {"optimizer": {"lr": 0.2}, "seed": 3}
    assert base == {"optimizer": {"lr": 0.1}}


def test_axes_that_move_together_show_each_value_once() -> None:
    pairs = {"optimizer.name": ["adam", "adam", "sgd", "sgd"], "optimizer.lr": [0.01, 0.1, 0.1, 0.03]}
    grid = build_grid({"base": BASE, "zipped": [pairs]})
    assert grid.axes == {"optimizer.name": ["adam", "sgd"], "optimizer.lr": [0.01, 0.03, 0.1]}
    places = [(p.axes["optimizer.name"], p.axes["optimizer.lr"]) for p in grid.points]
    assert places == [("adam", 0.01), ("adam", 0.1), ("sgd", 0.1), ("sgd", 0.03)]


def test_names_are_of_what_a_point_is() -> None:
    """Not of how it was written down, nor of its grid."""
    one = build_grid({"base": BASE, "axes": {"optimizer.lr": [0.01, 0.1]}})
    other = build_grid({"base": {**BASE, "optimizer": {"lr": 0.1}}, "axes": {"seed": [0, 1]}})
    assert one.points[1].name == other.points[0].name
    assert one.points[0].name != one.points[1].name
    assert Point("train", {"a": 1, "b": 2}, {}).name == Point("train", {"b": 2, "a": 1}, {"b": 2}).name
    assert Point("train", {"a": 1}, {}).name != Point("probe", {"a": 1}, {}).name
    assert re.fullmatch("[0-9a-f]{16}", one.points[0].name)


def test_a_grid_of_configs_has_the_settings_that_differ_as_axes() -> None:
    first = RunConfig(steps=20)
    settings = {**first.as_dict(), "batch_size": 7}
    grid = grid_of([first, settings, RunConfig(steps=20, seed=1)])
    assert grid.axes == {"batch_size": sorted([7, first.batch_size]), "seed": [0, 1]}
    assert [point.axes["batch_size"] for point in grid.points] == [first.batch_size, 7, first.batch_size]
    assert [point.axes["seed"] for point in grid.points] == [0, 0, 1]
    alone = grid_of([first])
    assert (alone.axes, [point.axes for point in alone.points]) == ({}, [{}])
    with pytest.raises(InputError, match="at least one config"):
        grid_of([])
    with pytest.raises(InputError, match="two of the configs are the same"):
        grid_of([first, settings, first])


def test_packs_depend_on_the_grid_alone() -> None:
    rates = {"optimizer.lr": {"log": [1e-3, 0.1], "points": 5}, "seed": {"seeds": 2}}
    tasks = pack(build_grid({"base": BASE, "axes": {"objective.loss": ["squared", "cross-entropy"]} | rates}))
    assert [len(task) for task in tasks] == [8, 2, 8, 2]  # eight share a program; losses do not mix
    assert all(len({p.config["objective"]["loss"] for p in task}) == 1 for task in tasks)
    whole = [point.name for task in tasks for point in task]
    assert len(set(whole)) == 20


NO_AXES: list[Any] = [
    {}, {"seeds": 0}, {"seeds": -1}, {"seeds": 1.5}, {"seeds": "two"}, {"seeds": 10**30}, {"seeds": True}, None,
    {"first": 2}, {"seeds": 2, "first": -1}, {"seeds": 2, "last": 3}, {"seeds": 2, "first": True}, 3,
    {"log": [0.1, 1]}, {"log": [1, 2], "points": 2, "first": 1},
]  # fmt: skip
NO_RANGES: list[dict[str, Any]] = [
    {"range": [0, 1, 2], "points": 3}, {"range": 5, "points": 3}, {"range": [0, "x"], "points": 3},
    {"range": [0, True], "points": 3}, {"range": [0, 1], "points": True}, {"log": ["x", 1], "points": 3},
    {"log": [1, 2], "points": 0}, {"log": [1, 2], "points": 2.5}, {"log": [1, 2], "points": "3"},
]  # fmt: skip
TOO_WIDE: list[dict[str, Any]] = [
    {"range": [NAN, 1], "points": 3}, {"log": [1, math.inf], "points": 3}, {"range": [-1e308, 1e308], "points": 3},
    {"range": [0, 10**400], "points": 3},
]  # fmt: skip
MANY = {"log": [1, 2], "points": 10**9}


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        *((given, "axis 'optimizer.lr': expected a list") for given in NO_AXES),
        *((given, f"expected {{{next(iter(given))}: [FROM, TO], points: HOW MANY}}") for given in NO_RANGES),
        *((given, "axis 'optimizer.lr': the ends of a range are at most 1e+100") for given in TOO_WIDE),
        *(({"log": ends, "points": 3}, "needs ends above zero") for ends in ([0, 1], [1, -1])),
        ([], "axis 'optimizer.lr' is empty"),
        ([0.1, -1], "point optimizer.lr=-1"),
        ([NAN], "point optimizer.lr=nan"),
        ({"log": [1, 2], "points": 10**12}, "1,000,000,000,000 points"),
    ],
)
def test_a_wrong_axis_is_one_line(axis: Any, said: str) -> None:
    test_a_wrong_grid_is_one_line({"axes": {"optimizer.lr": axis}}, said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"axes": {"optimizer.lrr": [1]}}, "unknown key 'optimizer.lrr'; did you mean 'lr'?"),
        ({"axes": {"seed": [0, 1]}, "zipped": [{"seed": [2, 3]}]}, "axis 'seed' is given more than once"),
        (
            {"zipped": [{"seed": [1, 2], "batch_size": [1, 2, 3]}]},
            "equally many values; there are seed 2, batch_size 3",
        ),
        ({"axes": {"seed": [1, 1]}}, "two points have the same config (seed=1)"),
        ({"axes": {"device": ["cpu", "auto"]}}, "two points have the same config (device=auto)"),  # which is the CPU
        ({"axes": {"steps.lr": [1]}, "base": {"steps": 5}}, "point steps.lr=1: 'steps' is not a section"),
        ({"axis": {}}, "unknown key 'axis'; did you mean 'axes'?"),
        ({"kind": "bake"}, "kind 'bake'; expected train, pretrain, probe"),
        ({"axes": {"seed": {"seeds": 10**9}}}, "the grid has 1,000,000,000 points; at most 100,000 are allowed"),
        ({"axes": {"seed": {"seeds": 10**9}}, "zipped": [{"optimizer.lr": MANY}]}, "1,000,000,000,000,000,000 points"),
        ({"axes": {"seed": [[1, 2]]}}, "point seed=[1, 2]"),
        ({"axes": {"seed": [{"a": 1}]}}, "point seed={'a': 1}"),
        ({"axes": {"seed": [True]}}, "seed = True: input should be a number"),
        ({"axes": {"seed": [2**70]}}, "point seed=1180591620717411303424"),
        ({"axes": {"optimizer": [1]}}, "point optimizer=1"),
        ({"axes": {1: [1]}}, "axes.1"),
        ({"axes": "x"}, "axes = 'x'"),
        ({"kind": []}, "kind = []: input should be text"),
        ({"base": "hello"}, "base = 'hello': input should be keys and values"),
        ({"base": {1: 2}}, "base.1"),
        ({"base": {"optimizer": None}, "axes": {"optimizer.lr": [1]}}, "'optimizer' is not a section"),
        ({"zipped": {}}, "zipped = {}: input should be a list"),
        ({"zipped": [[1]]}, "zipped.0 = [1]: input should be keys and values"),
        ({"zipped": [{"seed": 3}]}, "axis 'seed': expected a list"),
        ({"axes": [1]}, "axes = [1]: input should be keys and values"),
        ({"zipped": {"seed": [1]}}, "zipped = {'seed': [1]}: input should be a list"),
    ],
)
def test_a_wrong_grid_is_one_line(data: Any, said: str) -> None:
    with pytest.raises(InputError) as found:
        build_grid(data)
    assert said in str(found.value)
    assert str(found.value).startswith("grid: ")
    assert "\n" not in str(found.value)


def test_grids_are_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("base: {steps: 20}\naxes:\n  optimizer.lr: {log: [1e-3, 1e-1], points: 3}\n  seed: {seeds: 2}\n")
    grid = read_grid(path)
    assert len(grid.points) == 6
    assert np.allclose(grid.axes["optimizer.lr"], [1e-3, 1e-2, 1e-1])
    for text, said in {
        "axes:\n  seed: [0, 1]\n  seed: [2, 3]\n": "'seed' is given more than once",
        "- seed": "holds a list; expected keys and values",
        "base: {steps: 20}\naxes:\n": "it has no axes, so it is a single run",  # a section that is left empty
        "axes: [": "is not YAML",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            read_grid(path)
    with pytest.raises(InputError, match=r"the grid .*none\.yaml cannot be read: No such file or directory"):
        read_grid(tmp_path / "none.yaml")


def test_long_checks_of_points_show_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "SHOWN_AFTER", 0.0)
    shown: list[tuple[str, float, float | None]] = []
    build_grid(
        {"base": BASE, "axes": {"seed": {"seeds": 250}}},
        progress=lambda phase, done=0, total=None, note="": shown.append((phase, done, total)),
    )
    assert shown == [("checking points", 100, 250), ("checking points", 200, 250)]


def test_the_device_is_part_of_a_point_and_packs_are_larger_on_a_gpu() -> None:
    """CPU and GPU points never mix; 'auto' is the CPU; a pack on a GPU takes as many models as pay and fit."""
    settings = {"base": {"steps": 5}, "axes": {"seed": {"seeds": 20}}}
    cpu, auto, gpu = (
        build_grid(settings | {"base": {"steps": 5, "device": device}}) for device in ("cpu", "auto", "cuda")
    )
    assert [point.name for point in auto.points] == [point.name for point in cpu.points]
    assert not {point.name for point in gpu.points} & {point.name for point in cpu.points}
    assert [len(task) for task in pack(cpu)] == [8, 8, 4]
    assert [len(task) for task in pack(gpu)] == [20]
    words = {"device": "cuda", "topic_model": {"topics": 60, "words_per_topic": 50}}
    sizes = [len(task) for task in pack(build_grid(settings | {"base": words}))]
    assert sum(sizes) == 20
    assert 1 < len(sizes) < 20  # models of 3,001 words do not all fit


def test_a_device_for_all_points(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("base: {steps: 5, device: cpu}\naxes: {seed: {seeds: 2}}\n")
    assert {point.config["device"] for point in read_grid(path, device="cuda").points} == {"cuda"}
    assert {point.config["device"] for point in read_grid(path).points} == {"cpu"}
    path.write_text("base: hello\n")
    with pytest.raises(InputError, match="base = 'hello': input should be keys and values"):
        read_grid(path, device="cuda")
