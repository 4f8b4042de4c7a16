"""TensorBoard's event files: TFRecords, each around one `Event` in protobuf's wire format.

They are written by hand, since TensorBoard's own writer brings gRPC and a web server with it, and puts the time of day
and the name of the machine into the file. Here the same curves give the same bytes. Events have no time.
"""

import struct
from collections.abc import Mapping

import numpy as np

POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected
MASK = 0xA282EAD8  # added to a rotated checksum, so that checksums of data that hold checksums are sound
VERSION = b"brain.Event:2"
VARINT, LENGTH, FIXED32 = 0, 2, 5  # protobuf's wire types
STEP, FILE_VERSION, SUMMARY = 2, 3, 5  # fields of Event
VALUE, TAG, SIMPLE_VALUE = 1, 1, 2  # the field of Summary, and those of its values


def _checksum_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _checksum_table()


def checksum(data: bytes) -> int:
    """CRC-32C.

    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> bytes:
    return struct.pack("<I", ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """The length, the data, and a checksum of each."""
    length = struct.pack("<Q", len(data))
    return length + masked(checksum(length)) + data + masked(checksum(data))


def varint(number: int) -> bytes:
    """Seven bits per byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def part(field: int, data: bytes) -> bytes:
    """A field of text, of bytes, or of another message."""
    return varint(field << 3 | LENGTH) + varint(len(data)) + data


def event_file(curves: Mapping[str, np.ndarray]) -> bytes:
    """Make TensorBoard's event file of the curves of a run: one event per step.

    Args:
        curves: Columns by name, 'step' among them. Values that are not finite are left out.

    Returns:
        The bytes of the file; values are float32, as TensorBoard's scalars are.

    Example:
        >>> content = event_file({"step": np.array([0, 1]), "dev_loss": np.array([np.nan, 0.5])})
        >>> content.count(b"loss/dev"), np.float32(0.5).tobytes() in content  # nothing for the NaN at step 0
        (1, True)
    """
    steps = curves["step"].astype(int)
    figures = {name: values for name, values in curves.items() if name != "step"}
    tags = [part(TAG, tag(name).encode()) + varint(SIMPLE_VALUE << 3 | FIXED32) for name in figures]
    columns = [np.asarray(values, dtype="<f4") for values in figures.values()]
    records = [record(part(FILE_VERSION, VERSION))]
    for row, step in enumerate(steps.tolist()):
        here = [name + column[row].tobytes() for name, column in zip(tags, columns, strict=True) if _there(column[row])]
        if here:
            summary = b"".join(part(VALUE, value) for value in here)
            records.append(record(varint(STEP << 3 | VARINT) + varint(step) + part(SUMMARY, summary)))
    return b"".join(records)


def _there(value: np.float32) -> bool:
    return bool(np.isfinite(value))


def tag(name: str) -> str:
    """TensorBoard puts figures with the same first part of their names together.

    >>> tag("norm_value"), tag("norm_key_0"), tag("dev_loss")
    ('norm/value', 'norm/key_0', 'loss/dev')
    """
    group, _, rest = name.partition("_")
    if group in ("norm", "rotation", "gradient"):
        return f"{group}/{rest}"
    return f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else "loss/train" if name == "loss" else name
