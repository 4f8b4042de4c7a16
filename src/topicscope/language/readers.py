"""The texts of one file: plain text, JSON lines, CSV and Parquet, packed or not, or a data set of the hub."""

import bz2
import csv
import gzip
import importlib
import io
import json
import lzma
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

from topicscope.ground import InputError

Split = Literal["auto", "line", "paragraph", "file"]
TEXT, LINES, TABLES, PARQUET = {".txt", ".text", ".raw", ".md"}, {".jsonl", ".ndjson"}, {".csv", ".tsv"}, {".parquet"}
KNOWN = TEXT | LINES | TABLES | PARQUET
HUB = "hf:"
# an article of WikiText starts with such a line; the headings of its sections have more signs
HEADING = re.compile(r"^ = [^=].* = \n?$")
PEEK = 200  # lines of a text file that decide how it is split


def suffixes(path: Path) -> tuple[str, str | None]:
    """'.jsonl' and '.gz' of a name such as texts.jsonl.gz."""
    packing = path.suffix.lower() if path.suffix.lower() in UNPACK else None
    return (path.with_suffix("") if packing else path).suffix.lower(), packing


def kind_of(file: str) -> tuple[str, str | None]:
    """The kind of a file and how it is packed, by its name: '.jsonl' and '.gz'. ('hf:', None) for one on the hub."""
    if file.startswith(HUB):
        return HUB, None
    kind, packing = suffixes(Path(file))
    if kind not in KNOWN:
        raise InputError(f"{file}: kind of file not known; expected {', '.join(sorted(KNOWN))}, packed or not")
    if kind in PARQUET and packing:
        raise InputError(f"{file}: a Parquet file is packed inside; unpack it first")
    return kind, packing


@dataclass
class Reader:
    """Reads texts one by one, and counts what could not be read: broken lines, lines with bad encoding."""

    text_field: str
    split: Split
    counts: Counter[str]

    def texts(self, file: str) -> Iterator[str]:
        kind, packing = kind_of(file)
        if kind == HUB:
            return self._hub(file)
        if kind in PARQUET:
            return self._parquet(file)
        read = self._plain if kind in TEXT else self._json_lines if kind in LINES else self._table
        return self._unpacked(file, packing, read)

    def _unpacked(
        self, file: str, packing: str | None, read: Callable[[Iterator[str], str], Iterator[str]]
    ) -> Iterator[str]:
        with Path(file).open("rb") as raw, UNPACK[packing](raw) as stream:
            try:
                yield from read(self._decoded(stream), file)
            except Exception as error:
                broken = isinstance(error, OSError | EOFError | lzma.LZMAError | ValueError)
                if isinstance(error, InputError) or not (broken or type(error).__module__.startswith("zstandard")):
                    raise
                self.counts["broken lines"] += 1  # cut off or damaged in the middle: what came before it counts

    def _decoded(self, stream: IO[bytes]) -> Iterator[str]:
        for line in stream:
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                self.counts["lines with bad encoding"] += 1
                yield line.decode("utf-8", errors="replace")

    def _plain(self, lines: Iterator[str], _file: str) -> Iterator[str]:
        first = list(islice(lines, PEEK))
        lines, split = chain(first, lines), str(self.split)
        if split == "auto":
            start = next((line for line in first if line.strip()), "")
            blank = any(not line.strip() for line in "".join(first).strip("\n").split("\n"))
            split = "article" if HEADING.match(start) else "paragraph" if blank else "line"
        if split == "line":
            yield from lines
        elif split == "file":
            yield "".join(lines)
        else:
            document: list[str] = []
            for line in lines:
                border = HEADING.match(line) is not None if split == "article" else not line.strip()
                if border and document:
                    yield "".join(document)
                    document = []
                if line.strip():
                    document.append(line)
            if document:
                yield "".join(document)

    def _json_lines(self, lines: Iterator[str], file: str) -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if isinstance(record, str):
                yield record
            elif isinstance(record, dict):
                yield self._field(record, f"{file}, line {number}")
            else:
                self.counts["broken lines"] += 1

    def _table(self, lines: Iterator[str], file: str) -> Iterator[str]:
        csv.field_size_limit(2**31 - 1)
        rows = csv.DictReader(
            (line.replace("\0", "") for line in lines), delimiter="\t" if ".tsv" in Path(file).suffixes else ","
        )
        while True:
            try:
                record = next(rows)
            except StopIteration:
                return
            except csv.Error:
                self.counts["broken lines"] += 1
                continue
            record.pop(None, None)  # what stands beyond the columns
            yield self._field(record, f"{file}, line {rows.line_num}")

    def _field(self, record: dict[str, Any], where: str) -> str:
        self._check_field(where, list(record))
        value = record[self.text_field]
        if not isinstance(value, str | None):
            self.counts["broken lines"] += 1
        return value if isinstance(value, str) else ""

    def _check_field(self, where: str, names: list[str]) -> None:
        if self.text_field not in names:
            raise InputError(
                f"{where} has no field {self.text_field!r}; it has {', '.join(map(repr, names)) or 'none'}: "
                "choose one of them as text_field"
            )

    def _parquet(self, file: str) -> Iterator[str]:
        parquet = needed("pyarrow.parquet", "pyarrow", "to read Parquet files")
        try:
            opened = parquet.ParquetFile(file)
        except Exception as error:
            raise InputError(f"{file} is no Parquet file, or is damaged ({str(error).splitlines()[0]})") from None
        self._check_field(file, opened.schema_arrow.names)
        for batch in opened.iter_batches(batch_size=256, columns=[self.text_field]):
            for value in batch.column(0).to_pylist():
                yield value if isinstance(value, str) else ""

    def _hub(self, name: str) -> Iterator[str]:
        datasets = needed("datasets", "datasets", "to read a corpus of the hub")
        path, _, part = name.removeprefix(HUB).partition(":")
        # NAME is 'name' or 'owner/name'; what comes after is the configuration
        repository, config = ("/".join(side) for side in (path.split("/")[:2], path.split("/")[2:]))
        try:
            stream = datasets.load_dataset(repository, config or None, split=part or "train", streaming=True)
        except Exception as error:
            raise InputError(
                f"{name} cannot be loaded from the hub ({str(error).splitlines()[0]}); "
                "expected hf:OWNER/NAME[/CONFIG][:SPLIT]"
            ) from None
        for number, record in enumerate(stream, start=1):
            yield self._field(record, f"{name}, record {number}")


def unpack_zst(raw: IO[bytes]) -> io.BufferedReader:
    zstandard = needed("zstandard", "zstandard", "to unpack .zst files")
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))


UNPACK: dict[str | None, Callable[[Any], Any]] = {
    None: nullcontext,
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": unpack_zst,
}


def needed(module: str, package: str, purpose: str) -> Any:
    """An optional library; where it is missing, an error that says how to install it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # what a library says about its own parts
            return importlib.import_module(module)
    except ImportError:
        raise InputError(f"{package} is needed {purpose}; install it with: pip install {package}") from None
