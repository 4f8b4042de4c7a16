"""What comes from a file is plain, bounded and whole, or it is refused in one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from safetensors.numpy import save_file

from topicscope.ground import (
    InputError,
    check_tensors,
    one_line,
    parse_json,
    parse_yaml,
    read_bytes,
    read_tensors,
    read_text,
    shown,
    write_tensors,
)

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 3000 + "]" * 3000, "nested deeper than 64 levels"), ("[" * 100_000, "nested deeper than 64 levels"),
        ("- " * 100_000, "nested deeper than 64 levels"), (ALIASES, "more than 5,000,000 values"),
        ("a: &a [*a]", "recursive"), ("[1, 2]: 3", "unhashable"),
        ("2020-01-01: 3", "the key datetime.date.* is a date; expected a word"),
        ("1: 3", "the key 1 is a int; expected a word"), ("a: 2020-99-01", "month must be in 1..12"),
        ("a: 2020-01-01", "2020-01-01 is a date; expected a number or text"),
        ("a: !!python/object:os.system x", "could not determine a constructor"), ("a: !!set {x}", "is a set"),
        ("a: {b: 1, b: 2}", "'b' is given more than once"), ("a: 123456789012345678901", "more than 64 bits"),
        ('a: "\\0"', "null character"), ("--- 1\n--- 2", "expected a single document"), ("a: [", "not YAML"),
    ],
)  # fmt: skip
def test_yaml_that_is_not_plain_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        parse_yaml(text, "the grid g.yaml")
    assert str(error.value).startswith("the grid g.yaml")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "not JSON"), ("[" * 70 + "]" * 70, "nested deeper than 64 levels"),
        ('{"a": 1e400}', "inf is not a number"), ("NaN", "nan is not a number"),
        (f'{{"a": 1{"0" * 5000}}}', "not JSON"), (f'{{"a": 1{"0" * 30}}}', "more than 64 bits"),
        ('["\\ud800"]', "half of a character"), (b"\xff\xfe[", "not JSON"), ("[1,", "not JSON"), ("", "not JSON"),
    ],
)  # fmt: skip
def test_json_that_is_not_plain_is_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        parse_json(text, "results.json")
    assert str(error.value).startswith("results.json")
    assert "\n" not in str(error.value)


def test_plain_values_come_back_as_they_are() -> None:
    assert parse_yaml("a: [1, 2.5, x, null, true, 'é']\nb: {c: .inf}", "")["a"] == [1, 2.5, "x", None, True, "é"]
    assert parse_yaml("a: .inf", "") == {"a": float("inf")}  # whether it may be one is for the setting to say
    assert parse_yaml("a: &x [1]\nb: *x", "") == {"a": [1], "b": [1]}
    assert parse_json('{"a": [-9223372036854775808, 9223372036854775807]}', "") == {"a": [-(2**63), 2**63 - 1]}
    assert parse_json("[" * 64 + "]" * 64, "") is not None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_one_line(content: bytes) -> None:
    said = []
    for parse in (parse_json, parse_yaml):
        try:
            parse(content.decode("latin-1"), "x")
        except InputError as error:
            said.append(str(error))
    assert "\n" not in "".join(said)


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")  # reading it would wait for ever
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(5 * 2**30)
    for name, said in {
        str(tmp_path / "fifo"): "not an ordinary file",
        "/dev/zero": "not an ordinary file",
        str(tmp_path): "a folder; expected an ordinary file",
        str(tmp_path / "loop"): "symbolic links",
        str(tmp_path / "none"): "No such file",
        str(tmp_path / ("a" * 300)): "name too long",
        "a\0b": "null",
        str(tmp_path / "sparse"): "has 5,369 MB; at most 1,074 MB are read",
    }.items():
        with pytest.raises(InputError, match=said) as error:
            read_bytes(name, "the grid")
        assert str(error.value).startswith("the grid ")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match=r"is not text.*expected UTF-8"):
        read_text(tmp_path / "latin")


def test_names_are_shown_so_that_they_can_be_printed() -> None:
    assert shown("run[/] é") == "run[/] é"
    assert shown(os.fsdecode(b"\xff\xfex")) == "\\udcff\\udcfex"
    assert shown("a\nb\0") == "a\\nb\\x00"
    shown(os.fsdecode(bytes(range(1, 256)))).encode()
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(FileNotFoundError(2, "No such file", "x")) == "No such file"
    assert one_line(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"block": np.ones((1, 1), dtype=np.float32)}, r"block is float32 \(1, 1\), expected float32 \(2, 3\)"),
        ({"block": np.ones((2, 3))}, r"block is float64 \(2, 3\), expected float32 \(2, 3\)"),
        ({"more": np.ones(1)}, r"more is float64 \(1,\), expected no such tensor"),
        ({"block": None}, r"block is missing, expected float32 \(2, 3\)"),
    ],
)
def test_tensors_are_neither_broadcast_nor_cast(change: dict[str, Any], said: str) -> None:
    expected: dict[str, np.ndarray] = {"block": np.zeros((2, 3), dtype=np.float32), "steps": np.zeros(())}
    check_tensors(expected, expected, "c", "start anew")
    there = {name: array for name, array in (expected | change).items() if array is not None}
    with pytest.raises(InputError, match=f"{said}; start anew"):
        check_tensors(there, expected, "c", "start anew")


def test_a_file_of_tensors_is_read_only_if_it_is_the_one_that_was_written(tmp_path: Path) -> None:
    path, tensors = tmp_path / "t.safetensors", {"w": np.arange(6.0).reshape(2, 3), "n": np.array(3)}
    write_tensors(path, tensors, {"step": "5"})
    whole = path.read_bytes()
    for place in range(len(whole)):  # any byte that is flipped is noticed: in the header, the note or the numbers
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError, match=r"t\.safetensors is damaged.*again"):
            read_tensors(path, "again")
    save_file(tensors, path, {"step": "5"})
    with pytest.raises(InputError, match="not those that were written"):  # of the project's own, without a digest
        read_tensors(path, "again")
    assert set(read_tensors(path, "again", own=False)[0]) == {"w", "n"}  # a user's
    path.write_bytes(whole)
    assert read_tensors(path, "again")[1]["step"] == "5"
