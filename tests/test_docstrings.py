"""Every name of the doors that users import from says what it is, takes and returns, and shows an example that runs.

The examples themselves run as doctests: pytest collects them from `src`.
"""

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

DOORS = ("topicscope", "topicscope.theory", "topicscope.world")
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):$")


def public(door: str) -> dict[str, Any]:
    """The functions and classes of a front door, by name. Constants and types have a line of their own in the code."""
    module = importlib.import_module(door)
    values = {name: getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in values.items()
        if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith("topicscope.")
    }


def sections(doc: str) -> dict[str, list[str]]:
    """The lines of each section; '' has what stands before the first."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in doc.splitlines():
        if match := SECTION.match(line):
            name = match.group(1)
            found[name] = []
        else:
            found[name].append(line)
    return {name: textwrap.dedent("\n".join(lines)).splitlines() for name, lines in found.items()}


def parameters(value: Any) -> list[str]:
    """What a function or a constructor takes."""
    if inspect.isclass(value) and (issubclass(value, BaseException) or inspect.isabstract(value)):
        return []
    if getattr(value, "_is_protocol", False) or (inspect.isclass(value) and "__init__" not in built(value)):
        return []
    taken = inspect.signature(value).parameters
    return [name for name in taken if name not in ("self", "_") and not (name == "args" or name == "kwargs")]


def built(value: type) -> set[str]:
    """The methods that the project's classes define, NamedTuples and dataclasses among them."""
    own = [one for one in value.__mro__ if one.__module__.startswith("topicscope.")]
    methods = {name for one in own for name in vars(one)}
    return methods | ({"__init__"} if issubclass(value, tuple) else set())


def wrongs(name: str, value: Any, known: Callable[[str], Any]) -> list[str]:
    """What a docstring lacks; `known` finds another public name of the door."""
    doc = inspect.cleandoc(value.__doc__ or "")
    parts = sections(doc)
    first, *rest = (doc or "\n").splitlines()
    found = []
    if not first.strip() or (rest and rest[0].strip()):
        found.append("it has no summary line of its own")
    named = [match.group(1) for line in (*parts.get("Args", ()), *parts.get("Attributes", ()))
             if (match := re.match(r"\*{0,2}(\w+): \S", line))]  # fmt: skip
    found += [f"{parameter} is not described" for parameter in parameters(value) if parameter not in named]
    if inspect.isfunction(value) and returns(value) and not parts.get("Returns"):
        found.append("what it returns is not described")
    if not example(parts, known):
        found.append("it has no example")
    return [f"{name}: {what}" for what in found]


def returns(value: Any) -> bool:
    return inspect.signature(value).return_annotation not in (None, "None", inspect.Signature.empty)


def example(parts: dict[str, list[str]], known: Callable[[str], Any]) -> bool:
    """Lines that run and print something; or a line that names the function that makes such an object."""
    lines = parts.get("Example", [])
    if any(line.startswith(">>> ") for line in lines):
        return any(line and not line.startswith((">>> ", "... ")) for line in lines) and not any(
            "+SKIP" in line for line in lines
        )
    match = re.fullmatch(r"See `(\w+)`\.", " ".join(lines).strip())
    return match is not None and ">>> " in (getattr(known(match.group(1)), "__doc__", None) or "")


@pytest.mark.parametrize("door", DOORS)
def test_public_names_are_described_and_shown(door: str) -> None:
    names = public(door)
    assert len(names) >= 5
    module = importlib.import_module(door)
    home = {name: importlib.import_module(".".join(value.__module__.split(".")[:2])) for name, value in names.items()}

    def known(name: str, other: str) -> Any:
        return getattr(home[name], other, None) or getattr(module, other, None)

    assert [
        wrong
        for name, value in names.items()
        for wrong in wrongs(name, value, lambda other, name=name: known(name, other))  # type: ignore[misc]
    ] == []


WHOLE = """Add two numbers.

Args:
    left: A number.
    right: Another.

Returns:
    Their sum.

Example:
    >>> 1 + 1
    2
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Add two numbers.", "", "it has no summary line of its own"),
        ("Add two numbers.\n", "Add two numbers.\nOr more.", "it has no summary line of its own"),
        ("    right: Another.\n", "", "right is not described"),
        ("    right: Another.\n", "    right:\n", "right is not described"),
        ("Returns:\n    Their sum.\n", "", "what it returns is not described"),
        ("    >>> 1 + 1\n    2\n", "", "it has no example"),
        ("    2\n", "", "it has no example"),
        (">>> 1 + 1", ">>> 1 + 1  # doctest: +SKIP", "it has no example"),
        ("    >>> 1 + 1\n    2\n", "    See `nothing`.\n", "it has no example"),
    ],
)
def test_what_is_missing_is_found(old: str, new: str, said: str) -> None:
    def add(left: int, right: int) -> int:
        return left + right

    add.__doc__ = WHOLE
    assert wrongs("add", add, lambda _: None) == []
    assert WHOLE.count(old) >= 1
    add.__doc__ = WHOLE.replace(old, new, 1)
    assert wrongs("add", add, lambda _: None) == [f"add: {said}"]
