"""Settings as nested dictionaries: read from YAML files, gathered from flags, flattened and merged."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.ground.checked import MOST_OWN, MOST_SETTINGS, read_text, shown
from topicscope.ground.errors import InputError
from topicscope.ground.values import MOST_VALUES, parse_yaml


def load_settings(path: str | Path, what: str = "config", *, own: bool = False) -> dict[str, Any]:
    """The nested settings of a YAML file, not yet checked.

    Args:
        path: The file.
        what: What it is, for error messages.
        own: The project wrote it; it may be large.

    Returns:
        The settings.

    Raises:
        InputError: The file cannot be read, or holds no keys and values.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.yaml").write_text("optimizer: {lr: 0.1}")
        ...     load_settings(Path(folder, "a.yaml"))
        {'optimizer': {'lr': 0.1}}
    """
    try:
        text = read_text(path, f"the {what}", MOST_OWN if own else MOST_SETTINGS)
    except InputError as error:
        raise InputError(f"{error}; give the path of a YAML file") from None
    settings = parse_yaml(text, f"the {what} {shown(path)}", most=MOST_OWN if own else MOST_VALUES)
    if settings is not None and not isinstance(settings, dict):
        raise InputError(f"the {what} {shown(path)} holds a {type(settings).__name__}; expected keys and values")
    return settings or {}


def gather(file: str | Path | None, flags: Mapping[str, Any], assignments: Iterable[str] = ()) -> dict[str, Any]:
    """The settings of a command: those of a file, then flags, then assignments.

    Args:
        file: A YAML file, or None.
        flags: Values by dotted name; None: not given.
        assignments: Texts such as 'optimizer.lr=0.1'; values are YAML.

    Returns:
        Nested settings.

    Raises:
        InputError: An assignment is none.

    Example:
        >>> gather(None, {"steps": 5, "seed": None}, ["optimizer.lr=0.1"])
        {'steps': 5, 'optimizer': {'lr': 0.1}}
    """
    settings = {} if file is None else load_settings(file)
    for name, value in flags.items():
        if value is not None:
            assign(settings, name, value)
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise InputError(f"--set {assignment!r}: expected key=value, for example --set optimizer.lr=0.003")
        try:
            assign(settings, key, parsed(text))
        except InputError as error:
            raise InputError(f"--set {assignment!r}: {error}") from None
    return settings


def assign(settings: dict[str, Any], name: str, value: Any) -> None:
    """Set the setting with a dotted name, making the sections on the way.

    Args:
        settings: Nested settings, which are changed.
        name: Dotted name.
        value: The value.

    Raises:
        InputError: A part of the name is no section.

    Example:
        >>> settings = {"steps": 5}
        >>> assign(settings, "optimizer.lr", 0.1)
        >>> settings
        {'steps': 5, 'optimizer': {'lr': 0.1}}
    """
    *sections, last = name.split(".")
    node = settings
    for part in sections:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise InputError(f"{part!r} is not a section")
    node[last] = value


def parsed(text: str) -> Any:
    """A value as YAML reads it: numbers, words, lists.

    Args:
        text: The text.

    Returns:
        The value.

    Example:
        >>> parsed("[1, 2]"), parsed("1e-3"), parsed("adam")
        ([1, 2], 0.001, 'adam')
    """
    return number(parse_yaml(text, "the value"))


def number(value: Any) -> Any:
    """A text that is a number as a number: YAML 1.1 reads 1e-3 as text.

    Args:
        value: Any value.

    Returns:
        The number, or the value as it is.

    Example:
        >>> number("1e-3"), number("adam"), number(5)
        (0.001, 'adam', 5)
    """
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names.

    Args:
        settings: Nested settings.
        prefix: What the names begin with.

    Returns:
        Values by dotted name.

    Example:
        >>> flat({"steps": 5, "optimizer": {"lr": 0.1}})
        {'steps': 5, 'optimizer.lr': 0.1}
    """
    result: dict[str, Any] = {}
    for key, value in settings.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result


def merged(settings: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two nested settings as one, section by section.

    Args:
        settings: Nested settings.
        more: Others, which win.

    Returns:
        Both.

    Example:
        >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
        {'a': {'b': 3, 'c': 2}}
    """
    result = dict(settings)
    for key, value in more.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def log_steps(steps: int, count: int = 24) -> list[int]:
    """0, and about `count` steps evenly spaced on a logarithmic axis, the last one included.

    Args:
        steps: The last step.
        count: About how many.

    Returns:
        The steps.

    Example:
        >>> log_steps(100, 5)
        [0, 1, 3, 10, 32, 100]
    """
    return [0, *np.unique(np.round(np.geomspace(1, steps, count)).astype(int)).tolist()]
