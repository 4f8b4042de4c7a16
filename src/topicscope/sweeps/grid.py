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
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from topicscope.ground import (
    Config,
    InputError,
    Progress,
    Text,
    assign,
    flat,
    load_settings,
    number,
    refuse,
    refuse_if,
    section,
    silent,
)
from topicscope.sweeps.kinds import kind_of

MOST_POINTS = 100_000  # checking one takes about a millisecond, holding it a few kB
SHOWN_AFTER = 2.0  # seconds of checking from which on progress is shown

Axes = dict[str, list[Any]]  # the values along each axis, by its dotted name


@section
class GridConfig(Config):
    """A grid as its file has it. Values of an axis are a list, or a range such as {log: [1e-4, 0.1], points: 7}."""

    kind: Text = "train"  # the command: train, pretrain or probe
    # settings that all points share
    base: Annotated[dict[Text, object], Field(max_length=1000)] = Field(default_factory=dict)
    # by the dotted name of a setting, its values
    axes: Annotated[dict[Text, object], Field(max_length=100)] = Field(default_factory=dict)
    zipped: Annotated[list[Annotated[dict[Text, object], Field(max_length=100)]], Field(max_length=100)] = Field(
        default_factory=list
    )  # groups of axes that move together


@dataclass(frozen=True)
class Point:
    kind: str  # the command
    config: dict[str, Any]  # its complete settings
    axes: dict[str, object]  # its values on the axes

    @property
    def name(self) -> str:
        """The name of its folder: the hash of what it is."""
        return hashlib.sha256(json.dumps([self.kind, self.config], sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Grid:
    """All points of a grid, checked; the last axis moves fastest. `build_grid`, `grid_of` and `read_grid` make one.

    Attributes:
        kind: The command: train, pretrain or probe.
        axes: By the name of an axis, its values.
        points: The points.

    Example:
        >>> from topicscope.sweeps import build_grid
        >>> grid = build_grid({"axes": {"optimizer.lr": [0.01, 0.1], "seed": {"seeds": 2}}})
        >>> list(grid.axes), [(point.axes["optimizer.lr"], point.axes["seed"]) for point in grid.points]
        (['optimizer.lr', 'seed'], [(0.01, 0), (0.01, 1), (0.1, 0), (0.1, 1)])
    """

    kind: str
    axes: Axes
    points: list[Point]


def read_grid(path: str | Path, progress: Progress = silent, device: str | None = None) -> Grid:
    settings = load_settings(path, "grid")
    base, axes, zipped = (settings.get(name) or {} for name in ("base", "axes", "zipped"))
    moving = [axes, *(zipped if isinstance(zipped, list) else [])]
    moved = any(isinstance(part, dict) and "device" in part for part in moving)
    refuse_if(device and moved, f"{path}: device is one of the axes; leave the option out, or the axis")
    if device is not None and isinstance(base, dict):
        settings = {**settings, "base": {**base, "device": device}}
    grid = build_grid(settings, str(path), progress)
    reason = "it has no axes, so it is a single run; name settings and their values under axes"
    refuse_if(not grid.axes, f"{path}: {reason}")
    return grid


def build_grid(settings: Mapping[str, object], where: str = "grid", progress: Progress = silent) -> Grid:
    try:
        return _expanded(GridConfig.of({key: value for key, value in settings.items() if value is not None}), progress)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('config: ')}") from None


def grid_of(configs: Sequence[Any], kind: str = "train") -> Grid:
    refuse_if(not configs, "a sweep needs at least one config")
    build = kind_of(kind).build
    whole = [build(config if isinstance(config, dict) else config.as_dict()).as_dict() for config in configs]
    flats = [flat(config) for config in whole]
    differing = [key for key in flats[0] if any(one.get(key) != flats[0][key] for one in flats)]
    points = [
        Point(kind, config, {key: one.get(key) for key in differing}) for config, one in zip(whole, flats, strict=True)
    ]
    names = {point.name for point in points}
    refuse_if(len(names) < len(points), "two of the configs are the same; give each once")
    return Grid(kind, {key: axis_steps([one.get(key) for one in flats]) for key in differing}, points)


WIDEST_END = 1e100
SPACES: dict[str, Callable[..., np.ndarray]] = {"range": np.linspace, "log": np.geomspace}


def axis_values(name: str, given: object) -> Sequence[object]:
    """The values along an axis; nothing long is written out."""
    axis = f"axis {name!r}"
    if isinstance(given, list):
        refuse_if(not given, f"{axis} is empty; give at least one value")
        return [number(value) for value in given]
    range_of = given if isinstance(given, dict) else {}
    keys = set(range_of)
    if keys in ({"seeds"}, {"seeds", "first"}):
        first, count = range_of.get("first", 0), range_of["seeds"]
        if _whole(first) and _whole(count) and 0 <= first < 2**63 and 0 < count < 2**62:
            return range(first, first + count)
    for space, spaced in SPACES.items():
        if keys == {space, "points"}:
            ends, points = range_of[space], range_of["points"]
            numbers = [number(end) for end in ends] if isinstance(ends, list) else []
            real = len(numbers) == 2 and all(isinstance(end, float) or _whole(end) for end in numbers)
            valid = real and _whole(points) and 0 < points < 2**62
            wide = real and not all(abs(end) <= WIDEST_END for end in numbers)  # NaN too
            refuse(
                (not valid, f"{axis}: expected {{{space}: [FROM, TO], points: HOW MANY}} with numbers"),
                (wide, f"{axis}: the ends of a range are at most {WIDEST_END:g}"),
                (real and space == "log" and min(numbers) <= 0, f"{axis}: a logarithmic range needs ends above zero"),
            )
            if points > MOST_POINTS:
                return range(points)  # only counted: such a grid is refused
            # Rounded to 12 digits, so that 1e-3 is 0.001 on every machine.
            return [float(f"{value:.12g}") for value in spaced(*numbers, points)]
    raise InputError(
        f"{axis}: expected a list, {{range: [A, B], points: N}}, "
        f"{{log: [A, B], points: N}} or {{seeds: N}}; got {given!r:.80}"
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _expanded(config: GridConfig, progress: Progress) -> Grid:
    build, axes = kind_of(config.kind).build, _axes(config)
    count = math.prod(len(next(iter(group.values()))) for group in axes)
    allowed = f"at most {MOST_POINTS:,} are allowed, since each is checked and held in memory; split the grid"
    refuse_if(count > MOST_POINTS, f"the grid has {count:,} points; {allowed}")
    moves_along = [
        [dict(zip(group, move, strict=True)) for move in zip(*group.values(), strict=True)] for group in axes
    ]
    points: dict[str, Point] = {}
    began = time.monotonic()
    for moves in itertools.product(*moves_along):
        place = {key: value for move in moves for key, value in move.items()}
        try:
            point = Point(config.kind, build(placed(config.base, place)).as_dict(), place)
        except InputError as error:
            raise InputError(f"point {place_text(place)}: {error}" if place else str(error)) from None
        twice = f"two points have the same config ({place_text(place)}); name each value of an axis once"
        refuse_if(point.name in points, twice)
        points[point.name] = point
        if len(points) % 100 == 0 and time.monotonic() - began > SHOWN_AFTER:
            progress("checking points", len(points), count)
    steps = {key: axis_steps(list(values)) for group in axes for key, values in group.items()}
    return Grid(config.kind, steps, list(points.values()))


def placed(base: Mapping[str, object], values: Mapping[str, object]) -> dict[str, object]:
    settings = copy.deepcopy(dict(base))
    for name, value in values.items():
        assign(settings, name, value)
    return settings


def axis_steps(values: list[object]) -> list[object]:
    """What a map shows along an axis: each value once (axes that move together repeat theirs), numbers in order."""
    once = [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]
    return sorted(once) if all(isinstance(value, int | float) for value in once) else once


def _axes(config: GridConfig) -> list[dict[str, Sequence[object]]]:
    """Each axis, or group of axes that move together, with its values; nothing long is written out yet."""
    groups: list[dict[str, Sequence[object]]] = []
    for group in [{name: values} for name, values in config.axes.items()] + config.zipped:
        values = {name: axis_values(name, given) for name, given in group.items()}
        again = min((name for name in values if any(name in other for other in groups)), default="")
        counts = ", ".join(f"{name} {len(v)}" for name, v in values.items())
        refuse(
            (again, f"axis {again!r} is given more than once; name every axis once"),
            (
                len({len(v) for v in values.values()}) > 1,
                f"axes that move together need equally many values; there are {counts}",
            ),
        )
        groups += [values] if values else []
    return groups


def place_text(place: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in place.items())
