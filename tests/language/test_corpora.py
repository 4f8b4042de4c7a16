"""Texts of files, folders and the hub: what is read of them, what is counted, what is refused."""

import bz2
import gzip
import json
import lzma
import os
import sys
import tracemalloc
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from tests.language.samples import model_folder
from topicscope import InputError
from topicscope.language import Corpus, ProbeConfig, TopicsConfig, fit_corpus, probe, unread
from topicscope.language.corpora import MOST_LINE, PEEK, kind_of, reservoir

TEXTS = ["first text", "second, with a comma", "third \u00e9\u4e2d"]


PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
PACKERS |= {".bz2": bz2.compress, ".zst": lambda data: zstandard.ZstdCompressor().compress(data)}
CONTENTS = {
    ".jsonl": "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(TEXTS)),
    ".csv": "id,text\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(TEXTS)),
    ".txt": "\n".join(TEXTS),
}


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("kind", CONTENTS)
def test_every_kind_packed_every_way(tmp_path: Path, kind: str, packing: str) -> None:
    path = tmp_path / f"a{kind}{packing}"
    path.write_bytes(PACKERS[packing](CONTENTS[kind].encode()))
    assert [text.strip() for text in Corpus([path])] == TEXTS
    if packing != ".zst":  # its blocks are large: a cut may leave nothing
        path.write_bytes(PACKERS[packing](CONTENTS[kind].encode() * 400)[:-7])
        assert len(list(Corpus([path]))) > 300, "what was whole is kept"


def test_parquet_folders_and_patterns(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1, 2, 3], "text": TEXTS}), tmp_path / "a.parquet")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.txt").write_text("one\ntwo\n")
    (tmp_path / "image.png").write_bytes(b"x")
    assert list(Corpus([tmp_path / "a.parquet"])) == TEXTS
    assert len(list(Corpus([tmp_path]))) == 5
    assert len(list(Corpus([str(tmp_path / "**" / "*.txt")]))) == 2
    with pytest.raises(InputError, match="has no field 'body'; it has 'id', 'text'"):
        list(Corpus([tmp_path / "a.parquet"], "body"))


def test_broken_lines_and_encodings_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "fine"}\n{"text": \n[1, 2]\n{"text": 7}\n{"text": ""}\n{"text": "caf\xe9"}\n"bare"\n\n')
    corpus = Corpus([path])
    assert list(corpus) == ["fine", "caf\ufffd", "bare"]
    assert corpus.counts == Counter({"documents": 3, "broken lines": 3, "empty": 2, "lines with bad encoding": 1})
    assert corpus.summary() == (
        "3 documents, 2 empty, 3 broken lines (a.jsonl, line 2; a.jsonl, line 3; a.jsonl, line 4), "
        "1 lines with bad encoding (a.jsonl, line 6)"
    )


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.jsonl", '{"body": "x", "title": "y"}\n', "has no field 'text'; it has 'body', 'title'"),
        ("a.csv", "body,title\nx,y\n", "has no field 'text'; it has 'body', 'title': choose"),
        ("a.csv", "id;text\n1;y\n", "it has 'id;text' .its columns seem to be separated by semicolons"),
        ("a.tsv", "id,text\n1,y\n", "separated by commas; expected commas in .csv and tabs in .tsv"),
        ("a.pdf", "x", "unknown kind of file"),
        ("a.txt", " \n\n", "has no text"),
    ],
)
def test_complaints(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        Corpus([tmp_path / name]).sample(None)


def test_too_little_text_is_blamed_on_what_could_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "b\n[1]\n{"text": ""}\n{"text": "\xff"}\n')
    corpus = Corpus([path])
    corpus.sample(None)
    with pytest.raises(InputError) as said, corpus.blamed():
        raise InputError("2 documents are too few")
    assert str(said.value) == (
        "2 documents are too few; 2 of 5 documents could not be read (the first: a.jsonl, line 2); "
        "1 lines have a bad encoding (the first: a.jsonl, line 5)"
    )
    path.write_text('{"text": "a"}\n')
    corpus.sample(None)
    with pytest.raises(InputError, match=r"too few$"), corpus.blamed():
        raise InputError("1 document is too few")


def test_fits_and_labels_of_broken_text_say_so(tmp_path: Path) -> None:
    path, model = tmp_path / "a.jsonl", model_folder(tmp_path)
    for labels, complaint in (("aab", "2 different labels in 3 documents"), ("aabb", "fewer than two labels")):
        whole = "".join(json.dumps({"text": "bread boat", "subject": label}) + "\n" for label in labels)
        path.write_text(whole + '{"text": "bread\n' * 40)
        count, first = len(labels) + 40, len(labels) + 1
        said = rf"40 of {count} documents could not be read \(the first: a.jsonl, line {first}\)"
        with pytest.raises(InputError, match=f"25 topics need as many.*; {said}"):
            fit_corpus(TopicsConfig.of(corpus=path, tokenizer=model, topics=25, min_documents=1))
        with pytest.raises(InputError, match=f"{complaint}.*; {said}"):
            probe(ProbeConfig.of(models=model, corpus=path, label_field="subject"))


def test_no_such_corpus(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no corpus is given"):
        Corpus([])
    with pytest.raises(InputError, match="no such corpus"):
        Corpus([tmp_path / "nothing*.txt"])
    with pytest.raises(InputError, match="has no text files"):
        Corpus([tmp_path])


def test_samples_are_uniform_seeded_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"text {i}" for i in range(50)))
    corpus = Corpus([path])
    once = corpus.sample(10, 3)
    assert once == corpus.sample(10, 3)
    assert once != corpus.sample(10, 4)
    numbers = [int(text.split()[1]) for text in once]
    assert numbers == sorted(numbers)
    rng = np.random.default_rng(0)
    times = Counter(i for _ in range(4000) for i, _ in reservoir(((i, "") for i in range(20)), 5, rng))
    assert all(abs(times[i] / 4000 - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000) for i in range(20))
    two = [(0, "a"), (1, "b")]
    assert abs(sum(reservoir(two, 1, rng) == two[1:] for _ in range(2000)) / 2000 - 0.5) < 0.05
    assert reservoir(two, 2, rng) == reservoir(two, 3, rng) == two


def test_a_folder_gives_its_texts_and_no_other_files(tmp_path: Path) -> None:
    others = (".hidden.txt", "e.txt.v1.png", "deep/g", "a.txt.md5", "b.jsonl.metadata", ".cache/c.txt")
    for name in ("b.txt", "A.TXT", "c.txt.gz", "deep/f.md", *others):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(b"x\n") if name.endswith(".gz") else b"x\n")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "deep" / "loop").symlink_to(tmp_path)
    names = [str(tmp_path / name) for name in ("A.TXT", "b.txt", "c.txt.gz", "deep/f.md")]
    assert Corpus([tmp_path]).files == names
    assert len(list(Corpus([tmp_path]))) == 4
    assert Corpus([tmp_path / "*.txt"]).files == [str(tmp_path / "b.txt")]  # a folder is no file
    (tmp_path / "d.jsonl.lz4").write_bytes(b"x")
    # text that cannot be read is not left out in silence
    with pytest.raises(InputError, match=r"d\.jsonl\.lz4: unknown kind of file"):
        Corpus([tmp_path])


def test_a_check_reads_up_to_the_first_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", types.ModuleType("datasets"))
    (tmp_path / "blank.txt").write_text("\n \n")
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n{"text": "x"}\n{"body": "never read"}\n')
    with pytest.raises(InputError, match=r"has no text \(.*blank\.txt; empty\)"):
        Corpus([tmp_path / "blank.txt"]).check()
    Corpus([tmp_path / "blank.txt", tmp_path / "a.jsonl"]).check()
    Corpus([tmp_path / "blank.txt", "hf:owner/name"]).check()  # the hub is not asked
    assert Corpus([tmp_path / "blank.txt"]).summary() == "empty"


def test_fingerprints_tell_whether_a_corpus_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "a.txt", tmp_path / "b.txt"

    def prints(first: str, second: str) -> str:
        one.write_text(first)
        two.write_text(second)
        return Corpus([one, two, "hf:owner/name"]).fingerprint()

    same = prints("abc", "de")
    assert prints("abc", "de") == same
    assert len({same, prints("abd", "de"), prints("abc", "df"), prints("ab", "cde")}) == 4
    assert Corpus([one, two, "hf:owner/other"]).fingerprint() != Corpus([one, two, "hf:owner/name"]).fingerprint()
    monkeypatch.setattr("topicscope.language.corpora.HASHED", 5)
    assert prints("abc", "de") == same  # five bytes are not too many
    monkeypatch.setattr("topicscope.language.corpora.HASHED", 4)
    assert prints("abc", "de") == prints("xyz", "uv") != prints("xy", "zuv")  # of large files the sizes count


def test_a_summary_is_of_the_last_whole_pass(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{\n' * 5)
    corpus = Corpus([tmp_path / "a.jsonl"])
    assert len(corpus.sample(None)) == 5
    corpus.check()  # reads one document
    assert corpus.counts["documents"] == 1
    places = "; ".join(f"a.jsonl, line {number}" for number in (2, 4, 6))
    assert corpus.summary() == f"5 documents, 5 broken lines ({places}; ...)"
    assert unread(corpus.summary()) == [f"Not all of the text could be read: {corpus.summary()}"]
    assert unread("5 documents, 1 empty") == []


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.txt").symlink_to("b.txt")
    (tmp_path / "c.txt").symlink_to("/dev/zero")
    for name, said in (
        ("a.jsonl", "it is not an ordinary file"),
        ("b.txt", "symbolic links"),
        ("c.txt", "it is not an ordinary file"),
        ("*.jsonl", "it is not an ordinary file"),
        ("a\0.txt", "no such corpus"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            Corpus([tmp_path / name])
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"a\.jsonl cannot be read: it is not an ordinary file"):
        Corpus([tmp_path])


def test_names_with_odd_signs(tmp_path: Path) -> None:
    for name in ("a[1].txt", "b?*.txt", "c\n.txt"):
        (tmp_path / name).write_text("x\n")
        assert Corpus([tmp_path / name]).files == [str(tmp_path / name)]
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/d\xff.jsonl")
    Path(odd).write_text('{"text": "x"}\n{\n')
    corpus = Corpus([tmp_path])
    assert len(list(corpus)) == 4
    assert r"d\udcff.jsonl, line 2" in corpus.summary()
    assert corpus.fingerprint() == Corpus([tmp_path]).fingerprint()
    for pattern in ("[", "[z-a]*.txt", "***", "(", "\ud800"):
        with pytest.raises(InputError, match="no such corpus"):
            Corpus([str(tmp_path / "none" / pattern)])


def test_a_file_that_is_gone_or_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    corpus = Corpus([tmp_path / "a.txt"])
    (tmp_path / "a.txt").unlink()
    for read in (corpus.fingerprint, corpus.check, lambda: corpus.sample(1)):
        with pytest.raises(InputError, match=r"a\.txt cannot be read: No such file"):
            read()


def test_kinds_by_their_names() -> None:
    kinds = {"a.txt": (".txt", None), "A.JSONL.GZ": (".jsonl", ".gz"), "a.b.csv": (".csv", None)}
    kinds |= {"deep.gz/a.md.xz": (".md", ".xz"), "hf:owner/name": ("hf:", None), "a.parquet": (".parquet", None)}
    assert {name: kind_of(name) for name in kinds} == kinds
    for name in ("a", "a.gz", "a.pdf", "a.txt.pdf", "a.txt.gz.gz", "a.parquet.gz"):
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
        (" \n = A = \nx\n\n = = S = = \n \n = B = \nz\n", [" = A = \nx\n = = S = = \n", " = B = \nz\n"]),
        ("x\n = A = \ny\n", ["x\n", " = A = \n", "y\n"]),  # a heading later makes no articles
        ("a\n" * PEEK + "\nb\n", ["a\n"] * PEEK + ["b\n"]),  # the first lines decide
        ("a\n" * (PEEK - 2) + "\nb\n", ["a\n" * (PEEK - 2), "b\n"]),
    ],
)
def test_how_plain_text_is_split(tmp_path: Path, content: str, texts: list[str]) -> None:
    assert read(tmp_path / "a.txt", content)[0] == texts
    assert read(tmp_path / "a.txt", content, split="file")[0] == [content]
    lines = [line for line in content.splitlines(keepends=True) if line.strip()]
    assert read(tmp_path / "a.txt", content, split="line")[0] == lines


def test_tables(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", "id\ttext\n1\ta, b\n")[0] == ["a, b"]
    assert read(tmp_path / "a.csv", 'id,text\n1,"a, b",beyond\n2\n')[0] == ["a, b"]
    texts, counts = read(tmp_path / "a.csv", b"text\none\ntw\ro\nth\0ree\n" + b"x" * 200_000 + b"\n")
    assert texts == ["one", "three", "x" * 200_000]
    assert counts == Counter({"documents": 3, "broken lines": 1})
    with pytest.raises(InputError, match="line 2 has no field 'text'; it has 'id', 'body'"):
        read(tmp_path / "a.csv", "id,body\n1,x\n")


def test_json_lines(tmp_path: Path) -> None:
    assert read(tmp_path / "a.jsonl", b'"\\ud83d\\ude00"')[0] == ["\U0001f600"]  # two halves are one character
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


def test_the_hub_is_asked_for_what_is_named_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("datasets")
    monkeypatch.setitem(sys.modules, "datasets", fake)
    asked: list[Any] = []

    def load_dataset(*named: Any, **options: Any) -> list[dict[str, str]]:
        asked.append((*named, options))
        return [{"text": "from the hub"}]

    fake.load_dataset = load_dataset
    assert list(Corpus(["hf:owner/name/config:test"])) == list(Corpus(["hf:name"])) == ["from the hub"]
    first, second = ({"split": split, "streaming": True} for split in ("test", "train"))
    assert asked == [("owner/name", "config", first), ("name", None, second)]
    fake.load_dataset = lambda *_, **__: [{"body": "b"}, {"text": "a"}]
    with pytest.raises(InputError, match="hf:owner/name, record 1 has no field 'text'; it has 'body'"):
        list(Corpus(["hf:owner/name"]))

    def cut_off(*_: Any, **__: Any) -> Iterator[dict[str, str]]:
        yield {"text": "a"}
        raise ConnectionError("gone")

    fake.load_dataset = cut_off
    with pytest.raises(InputError, match=r"hf:owner/name, record 2 cannot be read from the hub \(gone\)"):
        list(Corpus(["hf:owner/name"]))

    def missing(*_: Any, **__: Any) -> None:
        raise ValueError("not found\nat all")

    fake.load_dataset = missing
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


@pytest.mark.parametrize("packing", [packing for packing in PACKERS if packing])
def test_a_flipped_byte_in_a_packed_file(tmp_path: Path, packing: str) -> None:
    """Wherever it is, reading comes to an end, and later files are read."""
    rng = np.random.default_rng(0)
    lines = [json.dumps({"text": " ".join(map(str, rng.integers(0, 10**6, 40)))}) for _ in range(400)]
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
    parquet.write_table(pa.table({"id": [1, 2], "text": ["a", None]}), tmp_path / "b.parquet")
    corpus = Corpus([tmp_path / "b.parquet"])
    assert list(corpus) == ["a"]
    assert corpus.counts == Counter({"documents": 1, "empty": 1})
    assert list(Corpus([tmp_path / "b.parquet"], "id")) == []


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text\none\n"two\nthree\n')
    corpus = Corpus([tmp_path / "a.csv"])
    assert list(corpus) == ["one"]
    assert corpus.summary() == "1 documents, 1 broken lines (a.csv, line 4: a quote before it is not closed)"
    assert read(tmp_path / "b.csv", 'text\n"one\ntwo"')[0] == ["one\ntwo"]  # one that is


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.txt.gz", "a.jsonl.xz"])
def test_lines_without_end_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("topicscope.language.corpora.MOST_LINE", 1000)
    first = {".txt": "one\n", ".jsonl": '"one"\n', ".csv": "text\none\n"}[Path(name.removesuffix(".gz")).suffixes[0]]
    last = {".txt": "two\n", ".jsonl": '"two"\n', ".csv": "two\n"}[Path(name).suffixes[0]]
    content = (first + '"' * (".csv" in name) + "x" * 100_000 + "\n" + last).encode()
    packing = Path(name).suffix if len(Path(name).suffixes) == 2 else ""
    texts, counts = read(tmp_path / name, PACKERS[packing](content))
    assert [text.strip() for text in texts] == ["one", "two"]
    assert counts["broken lines"] == 1


def test_documents_without_end_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicscope.language.corpora.MOST_LINE", 1000)
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


def test_what_came_before_the_damage_counts(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"text": "x"}\n' * 50))
    packed[-6] ^= 1  # the check at the end
    texts, counts = read(tmp_path / "a.jsonl.gz", bytes(packed))
    assert len(texts) in (0, 50)
    assert counts["broken lines"] == 1
