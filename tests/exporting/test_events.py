"""Event files: checked by TensorBoard's own reader, and by the bytes that its format prescribes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from topicscope.exporting import event_file
from topicscope.exporting.targets import checksum, record, tag, varint


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard reads from a folder: steps and values by tag."""
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard (extra dev)"
    )
    accumulated = reader.EventAccumulator(str(folder), size_guidance={reader.SCALARS: 0})
    accumulated.Reload()
    return {
        name: [(event.step, event.value) for event in accumulated.Scalars(name)]
        for name in accumulated.Tags()[reader.SCALARS]
    }


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    steps = np.array([0.0, 1, 2, 300, 70_000, 2.0**33])
    curves = {
        "step": steps,
        "loss": np.array([2.5, 1.0, 0.1, 1e-30, -4.0, 3e38]),
        "norm_value": np.array([np.nan, 1.0, np.nan, np.inf, 2.0, -np.inf]),
        "nothing": np.full(6, np.nan),
    }
    (tmp_path / "events.out.tfevents.0.x").write_bytes(event_file(curves))
    found = scalars(tmp_path)
    loss = [(int(step), float(np.float32(value))) for step, value in zip(steps, curves["loss"], strict=True)]
    assert found == {"loss/train": loss, "norm/value": [(1, 1.0), (70_000, 2.0)]}


def test_a_damaged_byte_is_noticed(tmp_path: Path) -> None:
    """The checksums are those that TensorBoard compares: a reader that did not would pass this file."""
    content = bytearray(event_file({"step": np.arange(3.0), "loss": np.ones(3)}))
    content[-8] ^= 1
    (tmp_path / "events.out.tfevents.0.x").write_bytes(content)
    assert [step for step, _ in scalars(tmp_path)["loss/train"]] == [0, 1]


def test_the_same_curves_give_the_same_bytes() -> None:
    curves = {"step": np.arange(5.0), "loss": np.linspace(1, 2, 5)}
    assert event_file(curves) == event_file({**curves})


def test_records_as_the_format_has_them() -> None:
    assert checksum(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert checksum(b"\xff" * 32) == 0x62A8AB43
    assert checksum(bytes(range(32))) == 0x46DD794E
    data = record(b"abc")
    assert (struct.unpack("<Q", data[:8])[0], data[12:15], len(data)) == (3, b"abc", 8 + 4 + 3 + 4)
    assert [varint(n).hex() for n in (0, 1, 127, 128, 300)] == ["00", "01", "7f", "8001", "ac02"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loss", "loss/train"),
        ("dev_loss", "loss/dev"),
        ("held_out_loss", "loss/held_out"),
        ("norm_key_0", "norm/key_0"),
        ("rotation_1", "rotation/1"),
        ("lr", "lr"),
    ],
)
def test_tags(name: str, expected: str) -> None:
    assert tag(name) == expected
