"""Mutation testing: disturb the code a little, many times, and see whether the tests notice.

python tools/mutants.py paper --count 30 --seed 0          # make mutants ROOM=paper

A mutant is one small change in a copy of the sources: + for -, < for <=, any for all, a constant, a condition turned
round. The room's tests run on it, those that reach the changed line first. A mutant that no test notices is listed.
Some of them are equivalent to the original: a person has to say which. Needs a system that can fork.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "topicscope"
SECONDS = 900
"""After so many seconds a run of the tests counts as noticing: the mutant hangs."""

LIBRARIES = (
    "torch",
    "hypothesis",
    "numpy",
    "scipy.special",
    "scipy.optimize",
    "pydantic",
    "matplotlib.pyplot",
    "typer",
)
"""Imported once; every run of the tests is a fork that has them."""

OPTIONS = [
    "-x",
    "-q",
    *("-p", "no:cacheprovider"),
    *("-p", "no:xdist"),
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
QUICK = "not slow and not process and not model and not browser"
REACH = "reach.json"

TESTS = {
    "engines": ["tests/ground/test_engines.py", "tests/sweeps/test_sweep.py"],
    "model": ["tests/model", "tests/training"],
}
"""Tests of a room, where they are not tests/ROOM."""

FILES = {"engines": ["ground/engines.py", "ground/engines.py"]}
"""Sources of a room, where they are not all of src/topicscope/ROOM."""

SWAPS: dict[type[ast.AST], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.And: "or",
    ast.Or: "and",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
NAMES = {"any": "all", "all": "any", "min": "max", "max": "min", "argmin": "argmax", "argmax": "argmin", "mean": "sum"}


@dataclass(frozen=True)
class Mutant:
    """One change: the text from `start` to `end` of a file becomes `new`."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old.strip()!r} -> {self.new.strip()!r}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All small changes of a file, in order; annotations, docstrings and messages are left alone."""
    text = path.read_text()
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    raw, tree = text.encode(), ast.parse(text)

    def span(node: Any) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    def change(start: int, end: int, new: str) -> Mutant:
        line = raw[:start].count(b"\n") + 1
        return Mutant(str(path.relative_to(PACKAGE)), line, start, end, raw[start:end].decode(), new)

    skipped = {id(inner) for node in ast.walk(tree) for part in unmeasured(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not is_text(node):
            yield change(
                span(node.left)[1],
                span(node.right)[0],
                between(raw, span(node.left)[1], span(node.right)[0], SWAPS[type(node.op)]),
            )
        elif isinstance(node, ast.BoolOp):
            first, second = node.values[0], node.values[1]
            yield change(
                span(first)[1], span(second)[0], between(raw, span(first)[1], span(second)[0], SWAPS[type(node.op)])
            )
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            start, end = span(node.left)[1], span(node.comparators[0])[0]
            yield change(start, end, between(raw, start, end, SWAPS[type(node.ops[0])]))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield change(span(node)[0], span(node.operand)[0], "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
            yield change(*span(node.func), NAMES[node.func.id])
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield change(*span(node), str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield change(*span(node), repr(node.value + 1 if isinstance(node.value, int) else 1.5 * node.value + 0.1))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield change(*span(node.test), f"not ({raw[slice(*span(node.test))].decode()})")


def unmeasured(node: ast.AST) -> list[ast.AST]:
    """Parts of a node that nothing computes with: types, docstrings, messages of errors, texts for people."""
    parts = [getattr(node, name, None) for name in ("annotation", "returns")]
    if isinstance(node, ast.Raise):
        parts.append(node.exc)
    if isinstance(node, ast.JoinedStr):
        parts += [value.format_spec for value in node.values if isinstance(value, ast.FormattedValue)]
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        parts.append(node)
    return [part for part in parts if isinstance(part, ast.AST)]


def is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def between(raw: bytes, start: int, end: int, operator: str) -> str:
    """The text between two operands with another operator; brackets stay."""
    text = raw[start:end].decode()
    closing = text[: len(text) - len(text.lstrip(") \n"))]
    opening = text[len(text.rstrip("( \n")) :]
    return f"{closing.rstrip() or ''} {operator} {opening.lstrip() or ''}"


class Tracer:
    """A pytest plugin: which lines of the sources every test runs, and how long it takes."""

    def __init__(self, sources: str, scratch: str) -> None:
        self.report = Path(scratch) / REACH
        self.coverage = coverage.Coverage(data_file=f"{scratch}/coverage", source=[sources], config_file=False)
        self.seconds: dict[str, float] = {}
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        self.coverage.switch_context("")
        return result

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        files = {str(Path(file).relative_to(PACKAGE)): data.contexts_by_lineno(file) for file in data.measured_files()}
        self.report.write_text(json.dumps({"seconds": self.seconds, "files": files}))


@dataclass(frozen=True)
class Reach:
    """The tests of a room, and which of them run a given line (`Tracer`)."""

    whole: list[str]
    seconds: dict[str, float]
    files: dict[str, dict[str, list[str]]]
    near: bool = False

    def steps(self, mutant: Mutant) -> list[list[str]]:
        """The tests to run, one step after the other: the fastest that run the line, their modules, all of the room.

        The wider steps are for lines that run on import, in a fixture that tests share, or in another process. With
        `near` they are left out, which is quicker and finds more survivors than there are.
        """
        lines = self.files.get(mutant.file, {})
        tests = sorted((test for test in lines.get(str(mutant.line), []) if test), key=self.seconds.__getitem__)
        modules = sorted({test.partition("::")[0] for test in tests})
        wider = [] if self.near else [[*self.whole, "-m", QUICK], self.whole]
        return [step for step in (tests[:40], modules, *wider) if step]


def tests_in_child(paths: list[str], sources: str, scratch: str, traced: bool) -> None:
    """Runs the tests on other sources, in a process that has the large libraries already and topicscope not yet."""
    os.environ.update(PYTHONPATH=sources, PYTHONDONTWRITEBYTECODE="1", HYPOTHESIS_STORAGE_DIRECTORY=scratch)
    sys.dont_write_bytecode = True
    sys.path[:0] = [sources, str(ROOT)]
    os.chdir(ROOT)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    plugins = [Tracer(sources, scratch)] if traced else []
    os._exit(int(pytest.main([*OPTIONS, f"--basetemp={scratch}/tests", *paths], plugins)))


def passes(paths: list[str], sources: str, scratch: str, traced: bool = False) -> bool:
    child = multiprocessing.get_context("fork").Process(target=tests_in_child, args=(paths, sources, scratch, traced))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode in (0, 5)  # 5: the step has no tests


def traced(whole: list[str], near: bool) -> Reach | None:
    """What the tests reach in the sources as they are, or None if they fail there."""
    with tempfile.TemporaryDirectory() as folder:
        if not passes(whole, str(ROOT / "src"), folder, traced=True):
            return None
        return Reach(whole, **json.loads((Path(folder) / REACH).read_text()), near=near)


def noticed(reach: Reach, mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        path = copy / "topicscope" / mutant.file
        raw = path.read_bytes()
        path.write_bytes(raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :])
        return not all(passes(paths, str(copy), folder) for paths in reach.steps(mutant))


def parses(mutant: Mutant) -> bool:
    raw = (PACKAGE / mutant.file).read_bytes()
    try:
        ast.parse(raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :])
    except SyntaxError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("room")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--near", action="store_true", help="only tests that reach the changed line, and their modules")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    files = [PACKAGE / name for name in FILES.get(given.room, [])] or sorted((PACKAGE / given.room).glob("*.py"))
    possible = [mutant for path in files if path.name != "__init__.py" for mutant in mutants(path) if parses(mutant)]
    if not possible:
        print(f"no room {given.room!r} under {PACKAGE}", file=sys.stderr)
        return 2
    for library in LIBRARIES:
        importlib.import_module(library)
    reach = traced(TESTS.get(given.room, [f"tests/{given.room}"]), given.near)
    if reach is None:
        print(f"the tests of {given.room} fail without any change: mend them first", file=sys.stderr)
        return 2
    chosen = random.Random(given.seed).sample(possible, min(given.count, len(possible)))
    survivors = []
    with ThreadPoolExecutor(given.workers) as pool:
        for number, (mutant, seen) in enumerate(zip(chosen, pool.map(partial(noticed, reach), chosen), strict=True)):
            word = "noticed " if seen else "SURVIVED"
            print(f"{number + 1}/{len(chosen)} {word} {mutant}", file=sys.stderr, flush=True)
            survivors += [] if seen else [str(mutant)]
    share = 1 - len(survivors) / len(chosen)
    if given.json:
        print(json.dumps({"room": given.room, "mutants": len(chosen), "noticed": share, "survivors": survivors}))
    else:
        print(f"{given.room}: {len(chosen) - len(survivors)} of {len(chosen)} mutants noticed ({100 * share:.0f}%)")
        print(*(f"  survived: {mutant}" for mutant in survivors), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
