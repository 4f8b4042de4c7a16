"""The API reference, made from the front doors: one page per package, one entry per public name.

A name that `topicscope` itself exports is described there; elsewhere a line points to it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.reference.docstrings import as_rst

DOORS = {
    "topicscope": "What most programs need; the other packages have the details.",
    "topicscope.theory": "",
    "topicscope.world": "",
    "topicscope.model": "",
    "topicscope.laws": "",
    "topicscope.training": "",
    "topicscope.language": "",
    "topicscope.pretraining": "",
    "topicscope.sweeps": "",
    "topicscope.measure": "",
    "topicscope.paper": "",
    "topicscope.pages": "For contributors who add a result, a figure or a page.",
    "topicscope.exporting": "",
    "topicscope.explorer": "For contributors who add a view to the explorer.",
    "topicscope.ground": "For contributors: what all other packages build on.",
}
SHOWN = 60  # characters of a constant's value


def public_names(door: str) -> list[str]:
    """`__all__`; where a door has none, what its `__init__` imports."""
    module = importlib.import_module(door)
    names = getattr(module, "__all__", None)
    if names is None:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        names = [a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names if a.asname]
    return sorted(names, key=lambda name: (name.lower(), name))


def api_pages() -> dict[str, str]:
    """reStructuredText by file name."""
    doors = "\n".join(f"   {door}" for door in DOORS)
    title = "Python API"
    lines = [title, "=" * len(title), ""]
    lines += ["Generated from the docstrings of all public names. A notebook or a script begins with::", ""]
    lines += ["    from topicscope import RunConfig, train, probe, read, theory", ""]
    lines += [f"- :doc:`{door}`: {first_line(importlib.import_module(door))}" for door in DOORS]
    index = "\n".join([*lines, "", ".. toctree::", "   :hidden:", "", doors, ""])
    return {"index.rst": index} | {f"{door}.rst": door_page(door) for door in DOORS}


def first_line(module: ModuleType) -> str:
    [text, *_] = as_rst((module.__doc__ or "").split("\n\n")[0].splitlines())
    return text.removeprefix("topicscope: ")


def door_page(door: str) -> str:
    module = importlib.import_module(door)
    lines = [door, "=" * len(door), "", f".. py:module:: {door}", "", *as_rst((module.__doc__ or "").splitlines())]
    lines += [DOORS[door], ""] if DOORS[door] else []
    for name in public_names(door):
        lines += entry(door, name, getattr(module, name))
    return "\n".join(lines)


def entry(door: str, name: str, value: Any) -> list[str]:
    """What stands on the page for a name: its signature and docstring, or where to read them."""
    first = home(name, value)
    if first != door:
        return [f".. py:attribute:: {name}", "   :no-index:", "", f"   The same as :py:obj:`{first}.{name}`.", ""]
    if inspect.ismodule(value):
        return [f".. py:attribute:: {name}", "", f"   The module ``{value.__name__}``: {first_line(value)}", ""]
    if inspect.isclass(value):
        bases = ["   :show-inheritance:"] if value.__bases__ != (object,) else []
        return [f".. autoclass:: {door}::{name}", "   :members:", *bases, ""]
    if inspect.isroutine(value):
        return [f".. autofunction:: {door}::{name}", ""]
    shown = " ".join(repr(value).split())
    value_line = [f"   :value: {shown}"] if len(shown) <= SHOWN else []
    text = [f"   {line}" for line in as_rst(constant_docstring(door, name).splitlines())]
    return [f".. py:data:: {name}", *value_line, "", *text, ""]


def home(name: str, value: Any) -> str:
    """The first door that has this very object under this name."""
    for door in DOORS:
        module = importlib.import_module(door)
        if name in public_names(door) and getattr(module, name) is value:
            return door
    raise LookupError(name)


def constant_docstring(door: str, name: str) -> str:
    """The string below the constant, in the file that defines it."""
    module = source_of(door, name)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names = {node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)}
        text = after.value if isinstance(after, ast.Expr) else None
        if name in names and isinstance(text, ast.Constant) and isinstance(text.value, str):
            return inspect.cleandoc(text.value)
    return ""


def source_of(door: str, name: str) -> ModuleType:
    """The module that a door takes a name from, by the imports in its stub or in itself."""
    folder = Path(str(importlib.import_module(door).__file__)).parent
    stub = folder / "__init__.pyi"
    tree = ast.parse((stub if stub.exists() else folder / "__init__.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            return importlib.import_module(f"{door}.{node.module}" if node.level else str(node.module))
    return importlib.import_module(door)


def documented_at() -> dict[str, str]:
    """Where an object is described, by the module and the name that it was defined with."""
    places: dict[str, str] = {}
    for door in reversed(DOORS):
        for name in public_names(door):
            value = getattr(importlib.import_module(door), name)
            if hasattr(value, "__qualname__") and hasattr(value, "__module__"):
                places[f"{value.__module__}.{value.__qualname__}"] = f"{door}.{name}"
    return places
