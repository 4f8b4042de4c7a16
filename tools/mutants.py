"""Mutation testing: disturb the code a little, many times, and see whether the tests notice.

python tools/mutants.py paper --count 30 --seed 0          # make mutants ROOM=paper

A mutant is one small change in a copy of the sources: + for -, < for <=, any for all, a constant, a condition turned
round. The room's tests run on it, those of the changed file first. A mutant that no test notices is listed. Some of
them are equivalent to the original: a person has to say which.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "topicscope"
SECONDS = 900
"""After so many seconds a run of the tests counts as noticing: the mutant hangs."""

TESTS = {
    "engines": ["tests/ground/test_engines.py", "tests/sweeps/test_sweep.py"],
}
"""Tests of a room, where they are not tests/ROOM."""

FILES = {"engines": ["ground/engines.py", "ground/ray_engine.py"]}
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

    def span(node: ast.AST) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def change(start: int, end: int, new: str) -> Mutant:
        line = raw[:start].count(b"\n") + 1
        return Mutant(str(path.relative_to(PACKAGE)), line, start, end, raw[start:end].decode(), new)

    skipped = {id(inner) for node in ast.walk(tree) for part in annotations(node) for inner in ast.walk(part)}
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


def annotations(node: ast.AST) -> list[ast.AST]:
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


def tests_of(room: str, mutant: Mutant) -> list[list[str]]:
    """The tests to run, step by step: those of the changed file first."""
    whole = TESTS.get(room, [f"tests/{room}"])
    own = ROOT / "tests" / room / f"test_{Path(mutant.file).stem}.py"
    return [[str(own.relative_to(ROOT))], whole] if own.exists() else [whole]


def noticed(room: str, mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        path = copy / "topicscope" / mutant.file
        raw = path.read_bytes()
        path.write_bytes(raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :])
        try:
            ast.parse(path.read_text())
        except SyntaxError:
            return True
        environment = os.environ | {
            "PYTHONPATH": str(copy),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
        }
        for paths in tests_of(room, mutant):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *paths]
            try:
                result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return True
            if result.returncode != 0:
                return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("room")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    files = [PACKAGE / name for name in FILES.get(given.room, [])] or sorted((PACKAGE / given.room).glob("*.py"))
    possible = [mutant for path in files if path.name != "__init__.py" for mutant in mutants(path)]
    chosen = random.Random(given.seed).sample(possible, min(given.count, len(possible)))
    survivors = []
    with ThreadPoolExecutor(given.workers) as pool:
        for number, (mutant, seen) in enumerate(
            zip(chosen, pool.map(lambda m: noticed(given.room, m), chosen), strict=True)
        ):
            print(
                f"{number + 1}/{len(chosen)} {'noticed ' if seen else 'SURVIVED'} {mutant}", file=sys.stderr, flush=True
            )
            survivors += [] if seen else [mutant]
    share = 1 - len(survivors) / max(1, len(chosen))
    if given.json:
        print(
            json.dumps(
                {"room": given.room, "mutants": len(chosen), "noticed": share, "survivors": list(map(str, survivors))}
            )
        )
    else:
        print(f"{given.room}: {len(chosen) - len(survivors)} of {len(chosen)} mutants noticed ({100 * share:.0f}%)")
        for mutant in survivors:
            print(f"  survived: {mutant}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
