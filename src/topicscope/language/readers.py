"""The texts of one file: plain text, JSON lines, CSV and Parquet, packed or not, or a data set of the hub.

Files are read as a stream: no line and no document is held in memory without limit.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from topicscope.ground import InputError, checked_file, needed, one_line, shown

PEEK = 200  # lines of a text file that decide how it is split
MOST_LINE = 2**26  # bytes of a line, and of a document: more are not held in memory
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError)  # what unpacking raises
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
Line = tuple[str, str]  # where it stands, and what it says


def bounded_line(stream: IO[bytes]) -> tuple[bytes, bool]:
    """The next line; of one that is too long nothing is kept, and the stream stands behind it."""
    line = stream.readline(MOST_LINE + 1)
    if len(line) <= MOST_LINE:
        return line, False
    while line and not line.endswith(b"\n"):
        line = stream.readline(2**20)
    return b"", True


def peeked(lines: Iterator[Line]) -> list[Line]:
    """The first lines, which decide how a text is split: PEEK of them, or fewer where they are long."""
    first: list[Line] = []
    for line in lines:
        first.append(line)
        if len(first) == PEEK or sum(len(text) for _, text in first) > MOST_LINE:
            break
    return first


def separator_hint(columns: Sequence[str]) -> str:
    """What to do about a table whose header is one name that holds another separator; empty for other tables."""
    found = next((name for sign, name in SEPARATORS.items() if len(columns) == 1 and sign in columns[0]), None)
    expected = "expected commas in .csv and tabs in .tsv"
    return "" if found is None else f" (its columns seem to be separated by {found}; {expected})"


def unpack_zst(raw: IO[bytes]) -> io.BufferedReader:
    zstandard = needed("zstandard", "a corpus in .zst files")
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))


UNPACK: dict[str | None, Callable[[Any], Any]] = {
    None: nullcontext,
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": unpack_zst,
}


Split = Literal["auto", "line", "paragraph", "file"]
TEXT, LINES, TABLES, PARQUET = {".txt", ".text", ".raw", ".md"}, {".jsonl", ".ndjson"}, {".csv", ".tsv"}, {".parquet"}
KNOWN = TEXT | LINES | TABLES | PARQUET
HUB = "hf:"
# an article of WikiText starts with such a line; the headings of its sections have more signs
HEADING = re.compile(r"^ = [^=].* = \n?$")
MOST_FILE = 2**62  # bytes: files are read as a stream
NAMED = 3  # places of faults that are named
BROKEN, ENCODING = "broken lines", "lines with bad encoding"


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
        raise InputError(f"{file}: unknown kind of file; expected {', '.join(sorted(KNOWN))}, compressed or not")
    if kind in PARQUET and packing:
        raise InputError(f"{file}: a Parquet file has its own compression; decompress it first")
    return kind, packing


class Document(NamedTuple):
    """A text, and its label where the corpus has a field of labels and the document a value in it."""

    text: str
    label: str | None = None


class UnreadableFileError(InputError):
    """A file of which nothing can be read; others of the corpus may do."""


@dataclass
class Reader:
    """Reads texts one by one. One bad line or document ends nothing: it is counted, and the first few are named.

    `counts`: 'broken lines', 'lines with bad encoding'. `places`: where the first of each are.
    """

    text_field: str
    split: Split
    counts: Counter[str]
    places: dict[str, list[str]] = field(default_factory=dict)
    has_field: bool = False  # whether a record had the field: where the first one has not, a wrong one was chosen
    label_field: str | None = None
    fields: dict[str, None] = field(default_factory=dict)  # the names of fields of the first record of every file

    def documents(self, file: str) -> Iterator[Document]:
        kind, packing = kind_of(file)
        if kind == HUB:
            return self._hub(file)
        checked_file(file, "the corpus", MOST_FILE)
        if kind in PARQUET:
            return self._parquet(file)
        read = self._plain if kind in TEXT else self._json_lines if kind in LINES else self._table
        return self._unpacked(file, packing, read)

    def fault(self, name: str, where: str, count: int = 1, *, worst: bool = False) -> None:
        """One more of them; `worst`: named first, whatever came before."""
        self.counts[name] += count
        places = self.places.setdefault(name, [])
        if worst:
            places.insert(0, where)
        elif len(places) <= NAMED and where not in places:
            places.append(where)

    def _unpacked(
        self, file: str, packing: str | None, read: Callable[[Iterator[Line], str], Iterator[Document]]
    ) -> Iterator[Document]:
        name = shown(Path(file).name)
        try:
            with Path(file).open("rb") as raw, UNPACK[packing](raw) as stream:
                yield from read(self._decoded(stream, name), name)
        except OSError as error:  # of opening it: what comes later is a fault of a line
            raise InputError(f"the corpus {shown(file)} cannot be read: {one_line(error)}") from None

    def _decoded(self, stream: IO[bytes], file: str) -> Iterator[Line]:
        """Lines with their places. Where a packed file is damaged or cut off, what came before it counts."""
        for number in count(1):
            place = f"{file}, line {number}"
            try:
                line, long = bounded_line(stream)
            except Exception as error:
                if not isinstance(error, DAMAGED) and not type(error).__module__.startswith("zstandard"):
                    raise
                self.fault(BROKEN, f"{place}: the rest of the file is damaged, {one_line(error)}", worst=True)
                return
            if long:
                self.fault(BROKEN, f"{place}: more than {MOST_LINE // 2**20} MB")
            elif not line:
                return
            else:
                try:
                    yield place, line.decode("utf-8")
                except UnicodeDecodeError:
                    self.fault(ENCODING, place)
                    yield place, line.decode("utf-8", errors="replace")

    def _plain(self, lines: Iterator[Line], _file: str) -> Iterator[Document]:
        first = peeked(lines)
        split = str(self.split)
        if split == "auto":
            start = next((line for _, line in first if line.strip()), "")
            blank = any(not line.strip() for line in "".join(line for _, line in first).strip("\n").split("\n"))
            split = "article" if HEADING.match(start) else "paragraph" if blank else "line"
        together = chain(first, lines)
        if split == "line":
            yield from (Document(line) for _, line in together)
            return
        parts: list[str] = []
        size = 0
        for place, line in together:
            border = HEADING.match(line) is not None if split == "article" else not line.strip()
            if border and split != "file" and parts:
                yield Document("".join(parts))
                parts, size = [], 0
            if line.strip() or split == "file":
                size += len(line)
                if size <= MOST_LINE:
                    parts.append(line)
                elif size - len(line) <= MOST_LINE:  # said once for each document
                    self.fault(BROKEN, f"{place}: the document is cut at {MOST_LINE // 2**20} MB")
        if parts:
            yield Document("".join(parts))

    def _json_lines(self, lines: Iterator[Line], _file: str) -> Iterator[Document]:
        for place, line in lines:
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):  # no JSON, a number of 5,000 digits; a thousand brackets
                record = None
            if isinstance(record, str):
                yield Document(self._sound(record, place))
            elif isinstance(record, dict):
                yield self._field(record, place)
            else:
                self.fault(BROKEN, place)

    def _table(self, lines: Iterator[Line], file: str) -> Iterator[Document]:
        csv.field_size_limit(MOST_LINE)
        place, at_end = file, False

        def fed() -> Iterator[str]:
            nonlocal place, at_end
            for place, line in lines:  # noqa: B007  (the reader's place, for what it raises)
                yield line.replace("\0", "")
            at_end = True

        rows = csv.DictReader(fed(), delimiter="\t" if ".tsv" in Path(file).suffixes else ",")
        while True:
            try:
                record = next(rows)
            except StopIteration:
                return
            except csv.Error:
                self.fault(BROKEN, place)
                continue
            if at_end:  # the record goes on where the file ends: a quote that is never closed
                self.fault(BROKEN, f"{place}: a quote before it is not closed")
                return
            record.pop(None, None)  # what stands beyond the columns
            yield self._field(record, place)

    def _field(self, record: dict[str, Any], place: str) -> Document:
        if not self._has_field(place, list(record)):
            return Document("")
        value = record[self.text_field]
        if not isinstance(value, str | None):
            self.fault(BROKEN, place)
        text = self._sound(value, place) if isinstance(value, str) else ""
        return Document(text, self._label(record.get(self.label_field), place) if self.label_field else None)

    def _label(self, value: Any, place: str) -> str | None:
        """Numbers and truth values as JSON writes them, 1.0 as 1. One label per document: no lists, no records."""
        if isinstance(value, list | dict | tuple | bytes):
            raise InputError(
                f"{place}: the field {self.label_field!r} holds a {type(value).__name__}; expected one label per "
                "document, a text or a number"
            )
        if value is None or value != value:  # not a number: how tables write that nothing is there
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return " ".join(self._sound(text, place).split()) or None

    def _sound(self, text: str, place: str) -> str:
        """Text without halves of characters, as JSON can hold them ('\\ud800'): no file and no tokenizer takes them."""
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fault(ENCODING, place)
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _has_field(self, place: str, names: list[str]) -> bool:
        """Whether a record has the field. If the first has not, the user chose a wrong one; a later one is broken."""
        self.fields |= dict.fromkeys(names[: 20 - len(self.fields)])
        if self.text_field in names:
            self.has_field = True
        elif self.has_field:
            self.fault(BROKEN, f"{place}: no field {self.text_field!r}")
        else:
            some = ", ".join(f"{name!r:.60}" for name in names[:20])
            raise InputError(
                f"{place} has no field {self.text_field!r}; it has {some or 'none'}{separator_hint(names)}: choose one "
                "of them as text_field (--text-field)"
            )
        return self.text_field in names

    def _parquet(self, file: str) -> Iterator[Document]:
        from pyarrow import parquet

        name = shown(Path(file).name)
        try:
            opened = parquet.ParquetFile(file, page_checksum_verification=True)
            fields, groups = opened.schema_arrow.names, opened.num_row_groups
        except Exception as error:
            raise UnreadableFileError(f"{shown(file)} is not Parquet, or is damaged ({one_line(error)})") from None
        with opened:
            for group in range(groups if self._has_field(name, fields) else 0):
                yield from self._row_group(opened, group, f"{name}, row group {group + 1}")

    def _row_group(self, opened: Any, group: int, place: str) -> Iterator[Document]:
        """The texts of a row group, as far as it can be decoded; the rest of its documents are broken."""
        rows, seen = max(1, opened.metadata.row_group(group).num_rows), 0
        labelled = self.label_field is not None and self.label_field in opened.schema_arrow.names
        columns = [self.text_field, *([self.label_field] if labelled else [])]
        batches = opened.iter_batches(batch_size=256, row_groups=[group], columns=columns)
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except Exception as error:  # the library raises what it likes
                self.fault(BROKEN, f"{place}: {one_line(error)}", max(1, rows - seen))
                return
            seen += len(batch)
            labels = batch.column(self.label_field) if labelled else None
            for row, scalar in enumerate(batch.column(self.text_field)):
                label = None if labels is None else self._label(self._value(labels[row], place), place)
                text = self._value(scalar, place)
                yield Document(text if isinstance(text, str) else "", label)

    def _value(self, scalar: Any, place: str) -> Any:
        try:
            return scalar.as_py()
        except UnicodeDecodeError:
            self.fault(ENCODING, place)
            return str(scalar.as_buffer().to_pybytes().decode("utf-8", errors="replace"))

    def _hub(self, name: str) -> Iterator[Document]:
        datasets = needed("datasets", "a corpus of the hub")
        path, _, part = name.removeprefix(HUB).partition(":")
        # NAME is 'name' or 'owner/name'; what comes after is the configuration
        repository, config = ("/".join(side) for side in (path.split("/")[:2], path.split("/")[2:]))
        try:
            stream = iter(datasets.load_dataset(repository, config or None, split=part or "train", streaming=True))
        except Exception as error:
            raise InputError(
                f"{name} cannot be loaded from the hub ({one_line(error)}); expected hf:OWNER/NAME[/CONFIG][:SPLIT]"
            ) from None
        for number in count(1):
            try:
                record = next(stream)
            except StopIteration:
                return
            except Exception as error:
                raise InputError(f"{name}, record {number} cannot be read from the hub ({one_line(error)})") from None
            yield self._field(record, f"{name}, record {number}")
