"""Damaged files, and the commands that read them.

A folder of topicscope's own is refused, or read as if nothing had happened, or repaired to the same bytes. What others
wrote may be read differently, but never ends in a traceback.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.fuzz import fixtures
from tests.fuzz.cases import Case, Expect, Maker
from tests.fuzz.damages import Damage, kinds_for
from tests.fuzz.inputs import BASES

SIZES = ("--topics", "2", "--words-per-topic", "2")
ALWAYS = ("about.json", "environment.json", "results.json")


@dataclass(frozen=True)
class Reading:
    """A command that reads a folder; what it writes there, and what it prints, are the same without the damage."""

    argv: tuple[str, ...]
    uses: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    prints: bool = True
    expect: Expect = Expect.SAME


@dataclass(frozen=True)
class Folder:
    """A fixture, the files in it (patterns), and the commands that read it."""

    name: str
    files: tuple[str, ...]
    readings: tuple[Reading, ...] = ()
    group: str = field(default="")


def shown(name: str) -> tuple[Reading, ...]:
    """Every folder can be shown and drawn; the tables of its figures hold the numbers."""
    drawn = Reading(("report", name), products=(f"{name}/figures/**/*.csv", f"{name}/points.csv"))
    return Reading(("show", name)), Reading(("show", name, "--json")), drawn


def resumed(command: str, name: str, *products: str) -> Reading:
    """`--resume` ends with the same files."""
    return Reading((command, "--resume", "--out", name), products=tuple(f"{name}/{p}" for p in products), prints=False)


def either(*argv: str, uses: tuple[str, ...] = ()) -> Reading:
    return Reading(argv, uses, expect=Expect.EITHER)


CONFIGURED = (*ALWAYS, "config.yaml")
RUN = ("about.json", "config.yaml", "metrics.jsonl")
PROBE = ("probe", "model", *fixtures.PROBE, *fixtures.FAST, "--topics-from", "topics")
TIMELINE = ("timeline", "pre", *fixtures.PROBE, "--topics-from", "topics")
MODEL = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

FOLDERS = (
    Folder(
        "train",
        (*CONFIGURED, "metrics.jsonl", "weights.safetensors", "snapshots/step-000003.safetensors"),
        (
            *shown("train"),
            Reading(("timeline", "train", "--bootstrap", "5")),
            Reading(("theory", "theorem2", *SIZES, "--matrix", "train")),
            Reading(("theory", "theorem1", *SIZES, "--embedding", "train")),
            resumed("train", "train", "results.json", "weights.safetensors"),
        ),
    ),
    Folder(
        "ensemble",
        (*CONFIGURED, *(f"run-00?/{name}" for name in (*CONFIGURED, "metrics.jsonl", "weights.safetensors"))),
        (*shown("ensemble"), resumed("train", "ensemble", "results.json", "run-*/results.json")),
    ),
    Folder(
        "stopped",
        (*RUN, "checkpoint.safetensors"),
        (
            resumed("train", "stopped", "results.json", "weights.safetensors", "metrics.jsonl"),
            resumed("train", "stopped", "results.json", "weights.safetensors", "metrics.jsonl"),
            Reading(("show", "stopped")),
        ),
    ),
    Folder(
        "stopped-ensemble",
        ("about.json", "config.yaml", *(f"run-00?/{name}" for name in RUN), "run-000/checkpoint.safetensors"),
        (resumed("train", "stopped-ensemble", "results.json", "run-*/results.json", "run-*/weights.safetensors"),),
    ),
    Folder(
        "pre",
        (*CONFIGURED, "metrics.jsonl"),
        (*shown("pre"), resumed("pretrain", "pre", "results.json")),
    ),
    Folder(
        "pre",
        (*(f"model/{name}" for name in MODEL), *(f"snapshots/step-00000?/{name}" for name in MODEL)),
        (
            Reading(("show", "pre")),
            either("probe", "pre", *PROBE[2:], uses=("corpus.txt", "topics")),
            either(*TIMELINE, uses=("corpus.txt", "topics")),
        ),
        "pre: models",
    ),
    Folder(
        "stopped-pre",
        (*RUN, "checkpoint.safetensors", "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"),
        (
            resumed("pretrain", "stopped-pre", "results.json", "model/model.safetensors", "metrics.jsonl"),
            resumed("pretrain", "stopped-pre", "results.json", "model/model.safetensors", "metrics.jsonl"),
            Reading(("show", "stopped-pre")),
        ),
    ),
    Folder(
        "topics",
        (*CONFIGURED, "topics.json", "topics.safetensors"),
        (
            *shown("topics"),
            Reading(("theory", "optimum", "--world-from", "topics", "--words", "5", "--json")),
            Reading(PROBE, ("corpus.txt", "model")),
            Reading(TIMELINE, ("corpus.txt", "pre")),
        ),
    ),
    *(Folder(name, CONFIGURED, shown(name)) for name in ("probe", "timeline", "course")),
    Folder("words", (*CONFIGURED, "words.json"), shown("words")),
    Folder("landscape", (*ALWAYS, "landscape.npz", "landscape.csv"), shown("landscape")),
    Folder(
        "sweep",
        (*ALWAYS, "sweep.json", "points.csv", "points/*/result.json", "points/*/curves.npz"),
        (
            *shown("sweep"),
            Reading(
                ("sweep", "grid.yaml", "--engine", "serial", "--out", "sweep"),
                ("grid.yaml",),
                ("sweep/results.json", "sweep/points/*/result.json", "sweep/points/*/curves.npz"),
                prints=False,
            ),
        ),
    ),
    Folder(
        "reproduce",
        (*CONFIGURED, "outcomes/figure7.json", "outcomes/figure8.json"),
        (
            *shown("reproduce"),
            Reading(
                ("reproduce", "figure7", "figure8", "--engine", "serial", "--out", "reproduce"),
                products=("reproduce/results.json",),
                prints=False,
            ),
        ),
    ),
    Folder(
        "model",
        MODEL,
        (
            either(*PROBE, uses=("corpus.txt", "topics")),
            either("words", "model", "bread", "boat"),
            either(*BASES["topics"].argv, uses=("corpus.txt",)),
            either(*BASES["pretrain"].argv, "--tokenizer", "model", uses=("corpus.txt",)),
        ),
    ),
)

TOPICS = BASES["topics"].argv[2:]
TRAIN = BASES["train"].argv
FILES: dict[str, tuple[Reading, ...]] = {
    **{
        f"corpus{kind}{packing}": (either("topics", f"corpus{kind}{packing}", *TOPICS, uses=("model",)),)
        for kind in (".txt", ".jsonl", ".csv")
        for packing in ("", ".gz", ".bz2", ".xz", ".zst")
    },
    "corpus.parquet": (either("topics", "corpus.parquet", *TOPICS, uses=("model",)),),
    "given.csv": (either(*PROBE[:-1], "given.csv", uses=("corpus.txt", "model")),),
    "given.json": (either(*PROBE[:-1], "given.json", uses=("corpus.txt", "model")),),
    "stop.txt": (either("topics", "corpus.txt", *TOPICS, "--stop-words", "stop.txt", uses=("corpus.txt", "model")),),
    "grid.yaml": (either("sweep", "grid.yaml", "--engine", "serial", "--dry-run"),),
    "documents.txt": (
        either(*TRAIN, "--set", "data.train_file=documents.txt"),
        either(*TRAIN, "--set", "data.dev_file=documents.txt"),
    ),
    "proportions.npy": (either(*TRAIN, "--prior", "given", "--set", "documents.proportions=proportions.npy"),),
    **{
        f"matrix{kind}": (
            either("theory", "theorem2", *SIZES, "--matrix", f"matrix{kind}"),
            either("theory", "theorem1", *SIZES, "--embedding", f"matrix{kind}"),
            either(*TRAIN, "--value", "given", "--set", f"model.value_matrix=matrix{kind}"),
        )
        for kind in (".npy", ".csv", ".safetensors")
    },
}


@dataclass(frozen=True)
class Found:
    """A damage to one of the files that a pattern matches: the names in a sweep are hashes."""

    damage: Damage

    def apply(self, home: Path) -> None:
        paths, others = (sorted(home.glob(p)) if p else [] for p in (self.damage.path, self.damage.other))
        at = Random(self.damage.seed).randrange(len(paths))
        other = str(others[at].relative_to(home)) if others else ""
        replace(self.damage, path=str(paths[at].relative_to(home)), other=other).apply(home)


def damaged(group: str, name: str, file: str, readings: tuple[Reading, ...], offset: int) -> Maker:
    """A damage to one kind of file, and a command that reads it. The damages take turns, the commands are drawn."""
    path = f"{name}/{file}" if file else name
    partner = f"{name}-2" if file and name != "model" else ""
    kinds = [kind for kind in kinds_for(path) if partner or kind != "swapped"]

    def make(rng: Random, id_: str) -> Case:
        kind = kinds[(offset + 5 * int(id_.rsplit("/", 1)[1])) % len(kinds)]
        reading = rng.choice(readings)
        other = f"{partner}/{file}" if kind == "swapped" else ""
        return Case(
            id_,
            group,
            reading.argv,
            reading.expect,
            (name, *reading.uses),
            (Found(Damage(path, kind, str(rng.random()), other)),),
            reading.products,
            reading.prints,
            (partner,) if other else (),
            note=f"{path}: {kind}",
        )

    return make


def makers(seed: int) -> dict[str, Maker]:
    """One class per file of every kind of folder, and per file of others; the seed decides which damages come first."""
    found: dict[str, Maker] = {}
    first = 3 * seed
    for folder in FOLDERS:
        for file in folder.files:
            group = folder.group or f"{folder.name}: folder"
            found[f"{folder.name}: {file.replace('/', ' ')}"] = damaged(
                group, folder.name, file, folder.readings, first + 7 * len(found)
            )
    for file, readings in FILES.items():
        group = f"{file.split('.')[0]}: file"
        found[f"file: {file}"] = damaged(group, file, "", readings, first + 7 * len(found))
    return found
