"""Files that are not as they should be: what is read of them, what is counted, what is refused."""

from __future__ import annotations

import gzip
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from topicscope import InputError
from topicscope.language import Corpus, needed
from topicscope.language.readers import PEEK, kind_of


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
    said = "a Parquet file is packed inside" if ".parquet" in name else "kind of file not known"
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
    with pytest.raises(InputError, match=r"a\.jsonl, line 3 has no field 'body'; it has none"):
        read(tmp_path / "a.jsonl", '{"body": "x"}\n\n{}\n', text_field="body")


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
    fake.load_dataset = lambda *_, **__: [{"text": "a"}, {"body": "b"}]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="hf:owner/name, record 2 has no field 'text'; it has 'body'"):
        list(Corpus(["hf:owner/name"]))

    def missing(*_: Any, **__: Any) -> None:
        raise ValueError("not found\nat all")

    fake.load_dataset = missing  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"cannot be loaded from the hub \(not found\)"):
        list(Corpus(["hf:owner/name"]))


def test_a_missing_library_is_named() -> None:
    assert needed("json", "json", "to read") is sys.modules["json"]
    with pytest.raises(InputError, match="some-package is needed to do it; install it with: pip install some-package"):
        needed("no_such_module_at_all", "some-package", "to do it")
