"""Texts from files, folders and hubs, one after another: memory does not grow with the corpus.

corpus = Corpus(["articles/*.jsonl.gz"], text_field="text")
for text in corpus: ...
corpus.counts   # documents, broken lines, lines with bad encoding
"""

import glob
import hashlib
import os
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from topicscope.ground import InputError, Stream, checked_file, generator, one_line, require, shown
from topicscope.language.readers import (
    BROKEN,
    ENCODING,
    HUB,
    KNOWN,
    MOST_FILE,
    NAMED,
    TEXT,
    Document,
    Reader,
    Split,
    UnreadableFileError,
    kind_of,
    suffixes,
)

OTHER_PACKINGS = {".lz4", ".zip", ".7z", ".rar", ".z", ".br", ".lzma"}  # that are not read
UNLABELLED = "without a label"
CHECKED = 2500  # documents whose labels are looked at before any work
MOST_LABELS = 1000
DOCUMENTS_PER_LABEL = 2  # at least, on average: of more labels hardly any comes twice, as of titles
HASHED = 2**30  # bytes up to which a corpus is read to see whether it has changed; of a larger one the sizes count

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
        if not self.sources:
            raise InputError("no corpus is given; name files, a folder, or hf:NAME for one on the hub")
        self.files = [file for source in self.sources for file in files_of(str(source))]
        for file in self.files:
            if kind_of(file)[0] in TEXT and self.label_field is not None:
                raise InputError(
                    f"{shown(file)} is plain text, which has no field {self.label_field!r}; labels are read from JSON "
                    "lines, CSV and Parquet"
                )

    def __iter__(self) -> Generator[str]:
        return (document.text for document in self.documents())

    def documents(self) -> Generator[Document]:
        self.counts.clear()
        self.places.clear()
        reader, unreadable = Reader(self.text_field, self.split, self.counts, self.places), None
        reader.label_field = self.label_field
        for file in self.files:
            try:
                for document in reader.documents(file):
                    there = bool(document.text.strip())
                    self.counts["documents" if there else "empty"] += 1
                    if there:
                        if self.label_field is not None and document.label is None:
                            self.counts[UNLABELLED] += 1
                        yield document
            except UnreadableFileError as error:
                reader.fault(BROKEN, f"{error}")
                unreadable = error
        if unreadable is not None and not self.counts["documents"]:
            raise unreadable  # refused only where no other file has a text
        if self.label_field is not None and 0 < self.counts["documents"] == self.counts[UNLABELLED]:
            names = ", ".join(f"{name!r:.60}" for name in reader.fields)
            raise InputError(f"no document has a label in the field {self.label_field!r}; the corpus has {names}")
        self.whole = self._summary()

    def sample(self, count: int | None, seed: int = 0) -> list[str]:
        """At most `count` texts, each with the same chance, in their order; None: all of them."""
        return [document.text for document in self.sample_documents(count, seed)]

    def sample_documents(self, count: int | None, seed: int = 0) -> list[Document]:
        return [document for _, document in self.numbered_sample(count, seed)]

    def numbered_sample(self, count: int | None, seed: int = 0) -> list[tuple[int, Document]]:
        """The same with their numbers among all documents, from 1.

        Reads the whole corpus once and holds `count` texts in memory.
        """
        every = enumerate(self.documents(), start=1)
        drawn = list(every) if count is None else reservoir(every, count, generator(seed, Stream.SAMPLED_DOCUMENTS))
        if not drawn:
            raise self._without_text()
        return sorted(drawn)

    def check_libraries(self) -> None:
        for kind, packing in map(kind_of, self.files):
            require(["datasets"] if kind == HUB else [], "a corpus of the hub")
            require(["zstandard"] if packing == ".zst" else [], "a corpus in .zst files")

    def check(self) -> None:
        """Raise InputError unless the files have a text: reads up to the first one. The hub is not asked.

        With a field of labels, those of the first CHECKED documents have to be usable, and some two have to differ.
        """
        self.check_libraries()
        if not any(file.startswith(HUB) for file in self.files):
            with closing(self.documents()) as documents:
                first = list(islice(documents, 1 if self.label_field is None else CHECKED))
                if not first:
                    raise self._without_text()
                if self.label_field is not None:
                    labels = [document.label for document in first]
                    more = (d.label for d in documents if d.label is not None and d.label not in labels)
                    few = len({*labels} - {None}) < 2  # of texts in order of their labels: read on
                    with self.blamed():
                        usable_labels([*labels, next(more, None)] if few else labels, self.label_field)

    def _without_text(self) -> InputError:
        return InputError(
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
            faults = {
                BROKEN: f"{self.counts[BROKEN]} of {every} documents could not be read",
                ENCODING: f"{self.counts[ENCODING]} lines have a bad encoding",
            }
            said = [f"{text} (the first: {self.places[name][0]})" for name, text in faults.items() if self.counts[name]]
            raise InputError("; ".join([f"{error}", *said])) from None

    def fingerprint(self) -> str:
        """Shows whether a corpus has changed: a digest of the files' bytes (of large ones of their sizes, of one on a
        hub of its name).
        """
        digest = hashlib.sha256()
        local = [file for file in self.files if not file.startswith(HUB)]
        sizes = {file: checked_file(file, "the corpus", MOST_FILE).stat().st_size for file in local}
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
        """What was read, in words: '120 documents, 2 broken lines (articles.jsonl, line 17; articles.jsonl, line 40)'.

        Of the last pass that came to the end of the corpus, or else of the present one.
        """
        return self._summary() if self.whole is None else self.whole

    def _summary(self) -> str:
        names = ("documents", UNLABELLED, "empty", BROKEN, ENCODING)
        return (
            ", ".join(f"{self.counts[name]} {name}{self._where(name)}" for name in names if self.counts[name])
            or "empty"
        )

    def _where(self, name: str) -> str:
        places = self.places.get(name, [])
        more = "; ..." if len(places) > NAMED else ""
        return f" ({'; '.join(places[:NAMED])}{more})" if places else ""


def unread(summary: str) -> list[str]:
    broken = BROKEN in summary or ENCODING in summary
    return [f"Not all of the text could be read: {summary}"] if broken else []


def usable_labels(labels: Iterable[str | None], name: str) -> Counter[str]:
    """How many documents have each label, the most common first. Raise InputError where labels cannot be topics."""
    counts = Counter(sorted(label for label in labels if label is not None))
    if len(counts) < 2:
        (only,) = counts or ("none",)
        raise InputError(f"the field {name!r} has fewer than two different labels ({only!r:.60}); two are compared")
    if len(counts) > MOST_LABELS or counts.total() < DOCUMENTS_PER_LABEL * len(counts):
        raise InputError(
            f"the field {name!r} has {len(counts):,} different labels in {counts.total():,} documents; expected at "
            f"most {MOST_LABELS:,}, and at least {DOCUMENTS_PER_LABEL} documents per label on average"
        )
    return Counter(dict(counts.most_common()))


def files_of(source: str) -> list[str]:
    if source.startswith(HUB):
        return [source]
    path = Path(source)
    try:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if not p.is_dir() and _text(p))
            files = sorted(str(p) for p in inside if not any(x.startswith(".") for x in p.relative_to(path).parts))
            missing = f"{shown(source)} has no text files ({', '.join(sorted(KNOWN))}, compressed or not)"
        else:
            matching = [source] if os.path.lexists(path) else sorted(glob.glob(source, recursive=True))
            files = [file for file in matching if not Path(file).is_dir()]
            missing = f"no such corpus: {shown(source)} (a file, a folder, a pattern, or hf:NAME for one on the hub)"
    except (OSError, ValueError, re.error) as error:  # a null character in the name, a folder that may not be read
        raise InputError(f"the corpus {shown(source)} cannot be read: {one_line(error)}") from None
    if not files:
        raise InputError(missing)
    return [str(checked_file(file, "the corpus", MOST_FILE)) for file in files]


def _text(path: Path) -> bool:
    """a.txt, a.txt.gz, and a.txt.lz4, whose packing cannot be read, which reading says; not a.txt.md5."""
    kind, packing = suffixes(path)
    other = path.suffix.lower() in OTHER_PACKINGS and path.with_suffix("").suffix.lower() in KNOWN
    return kind in KNOWN or (packing is None and other)


def reservoir(items: Iterable[tuple[int, Text]], count: int, rng: np.random.Generator) -> list[tuple[int, Text]]:
    """A uniform sample of a stream of unknown length: the n-th item replaces a drawn one with probability count / n."""
    drawn: list[tuple[int, Text]] = []
    for seen, item in enumerate(items, start=1):
        if len(drawn) < count:
            drawn.append(item)
        elif (place := int(rng.integers(seen))) < count:
            drawn[place] = item
    return drawn
