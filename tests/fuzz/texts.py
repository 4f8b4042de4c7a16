"""Texts that others write, with odd content: corpora in every format, stop words, words."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz import fixtures
from tests.fuzz.cases import Case, Expect, File, Maker
from tests.fuzz.inputs import TEXT, Base
from tests.language.tiny import WORDS

GOOD = fixtures.texts(20)
LINE = json.dumps({"text": GOOD[0]})
PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}

ODD_LINES = (
    '{"text": "\\ud800 lone \\udfff"}', '{"text": null}', '{"text": 5}', '{"text": []}', '{"other": "x"}', "5",
    "null", "[]", '"text"', "{", "{}", "", " ", '{"text": ""}', '{"text": "\\u0000"}', '{"text": NaN}',
    '{"text": "x", "text": "y"}', "[" * 3000 + "]" * 3000, '{"text": ' + "[" * 3000, '{"text": ' + "9" * 5000 + "}",
    '{"text": {"text": "x"}}', "\ufeff" + LINE, '{"text": "' + "bread " * 50_000 + '"}',
    '{"text": "' + "x" * 200_000 + '"}', "'single'", '{"text": "a"} trailing',
)  # fmt: skip
ODD_TEXTS = (
    "", "\n", " \n \n", "\0" * 1000, "x", "x" * 300_000, "bread " * 60_000, "\ufeff" + GOOD[0], "\r\n".join(GOOD),
    "\r".join(GOOD), "\u2028".join(GOOD), "\x0c".join(GOOD), " = Heading = \n" * 50, " = a = \n bread boat\n" * 20,
    "\n\n".join(GOOD), "☃" * 1000, "the and of " * 100, "bread\n" * 50, "日本語 " * 100, "🙂" * 500, "\u0301" * 1000,
    "[MASK] [CLS] [SEP] " * 50, "1 2 3 " * 100,
)  # fmt: skip
ODD_TABLES = (
    "", "text\n", "text", "id,text\n", "id\n1\n", '"text\n', 'text\n"open\n' + "x\n" * 50, "text,text\na,b\n",
    ",,,\n,,,\n", "text\n" + "\n".join(GOOD), "text\n" + "a,b,c\n" * 10, "text\0\nx\n",
    "\ufefftext\n" + "\n".join(GOOD), "text;id\nx;1\n", "text\n" + "x" * 300_000 + "\n",
    'text\n"' + "bread\n" * 1000 + '"\n', "TEXT\nx\n", " text\nx\n", "text\r" + "\r".join(GOOD),
)  # fmt: skip
RAW = (
    b"\xff\xfe" + "bread boat\n".encode("utf-16-le") * 20, b"caf\xe9 bread boat\n" * 20, bytes(range(256)) * 20,
    b"\x00", b"\x1f\x8b",
)  # fmt: skip


def by_corpus(kind: str) -> Maker:
    """A corpus of one kind of file; the command counts what is broken, or refuses."""

    def make(rng: Random, id_: str) -> Case:
        ending = {"text": ".txt", "lines": ".jsonl", "table": ".csv"}[kind]
        if rng.random() < 0.15:
            content = rng.choice(RAW)
        elif kind == "lines":
            good = [json.dumps({"text": text}) for text in GOOD] if rng.random() < 0.7 else []
            lines = [*good, *rng.choices(ODD_LINES, k=rng.randrange(1, 4))]
            rng.shuffle(lines)
            content = "\n".join(lines).encode("utf-8", "surrogatepass")
        else:
            content = rng.choice(ODD_TEXTS if kind == "text" else ODD_TABLES).encode("utf-8", "surrogatepass")
        if rng.random() < 0.3:
            packing = rng.choice(sorted(PACK))
            ending += packing
            if rng.random() < 0.6:  # otherwise the name says packed, and it is not
                content = PACK[packing](content)
            if rng.random() < 0.3 and content:
                content = content[: rng.randrange(len(content))]
        return read_by(rng, id_, f"odd{ending}", content)

    return make


def read_by(rng: Random, id_: str, name: str, content: bytes) -> Case:
    """One of the commands that read a corpus."""
    argv, uses = rng.choice((
        (("topics", name, "--tokenizer", "model", "--min-documents", "1", *fixtures.TOPICS), ("model",)),
        (("pretrain", *fixtures.PRETRAIN[2:], "--corpus", name, "--steps", "2", "--snapshots", "none"), ()),
        (("probe", "model", "--topics-from", "topics", *fixtures.PROBE[2:], *fixtures.FAST, "--corpus", name), TEXT),
    ))  # fmt: skip
    return Base(argv, uses).case(id_, (), Expect.EITHER, File(name, content))


def by_parquet(rng: Random, id_: str) -> Case:
    """A Parquet file that is none, is cut off, or has columns of other types. Made here: the reader forks."""
    import pyarrow
    import pyarrow.parquet

    columns: tuple[Any, ...] = (
        *(
            {"text": [1, 2, 3]},
            {"text": [None, None]},
            {"other": ["x"]},
            {"text": []},
            {"text": [["a"], ["b"]]},
            {"text": GOOD},
        ),
        *(
            {"text": [b"\xff\xfe", b"x"]},
            {"text": [{"a": 1}]},
            {"text": [1.5, float("nan")]},
            {"text": [True]},
            {"text": ["", ""]},
        ),
    )
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(rng.choice(columns)), buffer)
    content = buffer.getvalue()
    if rng.random() < 0.4:
        place = rng.randrange(len(content))
        content = rng.choice(
            (content[:place], content[:place] + b"\xff" + content[place + 1 :], b"", b"PAR1", b"PAR1" * 3)
        )
    return read_by(rng, id_, "odd.parquet", content)


def by_stop_words(rng: Random, id_: str) -> Case:
    content = rng.choice((*RAW, *(text.encode() for text in ODD_TEXTS), "\n".join(WORDS).encode()))
    argv = ("topics", "corpus.txt", "--tokenizer", "model", "--min-documents", "1", *fixtures.TOPICS)
    return Base(argv, ("corpus.txt", "model")).case(
        id_, ("--stop-words", "odd.txt"), Expect.EITHER, File("odd.txt", content)
    )


def by_words(rng: Random, id_: str) -> Case:
    """Words to map: unknown, odd, doubled, many."""
    pool = (
        *("bread", "boat", "/", "zzz", "", " ", "[MASK]", "[bold]", "[/]", "é☃"),
        "x" * 5000,
        *("\0x", "🙂", "bread boat", "\udcff", "\n"),
    )
    chosen = [word for word in rng.choices(pool, k=rng.randrange(1, 8)) if "\0" not in word]
    return Base(("words", "model", *chosen), ("model",)).case(id_, ("--out", "out"), Expect.EITHER)


def makers() -> dict[str, Maker]:
    return {
        **{f"corpus: {kind}": by_corpus(kind) for kind in ("text", "lines", "table")},
        "corpus: parquet": by_parquet,
        "stop words: content": by_stop_words,
        "words: content": by_words,
    }
