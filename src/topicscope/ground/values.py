"""JSON and YAML of others: what they hold is plain and bounded, or it is an InputError of one line."""

import json
import math
from collections import Counter
from typing import Any

import yaml

from topicscope.ground.checked import one_line
from topicscope.ground.errors import InputError

MOST_VALUES = 5_000_000  # of a JSON or YAML file; each costs about 50 bytes
DEEPEST = 64  # levels of lists and mappings


def parse_json(
    text: str | bytes, where: str, *, finite: bool = True, narrow: bool = True, most: int = MOST_VALUES
) -> Any:
    """The value of a JSON text, if it is plain and bounded.

    Args:
        text: The text.
        where: What it is, for error messages.
        finite: Refuse NaN and infinities.
        narrow: Refuse numbers wider than 64 bits, and text that cannot be printed.
        most: Most values.

    Returns:
        Mappings, lists, text and numbers.

    Raises:
        InputError: It is no such JSON.

    Example:
        >>> parse_json('{"steps": [1, 2]}', "the config")
        {'steps': [1, 2]}
    """
    try:
        return plain(json.loads(text), where, finite=finite, narrow=narrow, most=most)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {one_line(error)}") from None


def parse_yaml(text: str, where: str, *, most: int = MOST_VALUES) -> Any:
    """The value of a YAML text, if it is plain and bounded: every key once, no objects.

    Aliases count for what they stand for.

    Args:
        text: The text.
        where: What it is, for error messages.
        most: Most values.

    Returns:
        Mappings, lists, text and numbers.

    Raises:
        InputError: It is no such YAML.

    Example:
        >>> parse_yaml("steps: [1, 2]", "the config")
        {'steps': [1, 2]}
    """
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST or count > most:
                raise InputError(_too_much(where))  # building it in C has no limit, and would crash
        return plain(OnceLoader(text).get_single_data(), where, finite=False, most=most)
    except InputError:
        raise
    except yaml.YAMLError as error:
        said = one_line(error).replace('in "<unicode string>", ', "at ")  # the text has no name in PyYAML
        raise InputError(f"{where} is not YAML: {said}") from None
    except (ValueError, TypeError, RecursionError, AttributeError) as error:  # an impossible date, a list as a key
        raise InputError(f"{where} is YAML that cannot be used here: {one_line(error)}") from None


LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where PyYAML was built with it


class OnceLoader(LOADER):  # type: ignore[misc]
    """Refuses a key that is there twice: YAML itself takes the last one silently."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = next((key for key, times in Counter(map(repr, keys)).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"{twice:.80} is given more than once; give every setting once")
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


OnceLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def plain(value: Any, where: str, *, finite: bool = True, narrow: bool = True, most: int = MOST_VALUES) -> Any:
    """Check that a value is made of mappings, lists, text and numbers that all of the project can hold and print.

    Args:
        value: The value.
        where: What it is, for error messages.
        finite: Refuse NaN and infinities.
        narrow: Refuse numbers wider than 64 bits, and text that cannot be printed.
        most: Most values.

    Returns:
        The value.

    Raises:
        InputError: Something in it is not.

    Example:
        >>> plain({"steps": 5}, "the config")
        {'steps': 5}
    """
    waiting, count = [(value, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        count += 1
        if depth > DEEPEST or count > most:
            raise InputError(_too_much(where))
        if isinstance(one, dict):
            for key in one:
                if not isinstance(key, str):
                    raise InputError(f"{where}: the key {key!r} is a {type(key).__name__}; expected a word (quote it)")
            waiting += [(inner, depth + 1) for inner in (*one, *one.values())]
        elif isinstance(one, list):
            waiting += [(inner, depth + 1) for inner in one]
        elif narrow:
            wrong = _wrong(one, finite)
            if wrong:
                raise InputError(f"{where}: {wrong}")
    return value


def _too_much(where: str) -> str:
    return f"{where} is nested deeper than {DEEPEST} levels, or has more than {MOST_VALUES:,} values"


def _wrong(value: Any, finite: bool) -> str:
    """What is wrong with a single value; '' where nothing is."""
    if isinstance(value, str):
        sound = "\0" not in value and (value.isascii() or _encodes(value))
        return "" if sound else f"{value!r:.80} is not valid text (it has a null character, or half of a character)"
    if isinstance(value, int):  # True and False too
        return "" if -(2**63) <= value < 2**63 else "a whole number has more than 64 bits"
    if isinstance(value, float):
        return "" if not finite or math.isfinite(value) else f"{value} is not a number"
    return "" if value is None else f"{value} is a {type(value).__name__}; expected a number or text (quote it)"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
