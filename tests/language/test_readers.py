"""Files that are not as they should be: what is read of them, what is counted, what is refused."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.language.test_corpora import PACKERS
from topicscope import InputError
from topicscope.language import Corpus
from topicscope.language.readers import MOST_LINE, PEEK, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", (".txt", None)),
        ("A.JSONL.GZ", (".jsonl", ".gz")),
        ("a.b.csv", (".csv", None)),
        ("deep.gz/a.md.xz", (".md", ".xz")),
        ("hf:owner/name", ("hf:", None)),
        ("a.parquet", (".parquet", None)),
    ],
)
def test_kinds_by_their_names(name: str, kind: tuple[str, str | None]) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize("name", ["a", "a.gz", "a.pdf", "a.txt.pdf", "a.txt.gz.gz", "a.parquet.gz"])
def test_kinds_that_are_not_known(name: str) -> None:
    said = "a Parquet file has its own compression" if ".parquet" in name else "unknown kind of file"
    with pytest.raises(InputError, match=said):
        kind_of(name)


def read(path: Path, content: str | bytes, **options: Any) -> tuple[list[str], Counter[str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    corpus = Corpus([path], **options)
    return list(corpus), corpus.counts


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("a\nb\n\n\n", ["a\n", "b\n"]),  # blank lines at the end part nothing
        ("\n\na\nb", ["a\n", "b"]),
        ("a\n \nb\nc\n", ["a\n", "b\nc\n"]),
        ("a\n\n\n\nb\n", ["a\n", "b\n"]),
        (" = A = \nx\n\ny\n = B = \nz\n", [" = A = \nx\ny\n", " = B = \nz\n"]),
        ("x\n = A = \ny\n", ["x\n", " = A = \n", "y\n"]),  # a heading later makes no articles
        ("a\n" * PEEK + "\nb\n", ["a\n"] * PEEK + ["b\n"]),  # the first lines decide
        ("a\n" * (PEEK - 2) + "\nb\n", ["a\n" * (PEEK - 2), "b\n"]),
    ],
)
def test_how_plain_text_is_split(tmp_path: Path, content: str, texts: list[str]) -> None:
    assert read(tmp_path / "a.txt", content)[0] == texts
    assert read(tmp_path / "a.txt", content, split="file")[0] == [content]


def test_tables(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", "id\ttext\n1\ta, b\n")[0] == ["a, b"]
    assert read(tmp_path / "a.csv", 'id,text\n1,"a, b",beyond\n2\n')[0] == ["a, b"]
    texts, counts = read(tmp_path / "a.csv", b"text\none\ntw\ro\nth\0ree\n" + b"x" * 200_000 + b"\n")
    assert texts == ["one", "three", "x" * 200_000]
    assert counts == Counter({"documents": 3, "broken lines": 1})
    for content, said in (("id,body\n1,x\n", "line 2 has no field 'text'; it has 'id', 'body'"),):
        with pytest.raises(InputError, match=said):
            read(tmp_path / "a.csv", content)


def test_json_lines(tmp_path: Path) -> None:
    texts, counts = read(tmp_path / "a.jsonl", '\n{"text": null}\n"bare"\n7\n{"text": ["x"]}\n{"text": "y"}\n{\n')
    assert texts == ["bare", "y"]
    assert counts == Counter({"documents": 2, "empty": 2, "broken lines": 3})
    with pytest.raises(InputError, match=r"a\.jsonl, line 2 has no field 'body'; it has none"):
        read(tmp_path / "a.jsonl", '\n{}\n{"body": "x"}\n', text_field="body")
    texts, counts = read(tmp_path / "a.jsonl", '{"body": "x"}\n\n{}\n', text_field="body")
    assert (texts, counts) == (["x"], Counter({"documents": 1, "empty": 1, "broken lines": 1}))


def test_a_wrong_field_is_said_of_packed_files_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no field 'text'"):
        read(tmp_path / "a.jsonl.gz", gzip.compress(b'{"body": "x"}\n'))
    texts, counts = read(tmp_path / "a.txt.gz", b"this is not packed\n")
    assert (texts, counts) == ([], Counter({"broken lines": 1}))


def test_what_is_no_text_in_parquet_is_empty(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1, 2], "text": ["a", None]}), tmp_path / "a.parquet")
    corpus = Corpus([tmp_path / "a.parquet"])
    assert list(corpus) == ["a"]
    assert corpus.counts == Counter({"documents": 1, "empty": 1})
    assert list(Corpus([tmp_path / "a.parquet"], "id")) == []


def test_the_hub_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.ModuleType("datasets")
    monkeypatch.setitem(sys.modules, "datasets", fake)
    fake.load_dataset = lambda *_, **__: [{"body": "b"}, {"text": "a"}]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="hf:owner/name, record 1 has no field 'text'; it has 'body'"):
        list(Corpus(["hf:owner/name"]))

    def cut_off(*_: Any, **__: Any) -> Iterator[dict[str, str]]:
        yield {"text": "a"}
        raise ConnectionError("gone")

    fake.load_dataset = cut_off  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"hf:owner/name, record 2 cannot be read from the hub \(gone\)"):
        list(Corpus(["hf:owner/name"]))

    def missing(*_: Any, **__: Any) -> None:
        raise ValueError("not found\nat all")

    fake.load_dataset = missing  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"cannot be loaded from the hub \(not found at all\)"):
        list(Corpus(["hf:owner/name"]))


@pytest.mark.parametrize(
    ("line", "text", "name"),
    [
        (b'{"text": "a \\ud800 b"}', "a \ufffd b", "lines with bad encoding"),
        (b'"\\udc00"', "\ufffd", "lines with bad encoding"),
        (b'{"text": "caf\xe9"}', "caf\ufffd", "lines with bad encoding"),
        (b"[" * 100_000, None, "broken lines"),
        (b'{"text": "x", "n": ' + b"7" * 5000 + b"}", None, "broken lines"),
        (b'{"body": "x"}', None, "broken lines"),
        (b'{"text": {"x": 1}}', None, "broken lines"),
        (b"\0\0\0", None, "broken lines"),
    ],
)
def test_one_bad_line_ends_nothing(tmp_path: Path, line: bytes, text: str | None, name: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\n' + line + b'\n{"text": "three"}\n')
    corpus = Corpus([tmp_path / "a.jsonl"])
    assert list(corpus) == ["one", *([] if text is None else [text]), "three"]
    assert corpus.counts[name] == 1
    assert f"1 {name} (a.jsonl, line 2" in corpus.summary()


def test_pairs_of_halves_are_one_character(tmp_path: Path) -> None:
    assert read(tmp_path / "a.jsonl", b'"\\ud83d\\ude00"')[0] == ["\U0001f600"]


@pytest.mark.parametrize("packing", [packing for packing in PACKERS if packing])
def test_a_flipped_byte_in_a_packed_file(tmp_path: Path, packing: str) -> None:
    """Wherever it is, reading comes to an end, and later files are read."""
    rng = np.random.default_rng(0)
    lines = [json.dumps({"text": " ".join(map(str, rng.integers(0, 10**6, 40)))}) for _ in range(2000)]
    packed = PACKERS[packing]("\n".join(lines).encode())
    (tmp_path / "b.jsonl").write_text('{"text": "after"}\n')
    faults = 0
    for place in (0, 5, 12, len(packed) // 3, len(packed) // 2, len(packed) - 30, len(packed) - 6, len(packed) - 1):
        broken = bytearray(packed)
        broken[place] ^= 0x55
        (tmp_path / f"a.jsonl{packing}").write_bytes(broken)
        corpus = Corpus([tmp_path / f"a.jsonl{packing}", tmp_path / "b.jsonl"])
        texts = list(corpus)
        assert texts[-1] == "after"
        faults += corpus.counts["broken lines"] > 0
    assert faults >= 4
    assert f"a.jsonl{packing}, line" in corpus.summary() or not corpus.counts["broken lines"]


def test_what_came_before_the_damage_counts(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"text": "x"}\n' * 50))
    packed[-6] ^= 1  # the check at the end
    texts, counts = read(tmp_path / "a.jsonl.gz", bytes(packed))
    assert len(texts) in (0, 50)
    assert counts["broken lines"] == 1


def test_a_damaged_row_group_of_parquet_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"text {i} " + "xyz " * 50 for i in range(900)]
    parquet.write_table(
        pa.table({"text": texts}),
        path,
        row_group_size=300,
        compression="gzip",
        use_dictionary=False,
        write_statistics=False,
    )
    start = parquet.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start + 60 : start + 90] = bytes(30)
    path.write_bytes(content)
    corpus = Corpus([path])
    assert list(corpus) == texts[:300] + texts[600:]
    assert corpus.counts == Counter({"documents": 600, "broken lines": 300})
    assert "300 broken lines (a.parquet, row group 2: " in corpus.summary()


def test_a_parquet_file_without_its_end_is_left_out_where_others_remain(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"text": ["a"]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    corpus = Corpus([tmp_path])
    assert list(corpus) == ["a"]
    assert "1 broken lines" in corpus.summary()
    assert "b.parquet is not Parquet, or is damaged" in corpus.summary()
    with pytest.raises(InputError, match=r"b\.parquet is not Parquet, or is damaged"):
        Corpus([tmp_path / "b.parquet"]).check()


def test_bytes_that_are_no_text_in_parquet(tmp_path: Path) -> None:
    array = pa.Array.from_buffers(pa.string(), 2, [None, *pa.array([b"ok", b"caf\xe9"]).buffers()[1:]])
    parquet.write_table(pa.table({"text": array}), tmp_path / "a.parquet")
    corpus = Corpus([tmp_path / "a.parquet"])
    assert list(corpus) == ["ok", "caf\ufffd"]
    assert corpus.counts["lines with bad encoding"] == 1


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text\none\n"two\nthree\n')
    corpus = Corpus([tmp_path / "a.csv"])
    assert list(corpus) == ["one"]
    assert corpus.summary() == "1 documents, 1 broken lines (a.csv, line 4: a quote before it is not closed)"
    assert read(tmp_path / "b.csv", 'text\n"one\ntwo"')[0] == ["one\ntwo"]  # one that is


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.txt.gz", "a.jsonl.xz"])
def test_lines_without_end_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("topicscope.language.readers.MOST_LINE", 1000)
    first = {".txt": "one\n", ".jsonl": '"one"\n', ".csv": "text\none\n"}[Path(name.removesuffix(".gz")).suffixes[0]]
    last = {".txt": "two\n", ".jsonl": '"two"\n', ".csv": "two\n"}[Path(name).suffixes[0]]
    content = (first + '"' * (".csv" in name) + "x" * 100_000 + "\n" + last).encode()
    packing = Path(name).suffix if len(Path(name).suffixes) == 2 else ""
    texts, counts = read(tmp_path / name, PACKERS[packing](content))
    assert [text.strip() for text in texts] == ["one", "two"]
    assert counts["broken lines"] == 1


def test_documents_without_end_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicscope.language.readers.MOST_LINE", 1000)
    texts, counts = read(tmp_path / "a.txt", "abcd\n" * 2000 + "\nend\n", split="paragraph")
    assert texts == ["abcd\n" * 200, "end\n"]
    assert counts == Counter({"documents": 2, "broken lines": 1})
    texts, counts = read(tmp_path / "a.txt", "abcd\n" * 2000, split="file")
    assert (texts, counts["broken lines"]) == (["abcd\n" * 200], 1)


def test_a_bomb_is_read_as_a_stream(tmp_path: Path) -> None:
    """A hundred thousand times as large unpacked, without one end of a line: a few lines' worth of memory."""
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(bytes(2**27)) + gzip.compress(b"\nend\n"))
    tracemalloc.start()
    try:
        texts = list(Corpus([tmp_path / "a.txt.gz"], split="line"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [text.strip() for text in texts] == ["end"]
    assert peak < 2.5 * MOST_LINE
