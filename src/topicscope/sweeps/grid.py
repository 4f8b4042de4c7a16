"""A grid of runs: what all points share, and the axes along which they differ. Checked whole before anything runs.

kind: train                                      # or pretrain, probe
base: {steps: 1000, objective: {loss: squared}}  # settings of that command
axes:
  optimizer.lr: {log: [1.0e-4, 0.1], points: 7}  # a logarithmic range; {range: [0, 1], points: 5} is a plain one
  model.init_scale: [0.001, 0.1, usual]          # a list
  seed: {seeds: 3}                               # 0, 1, 2; {seeds: 3, first: 10} starts at 10
zipped:                                          # axes that move together
  - {optimizer.name: [adam, sgd], batch_size: [40, 80]}
"""

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from topicscope.ground import Config, InputError, assign, flat, load_settings, number, section
from topicscope.sweeps.kinds import kind_of

MOST_POINTS = 1_000_000
SPACES: dict[str, Callable[..., np.ndarray]] = {"range": np.linspace, "log": np.geomspace}

Axes = dict[str, list[Any]]  # the values along each axis, by its dotted name


@section
class GridConfig(Config):
    """A grid as its file has it."""

    kind: str = "train"
    base: dict[str, Any] = Field(default_factory=dict)
    axes: dict[str, Any] = Field(default_factory=dict)
    zipped: list[dict[str, Any]] = Field(default_factory=list)


@dataclass(frozen=True)
class Point:
    """One run: the command, its complete config, and its values on the axes."""

    kind: str
    config: dict[str, Any]
    axes: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its folder: the hash of what it is."""
        return hashlib.sha256(json.dumps([self.kind, self.config], sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Grid:
    """All points, in the order of the file: the last axis moves fastest."""

    kind: str
    axes: Axes
    points: list[Point]


def read_grid(path: str | Path) -> Grid:
    """The grid of a YAML file."""
    return build_grid(load_settings(path, "grid"), str(path))


def build_grid(settings: Mapping[str, Any], where: str = "grid") -> Grid:
    """Build and check every point, in the order of the grid; the first error is reported, with `where` before it."""
    try:
        return _expanded(GridConfig.of({key: value for key, value in settings.items() if value is not None}))
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('config: ')}") from None


def grid_of(configs: Sequence[Any], kind: str = "train") -> Grid:
    """A grid from configs (objects or nested settings); its axes are the settings that differ."""
    if not configs:
        raise InputError("a sweep needs at least one config")
    build = kind_of(kind).build
    whole = [build(config if isinstance(config, dict) else config.as_dict()).as_dict() for config in configs]
    flats = [flat(config) for config in whole]
    differing = [key for key in flats[0] if any(one.get(key) != flats[0][key] for one in flats)]
    points = [
        Point(kind, config, {key: one.get(key) for key in differing}) for config, one in zip(whole, flats, strict=True)
    ]
    if len({point.name for point in points}) < len(points):
        raise InputError("two of the configs are the same; give each once")
    return Grid(kind, {key: axis_steps([one.get(key) for one in flats]) for key in differing}, points)


def _expanded(config: GridConfig) -> Grid:
    build = kind_of(config.kind).build
    axes = list(_axes(config))
    count = math.prod(len(moves) for moves in axes)
    if count > MOST_POINTS:
        raise InputError(f"the grid has {count:,} points; at most {MOST_POINTS:,} are taken")
    points: dict[str, Point] = {}
    for moves in itertools.product(*axes):
        place = {key: value for move in moves for key, value in move.items()}
        try:
            point = Point(config.kind, build(placed(config.base, place)).as_dict(), place)
        except InputError as error:
            raise InputError(f"point {place_text(place)}: {error}" if place else str(error)) from None
        if point.name in points:
            raise InputError(f"two points have the same config ({place_text(place)}); name each value of an axis once")
        points[point.name] = point
    steps = {key: axis_steps([move[key] for move in moves]) for moves in axes for key in moves[0]}
    return Grid(config.kind, steps, list(points.values()))


def placed(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `base` with some changed, by their dotted names."""
    settings = copy.deepcopy(dict(base))
    for name, value in values.items():
        assign(settings, name, value)
    return settings


def axis_steps(values: list[Any]) -> list[Any]:
    """What a map shows along an axis: each value once (axes that move together repeat theirs), numbers in order."""
    once = [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]
    return sorted(once) if all(isinstance(value, int | float) for value in once) else once


def _axes(config: GridConfig) -> Iterator[list[dict[str, Any]]]:
    """Each axis, or group of axes that move together, as the settings of its steps."""
    seen: set[str] = set()
    for group in [{name: values} for name, values in config.axes.items()] + config.zipped:
        values = {str(name): axis_values(str(name), given) for name, given in group.items()}
        if again := seen & set(values):
            raise InputError(f"axis {min(again)!r} is there more than once; name every axis once")
        seen |= set(values)
        if len({len(v) for v in values.values()}) > 1:
            counts = ", ".join(f"{name} {len(v)}" for name, v in values.items())
            raise InputError(f"axes that move together need as many values each; there are {counts}")
        if values:
            yield [dict(zip(values, move, strict=True)) for move in zip(*values.values(), strict=True)]


def axis_values(name: str, given: Any) -> list[Any]:
    """A list as it is; ranges and seeds written out.

    Numbers of ranges are rounded to 12 digits, so that 1e-3 is 0.001 on every machine.
    """
    if isinstance(given, list):
        if not given:
            raise InputError(f"axis {name!r} is empty; give at least one value")
        return [number(value) for value in given]
    keys = set(given) if isinstance(given, dict) else set()
    if (
        keys in ({"seeds"}, {"seeds", "first"})
        and given["seeds"]
        and all(isinstance(value, int) and value >= 0 for value in given.values())
    ):
        return [given.get("first", 0) + i for i in range(given["seeds"])]
    for space, spaced in SPACES.items():
        if keys == {space, "points"}:
            ends, points = given[space], given["points"]
            numbers = [number(end) for end in ends] if isinstance(ends, list) and len(ends) == 2 else []
            if not (
                (isinstance(points, int) and points > 0)
                and (numbers and all(isinstance(end, int | float) for end in numbers))
            ):
                raise InputError(f"axis {name!r}: expected {{{space}: [FROM, TO], points: HOW MANY}} with numbers")
            if space == "log" and min(numbers) <= 0:
                raise InputError(f"axis {name!r}: a logarithmic range needs ends above zero")
            return [float(f"{value:.12g}") for value in spaced(*numbers, points)]
    raise InputError(
        f"axis {name!r}: expected a list, {{range: [A, B], points: N}}, {{log: [A, B], points: N}} or {{seeds: N}}"
    )


def place_text(place: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in place.items())
