"""Nested settings before they are checked: from YAML files, `key=value` and dotted names; and log-spaced steps."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from topicscope.ground.errors import InputError


class OnceLoader(yaml.SafeLoader):
    """Refuses a key that is there twice: YAML itself takes the last one silently."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"{key!r} is there more than once; name every setting once")
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


OnceLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_settings(path: str | Path, what: str = "config") -> dict[str, Any]:
    """The nested settings of a YAML file, not yet checked."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the {what} {path}: {reason}; give the path of a YAML file") from None
    try:
        settings = OnceLoader(text).get_single_data()
    except yaml.YAMLError as error:
        raise InputError(f"the {what} {path} is not YAML: {' '.join(str(error).split())}") from None
    if settings is not None and not isinstance(settings, dict):
        raise InputError(f"the {what} {path} holds a {type(settings).__name__}; expected keys and values")
    return settings or {}


def gather(file: str | Path | None, flags: Mapping[str, Any], assignments: Iterable[str] = ()) -> dict[str, Any]:
    """Settings of a command: those of a file, then flags by their dotted names (None: not given), then `key=value`."""
    settings = {} if file is None else load_settings(file)
    for name, value in flags.items():
        if value is not None:
            assign(settings, name, value)
    return apply_settings(settings, assignments)


def apply_settings(settings: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """`settings` with `key.subkey=value` assignments applied; values are YAML, so lists and numbers work."""
    result = copy.deepcopy(dict(settings))
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise InputError(f"--set {assignment!r}: expected key=value, for example --set optimizer.lr=0.003")
        try:
            assign(result, key, parsed(text))
        except InputError as error:
            raise InputError(f"--set {assignment!r}: {error}") from None
    return result


def assign(settings: dict[str, Any], name: str, value: Any) -> None:
    """Set the setting with this dotted name, making the sections on the way."""
    *sections, last = name.split(".")
    node = settings
    for part in sections:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise InputError(f"{part!r} is not a section")
    node[last] = value


def parsed(text: str) -> Any:
    """A value as YAML reads it: numbers, words, lists."""
    try:
        return number(yaml.safe_load(text))
    except yaml.YAMLError:
        raise InputError("the value is not YAML; quote it") from None


def number(value: Any) -> Any:
    """YAML 1.1 reads 1e-3 as text; a user means a number."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names.

    >>> flat({"steps": 5, "optimizer": {"lr": 0.1}})
    {'steps': 5, 'optimizer.lr': 0.1}
    """
    result: dict[str, Any] = {}
    for key, value in settings.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result


def merged(settings: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both, section by section; `more` wins."""
    result = dict(settings)
    for key, value in more.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def log_steps(steps: int, count: int = 24) -> list[int]:
    """0, and about `count` steps evenly spaced on a logarithmic axis, the last one included.

    >>> log_steps(100, 5)
    [0, 1, 3, 10, 32, 100]
    """
    return [0, *np.unique(np.round(np.geomspace(1, steps, count)).astype(int)).tolist()]
