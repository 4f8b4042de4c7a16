"""Tables that others write, with odd content: topics of words, matrices, documents as numbers."""

import io
from random import Random
from typing import Any

import numpy as np

from tests.fuzz import fixtures
from tests.fuzz.cases import Case, Expect, File, Maker
from tests.fuzz.inputs import Base
from tests.fuzz.texts import RAW

GIVEN_JSON = (
    "", "null", "[]", "{}", '"x"', "5", "[1]", '{"a": []}', '{"a": [1]}', '{"a": null}', '{"a": {"b": 1}}',
    '{"a": ["bread", 1]}', '{"bread": 1, "boat": 1}', '{"bread": true, "boat": 2}',
    '{"\\ud800": "x", "bread": "\\ud800"}', "[" * 3000, '{"a": NaN}',
    '{"kitchen": ["bread", "butter"], "sea": ["boat", "beach"]}',
    '{"[bold]": ["bread", "butter"], "[/]": ["boat", "beach"]}', '{"": ["bread", "butter"], " ": ["boat"]}',
    "{" * 3000, '{"a": ["bread"], "a": ["boat"]}', '{"bread": 1e999, "boat": 1}',
)  # fmt: skip
GIVEN_CSV = (
    "", "word,topic\n", "word,topic\nbread\n", "word\nbread\n", "topic,word\n1,bread\n1,butter\n2,boat\n",
    "word,topic\n,\n", "word,topic\nbread,1\nbread,2\nbutter,1\nboat,2\n", "word;topic\nbread;1\n",
    'word,topic\n"bread,1\n', "word,topic\nzzz,1\n", "\ufeffword,topic\nbread,1\nbutter,1\nboat,2\n",
    "word,topic\nbread,[/]\nbutter,[/]\nboat,[bold]\n", "word,topic\n" + "a," * 999, "word,topic\0\nbread,1\n",
    "word,topic\nbread,1,2,3\nbutter,1\nboat,2\n", "word,topic\n" + "x" * 200_000 + ",1\n",
)  # fmt: skip


def by_topics(rng: Random, id_: str) -> Case:
    """Topics that a user wrote."""
    name, pool = rng.choice((("odd.json", GIVEN_JSON), ("odd.csv", GIVEN_CSV), ("odd", GIVEN_CSV)))
    content = rng.choice((*(text.encode() for text in pool), *RAW))
    argv, uses = rng.choice((
        (("probe", "model", *fixtures.GIVEN, *fixtures.FAST), ("corpus.txt", "model")),
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
        *("", "1,2\n3\n", "a,b\n", "1;2\n", "1,2,\n", "nan,1\n1,inf\n", "1e999,0\n0,0\n", "1\n", ",\n,\n"),
        *("0x1,1\n1,1\n", "1_0,1\n1,1\n"),
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
    "", "\n", "0 1 2 3\n", "0 1\n\n2 3\n", "a b\n", "4\n", "-1\n", "1.5\n", "9" * 400 + "\n", "٣\n", "0,1,2\n",
    "0 1 2 " * 5000 + "\n", "0\n" * 1000, "\0", "0 1 2\r1 2\r", "0\t1\n", "\ufeff0 1\n", "0 " * 100_000, "1e3\n",
    "0x1\n", "²\n", "0\x0c1\n", "nan\n",
)  # fmt: skip


def by_documents(rng: Random, id_: str) -> Case:
    """Documents in the authors' format."""
    content = rng.choice((*RAW, *(text.encode() for text in ODD_DOCUMENTS)))
    name = rng.choice(("data.train_file", "data.dev_file"))
    argv = ("train", *fixtures.TRAIN, "--steps", "2", "--set", f"{name}=odd.txt")
    return Base(argv).case(id_, (), Expect.EITHER, File("odd.txt", content))


def makers() -> dict[str, Maker]:
    return {
        "given topics: content": by_topics,
        "matrix: content": by_matrix,
        "documents: content": by_documents,
    }
