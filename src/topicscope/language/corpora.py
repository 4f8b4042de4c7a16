"""Texts from files, folders and hubs, one after another: plain text, JSON lines, CSV and Parquet, packed or not.

corpus = Corpus(["articles/*.jsonl.gz"], text_field="text")
for text in corpus: ...
corpus.counts   # documents, broken lines, lines with bad encoding

Files are read as a stream: no line and no document is held in memory without limit.
"""

import bz2
import csv
import glob
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

import numpy as np

from topicscope.ground import (
    InputError,
    Stream,
    checked_file,
    generator,
    needed,
    one_line,
    refuse,
    refuse_if,
    require,
    shown,
)

PEEK = 200  # lines of a text file that decide how it is split
MOST_LINE = 2**26  # bytes of a line, and of a document: more are not held in memory
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError)  # errors that unpacking raises
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
Line = tuple[str, str]  # its place, and its text


def peeked(lines: Iterator[Line]) -> list[Line]:
    first: list[Line] = []
    for line in lines:
        first.append(line)
        if len(first) == PEEK or sum(len(text) for _, text in first) > MOST_LINE:
            break
    return first


def field_names(fields: Iterable[str]) -> str:
    """The first 20, and what separates the columns of a table that seems to have one."""
    columns = list(fields)[:20]
    named = ", ".join(f"{name!r:.60}" for name in columns)
    found = next((name for sign, name in SEPARATORS.items() if len(columns) == 1 and sign in str(columns[0])), None)
    hint = f" (its columns seem to be separated by {found}; expected commas in .csv and tabs in .tsv)"
    return named + (hint if found else "")


def unpack_zst(raw: IO[bytes]) -> io.BufferedReader:
    decompressor = needed("zstandard", "a corpus in .zst files").ZstdDecompressor()
    return io.BufferedReader(decompressor.stream_reader(raw, read_across_frames=True))


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
OTHER_PACKINGS = {".lz4", ".zip", ".7z", ".rar", ".z", ".br", ".lzma"}  # these cannot be read, and are refused
HUB = "hf:"
# an article of WikiText starts with such a line; the headings of its sections have more signs
HEADING = re.compile(r"^ = [^=].* = \n?$")
MOST_FILE = 2**62  # bytes: files are read as a stream
NAMED = 3  # places of faults that are named
BROKEN, ENCODING = "broken lines", "lines with bad encoding"


def suffixes(path: Path) -> tuple[str, str | None]:
    packing = path.suffix.lower() if path.suffix.lower() in (*UNPACK, *OTHER_PACKINGS) else None
    return (path.with_suffix("") if packing else path).suffix.lower(), packing


def kind_of(file: str) -> tuple[str, str | None]:
    if file.startswith(HUB):
        return HUB, None
    kind, packing = suffixes(Path(file))
    refuse(
        (
            kind not in KNOWN or packing in OTHER_PACKINGS,
            f"{file}: unknown kind of file; expected {', '.join(sorted(KNOWN))}, compressed or not",
        ),
        (kind in PARQUET and packing, f"{file}: a Parquet file has its own compression; decompress it first"),
    )
    return kind, packing


class Document(NamedTuple):
    text: str
    label: str | None = None


class UnreadableFileError(InputError):
    """A file of which nothing can be read; others of the corpus may do."""


UNLABELLED = "without a label"
MOST_LABELS = 1000
DOCUMENTS_PER_LABEL = 2  # least, on average: labels that hardly ever come twice are no topics
HASHED = 2**30  # bytes of a corpus that is read to see whether it has changed; of a larger one the sizes count

Text = TypeVar("Text", str, Document)


@dataclass
class Corpus:
    r"""Texts from files, folders and hubs, one after another: memory does not grow with the corpus.

    'auto' finds WikiText's articles by their headings, else takes paragraphs where there are blank lines and lines
    where there are none.

    Attributes:
        sources: Paths, globs, folders, or 'hf:NAME[/CONFIG][:SPLIT]'.
        text_field: Field of the text in JSON lines, CSV and Parquet.
        split: What a document of a plain text file is: 'line', 'paragraph' (blank lines between them), 'file' or
            'auto'.
        counts: What was read: documents, broken lines, lines with bad encoding. Reading fills it.
        places: The first few places of what is broken.
        whole: What the last complete pass has read.
        label_field: Field of JSON lines, CSV and Parquet with one label per document.

    Raises:
        InputError: While reading: a file is missing, or no text is found.

    Example:
        >>> import tempfile
        >>> from topicscope import Corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "articles.jsonl").write_text('{"text": "one"}\nbroken\n{"text": "two"}\n')
        ...     corpus = Corpus([f"{folder}/*.jsonl"])
        ...     list(corpus), dict(corpus.counts)
        (['one', 'two'], {'documents': 2, 'broken lines': 1})
    """

    sources: Sequence[str | Path]
    text_field: str = "text"
    split: Split = "auto"
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict, repr=False)
    whole: str | None = field(default=None, repr=False)
    label_field: str | None = None

    def __post_init__(self) -> None:
        refuse_if(not self.sources, "no corpus is given; name files, a folder, or hf:NAME for one on the hub")
        self.files = [file for source in self.sources for file in files_of(str(source))]
        self.has_field = False  # whether a record had the field: if the first has not, the user chose a wrong one
        self.fields: dict[str, None] = {}  # names of fields of the first record of every file
        for file in self.files:
            refuse_if(
                kind_of(file)[0] in TEXT and self.label_field is not None,
                f"{shown(file)} is plain text, which has no field {self.label_field!r}; labels are read from JSON "
                "lines, CSV and Parquet",
            )

    def __iter__(self) -> Generator[str]:
        return (document.text for document in self.documents())

    def documents(self) -> Generator[Document]:
        self.counts.clear()
        self.places.clear()
        self.has_field, unreadable = False, None
        self.fields.clear()
        for file in self.files:
            try:
                for document in self._read(file):
                    if not document.text.strip():
                        self.counts["empty"] += 1
                        continue
                    self.counts["documents"] += 1
                    if self.label_field is not None and document.label is None:
                        self.counts[UNLABELLED] += 1
                    yield document
            except UnreadableFileError as error:
                self._fault(BROKEN, f"{error}")
                unreadable = error
        if unreadable is not None and not self.counts["documents"]:
            raise unreadable  # one unreadable file is an error only if no other has a text
        if self.label_field is not None and 0 < self.counts["documents"] == self.counts[UNLABELLED]:
            raise InputError(
                f"no document has a label in the field {self.label_field!r}; the corpus has {field_names(self.fields)}"
            )
        self.whole = self._summary()

    def sample(self, count: int | None, seed: int = 0) -> list[str]:
        return [document.text for _, document in self.numbered_sample(count, seed)]

    def numbered_sample(self, count: int | None, seed: int = 0) -> list[tuple[int, Document]]:
        """At most `count` texts, each with the same chance, with their numbers from 1; only these are in memory."""
        every = enumerate(self.documents(), start=1)
        drawn = list(every) if count is None else reservoir(every, count, generator(seed, Stream.SAMPLED_DOCUMENTS))
        refuse_if(not drawn, self._without_text())
        return sorted(drawn)

    def check_libraries(self) -> None:
        for kind, packing in map(kind_of, self.files):
            require(["datasets"] if kind == HUB else [], "a corpus of the hub")
            require(["zstandard"] if packing == ".zst" else [], "a corpus in .zst files")

    def check(self) -> None:
        """Raise InputError unless there is a text, with usable labels: reads the first ones. The hub is not asked."""
        self.check_libraries()
        if any(file.startswith(HUB) for file in self.files):
            return
        with closing(self.documents()) as documents:
            labels = [document.label for document in islice(documents, 1 if self.label_field is None else 2500)]
            refuse_if(not labels, self._without_text())
            if self.label_field is not None:
                known = {None, *labels}
                if len(known) < 3:  # the texts may be sorted by label: read on
                    labels += islice((d.label for d in documents if d.label not in known), 1)
                with self.blamed():
                    usable_labels(labels, self.label_field)

    def _without_text(self) -> str:
        return (
            f"the corpus has no text ({', '.join(map(str, self.sources))}; {self.summary()}); "
            "give plain text, or a table or JSON lines with the text in a field (--text-field)"
        )

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """An InputError about too little text says how much of it could not be read."""
        try:
            yield
        except InputError as error:
            every = self.counts[BROKEN] + self.counts["documents"] + self.counts["empty"]
            faults = {BROKEN: f"of {every} documents could not be read", ENCODING: "lines have a bad encoding"}
            counted = [
                f"{self.counts[name]} {text} (the first: {self.places[name][0]})"
                for name, text in faults.items()
                if self.counts[name]
            ]
            raise InputError("; ".join([f"{error}", *counted])) from None

    def fingerprint(self) -> str:
        """A digest of the files' bytes (of large ones of their sizes, of a corpus on a hub of its name)."""
        digest = hashlib.sha256()
        sizes = {
            file: checked_file(file, "the corpus", MOST_FILE).stat().st_size
            for file in self.files
            if not file.startswith(HUB)
        }
        for file in self.files:
            digest.update(f"{sizes[file]} ".encode() if file in sizes else file.encode())
            if file in sizes and sum(sizes.values()) <= HASHED:
                try:
                    with Path(file).open("rb") as stream:
                        hashlib.file_digest(stream, lambda: digest)  # goes on with the one digest
                except OSError as error:
                    raise InputError(f"the corpus {shown(file)} cannot be read: {one_line(error)}") from None
        return digest.hexdigest()

    def summary(self) -> str:
        """What the last complete pass has read, or else the present one: '120 documents, 2 broken lines (...)'."""
        return self._summary() if self.whole is None else self.whole

    def _summary(self) -> str:
        where = {name: f" ({first_few(places, NAMED, '; ')})" for name, places in self.places.items()}
        names = [name for name in ("documents", UNLABELLED, "empty", BROKEN, ENCODING) if self.counts[name]]
        return ", ".join(f"{self.counts[name]} {name}{where.get(name, '')}" for name in names) or "empty"

    def _read(self, file: str) -> Iterator[Document]:
        """The texts of one file. One bad line or document ends nothing: it is counted, and the first few are named."""
        kind, packing = kind_of(file)
        if kind == HUB:
            return self._hub(file)
        checked_file(file, "the corpus", MOST_FILE)
        if kind in PARQUET:
            return self._parquet(file)
        return self._unpacked(
            file, packing, self._plain if kind in TEXT else self._json_lines if kind in LINES else self._table
        )

    def _fault(self, name: str, where: str, count: int = 1, *, worst: bool = False) -> None:
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
        except OSError as error:  # it cannot be opened; later errors are faults of lines
            raise InputError(f"the corpus {shown(file)} cannot be read: {one_line(error)}") from None

    def _decoded(self, stream: IO[bytes], file: str) -> Iterator[Line]:
        """Lines with their places. Where a packed file is damaged or cut off, what came before it counts."""
        for number in count(1):
            place = f"{file}, line {number}"
            try:
                line = stream.readline(MOST_LINE + 1)
                long = len(line) > MOST_LINE
                while long and line and not line.endswith(b"\n"):  # nothing of it is kept
                    line = stream.readline(2**20)
            except Exception as error:
                if not isinstance(error, DAMAGED) and not type(error).__module__.startswith("zstandard"):
                    raise
                self._fault(BROKEN, f"{place}: the rest of the file is damaged, {one_line(error)}", worst=True)
                return
            if long:
                self._fault(BROKEN, f"{place}: more than {MOST_LINE // 2**20} MB")
            elif line:
                yield place, self._utf8(line, place)
            else:
                return

    def _utf8(self, line: bytes, place: str) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self._fault(ENCODING, place)
            return line.decode(errors="replace")

    def _plain(self, lines: Iterator[Line], _file: str) -> Iterator[Document]:
        first, split = peeked(lines), str(self.split)
        if split == "auto":
            start = next((line for _, line in first if line.strip()), "")
            inside = "".join(line for _, line in first).strip("\n").split("\n")
            split = "article" if HEADING.match(start) else "line" if all(map(str.strip, inside)) else "paragraph"
        parts: list[str] = []
        size = 0
        for place, line in chain(first, lines):
            border = HEADING.match(line) if split == "article" else split == "line" or not line.strip()
            if border and parts and split != "file":
                yield Document("".join(parts))
                parts, size = [], 0
            if split in ("line", "file") or line.strip():
                size += len(line)
                if size <= MOST_LINE:
                    parts.append(line)
                elif size - len(line) <= MOST_LINE:  # reported once per document
                    self._fault(BROKEN, f"{place}: the document is cut at {MOST_LINE // 2**20} MB")
        if parts:
            yield Document("".join(parts))

    def _json_lines(self, lines: Iterator[Line], _file: str) -> Iterator[Document]:
        for place, line in (pair for pair in lines if pair[1].strip()):
            record = None
            with suppress(ValueError, RecursionError):  # no JSON, or 5,000 digits or a thousand brackets in it
                record = json.loads(line)
            if isinstance(record, str):
                yield Document(self._sound(record, place))
            elif isinstance(record, dict):
                yield self._field(record, place)
            else:
                self._fault(BROKEN, place)

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
                self._fault(BROKEN, place)
                continue
            if at_end:  # the record goes on at the end of the file, so a quote is never closed
                self._fault(BROKEN, f"{place}: a quote before it is not closed")
                return
            record.pop(None, None)  # cells beyond the columns
            yield self._field(record, place)

    def _field(self, record: Mapping[str, object], place: str) -> Document:
        if not self._has_field(place, list(record)):
            return Document("")
        value = record[self.text_field]
        if not isinstance(value, str | None):
            self._fault(BROKEN, place)
        return Document(
            self._sound(value, place) if isinstance(value, str) else "",
            self._label(record.get(self.label_field), place) if self.label_field else None,
        )

    def _label(self, value: object, place: str) -> str | None:
        """Numbers and truth values as JSON writes them, 1.0 as 1. One label per document: no lists, no records."""
        refuse_if(
            isinstance(value, list | dict | tuple | bytes),
            f"{place}: the field {self.label_field!r} holds a {type(value).__name__}; expected one label per "
            "document, a text or a number",
        )
        if value is None or value != value:  # tables write NaN where nothing is there
            return None
        text = str(int(value) if isinstance(value, float) and value.is_integer() else value)
        return " ".join(self._sound(text.lower() if isinstance(value, bool) else text, place).split()) or None

    def _sound(self, text: str, place: str) -> str:
        """Text without halves of characters, as JSON can hold them ('\\ud800'): no file and no tokenizer takes them."""
        try:
            text.encode()
        except UnicodeEncodeError:
            self._fault(ENCODING, place)
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _has_field(self, place: str, names: list[str]) -> bool:
        """Whether a record has the field. If the first has not, the user chose a wrong one; a later one is broken."""
        self.fields |= dict.fromkeys(names[: 20 - len(self.fields)])
        if self.text_field in names:
            self.has_field = True
        elif self.has_field:
            self._fault(BROKEN, f"{place}: no field {self.text_field!r}")
        else:
            raise InputError(
                f"{place} has no field {self.text_field!r}; it has {field_names(names) or 'none'}: choose one of them "
                "as text_field (--text-field)"
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
        rows, seen = max(1, opened.metadata.row_group(group).num_rows), 0
        labelled = self.label_field is not None and self.label_field in opened.schema_arrow.names
        batches = opened.iter_batches(
            batch_size=256, row_groups=[group], columns=[self.text_field, *([self.label_field] if labelled else [])]
        )
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except Exception as error:  # the library may raise anything
                self._fault(BROKEN, f"{place}: {one_line(error)}", max(1, rows - seen))
                return
            seen += len(batch)
            labels = batch.column(self.label_field) if labelled else None
            for row, scalar in enumerate(batch.column(self.text_field)):
                label = None if labels is None else self._label(self._value(labels[row], place), place)
                text = self._value(scalar, place)
                yield Document(text if isinstance(text, str) else "", label)

    def _value(self, scalar: Any, place: str) -> object:
        try:
            return scalar.as_py()
        except UnicodeDecodeError:
            return self._utf8(scalar.as_buffer().to_pybytes(), place)

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


def first_few(names: Sequence[str], most: int, between: str = ", ") -> str:
    return between.join([*names[:most], *(["..."] if len(names) > most else [])])


def unread(summary: str) -> list[str]:
    return [f"Not all of the text could be read: {summary}"] if BROKEN in summary or ENCODING in summary else []


def usable_labels(labels: Iterable[str | None], name: str) -> Counter[str]:
    """How many documents have each label, the most common first. Raise InputError where labels cannot be topics."""
    counts = Counter(sorted(label for label in labels if label is not None))
    only, different = next(iter(counts), "none"), len(counts)
    refuse(
        (different < 2, f"the field {name!r} has fewer than two different labels ({only!r:.60}); two are compared"),
        (
            different > MOST_LABELS or counts.total() < DOCUMENTS_PER_LABEL * different,
            f"the field {name!r} has {different:,} different labels in {counts.total():,} documents; expected at "
            f"most {MOST_LABELS:,}, and at least {DOCUMENTS_PER_LABEL} documents per label on average",
        ),
    )
    return Counter(dict(counts.most_common()))


def files_of(source: str) -> list[str]:
    if source.startswith(HUB):
        return [source]
    path = Path(source)
    try:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if not any(x.startswith(".") for x in p.relative_to(path).parts))
            files = sorted(str(p) for p in inside if not p.is_dir() and suffixes(p)[0] in KNOWN)
            missing = f"{shown(source)} has no text files ({', '.join(sorted(KNOWN))}, compressed or not)"
        else:
            matching = [source] if os.path.lexists(path) else sorted(glob.glob(source, recursive=True))
            files = [file for file in matching if not Path(file).is_dir()]
            missing = f"no such corpus: {shown(source)} (a file, a folder, a pattern, or hf:NAME for one on the hub)"
    except (OSError, ValueError, re.error) as error:  # the name has a null character, or the folder may not be read
        raise InputError(f"the corpus {shown(source)} cannot be read: {one_line(error)}") from None
    refuse_if(not files, missing)
    return [str(checked_file(file, "the corpus", MOST_FILE)) for file in files]


def reservoir(items: Iterable[tuple[int, Text]], count: int, rng: np.random.Generator) -> list[tuple[int, Text]]:
    """A uniform sample of a stream of unknown length: the n-th item replaces a drawn one with probability count / n."""
    drawn: list[tuple[int, Text]] = []
    for seen, item in enumerate(items, start=1):
        if len(drawn) < count:
            drawn.append(item)
        elif (place := int(rng.integers(seen))) < count:
            drawn[place] = item
    return drawn
