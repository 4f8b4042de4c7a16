"""Paths: what is not there, cannot be read, never ends or has an odd name, for every argument that names a file or a
folder; and options that contradict each other.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import fixtures
from tests.fuzz.cases import Case, Expect, File, Maker, Node
from tests.fuzz.inputs import BASES, TEXT, Base

LONG = "x" * 300
BYTES = os.fsdecode(b"caf\xe9-\xff")
MARKUP = ("run[/]", "[bold]x", "[link=x]y[/link]", "a b", "é☃", "%s", "{0}", "'quoted'", "-dash", "\u202eabc", "a\nb")


def odd_path(rng: Random, ending: str) -> tuple[str, tuple[Any, ...]]:
    """A path that no command can read from, and what has to be made for it."""
    kind = rng.randrange(len(UNREADABLE) + 2)
    if kind < len(UNREADABLE):
        path, *node = UNREADABLE[kind]
        named = path if path.startswith("/dev/zero") else path + ending
        return named, (Node(named, node[0], *(one.format(named) for one in node[1:])),) if node else ()
    if kind == len(UNREADABLE):
        return rng.choice(MARKUP[:8]) + ending, ()
    return rng.choice(("", " ", "/", ".", "..", "~", "/proc/self/mem", "/root", "*", "[", "**/*", "\\")), ()


UNREADABLE: tuple[tuple[Any, ...], ...] = (
    ("nowhere",), ("nowhere/deep/inside",), ("/dev/zero",), ("zero", "link", "/dev/zero"), ("/dev/null/x",),
    ("pipe", "fifo"), ("folder", "folder"), (LONG,), (BYTES,), ("loop", "link", "{}"), ("gone", "link", "nowhere"),
    ("null", "link", "/dev/null"),
)  # fmt: skip
"""A path, and what is made there: a kind of node, and where a link leads ({}: to itself)."""


INPUTS: dict[str, tuple[Base, str]] = {
    "train: config path": (Base((*BASES["train"].argv, "--config", "PATH")), ".yaml"),
    "train: documents path": (Base((*BASES["train"].argv, "--set", "data.train_file=PATH")), ".txt"),
    "train: dev documents path": (Base((*BASES["train"].argv, "--set", "data.dev_file=PATH")), ".txt"),
    "train: matrix path": (
        Base((*BASES["train"].argv, "--value", "given", "--set", "model.value_matrix=PATH")),
        ".npy",
    ),
    "train: proportions path": (
        Base((*BASES["train"].argv, "--prior", "given", "--set", "documents.proportions=PATH")),
        ".csv",
    ),
    "sweep: grid path": (Base(("sweep", "PATH", "--engine", "serial")), ".yaml"),
    "topics: corpus path": (Base(("topics", "PATH", "--tokenizer", "model", *fixtures.TOPICS), ("model",)), ".txt"),
    "topics: lines path": (Base(("topics", "PATH", "--tokenizer", "model", *fixtures.TOPICS), ("model",)), ".jsonl.gz"),
    "topics: tokenizer path": (Base(("topics", "corpus.txt", "--tokenizer", "PATH"), ("corpus.txt",)), ""),
    "topics: stop words path": (Base((*BASES["topics"].argv, "--stop-words", "PATH"), TEXT), ".txt"),
    "probe: model path": (Base(("probe", "PATH", *fixtures.PROBE, "--topics-from", "topics"), TEXT), ""),
    "probe: corpus path": (Base(("probe", "model", "--corpus", "PATH", "--topics-from", "topics"), TEXT), ".parquet"),
    "probe: topics path": (Base(("probe", "model", *fixtures.GIVEN, "--topics-from", "PATH"), TEXT), ".csv"),
    "timeline: snapshots path": (Base(("timeline", "PATH", *fixtures.PROBE), ("corpus.txt",)), ""),
    "timeline: topics path": (
        Base(("timeline", "pre", *fixtures.PROBE, "--topics-from", "PATH"), (*TEXT, "pre")),
        ".json",
    ),
    "words: model path": (Base(("words", "PATH", "bread", "boat")), ""),
    "pretrain: corpus path": (Base(("pretrain", "--corpus", "PATH", "--steps", "2", "--device", "cpu")), ".csv.xz"),
    "pretrain: tokenizer path": (Base((*BASES["pretrain"].argv, "--tokenizer", "PATH"), ("corpus.txt",)), ""),
    "pretrain: config path": (Base((*BASES["pretrain"].argv, "--config", "PATH"), ("corpus.txt",)), ".yaml"),
    "show: path": (Base(("show", "PATH")), ""),
    "show: several paths": (Base(("show", "train", "PATH"), ("train",)), ""),
    "report: path": (Base(("report", "PATH")), ""),
    "train: resume path": (Base(("train", "--resume", "--out", "PATH")), ""),
    "pretrain: resume path": (Base(("pretrain", "--resume", "--out", "PATH")), ""),
    "theory theorem1: matrix path": (Base(("theory", "theorem1", "--embedding", "PATH")), ".npy"),
    "theory theorem2: matrix path": (Base(("theory", "theorem2", "--matrix", "PATH")), ".csv"),
    "reproduce: model path": (Base(("reproduce", "figure3", "--engine", "serial", "--model", "PATH")), ""),
    "reproduce: corpus path": (
        Base(("reproduce", "table1", "--engine", "serial", "--model", "model", "--corpus", "PATH")),
        ".txt",
    ),
}


def by_input(class_: str) -> Maker:
    """An argument that names a file or a folder names something that cannot be read."""

    def make(rng: Random, id_: str) -> Case:
        base, ending = INPUTS[class_]
        path, places = odd_path(rng, ending)
        argv = tuple(argument.replace("PATH", path) for argument in base.argv)
        # an experiment that cannot read its model is 'skipped' or refused; an empty name or file sets nothing
        lenient = class_.startswith("reproduce") or path in ("", " ", "~", "null.yaml") or "stop words" in class_
        expect = Expect.EITHER if lenient or path in (".", "..", "*", "**/*", "[", "/") else Expect.REFUSED
        return Base(argv, base.uses).case(id_, (), expect, *places)

    return make


WRITERS = ("train", "pretrain", "topics", "words", "sweep", "reproduce", "theory landscape", "timeline", "probe")


def by_out(command: str) -> Maker:
    """`--out` names something odd: what cannot be a folder is refused, an odd name is none the worse for it."""

    def make(rng: Random, id_: str) -> Case:
        base = BASES[command]
        wrong: list[tuple[str, tuple[Any, ...]]] = [
            ("file", (File("file", b"mine"),)),
            ("file/inside", (File("file", b"mine"),)),
            ("full", (File("full/mine.txt", b"mine"),)),
            (LONG, ()),
            (f"{LONG}/x", ()),
            ("/dev/null/x", ()),
            ("/dev/zero", ()),
            ("/dev/null", ()),
            ("loop", (Node("loop", "link", "loop"),)),
            ("pipe", (Node("pipe", "fifo"),)),
            ("/proc/x", ()),
        ]
        odd: list[tuple[str, tuple[Any, ...]]] = [
            *((name, ()) for name in (*MARKUP, BYTES, "a/b/c", "x" * 200)),
            ("gone", (Node("gone", "link", "nowhere"),)),
            ("", ()),
            (".", ()),
            ("there", (Node("there", "folder"),)),
        ]
        if rng.random() < 0.6:
            path, places = rng.choice(wrong)
            return base.case(id_, ("--out", path), Expect.REFUSED, *places)
        path, places = rng.choice(odd)
        return base.case(
            id_, ("--out", path), Expect.EITHER if path in ("", ".", "gone", BYTES) else Expect.WORKS, *places
        )

    return make


def by_odd_name(rng: Random, id_: str) -> Case:
    """A good folder or file with an odd name: works."""
    name = rng.choice((*MARKUP, BYTES))
    if rng.random() < 0.5:
        argv = rng.choice(NAMED)
        return Base(replaced(argv, name), ("train",)).case(id_, (), lenient(name), Renamed("train", name))
    topics = (*BASES["topics"].argv[:1], f"{name}.txt", *BASES["topics"].argv[2:])
    return Base(topics, ("corpus.txt", "model")).case(id_, (), lenient(name), Renamed("corpus.txt", f"{name}.txt"))


NAMED: tuple[tuple[str, ...], ...] = (
    ("show", "NAME"), ("report", "NAME"),
    ("theory", "theorem2", "--matrix", "NAME", "--topics", "2", "--words-per-topic", "2"),
)  # fmt: skip


def lenient(name: str) -> Expect:
    """A dash starts an option, and a bracket a pattern of names."""
    return Expect.EITHER if name.startswith("-") or "[" in name or name == BYTES else Expect.WORKS


def replaced(argv: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(name if argument == "NAME" else argument for argument in argv)


@dataclass(frozen=True)
class Renamed:
    """A fixture under another name."""

    old: str
    new: str

    def apply(self, home: Path) -> None:
        (home / self.new).parent.mkdir(parents=True, exist_ok=True)
        (home / self.old).rename(home / self.new)


CONTRADICTIONS: tuple[tuple[Base, tuple[str, ...]], ...] = (
    *((Base(("train", "--resume", "--out", "stopped"), ("stopped",)), more) for more in (
        ("--steps", "5"), ("--force",), ("--set", "seed=1"), ("--runs", "2"), ("--config", "x.yaml"), ("--seed", "0"),
    )),
    *((Base(("pretrain", "--resume", "--out", "stopped-pre"), ("stopped-pre",)), more) for more in (
        ("--steps", "5"), ("--force",), ("--set", "seed=1"), ("--runs", "2"), ("--corpus", "corpus.txt"), ("--bf16",),
    )),
    *((BASES["train"], more) for more in (
        ("--resume",), ("--set", "epochs=2"), ("--uniform-attention", "--schedule", "two-stage"), ("--value", "given"),
        ("--set", "patience=1", "--set", "evaluate_every=null"), ("--snapshots", "[0,99]"), ("--set", "model.dim=3"),
        ("--prior", "infinite", "--set", "documents.length=5"), ("--prior", "fixed", "--topics-per-document", "3"),
        ("--topics-per-document", "1"), ("--set", "objective.l2={head: 1}"), ("--set", "masking.p_correct=0.95"),
        ("--set", "model.value_matrix=x.npy"), ("--force", "--resume", "--out", "x"), ("--device", "cuda"),
        ("--set", "topic_model.word_probabilities=[0.5]"), ("--set", "schedule.repeat=true"),
        ("--set", "schedule={phases: [{parts: []}]}"), ("--set", "schedule={phases: [{parts: [nose]}]}"),
    )),
    *((BASES["pretrain"], more) for more in (
        ("--tokenizer", "x", "--train-tokenizer", "bpe"), ("--dim", "7"), ("--set", "micro_batch=3"), ("--bf16",),
        ("--warmup", "9"), ("--init-scale", "[1, 1]"), ("--snapshots", "[0,99]"), ("--device", "cuda"), ("--resume",),
    )),
    *((BASES["topics"], more) for more in (
        ("--engine", "serial", "--address", "auto"), ("--workers", "2"), ("--engine", "serial", "--workers", "2"),
        ("--engine", "local", "--address", "auto"), ("--topics", "1"), ("--topics-from", "x"),
    )),
    *((BASES["probe"], more) for more in (
        ("--checkpoints", "x"), ("--threshold", "1.5"), ("--address", "auto"), ("--workers", "2"), ("--device", "cuda"),
    )),
    *((BASES["timeline"], more) for more in (("--address", "auto"), ("--threshold", "0"), ("--shuffles", "3"))),
    *((Base(("timeline", "train"), ("train", "train-2", "corpus.txt")), more) for more in (
        ("train-2",), ("--corpus", "corpus.txt"), ("--engine", "local"), ("--topics-from", "x"),
    )),
    *((BASES["sweep"], more) for more in (("--address", "auto"), ("--workers", "2"))),
    *((BASES["reproduce"], more) for more in (
        ("--address", "auto"), ("--workers", "2"), ("--scale", "huge"), ("nothing",),
    )),
    *((Base(("theory", "theorem5")), more) for more in (
        ("--topics", "2", "--topics-per-document", "3"), ("--p-correct", "0.95"),
    )),
    *((BASES["theory landscape"], more) for more in (("--out", "train"), ("--topics-per-document", "9"))),
    *((BASES["theory optimum"], more) for more in (
        ("--word-topics", "x"), ("--alpha", "1", "--prior", "fixed"), ("--p-mask", "1", "--p-correct", "0"),
    )),
    (Base(("show",)), ()), (Base(("report",)), ()), (Base(("words", "model"), ("model",)), ()), (Base(("sweep",)), ()),
    (Base(("nothing",)), ()), (Base(("theory", "theorem9")), ()), (Base(("words", "model", "bread"), ("model",)), ()),
    (Base(("words", "model", "/", "/"), ("model",)), ()), (Base(("report", "train", "train"), ("train",)), ()),
    (Base(("list", "more")), ()), (Base(("--nothing",)), ()), (Base(("theory", "--topics", "2")), ()),
)  # fmt: skip


def by_contradiction(rng: Random, id_: str) -> Case:
    """Options of which each is good, and which do not go together."""
    base, more = rng.choice(CONTRADICTIONS)
    return base.case(id_, more, Expect.REFUSED)


def makers() -> dict[str, Maker]:
    return {
        **{name: by_input(name) for name in INPUTS},
        **{f"{name}: out": by_out(name) for name in WRITERS},
        "names: odd": by_odd_name,
        "options: contradictions": by_contradiction,
        "options: contradictions again": by_contradiction,
    }
