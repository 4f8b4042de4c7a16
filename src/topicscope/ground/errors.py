"""Errors in one line: wrong input (exit code 2), machines that fail (exit code 1), and a stop by the user."""

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pydantic
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import ErrorDetails


class InputError(ValueError):
    """Wrong input; the command line exits with 2.

    The message says in one line what was wrong, what was expected and what to do.

    Example:
        >>> from topicscope import InputError, RunConfig
        >>> try:
        ...     RunConfig(stepz=100)
        ... except InputError as error:
        ...     print(error)
        RunConfig: unknown key 'stepz'; did you mean 'steps'?
    """

    def __init__(self, message: object = "", code: str = "") -> None:
        super().__init__(message)
        self.code = code  # a short name of the reason, for programs and tests; '' where nothing asks for it


class EngineError(RuntimeError):
    """The machines that do the work failed, not the input. What is done is kept; the command line exits with 1.

    Example:
        >>> import tempfile
        >>> from topicscope import EngineError, sweep
        >>> def lost(work, common, items):
        ...     raise EngineError("the cluster cannot be reached")
        >>> base = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     try:
        ...         sweep({"base": base, "axes": {"seed": [0, 1]}}, f"{folder}/sweep", engine=lost)
        ...     except EngineError as error:
        ...         print(error)
        the cluster cannot be reached
    """


class Interrupted(Exception):  # noqa: N818  (nothing is wrong)
    """Stopped by the user: what is done, and how to go on, in one line."""


def refuse(*checks: tuple[object, str] | tuple[object, str, str]) -> None:
    """The first check that holds is the reason."""
    for wrong, *reason in checks:
        refuse_if(wrong, *reason)


def refuse_if(wrong: object, message: str, code: str = "") -> None:
    if wrong:
        raise InputError(message, code)


@contextmanager
def refusing(kinds: tuple[type[Exception], ...], before: str, after: str = "") -> Iterator[None]:
    """An error of these kinds inside becomes an InputError: what it says, between `before` and `after`.

    An InputError passes as it is, unless it is one of the kinds.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, InputError) and InputError not in kinds:
            raise
        raise InputError(f"{before}{error if isinstance(error, InputError) else one_line(error)}{after}") from None


def one_line(error: BaseException) -> str:
    """What an error says, in one line; its name where it says nothing."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:300] or type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"


def reported(error: pydantic.ValidationError, adapter: pydantic.TypeAdapter[Any], where: str) -> str:
    """Pydantic's report in one line: the key and, if it is unknown, the nearest known one."""
    errors = error.errors()
    path = _path(errors[0])
    # the first error; or, of a value that may be of several kinds, what is wrong inside it with one of them
    deepest = max((e for e in errors if _path(e)[: len(path)] == path), key=lambda e: len(_path(e)))
    first = next((e for e in errors if e["type"] in _UNKNOWN), deepest)
    path = _path(first)
    key = ".".join(path)
    if first["type"] in _UNKNOWN:
        schema = adapter.json_schema()
        sections = _follow(schema, schema).get("properties", {})
        having = [
            name for name, node in sections.items() if "items" not in node and path[-1] in _fields_at(schema, [name])
        ]
        elsewhere = " or ".join(repr(f"{name}.{path[-1]}") for name in having)  # such as 'masking.p_mask'
        hint = f"did you mean {elsewhere}?" if elsewhere else nearest(path[-1], _fields_at(schema, path[:-1]))
        return f"{where}: unknown key {key!r}; {hint}"
    if first["type"].startswith("missing"):
        return f"{where}: {key} is missing; it has no default, so give it a value"
    if first["type"] == "value_error":  # raised by this project's own checks, which already say everything
        return f"{where}: {first['msg'].removeprefix('Value error, ')}"
    # a value that may be of several kinds is refused by each of them: say all that would do
    alike = dict.fromkeys(plain_words(e["type"], e["msg"]) for e in errors if _path(e) == path)
    message = ", or ".join(text if i == 0 else text.removeprefix(_SHOULD) for i, text in enumerate(alike))
    return f"{where}: {key} = {first['input']!r:.100}: {message}"


def plain_words(kind: str, message: str) -> str:
    if kind in _PLAIN:
        return f"{_SHOULD}{_PLAIN[kind]}"
    message = message.removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}"


def _path(error: ErrorDetails) -> list[str]:
    return [str(part) for part in error["loc"] if not _UNION.match(str(part))]


_SHOULD = "input should be "
_PLAIN = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    "string_type": "text",
    **dict.fromkeys(("dict_type", "dataclass_type", "model_attributes_type"), "keys and values"),
}
_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
# what pydantic adds to the path of a key that may hold values of several kinds
_UNION = re.compile(r"(literal|list|dict|tuple|constrained|function|int|float|str)([\[-].*)?$")


def _fields_at(schema: JsonSchemaValue, path: list[str]) -> list[str]:
    node = schema
    for part in (part for part in path if not part.isdigit()):  # all elements of a list have the same keys
        node = _follow(schema, node.get("properties", {}).get(part, {}))
    return list(_follow(schema, node).get("properties", {}))


def _follow(schema: JsonSchemaValue, node: JsonSchemaValue) -> JsonSchemaValue:
    node = node.get("items", node)  # of a list, its elements
    node = [node, *(option for option in node.get("anyOf", []) if "$ref" in option)][-1]
    return schema["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
