"""The registry of kinds: every kind has all its parts, and its parts agree with its config."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sweeps.samples import BASE
from topicscope import InputError
from topicscope.cli.sweep import write
from topicscope.ground import flat
from topicscope.sweeps import KINDS, Point, PointResult, SweepKind, build_grid, cost, kinds, pack, points, sweep

SETTINGS: dict[str, dict[str, Any]] = {
    "train": {**BASE, "documents": {"kind": "given", "proportions": [[0.25] * 4]}},
    "pretrain": {"text": {"corpus": ["a.txt"]}, "snapshots": [0, 300], "optimizer": {"warmup": 50}},
    "probe": {"models": ["m"], "corpus": ["a.txt"]},
}


def test_every_kind_has_settings_here() -> None:
    assert set(SETTINGS) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_all_its_parts(name: str) -> None:
    kind = KINDS[name]
    config = kind.build(SETTINGS[name])
    settings = flat(config.as_dict())
    assert kind.build(config.as_dict()) == config
    assert kind.reads
    assert kind.measures
    assert {name.split(".")[0] for name in kind.reads} <= set(config.as_dict())  # variants have settings of their own
    assert set(kind.may_differ) <= set(settings)
    assert set(kind.sizes(config)) == set(kind.knobs) <= set(settings)
    assert all(0 < small < large for small, large in kind.knobs.values())
    assert kind.pack_size() == 1 or kind.may_differ
    assert kind.stored(config) >= 1


@pytest.mark.parametrize("name", KINDS)
def test_a_trial_is_a_valid_config_with_smaller_knobs(name: str) -> None:
    kind = KINDS[name]
    whole = Point(name, kind.build(SETTINGS[name]).as_dict(), {})
    small = {knob: sizes[0] for knob, sizes in kind.knobs.items()}
    short = cost.shortened(whole, small)
    assert kind.sizes(kind.build(short.config)) == small
    assert whole.config == kind.build(SETTINGS[name]).as_dict()  # the point itself is not touched


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_file_changes_what_a_point_reads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS[name] | ({"data": {"train_file": "a.txt"}} if name == "train" else {})
    point = Point(name, KINDS[name].build(settings).as_dict(), {})
    digests = []
    for text in ("one", "other", "one"):
        Path("a.txt").write_text(text)
        digests.append(points.inputs(point))
    assert digests[0] == digests[2] != digests[1]


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"grid: kind 'bake'; expected train, pretrain, probe"):
        build_grid({"kind": "bake"})
    with pytest.raises(InputError, match=r"kind 'bake'; expected train, pretrain, probe"):
        kinds.kind_of("bake")


@dataclasses.dataclass(frozen=True)
class Cake:
    """The config of a kind that nobody knows."""

    sugar: int = 1
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def bake(configs: Any, _homes: Any) -> list[PointResult]:
    curves = {"crumb_size": np.arange(3.0)}
    measures = [{"sweetness": 10 * config.sugar + config.seed, "together": len(configs)} for config in configs]
    return [PointResult(one, curves) for one in measures]


def test_a_kind_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids, packs, cost, table and map of a new kind come from its entry alone."""
    kind = SweepKind[Cake](
        build=lambda settings: Cake(**settings),
        run=bake,
        reads=(),
        measures=("sweetness",),
        knobs={"sugar": (1, 2)},
        sizes=lambda cake: {"sugar": cake.sugar},
        pack_size=lambda: 3,
        may_differ=("seed",),
        curve_panels={"crumbs": "crumb_"},
    )
    monkeypatch.setitem(KINDS, "bake", kind)
    grid = build_grid({"kind": "bake", "axes": {"sugar": [1, 5], "seed": {"seeds": 4}}})
    assert [len(task.points) for task in pack(grid)] == [3, 1, 3, 1]
    result = sweep(grid, tmp_path / "sweep")
    assert [row["sweetness"] for row in result.rows] == [10, 11, 12, 13, 50, 51, 52, 53]
    assert [row["together"] for row in result.rows] == [3, 3, 3, 1, 3, 3, 3, 1]
    [panel] = result.sections()[0].figures[0].panels
    assert panel.z == [[11.5, 51.5]]  # seeds are averaged
    write(result)
    assert '"curvePanels":{"crumbs":"crumb_"}' in (tmp_path / "sweep" / "report.html").read_text()
    assert cost.estimate(grid, {point.name for point in grid.points}).packs == 4
