"""Values that nobody should give, as YAML writes them, and whether a setting may take them.

What a setting may take is read from the JSON schema of its config class: a new setting is tested without a line here.
"""

import datetime
import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import yaml

HUGE = tuple(str(number) for number in (10**6, 10**7, 2**31, 10**9, 10**12, 2**53 + 1, 10**15))
BEYOND = tuple(str(number) for number in (2**63 - 1, 2**63, 2**64, 10**20, 10**30, 10**400))  # no machine has as many
LOW = ("-1", "0", "-0", "-7", "-1e9", "-0.5", str(-(2**63)), str(-(10**30)))
FLOATS = (
    *(".nan", ".inf", "-.inf", "1.0e-300", "1.0e+308", "1.0e+400", "1e308", "1e-300", "1.5", "0.999999999", "5e-324"),
    *("1.0000001", "-1.0e-300", "2.5e+15"),
)
OTHERS = (
    "many", '""', "''", "null", "~", "true", "no", "[]", "[1]", "[[1, 2], [3]]", "[null]", "{}", "{a: 1}", "[.nan]",
    "2001-01-01", "2001-12-14t21:59:43.10-05:00", "1:30", "0x1F", "0o17", "1_000", "'7'", "' 7 '", "7px", "é", "ß☃",
    '"\\0"', '"a\\nb"', '"\\uD800"', "!!binary aGVsbG8=", "!!set {a, b}", "[1, 2, 3, 4, 5, 6, 7, 8]", "'[bold]x'",
    "'run[/]'", "/dev/zero", "/dev/null/x", "..", "'~'", "hf:nobody/nothing", "[[[[[[[[1]]]]]]]]",
    "'" + "x" * 300 + "'",
)  # fmt: skip
BROKEN = (
    *("[", "{", "]", "'", "*nowhere", "!!python/object:os.system {}", "!!python/name:os.system", "&a [*a]", "%TAG"),
    *("[" * 3000 + "]" * 3000, "{a: " * 3000 + "}" * 3000, "- - - -\n -", "a: b: c", "@", "`", "\t- x", "? [a]: b"),
    *("!!float x", "!!int many", "!!timestamp x", "!unknown 1", "<<: 1", "{1: 2, 1: 3}", "{[a, b]: 1}", "!!omap [a]"),
)
"""Not YAML, or YAML that no setting takes; some of it nested too deep."""

ALIASES = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
)
"""A bomb: ten to the twelfth elements, if they are all counted."""

TIMES = (
    *("steps", "epochs", "iterations", "bootstrap", "shuffles", "documents", "dev_documents", "runs", "max_documents"),
    *("batch_size", "windows", "warmup", "phases", "topics", "layers", "workers"),
)
"""Settings that cost time: a large value is a long run, which is no fault. Only what no machine has is tried."""


def draw(rng: Random, name: str) -> str:
    """A value for the setting of this name, as YAML."""
    huge = BEYOND if name.rsplit(".", 1)[-1] in TIMES else (*HUGE, *BEYOND)
    kind = rng.randrange(10)
    if kind < 2:
        return rng.choice(huge)
    if kind < 4:
        return rng.choice(LOW)
    if kind < 6:
        value = rng.choice(FLOATS)
        return ".nan" if value == "2.5e+15" and huge is BEYOND else value
    if kind < 9:
        return rng.choice(OTHERS)
    return rng.choice(BROKEN)


def settings(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schema of every setting, by its dotted name; sections are among them."""

    def inside(node: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, part in followed(node, schema).get("properties", {}).items():
            yield f"{prefix}{name}", part
            yield from inside(part, f"{prefix}{name}.")
        for option in followed(node, schema).get("oneOf", ()):  # priors
            yield from inside(option, prefix)

    found: dict[str, Mapping[str, Any]] = {}
    for name, node in inside(schema, ""):  # several priors have a setting of the same name
        found[name] = {"oneOf": [found[name], node]} if name in found else node
    return found


def followed(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference refers to."""
    return schema["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node


def surely_wrong(text: str, node: Mapping[str, Any], schema: Mapping[str, Any], *, lists: bool) -> bool:
    """Whether no conversion makes the YAML `text` a value of a setting. `lists`: one value stands for a list of it."""
    try:
        value = yaml.safe_load(text)
    except Exception:  # PyYAML raises whatever comes: AttributeError for '!!timestamp x'
        return True
    return not fits(value, node, schema, lists)


def fits(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any], lists: bool) -> bool:
    """Whether a setting may take a value; where pydantic would convert it, yes."""
    node = followed(node, schema)
    if options := node.get("anyOf") or node.get("oneOf"):
        return any(fits(value, option, schema, lists) for option in options)
    if "enum" in node or "const" in node:
        return any(value == option for option in node.get("enum", (node.get("const"),)))
    kind = node.get("type")
    if kind in ("integer", "number"):
        return _fits_number(value, node, whole=kind == "integer")
    if kind == "array":
        return isinstance(value, list | set | dict) or (lists and isinstance(value, str | bytes | int | float))
    simple: dict[Any, tuple[type, ...]] = {
        "string": (str, bytes),
        "boolean": (bool, int, float, str, bytes),
        "object": (dict, str),  # a schedule has names
        "null": (type(None),),
    }
    return isinstance(value, simple[kind]) if kind in simple else True


def _fits_number(value: Any, node: Mapping[str, Any], *, whole: bool) -> bool:
    if isinstance(value, datetime.date | list | dict | set | None):
        return False
    try:
        number = float(value)
    except (ValueError, TypeError):
        return False
    except OverflowError:
        return value > 0 and whole
    return (
        math.isfinite(number)
        and not (whole and number != int(number))
        and number >= node.get("minimum", -math.inf)
        and number > node.get("exclusiveMinimum", -math.inf)
        and number <= node.get("maximum", math.inf)
        and number < node.get("exclusiveMaximum", math.inf)
    )
