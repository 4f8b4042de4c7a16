"""The rooms: who may import whom. A room never reaches back."""

from __future__ import annotations

import ast
from pathlib import Path

import topicscope

SOURCE = Path(topicscope.__file__).parent

ALLOWED = {
    "ground": set(),
    "world": set(),
    "measure": set(),
    "theory": {"world"},
    "model": {"world", "theory"},
    "training": {"world", "theory", "model", "measure"},
    "language": {"measure"},
    "pretraining": {"measure", "language"},
    "sweeps": {"training", "measure", "language", "pretraining"},
    "figures": {"theory", "measure", "training", "language", "pretraining", "sweeps", "paper"},
    "paper": {"world", "theory", "model", "measure", "training", "language", "pretraining", "sweeps", "figures"},
    "report": {"figures"},
    "bench": {"world", "training", "model", "measure", "language", "pretraining", "sweeps"},
    "cli": {"world", "training", "theory", "language", "pretraining", "sweeps", "figures", "paper", "report", "bench"},
}
EVERYONE = {"ground"}


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        for name in names:
            parts = name.split(".")
            if parts[0] == "topicscope" and len(parts) > 1:
                rooms.add(parts[1])
    return rooms


def test_every_room_is_listed() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms == set(ALLOWED)


def test_no_room_reaches_back() -> None:
    wrong = []
    for room, allowed in ALLOWED.items():
        for path in (SOURCE / room).rglob("*.py"):
            extra = imported_rooms(path) - allowed - EVERYONE - {room}
            wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in sorted(extra)]
    assert not wrong
