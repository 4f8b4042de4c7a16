"""A grid of runs from a file: what every point shares, and the axes along which they differ. Checked as a whole before anything runs.

kind: train                                      # or pretrain, probe
base: {steps: 1000, objective: {loss: squared}}  # settings of that command
axes:
  optimizer.lr: {log: [1.0e-4, 0.1], points: 7}  # a logarithmic range; {range: [0, 1], points: 5} a plain one
  model.init_scale: [0.001, 0.1, usual]          # a list
  seed: {seeds: 3}                               # 0, 1, 2; {seeds: 3, first: 10} others
zipped:                                          # axes that move together
  - {optimizer.name: [adam, sgd], batch_size: [40, 80]}
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from topicscope.ground import InputError, nearest, number
from topicscope.language import probe_point
from topicscope.pretraining import build_config as build_pretrain
from topicscope.training import build_config as build_train

KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "train": lambda settings: dataclasses.replace(build_train(settings), device="cpu"),
    "pretrain": build_pretrain,
    "probe": probe_point,
}
MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Point:
    """One run: the command, its complete config, and where it stands on the axes."""

    kind: str
    config: dict[str, Any]
    axes: dict[str, Any]

    @property
    def name(self) -> str:
        """Of its folder: the hash of what it is."""
        return hashlib.sha256(json.dumps([self.kind, self.config], sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Grid:
    """All points, in the order of the file: the last axis moves fastest."""

    kind: str
    axes: dict[str, list[Any]]
    points: list[Point]


def read_grid(path: str | Path) -> Grid:
    """The grid of a YAML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the grid {path}: {getattr(error, 'strerror', None) or error}; give the path of a YAML file"
        ) from None
    try:
        data = _Once(text).get_single_data()
    except yaml.YAMLError as error:
        raise InputError(f"the grid {path} is not YAML: {' '.join(str(error).split())}") from None
    return build_grid(data, str(path))


class _Once(yaml.SafeLoader):
    """A key that stands twice is an error: YAML itself takes the last and says nothing."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"{key!r} is there more than once; name every axis and setting once")
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


_Once.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def build_grid(data: Any, where: str = "grid") -> Grid:
    """Every point built and checked; the first that is wrong is told."""
    known = ("kind", "base", "axes", "zipped")
    if not isinstance(data, dict):
        raise InputError(f"{where} holds no grid; expected the keys {', '.join(known)}")
    for key in data:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; {nearest(str(key), known)}")
    kind = data.get("kind", "train")
    if kind not in KINDS:
        raise InputError(f"{where}: kind {kind!r}; expected {', '.join(KINDS)}")
    steps = list(_axes(data.get("axes") or {}, data.get("zipped") or [], where))
    count = int(np.prod([len(moves) for moves in steps], dtype=float)) if steps else 1
    if count > MOST_POINTS:
        raise InputError(f"{where} has {count:,} points; at most {MOST_POINTS:,} are taken")
    base = data.get("base") or {}
    points = []
    for moves in itertools.product(*steps):
        place = {key: value for move in moves for key, value in move.items()}
        points.append(_point(kind, base, place, where))
    names = [point.name for point in points]
    if len(set(names)) < len(names):
        twin = next(point for i, point in enumerate(points) if point.name in names[:i])
        raise InputError(
            f"{where}: two points have the same config ({_told(twin.axes)}); name each value of an axis once"
        )
    return Grid(kind, {key: _steps([move[key] for move in moves]) for moves in steps for key in moves[0]}, points)


def grid_of(configs: Sequence[Any], kind: str = "train") -> Grid:
    """A grid from configs that the caller has (objects or nested settings); the axes are what differs."""
    if not configs:
        raise InputError("a sweep needs at least one config")
    whole = [KINDS[kind](c if isinstance(c, dict) else c.as_dict()).as_dict() for c in configs]
    flats = [flat(config) for config in whole]
    differing = [key for key in flats[0] if any(one.get(key) != flats[0][key] for one in flats)]
    points = [
        Point(kind, config, {key: one[key] for key in differing}) for config, one in zip(whole, flats, strict=True)
    ]
    if len({point.name for point in points}) < len(points):
        raise InputError("two of the configs are the same; give each once")
    return Grid(kind, {key: _steps([one[key] for one in flats]) for key in differing}, points)


def _steps(values: list[Any]) -> list[Any]:
    """What a map shows along an axis: each value once (axes that move together repeat theirs), numbers in their order."""
    once = [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]
    return sorted(once) if all(isinstance(value, int | float) for value in once) else once


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _axes(axes: Any, zipped: Any, where: str) -> Iterator[list[dict[str, Any]]]:
    """Each axis, or group of axes that move together, as the settings of its steps."""
    if (
        not isinstance(axes, dict)
        or not isinstance(zipped, list)
        or not all(isinstance(group, dict) for group in zipped)
    ):
        raise InputError(f"{where}: expected axes as keys with values, and zipped as a list of such groups")
    seen: set[str] = set()
    for group in [{key: value} for key, value in axes.items()] + zipped:
        values = {str(key): _values(str(key), value, where) for key, value in group.items()}
        for key in values:
            if key in seen:
                raise InputError(f"{where}: axis {key!r} is there more than once; name every axis once")
            seen.add(key)
        if len({len(v) for v in values.values()}) > 1:
            told = ", ".join(f"{key} {len(v)}" for key, v in values.items())
            raise InputError(f"{where}: axes that move together need as many values each; there are {told}")
        if values:
            yield [dict(zip(values, move, strict=True)) for move in zip(*values.values(), strict=True)]


def _values(key: str, given: Any, where: str) -> list[Any]:
    """A list as it is; ranges and seeds written out. Numbers are rounded to 12 digits, so that 1e-3 is .001 on every machine."""
    if isinstance(given, list):
        if not given:
            raise InputError(f"{where}: axis {key!r} is empty; give at least one value")
        return [number(value) for value in given]
    whole = isinstance(given, dict) and all(isinstance(v, int) and v >= 0 for v in given.values())
    if whole and set(given) in ({"seeds"}, {"seeds", "first"}) and given["seeds"]:
        return [given.get("first", 0) + i for i in range(given["seeds"])]
    spaces: dict[str, Any] = {"range": np.linspace, "log": np.geomspace}
    for name, space in spaces.items():
        if isinstance(given, dict) and set(given) == {name, "points"}:
            ends, count = given[name], given["points"]
            numbers = [number(end) for end in ends] if isinstance(ends, list) and len(ends) == 2 else []
            if not (
                isinstance(count, int)
                and count > 0
                and numbers
                and all(isinstance(end, int | float) for end in numbers)
            ):
                raise InputError(
                    f"{where}: axis {key!r}: expected {{{name}: [FROM, TO], points: HOW MANY}} with numbers"
                )
            if name == "log" and min(numbers) <= 0:
                raise InputError(f"{where}: axis {key!r}: a logarithmic range needs ends above zero")
            return [float(f"{value:.12g}") for value in space(*numbers, count)]
    raise InputError(
        f"{where}: axis {key!r}: expected a list, {{range: [A, B], points: N}}, {{log: [A, B], points: N}} or {{seeds: N}}"
    )


def _point(kind: str, base: Mapping[str, Any], place: dict[str, Any], where: str) -> Point:
    settings = json.loads(json.dumps(base))
    for key, value in place.items():
        *sections, last = key.split(".")
        node = settings
        for section in sections:
            node = node.setdefault(section, {})
            if not isinstance(node, dict):
                raise InputError(f"{where}: axis {key!r}: {section!r} is no section")
        node[last] = value
    try:
        return Point(kind, KINDS[kind](settings).as_dict(), place)
    except InputError as error:
        raise InputError(f"{where}{f', point {_told(place)}' if place else ''}: {error}") from None


def _told(place: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in place.items())
