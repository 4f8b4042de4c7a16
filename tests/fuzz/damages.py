"""Damages to a file: any file, JSON and YAML, tensors. Each is drawn from a seed when it is applied."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

Change = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Damage:
    """Something done to the file at `path`; `other` is the same file of another run."""

    path: str
    kind: str
    seed: str
    other: str = ""

    def apply(self, home: Path) -> None:
        target, rng = home / self.path, Random(self.seed)
        if self.kind in CHANGES:
            target.write_bytes(CHANGES[self.kind](target.read_bytes(), rng))
            return
        content = target.read_bytes()
        target.unlink()
        if self.kind == "directory":
            target.mkdir()
        elif self.kind == "full directory":
            target.mkdir()
            (target / "inside").write_bytes(content)
        elif self.kind == "fifo":
            os.mkfifo(target)
        elif self.kind == "endless":
            target.symlink_to("/dev/zero")
        elif self.kind == "loop":
            target.symlink_to(target.name)
        elif self.kind == "sparse":
            with target.open("wb") as stream:
                stream.truncate(200_000_000)
        elif self.kind == "swapped":
            shutil.copyfile(home / self.other, target)
        elif self.kind != "deleted":
            raise ValueError(self.kind)


def _cut(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content))] if content else b""


def _cut_at_line(content: bytes, rng: Random) -> bytes:
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10][:-1]
    return content[: rng.choice(ends)] if ends else b""


def _flip(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content or b"\0")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _bad_encoding(content: bytes, rng: Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + b"\xff\xfe\xe9" + content[place:]


PLAIN: dict[str, Change] = {
    "emptied": lambda _content, _rng: b"",
    "cut": _cut,
    "cut at a line end": _cut_at_line,
    "byte flipped": _flip,
    "bad encoding": _bad_encoding,
    "null": lambda _content, _rng: b"null",
    "empty list": lambda _content, _rng: b"[]",
    "empty object": lambda _content, _rng: b"{}",
    "text": lambda _content, _rng: b'"text"',
    "number": lambda _content, _rng: b"5",
    "brackets": lambda _content, _rng: b"[" * 3000 + b"]" * 3000,
    "braces": lambda _content, _rng: b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "zeros": lambda content, _rng: b"\0" * len(content),
    "doubled": lambda content, _rng: content + content,
}
NODES = ("deleted", "directory", "full directory", "fifo", "endless", "loop", "sparse")

LEAVES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 10**30, 1e308, -1e308, float("nan"), float("inf"), "", "text", "[/]", [], {}, [1],
    {"a": 1}, [[[[[[1]]]]]], "9" * 5000, 0.5, 10**6, "nan", "\ud800",
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of nested lists and dicts."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in items] + [place for _, inner in items for place in _places(inner)]


def _edited(edit: Callable[[Any, Random], None]) -> Change:
    """An edit of nested values, in JSON, JSON lines or YAML, whichever the file is."""

    def change(content: bytes, rng: Random) -> bytes:
        text = content.decode()
        lines = text.splitlines(keepends=True)
        try:
            value = json.loads(text)
        except ValueError:
            if text.startswith("{"):  # JSON lines: one of them
                at = rng.randrange(len(lines))
                value = json.loads(lines[at])
                edit(value, rng)
                lines[at] = json.dumps(value) + "\n"
                return "".join(lines).encode()
            value = yaml.safe_load(text)
            edit(value, rng)
            return yaml.safe_dump(value, sort_keys=False, allow_unicode=False).encode("utf-8", "replace")
        edit(value, rng)
        return (json.dumps(value, indent=2) + "\n").encode()

    return change


def _replace_leaf(value: Any, rng: Random) -> None:
    leaves = [(inside, key) for inside, key in _places(value) if not isinstance(inside[key], dict | list)]
    inside, key = rng.choice(leaves or _places(value) or [([0], 0)])
    others = [leaf for leaf in LEAVES if type(leaf) is not type(inside[key]) or leaf != inside[key]]
    inside[key] = rng.choice(others)


def _change_number(value: Any, rng: Random) -> None:
    """Another number of the same type, a little off: nothing but a digest can see it."""
    numbers = [(inside, key) for inside, key in _places(value) if type(inside[key]) in (int, float)]
    inside, key = rng.choice(numbers or [([0], 0)])
    inside[key] = inside[key] + 1 if isinstance(inside[key], int) else inside[key] * 1.01 + 0.001


def _replace_branch(value: Any, rng: Random) -> None:
    branches = [(inside, key) for inside, key in _places(value) if isinstance(inside[key], dict | list)]
    inside, key = rng.choice(branches or _places(value) or [([0], 0)])
    inside[key] = rng.choice((None, [], {}, "text", 5, [None], {"a": {}}))


def _remove_key(value: Any, rng: Random) -> None:
    inside, key = rng.choice(_places(value) or [([0], 0)])
    del inside[key]


def _add_key(value: Any, rng: Random) -> None:
    containers = [value, *(inside[key] for inside, key in _places(value) if isinstance(inside[key], dict | list))]
    container = rng.choice(containers)
    container.update(unknown=1) if isinstance(container, dict) else container.append(rng.choice((None, 1, "x", [])))


NESTED: dict[str, Change] = {
    "leaf replaced": _edited(_replace_leaf),
    "number changed": _edited(_change_number),
    "branch replaced": _edited(_replace_branch),
    "key removed": _edited(_remove_key),
    "key added": _edited(_add_key),
}


def _tensors(edit: Callable[[dict[str, np.ndarray], str, Random], None]) -> Change:
    """An edit of one tensor of a safetensors file; its notes stay."""

    def change(content: bytes, rng: Random) -> bytes:
        from safetensors.numpy import load, save

        size = int.from_bytes(content[:8], "little")
        notes = json.loads(content[8 : 8 + size]).get("__metadata__")
        tensors = load(content)
        edit(tensors, rng.choice(sorted(tensors)), rng)
        return save(tensors, metadata=notes)

    return change


def _drop(tensors: dict[str, np.ndarray], name: str, _rng: Random) -> None:
    del tensors[name]


def _rename(tensors: dict[str, np.ndarray], name: str, _rng: Random) -> None:
    tensors[f"{name}x"] = tensors.pop(name)


def _reshape(tensors: dict[str, np.ndarray], name: str, rng: Random) -> None:
    shape = rng.choice(((1, 1), (0,), (), (3, 3, 3), (tensors[name].size,), (1, *tensors[name].shape)))
    tensors[name] = np.resize(tensors[name], shape).astype(tensors[name].dtype)


def _retype(tensors: dict[str, np.ndarray], name: str, rng: Random) -> None:
    types = [
        kind for kind in ("float16", "float32", "float64", "int64", "uint8", "bool") if kind != tensors[name].dtype
    ]
    with np.errstate(all="ignore"):
        tensors[name] = tensors[name].astype(rng.choice(types))


def _spoil(tensors: dict[str, np.ndarray], name: str, rng: Random) -> None:
    if tensors[name].dtype.kind == "f" and tensors[name].size:
        spoilt = tensors[name].copy()
        spoilt.reshape(-1)[rng.randrange(spoilt.size)] = rng.choice((np.nan, np.inf, 1e30))
        tensors[name] = spoilt
    else:
        tensors[name] = np.zeros_like(tensors[name]) - 1


def _notes(content: bytes, rng: Random) -> bytes:
    """Other notes in the head: none, or other values."""
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    notes = head.pop("__metadata__", {})
    if notes and rng.random() < 0.7:
        name = rng.choice(sorted(notes))
        head["__metadata__"] = notes | {name: rng.choice(("", "text", "-1", "null", "[]", "9" * 30, "[" * 3000))}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


TENSORS: dict[str, Change] = {
    "tensor dropped": _tensors(_drop),
    "tensor renamed": _tensors(_rename),
    "tensor of another shape": _tensors(_reshape),
    "tensor of another type": _tensors(_retype),
    "tensor spoilt": _tensors(_spoil),
    "notes changed": _notes,
    "head too long": lambda content, rng: rng.choice((2**63, 10**12, 10**9, 0)).to_bytes(8, "little") + content[8:],
}
CHANGES = PLAIN | NESTED | TENSORS


def kinds_for(name: str) -> list[str]:
    """The damages that a file of this name can have."""
    nested = list(NESTED) if name.endswith((".json", ".jsonl", ".yaml")) else []
    return [*PLAIN, *NODES, *nested, *(TENSORS if name.endswith(".safetensors") else ()), "swapped"]
