"""Files that others write, with odd content: corpora, stop words, topics, matrices, documents."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from tests.fuzz import fixtures
from tests.fuzz.cases import Case, Expect, File, Maker
from tests.fuzz.inputs import TEXT, Base

GOOD = fixtures.texts(20)
LINE = json.dumps({"text": GOOD[0]})
PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}

ODD_LINES = (
    *(
        '{"text": "\\ud800 lone \\udfff"}',
        '{"text": null}',
        '{"text": 5}',
        '{"text": []}',
        '{"other": "x"}',
        "5",
        "null",
        "[]",
    ),
    *(
        '"text"',
        "{",
        "{}",
        "",
        " ",
        '{"text": ""}',
        '{"text": "\\u0000"}',
        '{"text": NaN}',
        '{"text": "x", "text": "y"}',
    ),
    *(
        "[" * 3000 + "]" * 3000,
        '{"text": ' + "[" * 3000,
        '{"text": ' + "9" * 5000 + "}",
        '{"text": {"text": "x"}}',
        "\ufeff" + LINE,
    ),
    *(
        '{"text": "' + "bread " * 50_000 + '"}',
        '{"text": "' + "x" * 200_000 + '"}',
        "'single'",
        '{"text": "a"} trailing',
    ),
)
ODD_TEXTS = (
    *(
        "",
        "\n",
        " \n \n",
        "\0" * 1000,
        "x",
        "x" * 300_000,
        "bread " * 60_000,
        "\ufeff" + GOOD[0],
        "\r\n".join(GOOD),
        "\r".join(GOOD),
    ),
    *(
        "\u2028".join(GOOD),
        "\x0c".join(GOOD),
        " = Heading = \n" * 50,
        " = a = \n bread boat\n" * 20,
        "\n\n".join(GOOD),
        "☃" * 1000,
    ),
    *(
        "the and of " * 100,
        "bread\n" * 50,
        "日本語 " * 100,
        "🙂" * 500,
        "\u0301" * 1000,
        "[MASK] [CLS] [SEP] " * 50,
        "1 2 3 " * 100,
    ),
)
ODD_TABLES = (
    *(
        "",
        "text\n",
        "text",
        "id,text\n",
        "id\n1\n",
        '"text\n',
        'text\n"open\n' + "x\n" * 50,
        "text,text\na,b\n",
        ",,,\n,,,\n",
    ),
    *(
        "text\n" + "\n".join(GOOD),
        "text\n" + "a,b,c\n" * 10,
        "text\0\nx\n",
        "\ufefftext\n" + "\n".join(GOOD),
        "text;id\nx;1\n",
    ),
    *(
        "text\n" + "x" * 300_000 + "\n",
        'text\n"' + "bread\n" * 1000 + '"\n',
        "TEXT\nx\n",
        " text\nx\n",
        "text\r" + "\r".join(GOOD),
    ),
)
RAW = (
    b"\xff\xfe" + "bread boat\n".encode("utf-16-le") * 20,
    b"caf\xe9 bread boat\n" * 20,
    bytes(range(256)) * 20,
    b"\x00",
    b"\x1f\x8b",
)


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
    content = rng.choice((*RAW, *(text.encode() for text in ODD_TEXTS), "\n".join(fixtures.WORDS).encode()))
    argv = ("topics", "corpus.txt", "--tokenizer", "model", "--min-documents", "1", *fixtures.TOPICS)
    return Base(argv, ("corpus.txt", "model")).case(
        id_, ("--stop-words", "odd.txt"), Expect.EITHER, File("odd.txt", content)
    )


GIVEN_JSON = (
    *(
        "",
        "null",
        "[]",
        "{}",
        '"x"',
        "5",
        "[1]",
        '{"a": []}',
        '{"a": [1]}',
        '{"a": null}',
        '{"a": {"b": 1}}',
        '{"a": ["bread", 1]}',
    ),
    *(
        '{"bread": 1, "boat": 1}',
        '{"bread": true, "boat": 2}',
        '{"\\ud800": "x", "bread": "\\ud800"}',
        "[" * 3000,
        '{"a": NaN}',
    ),
    *(
        '{"kitchen": ["bread", "butter"], "sea": ["boat", "beach"]}',
        '{"[bold]": ["bread", "butter"], "[/]": ["boat", "beach"]}',
    ),
    *(
        '{"": ["bread", "butter"], " ": ["boat"]}',
        "{" * 3000,
        '{"a": ["bread"], "a": ["boat"]}',
        '{"bread": 1e999, "boat": 1}',
    ),
)
GIVEN_CSV = (
    *(
        "",
        "word,topic\n",
        "word,topic\nbread\n",
        "word\nbread\n",
        "topic,word\n1,bread\n1,butter\n2,boat\n",
        "word,topic\n,\n",
    ),
    *(
        "word,topic\nbread,1\nbread,2\nbutter,1\nboat,2\n",
        "word;topic\nbread;1\n",
        'word,topic\n"bread,1\n',
        "word,topic\nzzz,1\n",
    ),
    *(
        "\ufeffword,topic\nbread,1\nbutter,1\nboat,2\n",
        "word,topic\nbread,[/]\nbutter,[/]\nboat,[bold]\n",
        "word,topic\n" + "a," * 999,
    ),
    *(
        "word,topic\0\nbread,1\n",
        "word,topic\nbread,1,2,3\nbutter,1\nboat,2\n",
        "word,topic\n" + "x" * 200_000 + ",1\n",
    ),
)


def by_topics(rng: Random, id_: str) -> Case:
    """Topics that a user wrote."""
    name, pool = rng.choice((("odd.json", GIVEN_JSON), ("odd.csv", GIVEN_CSV), ("odd", GIVEN_CSV)))
    content = rng.choice((*(text.encode() for text in pool), *RAW))
    argv, uses = rng.choice((
        (("probe", "model", *fixtures.PROBE, *fixtures.FAST), ("corpus.txt", "model")),
        (("timeline", "pre", *fixtures.PROBE), ("corpus.txt", "pre")),
    ))  # fmt: skip
    return Base(argv, uses).case(id_, ("--topics-from", name), Expect.EITHER, File(name, content))


HEADS = (
    *(b"{}", b"null", b"[]", b'{"a":5}', b'{"value":{"dtype":"X","shape":[1]}}'),
    b'{"value":{"dtype":"F64","shape":[5,5],"data_offsets":[0,200]}}',
    b'{"value":{"dtype":"F64","shape":[99999999,99999999],"data_offsets":[0,8]}}',
)
"""Of .safetensors files; one of them is right."""


def by_matrix(rng: Random, id_: str) -> Case:
    """A matrix that is none, or of odd shape, type or numbers."""
    shape = rng.choice(((5, 5), (0, 0), (5, 0), (1, 1), (5,), (), (5, 5, 5), (4, 4), (5, 6), (1000, 2)))
    dtype = rng.choice(("f8", "f4", "f2", "i8", "u1", "?", "c16", "U3", "S3", "M8[s]", ">f8", "V8"))
    number: Any = rng.choice((0, 1, 1e308, 1e-300, float("nan"), float("inf"), -1e200))
    with np.errstate(all="ignore"):
        filled = np.full(shape, number) if dtype in ("f8", "f4", "f2", "c16", ">f8") else np.zeros(shape)
        array = filled.astype(dtype) if dtype not in ("M8[s]", "V8") else np.zeros(shape, dtype)
    ending = rng.choice((".npy", ".csv", ".safetensors"))
    buffer = io.BytesIO()
    np.save(buffer, array)
    content = buffer.getvalue()
    texts = (
        "",
        "1,2\n3\n",
        "a,b\n",
        "1;2\n",
        "1,2,\n",
        "nan,1\n1,inf\n",
        "1e999,0\n0,0\n",
        "1\n",
        ",\n,\n",
        "0x1,1\n1,1\n",
        "1_0,1\n1,1\n",
    )
    if ending == ".csv":
        content = rng.choice((*(text.encode() for text in texts), *RAW, content))
    elif ending == ".safetensors" or rng.random() < 0.3:
        head = rng.choice(HEADS)
        size = rng.choice((len(head), 2**63, 0, 10**9))
        content = rng.choice((size.to_bytes(8, "little") + head + b"\0" * 200, content[: rng.randrange(len(content))]))
    name = f"odd{ending}"
    argv = rng.choice((
        ("theory", "theorem1", "--topics", "2", "--words-per-topic", "2", "--embedding", name),
        ("theory", "theorem2", "--topics", "2", "--words-per-topic", "2", "--matrix", name),
        ("train", *fixtures.TRAIN, "--steps", "2", "--value", "given", "--set", f"model.value_matrix={name}"),
        ("train", *fixtures.TRAIN, "--steps", "2", "--prior", "given", "--set", f"documents.proportions={name}"),
    ))  # fmt: skip
    return Base(argv).case(id_, (), Expect.EITHER, File(name, content))


ODD_DOCUMENTS = (
    *(
        "",
        "\n",
        "0 1 2 3\n",
        "0 1\n\n2 3\n",
        "a b\n",
        "4\n",
        "-1\n",
        "1.5\n",
        "9" * 400 + "\n",
        "٣\n",
        "0,1,2\n",
        "0 1 2 " * 5000 + "\n",
    ),
    *(
        "0\n" * 1000,
        "\0",
        "0 1 2\r1 2\r",
        "0\t1\n",
        "\ufeff0 1\n",
        "0 " * 100_000,
        "1e3\n",
        "0x1\n",
        "²\n",
        "0\x0c1\n",
        "nan\n",
    ),
)


def by_documents(rng: Random, id_: str) -> Case:
    """Documents in the authors' format."""
    content = rng.choice((*RAW, *(text.encode() for text in ODD_DOCUMENTS)))
    name = rng.choice(("data.train_file", "data.dev_file"))
    argv = ("train", *fixtures.TRAIN, "--steps", "2", "--set", f"{name}=odd.txt")
    return Base(argv).case(id_, (), Expect.EITHER, File("odd.txt", content))


def by_words(rng: Random, id_: str) -> Case:
    """Words to map: unknown, odd, doubled, many."""
    pool = (
        "bread",
        "boat",
        "/",
        "zzz",
        "",
        " ",
        "[MASK]",
        "[bold]",
        "[/]",
        "é☃",
        "x" * 5000,
        "\0x",
        "🙂",
        "bread boat",
        "\udcff",
        "\n",
    )
    chosen = [word for word in rng.choices(pool, k=rng.randrange(1, 8)) if "\0" not in word]
    return Base(("words", "model", *chosen), ("model",)).case(id_, ("--out", "out"), Expect.EITHER)


def makers() -> dict[str, Maker]:
    return {
        **{f"corpus: {kind}": by_corpus(kind) for kind in ("text", "lines", "table")},
        "corpus: parquet": by_parquet,
        "stop words: content": by_stop_words,
        "given topics: content": by_topics,
        "matrix: content": by_matrix,
        "documents: content": by_documents,
        "words: content": by_words,
    }
