"""What comes from a file is plain, bounded and whole, or refused in one line; what is written is whole or not there."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from safetensors.numpy import save_file

from tests.refusals import refused
from topicscope.ground import (
    InputError,
    MetricsFile,
    check_tensors,
    metric_lines,
    one_line,
    parse_json,
    parse_yaml,
    read_bytes,
    read_metrics,
    read_tensors,
    read_text,
    shown,
    whole_folder,
    write,
    write_csv,
    write_json,
    write_npz,
    write_tensors,
    write_yaml,
)
from topicscope.ground.files import sealed, unsealed


def test_writers_write_what_readers_read(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": 1.5})
    assert (tmp_path / "a.json").read_text() == '{\n  "x": 1.5\n}\n'
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1.5}  # the old file stays
    write_yaml(tmp_path / "a.yaml", {"b": 1, "a": [1, 2]})
    assert (tmp_path / "a.yaml").read_text() == "b: 1\na:\n- 1\n- 2\n"
    tensors = {"w": np.arange(6.0).reshape(2, 3).T}  # not contiguous
    write_tensors(tmp_path / "a.safetensors", tensors, {"step": "5"})
    stored, note = read_tensors(tmp_path / "a.safetensors", "")
    assert np.array_equal(stored["w"], tensors["w"])
    assert note["step"] == "5"
    assert set(note) == {"step", "digest"}
    write_npz(tmp_path / "a.npz", tensors)
    with np.load(tmp_path / "a.npz") as opened:
        assert np.array_equal(opened["w"], tensors["w"])
    with pytest.raises(ValueError, match="pickle"):
        write_npz(tmp_path / "a.npz", {"w": np.array([object()])})
    write_csv(tmp_path / "a.csv", [{"a": 1, "b": 2}, {"c": 3, "a": 4}])
    assert (tmp_path / "a.csv").read_text() == "a,b,c\n1,2,\n4,,3\n"
    assert not list(tmp_path.glob("*.tmp"))


def test_a_write_that_fails_half_way_leaves_the_old_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"new and longer")
    assert path.read_bytes() == b"old"


def test_damaged_tensors_and_metrics_are_refused_in_one_line(tmp_path: Path) -> None:
    refused("a cannot be read: No such file or directory; train again", read_tensors, tmp_path / "a", "train again")
    (tmp_path / "a").write_bytes(b"\0" * 5)
    refused(r"a is damaged or cut off .*; train again", read_tensors, tmp_path / "a", "train again")
    (tmp_path / "metrics.jsonl").write_text('{"step": 0}\n[1]\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl is damaged") as error:
        read_metrics(tmp_path)
    assert "\n" not in str(error.value)


def test_metrics_leave_out_what_a_step_does_not_have(tmp_path: Path) -> None:
    table = np.array([[1.0, np.nan], [2.0, 0.1], [np.inf, 1 / 3]])
    file = MetricsFile(tmp_path)
    file.append(metric_lines(("loss", "norm"), table, 0, {1: 0.25}, 9))
    file.append(metric_lines(("loss", "norm"), table[1:2], 3, {}, 3))
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == [
        '{"step": 0, "loss": 1}',
        '{"step": 1, "loss": 2, "norm": 0.1, "dev_loss": 0.25}',
        '{"step": 2, "norm": 0.333333333}',
        '{"step": 3, "loss": 2, "norm": 0.1}',
    ]
    columns = read_metrics(tmp_path)
    assert list(columns) == ["step", "loss", "norm", "dev_loss"]
    np.testing.assert_array_equal(columns["loss"], [1, 2, np.nan, 2])
    np.testing.assert_array_equal(columns["dev_loss"], [np.nan, 0.25, np.nan, np.nan])


def test_lines_after_the_checkpoint_and_half_lines_go(tmp_path: Path) -> None:
    written = MetricsFile(tmp_path)
    written.append(['{"step": 0}\n', '{"step": 1}\n'])
    digest = written.digest
    written.append(['{"step": 2}\n', '{"st'])
    resumed = MetricsFile(tmp_path)
    resumed.cut(2, digest)
    assert written.path.read_text() == '{"step": 0}\n{"step": 1}\n'
    assert resumed.digest == digest
    resumed.append(['{"step": 2}\n'])  # as an undisturbed run would have it
    whole = MetricsFile(tmp_path / "other")
    whole.path.parent.mkdir()
    whole.append(['{"step": 0}\n', '{"step": 1}\n', '{"step": 2}\n'])
    assert resumed.digest == whole.digest
    for lines in (1, 3):  # other lines than those of the checkpoint
        with pytest.raises(InputError, match=f"not as it was at the checkpoint .{lines} whole lines"):
            MetricsFile(tmp_path).cut(lines, digest)
    written.path.write_text('{"step": 0}\n{"step": 7}\n')
    with pytest.raises(InputError, match="not as it was at the checkpoint"):
        MetricsFile(tmp_path).cut(2, digest)
    with pytest.raises(InputError, match=r"metrics\.jsonl cannot be read: No such file"):
        MetricsFile(tmp_path / "none").cut(2, digest)


def test_sealed_content_is_known_by_its_digest() -> None:
    stored = sealed({"b": [2, None, 0.1], "a": {"x": "ä"}})
    assert list(stored) == ["b", "a", "digest"]
    # as the points of finished sweeps have it: with another digest all of them would run again
    assert stored["digest"] == "90569c4fe6648bb88fd1804d97962ff8e74ce4567a7270b8345520b19ea771f8"
    assert unsealed(stored) == {"b": [2, None, 0.1], "a": {"x": "ä"}}
    assert sealed({"a": {"x": "ä"}, "b": [2, None, 0.1]})["digest"] == stored["digest"]  # whatever its order
    others: list[Any] = [stored | {"b": [2, None, 0.2]}, stored | {"c": 1}, {"a": 1}, {}, [], None, "x"]
    for changed in others:
        with pytest.raises(ValueError, match="digest"):
            unsealed(changed)


def test_sealed_content_is_what_a_file_holds() -> None:
    """A file changes keys that are numbers, and tuples; the digest still matches."""
    stored = sealed({"counts": {9: 1, 10: (2, 3)}, "x": float("nan")})
    assert stored["counts"] == {"9": 1, "10": [2, 3]}
    assert unsealed(json.loads(json.dumps(stored)))["counts"] == {"9": 1, "10": [2, 3]}


def test_a_single_number_keeps_its_shape(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a", {"steps": np.array(3.0, np.float32), "t": np.arange(6.0).reshape(2, 3).T})
    tensors, _ = read_tensors(tmp_path / "a", "train again")
    assert (tensors["steps"].shape, float(tensors["steps"])) == ((), 3.0)
    np.testing.assert_array_equal(tensors["t"], np.arange(6.0).reshape(2, 3).T)


def fail_in(folder: Path, error: Exception) -> None:
    with whole_folder(folder) as temporary:
        (temporary / "half").write_text("x")
        raise error


def test_a_folder_that_cannot_be_filled_is_named_and_leaves_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with whole_folder(folder) as temporary:
        (temporary / "old").write_text("x")
    rust = RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
    for error in (OSError(errno.ENOSPC, "No space left on device", "elsewhere"), rust):
        with pytest.raises(OSError, match="No space left on device") as full:
            fail_in(folder, error)
        assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(folder))
    with pytest.raises(RuntimeError, match="something else"):
        fail_in(folder, RuntimeError("something else"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in folder.iterdir()] == ["old"]


def test_the_same_tensors_are_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """The library keeps the keys of a header in an order that differs from process to process."""
    program = (
        "import sys; from pathlib import Path; import numpy as np; from topicscope.ground import write_tensors; "
        "write_tensors(Path(sys.argv[1]), {n: np.ones(2) for n in 'abcdef'}, {n: 'x' for n in 'stuvw'})"
    )
    for number in range(4):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / str(number))], check=True)
    assert len({(tmp_path / str(number)).read_bytes() for number in range(4)}) == 1


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
    message = refused(said, parse_yaml, text, "the grid g.yaml")
    assert message.startswith("the grid g.yaml")
    assert len(message) < 400


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
    assert refused(said, parse_json, text, "results.json").startswith("results.json")


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
        assert refused(said, read_bytes, name, "the grid").startswith("the grid ")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    refused(r"is not text.*expected UTF-8", read_text, tmp_path / "latin")


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
    refused(f"{said}; start anew", check_tensors, there, expected, "c", "start anew")


def test_a_file_of_tensors_is_read_only_if_it_is_the_one_that_was_written(tmp_path: Path) -> None:
    path, tensors = tmp_path / "t.safetensors", {"w": np.arange(6.0).reshape(2, 3), "n": np.array(3)}
    write_tensors(path, tensors, {"step": "5"})
    whole = path.read_bytes()
    for place in range(len(whole)):  # any byte that is flipped is noticed: in the header, the note or the numbers
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(r"t\.safetensors is damaged.*again", read_tensors, path, "again")
    save_file(tensors, path, {"step": "5"})
    with pytest.raises(InputError, match="not those that were written"):  # of the project's own, without a digest
        read_tensors(path, "again")
    assert set(read_tensors(path, "again", own=False)[0]) == {"w", "n"}  # a user's
    path.write_bytes(whole)
    assert read_tensors(path, "again")[1]["step"] == "5"
