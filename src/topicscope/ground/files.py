"""Files: what others may have written is checked, what is written is whole or not there. And metrics.jsonl.

A file is read only if it is a plain file of bounded size. JSON and YAML are plain and bounded; tensors carry a digest.
Anything else is an InputError of one line. A disk that is full leaves no half of a file.
"""

import csv
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from topicscope.ground.errors import InputError, one_line, refuse, refuse_if, refusing

AnyPath = str | os.PathLike[str]

MOST_BYTES = 2**30  # of a file that is read whole
MOST_SETTINGS = 8 * 2**20  # bytes of a YAML file, which is read at 300 kB a second
MOST_OWN = 64 * MOST_BYTES  # bytes, and values, of what the project wrote itself: as much as it may write


def checked_file(path: AnyPath, what: str, most: int = MOST_BYTES) -> Path:
    """Check that a path is a plain file of bounded size. A FIFO would be waited for, /dev/zero would never end."""
    unreadable = f"{what} {shown(path)} cannot be read: "
    with refusing((OSError, ValueError), unreadable):  # ValueError: a null character in the name
        status = os.stat(path)
    kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not an ordinary file"
    refuse(
        (not stat.S_ISREG(status.st_mode), f"{unreadable}it is {kind}; expected an ordinary file"),
        (
            status.st_size > most,
            f"{what} {shown(path)} has {status.st_size / 1e6:,.0f} MB; at most {most / 1e6:,.0f} MB are read",
        ),
    )
    return Path(path)


def shown(path: AnyPath) -> str:
    """A path that can be printed: bytes that are no text, and signs that no one sees, as escapes."""
    text = os.fspath(path).encode("utf-8", "backslashreplace").decode()
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def read_bytes(path: AnyPath, what: str = "the file", most: int = MOST_BYTES) -> bytes:
    with refusing((OSError,), f"{what} {shown(path)} cannot be read: "):
        return checked_file(path, what, most).read_bytes()


def read_text(path: AnyPath, what: str = "the file", most: int = MOST_BYTES, encoding: str = "utf-8") -> str:
    with refusing((UnicodeDecodeError,), f"{what} {shown(path)} is not text: ", "; expected UTF-8"):
        return read_bytes(path, what, most).decode(encoding)


def file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


MOST_VALUES = 5_000_000  # of a JSON or YAML file; each costs about 50 bytes
DEEPEST = 64  # levels of lists and mappings


def parse_json(
    text: str | bytes, where: str, *, finite: bool = True, narrow: bool = True, most: int = MOST_VALUES
) -> Any:
    with refusing((ValueError, RecursionError), f"{where} is not JSON: "):
        return plain(json.loads(text), where, finite=finite, narrow=narrow, most=most)


def parse_yaml(text: str, where: str, *, most: int = MOST_VALUES) -> Any:
    """The value of a YAML text, if it is plain and bounded: every key once, no objects.

    Aliases count for what they stand for.
    """
    odd = (ValueError, TypeError, RecursionError, AttributeError)  # an impossible date, a list as a key
    depth = 0
    try:
        with refusing(odd, f"{where} is YAML that cannot be used here: "):
            for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > DEEPEST or count > most:
                    raise InputError(_too_much(where))  # building it in C has no limit, and would crash
            return plain(OnceLoader(text).get_single_data(), where, finite=False, most=most)
    except yaml.YAMLError as error:
        said = one_line(error).replace('in "<unicode string>", ', "at ")  # the text has no name in PyYAML
        raise InputError(f"{where} is not YAML: {said}") from None


LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where PyYAML was built with it


class OnceLoader(LOADER):  # type: ignore[misc]
    """Refuses a key that is there twice: YAML itself takes the last one silently."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[object, object]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key, times in Counter(map(repr, keys)).items():
        if times > 1:
            raise ValueError(f"{key:.80} is given more than once; give every setting once")
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


OnceLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def plain(value: Any, where: str, *, finite: bool = True, narrow: bool = True, most: int = MOST_VALUES) -> Any:
    """Check that a value is made of mappings, lists, text and numbers that all of the project can hold and print."""
    waiting, count = [(value, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        count += 1
        if depth > DEEPEST or count > most:
            raise InputError(_too_much(where))
        if isinstance(one, dict):
            for key in one:
                if not isinstance(key, str):
                    raise InputError(f"{where}: the key {key!r} is a {type(key).__name__}; expected a word (quote it)")
            waiting += [(inner, depth + 1) for inner in (*one, *one.values())]
        elif isinstance(one, list):
            waiting += [(inner, depth + 1) for inner in one]
        elif narrow and (wrong := _wrong(one, finite)):
            raise InputError(f"{where}: {wrong}")
    return value


def _too_much(where: str) -> str:
    return f"{where} is nested deeper than {DEEPEST} levels, or has more than {MOST_VALUES:,} values"


def _wrong(value: object, finite: bool) -> str:
    if isinstance(value, str):
        return (
            "" if sound(value) else f"{value!r:.80} is not valid text (it has a null character, or half of a character)"
        )
    if isinstance(value, int):  # True and False too
        return "" if -(2**63) <= value < 2**63 else "a whole number has more than 64 bits"
    if isinstance(value, float):
        return "" if not finite or math.isfinite(value) else f"{value} is not a number"
    return "" if value is None else f"{value} is a {type(value).__name__}; expected a number or text (quote it)"


def sound(text: str) -> bool:
    """Whether UTF-8 can hold a text, and whatever reads it takes all of it."""
    return "\0" not in text and (text.isascii() or text.encode(errors="ignore").decode() == text)


HEADER, DIGEST = "topicscope", "digest"  # of a file of tensors: one key, since the library keeps them in no order


def tensor_digest(tensors: Mapping[str, np.ndarray], note: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sorted((k, v) for k, v in note.items() if k != DIGEST)).encode())
    for name in sorted(tensors):
        array = np.asarray(tensors[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_tensors(path: AnyPath, advice: str, *, own: bool = True) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    damage = (SafetensorError, OSError, ValueError, OverflowError)
    with (
        refusing(damage, f"{shown(path)} is damaged or cut off (", f"); {advice}"),
        # a type that numpy has not
        refusing((KeyError, TypeError), f"{shown(path)} holds numbers of the type ", "; store them as float32"),
        refusing((InputError,), "", f"; {advice}"),
        safe_open(checked_file(path, "the file", MOST_OWN), "np") as opened,
    ):
        written = (opened.metadata() or {}).get(HEADER)
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (it is no mapping)
    note = {}
    with suppress(ValueError, RecursionError):  # a damaged header says nothing
        note = json.loads(written or "{}")
    note = note if isinstance(note, dict) else {}
    if (own or written is not None) and note.get(DIGEST) != tensor_digest(tensors, note):
        raise InputError(f"{shown(path)} is damaged: its numbers are not those that were written; {advice}")
    return tensors, note


def check_tensors(
    tensors: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], path: AnyPath, advice: str
) -> None:
    """Check that names, shapes and types of tensors are the expected ones: nothing is broadcast or cast."""
    for name in sorted({*tensors, *expected}):
        there, wanted = (
            None if array is None else f"{array.dtype} {array.shape}"
            for array in (tensors.get(name), expected.get(name))
        )
        refuse_if(
            there != wanted,
            f"{shown(path)} is damaged or of another run: {name} is {there or 'missing'}, "
            f"expected {wanted or 'no such tensor'}; {advice}",
        )


def fingerprint(settings: object) -> str:
    """A digest of settings: a checkpoint carries that of the run that it belongs to."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@contextmanager
def read_checkpoint(path: AnyPath, own: str, advice: str) -> Iterator[tuple[dict[str, np.ndarray], dict[str, str]]]:
    """Open the checkpoint of the run with the fingerprint `own`. What goes wrong while it is read is an InputError."""
    tensors, note = read_tensors(path, advice)
    refuse_if(
        note.get("fingerprint") != own,
        f"{path} belongs to a run with another config; resume with that config, or {advice}",
    )
    damage = (KeyError, ValueError, RuntimeError, TypeError, IndexError)
    with refusing(damage, f"{path} is damaged or of another version (", f"); {advice}"):
        yield tensors, note


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room: on the disk, for this user, in one file


def write(path: Path, content: bytes) -> None:
    """Write a file whole: to a temporary name, then renamed. Readers see the old file or the new one, never a half."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise named(error, path) from None


def named(error: OSError, path: Path) -> OSError:
    """The error with the file that it is about: a write alone does not say."""
    return OSError(error.errno, error.strerror or str(error), str(path))


def append(path: Path, content: bytes) -> None:
    """Not whole or nothing: who reads on from a checkpoint cuts back to it."""
    try:
        with path.open("ab") as stream:
            stream.write(content)
    except OSError as error:
        raise named(error, path) from None


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name when it is whole, in place of one that has the name."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise named(error, folder) from None
        # the system's error behind that of a library written in Rust, which only its text tells
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(folder)) from None
        raise


def write_json(path: Path, content: object) -> None:
    write(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def sealed(content: Mapping[str, object]) -> dict[str, Any]:
    """The content as a JSON file holds it, with a digest by which `unsealed` knows that nothing has changed since."""
    stored = json.loads(json.dumps(content))  # keys that are numbers become text, and are sorted as text
    return stored | {"digest": fingerprint(stored)}


def unsealed(stored: object) -> dict[str, Any]:
    """What was sealed, without its digest; ValueError where it is something else."""
    if not isinstance(stored, dict):
        raise ValueError("expected an object with a digest")
    content = {key: value for key, value in stored.items() if key != "digest"}
    if stored.get("digest") != fingerprint(content):
        raise ValueError("the content does not match its digest")
    return content


def write_yaml(path: Path, content: object) -> None:
    write(path, yaml.safe_dump(content, sort_keys=False, width=120).encode())


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], note: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file whole, with a digest of everything in its header, which `read_tensors` checks."""
    # not ascontiguousarray, which makes a vector of a single number
    arrays, header = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}, dict(note or {})
    sealed_header = json.dumps(header | {DIGEST: tensor_digest(arrays, header)}, sort_keys=True)
    write(path, save(arrays, metadata={HEADER: sealed_header}))


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write(path, buffer.getvalue())


def write_csv(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    stream, columns = io.StringIO(), dict.fromkeys(key for record in records for key in record)
    writer = csv.DictWriter(stream, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write(path, stream.getvalue().encode())


def read_json(path: Path) -> Any:
    again = f"run the command that wrote {path.parent} again"
    refuse_if(not path.exists(), f"{path} is missing; {again}")
    with refusing((InputError,), "", f"; {again}"):
        return parse_json(read_bytes(path, most=MOST_OWN), str(path), most=MOST_OWN)


METRICS = "metrics.jsonl"
ANEW = "start the run again (--force)"


def metric_lines(
    names: tuple[str, ...], table: Float[np.ndarray, "S M"], start: int, dev: dict[int, float], digits: int
) -> Iterator[str]:
    """The lines of metrics.jsonl: one JSON object per step. Measures that a step does not have are left out."""
    templates: dict[bytes, tuple[str, np.ndarray]] = {}
    finite = np.isfinite(table)
    for i, row in enumerate(table):
        key = finite[i].tobytes()
        if key not in templates:
            here = np.flatnonzero(finite[i])
            templates[key] = ('{"step": %d' + "".join(f', "{names[j]}": %.{digits}g' for j in here), here)
        template, here = templates[key]
        line = template % (start + i, *row[here].tolist())
        yield line + (f', "dev_loss": {dev[start + i]:.{digits}g}' if start + i in dev else "") + "}\n"


class MetricsFile:
    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS
        self.hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self.hash.hexdigest()

    def start(self) -> None:
        """No lines yet; what a run that was killed before its first checkpoint has left is removed."""
        self.path.unlink(missing_ok=True)

    def cut(self, lines: int, digest: str | None) -> None:
        """Keep the first lines, those of a checkpoint, if they are what it was made with."""
        kept = b"".join(read_bytes(self.path, "the metrics", MOST_OWN).splitlines(keepends=True)[:lines])
        self.hash = hashlib.sha256(kept)
        refuse_if(
            self.digest != digest or kept.count(b"\n") != lines,
            f"{shown(self.path)} is not as it was at the checkpoint ({lines} whole lines expected); {ANEW}",
        )
        write(self.path, kept)

    def sync(self) -> None:
        """On the disk, before the checkpoint that counts on it."""
        with self.path.open("ab") as stream:
            os.fsync(stream.fileno())

    def append(self, lines: Iterable[str]) -> None:
        block = "".join(lines).encode()
        append(self.path, block)
        self.hash.update(block)


def read_metrics(folder: Path) -> dict[str, Float[np.ndarray, " S"]]:
    path, damage = folder / METRICS, (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError)
    with refusing(damage, f"{shown(path)} is damaged (", f"); {ANEW}"), refusing((InputError,), "", f"; {ANEW}"):
        lines = [json.loads(line) for line in read_text(path, "the metrics", MOST_OWN).splitlines()]
        columns = {
            name: np.array([line.get(name, np.nan) for line in lines], dtype=float)
            for name in dict.fromkeys(name for line in lines for name in line)
        }
        if lines and not np.array_equal(columns["step"], np.arange(len(lines))):
            raise ValueError("steps are missing")
    return columns
