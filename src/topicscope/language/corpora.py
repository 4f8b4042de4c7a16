"""Texts from files, folders and hubs, one after another: memory does not grow with the corpus.

corpus = Corpus(["articles/*.jsonl.gz"], text_field="text")
for text in corpus: ...
corpus.counts   # documents, broken lines, bytes that are no text
"""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import hashlib
import importlib
import io
import json
import lzma
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from topicscope.ground import InputError

Split = Literal["auto", "line", "paragraph", "file"]
TEXT, LINES, TABLES, PARQUET = {".txt", ".text", ".raw", ".md"}, {".jsonl", ".ndjson"}, {".csv", ".tsv"}, {".parquet"}
PACKED = {".gz", ".xz", ".bz2", ".zst"}
HUB = "hf:"
HEADING = re.compile(r"^ = [^=].* = \n?$")
"""An article of WikiText starts with such a line; those of its sections have more signs."""
HASHED = 2**30
"""Bytes of a corpus that are still read to tell whether it has changed."""
PEEK = 200
"""Lines of a text file that decide how it is split."""


@dataclass
class Corpus:
    """Texts of `sources`: paths, globs, folders, or 'hf:NAME[/CONFIG][:SPLIT]'. Iterating reads them; `counts` tells what was met.

    `split` says what a document of a plain text file is: a line, a paragraph (blank lines between), the file; 'auto' finds WikiText's
    articles by their headings, else takes paragraphs where there are blank lines and lines where there are none.
    """

    sources: Sequence[str | Path]
    text_field: str = "text"
    split: Split = "auto"
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("no corpus is given; name files, a folder, or hf:NAME for one on the hub")
        self.files = [
            str(s) if str(s).startswith(HUB) else path
            for s in self.sources
            for path in ([str(s)] if str(s).startswith(HUB) else found(str(s)))
        ]

    def __iter__(self) -> Iterator[str]:
        self.counts.clear()
        for file in self.files:
            for text in self._texts(file):
                if text.strip():
                    self.counts["documents"] += 1
                    yield text
                else:
                    self.counts["empty"] += 1

    def sample(self, count: int | None, seed: int = 0) -> list[str]:
        """At most `count` documents, each with the same chance, in their order; the whole corpus is read once, `count` texts are kept."""
        kept = (
            list(enumerate(self))
            if count is None
            else reservoir(enumerate(self), count, np.random.default_rng([seed, 0x70C5]))
        )
        if not kept:
            raise InputError(f"the corpus has no text ({', '.join(map(str, self.sources))}; {self.summary()})")
        return [text for _, text in sorted(kept)]

    def fingerprint(self) -> str:
        """Of the files' bytes (of their sizes alone where they are large, of the name on a hub): tells whether a corpus is still the same."""
        found = hashlib.sha256()
        sizes = {file: Path(file).stat().st_size for file in self.files if not file.startswith(HUB)}
        for file in self.files:
            found.update(f"{sizes[file]} ".encode() if file in sizes else file.encode())
            if file in sizes and sum(sizes.values()) <= HASHED:
                with Path(file).open("rb") as stream:
                    while part := stream.read(2**20):
                        found.update(part)
        return found.hexdigest()

    def summary(self) -> str:
        return (
            ", ".join(
                f"{self.counts[key]} {key}"
                for key in ("documents", "empty", "broken lines", "lines with bad encoding")
                if self.counts[key]
            )
            or "empty"
        )

    def _texts(self, file: str) -> Iterator[str]:
        if file.startswith(HUB):
            return self._hub(file)
        kinds = [suffix.lower() for suffix in Path(file).suffixes]
        packing = kinds.pop() if kinds and kinds[-1] in PACKED else None
        kind = kinds[-1] if kinds else ""
        if kind in PARQUET:
            if packing:
                raise InputError(f"{file}: a Parquet file is packed inside; unpack it first")
            return self._parquet(file)
        readers = {
            **dict.fromkeys(TEXT, self._plain),
            **dict.fromkeys(LINES, self._json_lines),
            **dict.fromkeys(TABLES, self._table),
        }
        if kind not in readers:
            raise InputError(
                f"{file}: kind of file not known; expected {', '.join(sorted(TEXT | LINES | TABLES | PARQUET))}, packed or not"
            )
        return self._opened(file, packing, readers[kind])

    def _opened(self, file: str, packing: str | None, reader: Any) -> Iterator[str]:
        with unpacked(file, packing) as stream:
            try:
                yield from reader(self._decoded(stream), file)
            except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                self.counts["broken lines"] += 1  # cut off or damaged in the middle: what came before it counts
            except Exception as error:
                if type(error).__module__.split(".")[0] != "zstandard":
                    raise
                self.counts["broken lines"] += 1

    def _decoded(self, stream: IO[bytes]) -> Iterator[str]:
        for line in stream:
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                self.counts["lines with bad encoding"] += 1
                yield line.decode("utf-8", errors="replace")

    def _plain(self, lines: Iterator[str], _file: str) -> Iterator[str]:
        first = list(islice(lines, PEEK))
        split: str = self.split
        if split == "auto":
            inner = "".join(first).strip("\n").split("\n")
            start = next((line for line in first if line.strip()), "")
            split = (
                "article"
                if HEADING.match(start)
                else "paragraph"
                if any(not line.strip() for line in inner)
                else "line"
            )
        lines = chain(first, lines)
        if split == "line":
            yield from lines
            return
        if split == "file":
            yield "".join(lines)
            return
        held: list[str] = []
        for line in lines:
            border = HEADING.match(line) is not None if split == "article" else not line.strip()
            if border and held:
                yield "".join(held)
                held = []
            if line.strip():
                held.append(line)
        if held:
            yield "".join(held)

    def _json_lines(self, lines: Iterator[str], file: str) -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                self.counts["broken lines"] += 1
                continue
            if isinstance(record, str):
                yield record
            elif not isinstance(record, dict):
                self.counts["broken lines"] += 1
            else:
                yield self._field(record, f"{file}, line {number}")

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
            yield self._field(
                {key: value for key, value in record.items() if key is not None}, f"{file}, line {rows.line_num}"
            )

    def _field(self, record: dict[str, Any], where: str) -> str:
        if self.text_field not in record:
            raise InputError(
                f"{where} has no field {self.text_field!r}; it has {', '.join(map(repr, record)) or 'none'}: choose with --text-field"
            )
        value = record[self.text_field]
        if not isinstance(value, str):
            self.counts["broken lines"] += value is not None
            return ""
        return value

    def _parquet(self, file: str) -> Iterator[str]:
        parquet = needed("pyarrow.parquet", "pyarrow", "to read Parquet files")
        try:
            opened = parquet.ParquetFile(file)
        except Exception as error:
            raise InputError(f"{file} is no Parquet file, or is damaged ({str(error).splitlines()[0]})") from None
        if self.text_field not in opened.schema_arrow.names:
            raise InputError(
                f"{file} has no field {self.text_field!r}; it has {', '.join(map(repr, opened.schema_arrow.names))}: choose with --text-field"
            )
        for batch in opened.iter_batches(batch_size=256, columns=[self.text_field]):
            for value in batch.column(0).to_pylist():
                yield value if isinstance(value, str) else ""

    def _hub(self, name: str) -> Iterator[str]:
        datasets = needed("datasets", "datasets", "to read a corpus of the hub")
        path, _, part = name.removeprefix(HUB).partition(":")
        pieces = path.split("/")
        # NAME is 'name' or 'owner/name'; what comes after is the configuration
        repository, config = ("/".join(pieces[:2]), "/".join(pieces[2:])) if len(pieces) > 2 else (path, "")
        try:
            stream = datasets.load_dataset(repository, config or None, split=part or "train", streaming=True)
        except Exception as error:
            raise InputError(
                f"{name}: not to be had from the hub ({str(error).splitlines()[0]}); expected hf:OWNER/NAME[/CONFIG][:SPLIT]"
            ) from None
        for number, record in enumerate(stream, start=1):
            yield self._field(record, f"{name}, record {number}")


def found(source: str) -> list[str]:
    """The files that a path, a folder or a pattern names, in order."""
    path = Path(source)
    if path.is_dir():
        known = TEXT | LINES | TABLES | PARQUET
        inside = sorted(
            str(p)
            for p in path.rglob("*")
            if p.is_file() and (set(p.suffixes[-2:]) & known) and not p.name.startswith(".")
        )
        if not inside:
            raise InputError(f"{source} has no text files ({', '.join(sorted(known))}, packed or not)")
        return inside
    if path.is_file():
        return [source]
    matching = sorted(file for file in glob.glob(source, recursive=True) if Path(file).is_file())
    if not matching:
        raise InputError(f"no such corpus: {source} (a file, a folder, a pattern, or hf:NAME for one on the hub)")
    return matching


@contextmanager
def unpacked(file: str, packing: str | None) -> Iterator[IO[bytes]]:
    with Path(file).open("rb") as raw:
        if packing is None:
            yield raw
        elif packing == ".zst":
            zstandard = needed("zstandard", "zstandard", "to unpack .zst files")
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as stream:
                yield io.BufferedReader(stream)
        else:
            opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}[packing]
            with opener(raw) as stream:
                yield stream


def reservoir(items: Iterable[tuple[int, str]], count: int, rng: np.random.Generator) -> list[tuple[int, str]]:
    """A uniform sample of a stream of unknown length: the n-th item replaces a kept one with probability count / n."""
    kept: list[tuple[int, str]] = []
    for seen, item in enumerate(items, start=1):
        if len(kept) < count:
            kept.append(item)
        elif (place := int(rng.integers(seen))) < count:
            kept[place] = item
    return kept


def needed(module: str, package: str, purpose: str) -> Any:
    """An optional library, or a line that says how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library's remarks on its own insides
            return importlib.import_module(module)
    except ImportError:
        raise InputError(f"{package} is needed {purpose}; install it with: pip install {package}") from None
