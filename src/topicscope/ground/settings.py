"""Settings from YAML files and from `key=value` on the command line, not yet checked; and steps at which models are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import ConfigDict

from topicscope.ground.errors import InputError

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)
"""Every configuration class of the project refuses keys that it does not know."""


def load_settings(path: str | Path) -> dict[str, Any]:
    """The nested settings of a YAML file, not yet checked; and steps at which models are kept."""
    try:
        settings = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot read the config {path}: {error.strerror or error}; give the path of a YAML file"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"the config {path} is not YAML: {' '.join(str(error).split())}") from None
    if settings is not None and not isinstance(settings, dict):
        raise InputError(f"the config {path} holds a {type(settings).__name__}; expected keys and values")
    return settings or {}


def apply_settings(settings: dict[str, Any], assignments: list[str]) -> dict[str, Any]:
    """`settings` with `key.subkey=value` assignments applied; values are YAML, so lists and numbers work."""
    result: dict[str, Any] = yaml.safe_load(yaml.safe_dump(settings))
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise InputError(f"--set {assignment!r}: expected key=value, for example --set optimizer.lr=0.003")
        *sections, last = key.split(".")
        node = result
        for section in sections:
            node = node.setdefault(section, {})
            if not isinstance(node, dict):
                raise InputError(f"--set {assignment!r}: {section!r} is not a section")
        try:
            node[last] = number(yaml.safe_load(text))
        except yaml.YAMLError:
            raise InputError(f"--set {assignment!r}: the value is not YAML; quote it") from None
    return result


def number(value: Any) -> Any:
    """YAML 1.1 reads 1e-3 as text; a user means a number."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def log_steps(steps: int, count: int = 24) -> list[int]:
    """0, and about `count` steps evenly spaced on a logarithmic axis, the last one included.

    >>> log_steps(100, 5)
    [0, 1, 3, 10, 32, 100]
    """
    return [0, *np.unique(np.round(np.geomspace(1, steps, count)).astype(int)).tolist()]
