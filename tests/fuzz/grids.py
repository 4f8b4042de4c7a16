"""YAML files: grids of sweeps that make no sense, and settings files that are no YAML or a trap for its reader."""

import json
from random import Random
from typing import Any

from tests.fuzz import values
from tests.fuzz.cases import Case, Expect, File, Maker
from tests.fuzz.fixtures import GRID
from tests.fuzz.inputs import BASES, CONFIGURED, schema

PARTS: dict[str, tuple[Any, ...]] = {
    "kind": ([], {}, "cake", 1, True, "", ["train"], {"a": 1}, "TRAIN", "words", 1e300),
    "base": (
        "hello", 1, [], [1], [{"steps": 5}], True, {"steps": "many"}, {"stepz": 1}, {"steps": []}, {"data": "x"},
        {"text": "articles.txt"}, {"topic_model": 3}, {"batch_size": -1}, {"": 1}, {"data": {"documents": {}}},
        {"data": []},
    ),
    "axes": (
        "hello", 1, [], [1], {"seed": 1}, {"seed": {}}, {"seed": []}, {"seed": {"seeds": 0}}, {"seed": {"seeds": -1}},
        {"seed": {"seeds": 10**9}}, {"seed": {"seeds": 10**30}}, {"seed": {"seeds": "three"}},
        {"seed": {"seeds": 2.5}}, {"seed": {"seeds": 1, "first": -3}}, {"seed": {"seeds": True, "more": 1}},
        {"seed": [1, 1]}, {"seed": [[1]]}, {"seed": {"seeds": 2, "first": 10**30}},
        {"steps": {"range": [1, 2], "points": 0}}, {"steps": [None, "x"]},
        {"steps": {"range": [1, 2], "points": 10**9}}, {"optimizer.lr": {"log": [0, 1], "points": 3}},
        {"optimizer.lr": {"log": [-1, 1], "points": 2}}, {"optimizer.lr": {"log": [1, 2, 3], "points": 2}},
        {"optimizer.lr": {"log": ["a", "b"], "points": 2}}, {"optimizer.lr": {"range": {}, "points": 2}},
        {"optimizer.lr": {"log": [1e-300, 1e308], "points": 3}},
        {"optimizer.lr": {"range": [-1e308, 1e308], "points": 3}},
        {"optimizer.lr": {"log": [0.1, 1], "points": True}}, {"optimizer.lr": {"log": [10**400, 1], "points": 2}},
        {"optimizer.lr": {"range": [1, 1], "points": 3}}, {"nothing": [1, 2]}, {"optimizer": [1]}, {"": [1]},
        {".": [1]}, {"optimizer.lr.x": [1]}, {"seed": [1, "1"]}, {"seed": [{}]}, {"data.documents": [10, 0]},
        {"device": ["cpu"]}, {"seed": {"seeds": 1001}, "steps": {"range": [1, 1000], "points": 1000}},
        {"kind": ["train"]}, {"seed": None},
    ),
    "zipped": (
        *("hello", 1, {}, [1], [[]], [None], [{"seed": [1, 2], "steps": [3]}], [{"seed": []}], [{"seed": 1}], [{1: 2}]),
        *([{"seed": [1], "optimizer.lr": [0.1]}, {"seed": [1]}], [{"optimizer.lr": [0.1, 0.2]}], [{"batch_size": "x"}]),
        *([{"steps": {"seeds": 2}, "batch_size": [1]}], [{"batch_size": [4, -4]}]),
    ),
}  # fmt: skip
TEXTS = (
    *values.BROKEN, "", "# nothing\n", "---\n---\n", "kind: train\n---\nkind: train\n", "null", "- a\n- b\n", "5",
    "text", "\ufeffkind: train\n", "kind: train\nkind: train\n", "base: {steps: 1, steps: 2}\n", "? {a: 1}\n: 2\n",
    "base: &b {data: *b}\n", "\0", "a: \x07", values.ALIASES, "axes:\n" + "  " + values.ALIASES.replace("\n", "\n  "),
    "base:\n  text: articles.txt\n", "kind: pretrain\nbase: {text: articles.txt}\n",
    "kind: probe\nbase: {models: model}\n", "kind: probe\nbase: hello\n", "kind: pretrain\n",
    "kind: pretrain\nbase: {text: {corpus: []}}\n", "kind: pretrain\nbase: {text: {corpus: [nowhere.txt]}}\n",
    "kind: probe\nbase: {models: [nowhere], corpus: [nowhere.txt]}\n", "2001-01-01: 5\n",
    "axes: {seed: 2001-01-01}\n", "a: " * 3000, "a:\n" + "".join("  " * n + "a:\n" for n in range(1, 1200)),
    "x" * 1_000_000, "a: " + "9" * 5000 + "\n",
)  # fmt: skip
EITHER = {"", "# nothing\n", "null", "\ufeffkind: train\n", "---\n---\n"}
"""Files that say nothing; whether that is refused is for the command to decide."""

BYTES = (
    b"\xff\xfe\x00", b"kind: caf\xe9\n", b"\x80" * 100, b"\x00" * 1000, b"PK\x03\x04junk", b"\xef\xbb\xbf",
    b"a: \xed\xa0\x80",
)  # fmt: skip


def by_part(rng: Random, id_: str) -> Case:
    """A grid that works, with one part replaced."""
    part = rng.choice(sorted(PARTS))
    value = rng.choice(PARTS[part])
    text = json.dumps(GRID | {part: value})
    harmless = part == "zipped" and value in ({}, [{"optimizer.lr": [0.1, 0.2]}])
    return sweep(id_, text.encode(), Expect.EITHER if harmless or part == "axes" or value == [[]] else Expect.REFUSED)


def by_setting(rng: Random, id_: str) -> Case:
    """A setting of the base, or an axis, with any value."""
    whole, each = schema(BASES["train"].config)
    name = rng.choice(sorted(each))
    value = values.draw(rng, name)
    wrong = values.surely_wrong(value, each[name], whole, lists=False)
    text = json.dumps({key: part for key, part in GRID.items() if key != "axes"})[:-1]
    text += f', "axes": {{"{name}": [{value}]}}}}'
    return sweep(id_, text.encode(), Expect.REFUSED if wrong and value not in values.BROKEN else Expect.EITHER)


def by_text(rng: Random, id_: str) -> Case:
    """A grid file that is no grid."""
    if rng.random() < 0.15:
        return sweep(id_, rng.choice(BYTES), Expect.EITHER)
    text = rng.choice(TEXTS)
    return sweep(id_, text.encode("utf-8", "surrogatepass"), Expect.EITHER if text in EITHER else Expect.REFUSED)


def sweep(id_: str, text: bytes, expect: Expect) -> Case:
    argv = ("sweep", "g.yaml", "--engine", "serial", *(("--dry-run",) if expect is Expect.EITHER else ()))
    return Case(id_, "sweep", (*argv, "--out", "out"), expect, places=(File("g.yaml", text),))


def by_settings_text(command: str) -> Maker:
    """A settings file that is no settings file."""

    def make(rng: Random, id_: str) -> Case:
        if rng.random() < 0.15:
            text, expect = rng.choice(BYTES), Expect.EITHER
        else:
            chosen = rng.choice(TEXTS)
            text, expect = (
                chosen.encode("utf-8", "surrogatepass"),
                Expect.EITHER if chosen in EITHER else Expect.REFUSED,
            )
        return BASES[command].case(id_, ("--config", "settings.yaml"), expect, File("settings.yaml", text))

    return make


def makers() -> dict[str, Maker]:
    return {
        "sweep: grid parts": by_part,
        "sweep: grid parts again": by_part,
        "sweep: grid settings": by_setting,
        "sweep: grid text": by_text,
        **{f"{name}: file text": by_settings_text(name) for name in CONFIGURED},
    }
