"""Small folders and files of every kind that the commands read, made by the commands themselves, once, when a case
needs them.

Each kind of folder is there twice (NAME and NAME-2, of another seed), so that files can be swapped between them.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from tests.fuzz.runner import Raw, run_command
from tests.language.tiny import WORDS

COMMON = ["the", "and", "of"]
LIMIT = 120.0  # seconds of one command

TRAIN = (
    *("--topics", "2", "--words-per-topic", "2", "--set", "data.documents=10", "--set", "data.dev_documents=10"),
    *("--set", "documents.length=8", "--no-floors", "--device", "cpu"),
)
PRETRAIN = (
    *("--corpus", "corpus.txt", "--batch-size", "4", "--length", "16", "--layers", "1", "--heads", "2", "--dim", "8"),
    *("--vocab-size", "100", "--device", "cpu"),
)
TOPICS = ("--topics", "2", "--iterations", "5", "--stop-words", "none", "--max-documents", "40")
PROBE = (
    *("--corpus", "corpus.txt", "--documents", "5", "--windows", "1", "--bootstrap", "5", "--stop-words", "none"),
    *("--threshold", "0.05", "--device", "cpu"),
)
GIVEN = tuple(one for one in PROBE if one not in ("--threshold", "0.05"))  # lists of words take no threshold
FAST = ("--shuffles", "5", "--no-random", "--no-cooccurrence")  # of probe
GRID: dict[str, Any] = {
    "kind": "train",
    "base": {
        "steps": 5,
        "floors": False,
        "data": {"documents": 10, "dev_documents": 10},
        "documents": {"length": 8},
        "topic_model": {"topics": 2, "words_per_topic": 2},
    },
    "axes": {"optimizer.lr": [0.01, 0.1], "seed": {"seeds": 2}},
}


@dataclass(frozen=True)
class Recipe:
    """The command that makes a folder, the fixtures that it needs, and how a run is stopped before its end."""

    argv: tuple[str, ...]
    needs: tuple[str, ...] = ()
    stop: Callable[[], None] | None = None


def recipes(number: int) -> dict[str, Recipe]:
    """The folders of seed `number`, by name."""
    end, seed = ("" if number == 0 else f"-{number + 1}"), ("--seed", str(number))
    pre, topics = f"pre{end}", f"topics{end}"
    wide = ("--topics", str(4 + number), "--words-per-topic", "3", "--topics-per-document", "2")
    long = ("train", *TRAIN, "--steps", "120", "--set", "checkpoint_every=50", *seed)
    fit = ("topics", "corpus.txt", "--tokenizer", f"{pre}/model", "--min-documents", "1", *TOPICS, *seed)
    stopped = ("pretrain", *PRETRAIN, "--steps", "5", "--set", "checkpoint_every=2", *seed)
    words = ("words", f"{pre}/model", "bread", "boat", "/", "judge", ("court", "drum")[number])
    found = {
        "train": Recipe(("train", *TRAIN, "--steps", "6", "--snapshots", "[0,3,6]", *seed)),
        "ensemble": Recipe(("train", *TRAIN, "--steps", "4", "--runs", "2", *seed)),
        "pre": Recipe(("pretrain", *PRETRAIN, "--steps", "4", "--snapshots", "[0,2,4]", *seed)),
        "topics": Recipe(fit, (pre,)),
        "probe": Recipe(("probe", f"{pre}/model", *PROBE, *FAST, "--topics-from", topics, *seed), (pre, topics)),
        "timeline": Recipe(("timeline", pre, *PROBE, "--topics-from", topics, *seed), (pre, topics)),
        "course": Recipe(("timeline", f"train{end}", "--bootstrap", "5", *seed), (f"train{end}",)),
        "words": Recipe(words, (pre,)),
        "sweep": Recipe(("sweep", f"grid{end}.yaml", "--engine", "serial")),
        "landscape": Recipe(("theory", "landscape", *wide)),
        "reproduce": Recipe(("reproduce", "figure7", "figure8", "--engine", "serial", *seed)),
        "stopped": Recipe(long, stop=stop_train),
        "stopped-ensemble": Recipe((*long, "--runs", "2"), stop=stop_train),
        "stopped-pre": Recipe(stopped, stop=stop_pre),
    }
    return {f"{name}{end}": recipe for name, recipe in found.items()}


def stop_train() -> None:
    """In a child: the run is interrupted where it would write its results."""
    from topicscope.training import run

    run.Recorder.finish = _interrupt  # type: ignore[method-assign]


def stop_pre() -> None:
    from topicscope.pretraining import loop

    loop.Loop._end = _interrupt  # type: ignore[method-assign]


def _interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def write_inputs(folder: Path) -> None:
    """What others write: texts, matrices, grids. Not in a process that forks: Parquet starts threads."""
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(folder)
    write_matrices(folder)
    for number, name in enumerate(("grid.yaml", "grid-2.yaml")):
        grid = GRID | {"axes": GRID["axes"] | {"seed": {"seeds": 2, "first": 10 * number}}}
        (folder / name).write_text(json.dumps(grid))


LARGE = ("report.html", "figures", "map.*", "landscape.png", "landscape.svg", "**/.lock")  # and never read back


def ensure(folder: Path, names: Iterable[str]) -> None:
    """Make the fixtures that are not there yet, in a process that has called `runner.preload`; servers take turns."""
    known = recipes(0) | recipes(1)
    for name in names:
        if (folder / name).exists():
            continue
        if name == "model":  # a model folder of somebody else
            ensure(folder, ["pre"])
            shutil.copytree(folder / "pre" / "model", folder / name, dirs_exist_ok=True)
            continue
        recipe = known[name]
        ensure(folder, recipe.needs)
        with filelock.FileLock(folder / ".lock"):
            if (folder / name).exists():
                continue
            with tempfile.TemporaryDirectory(dir=folder) as made:  # the configs name the files of `folder` in full
                out = Path(made) / name
                raw = run_command((*recipe.argv, "--out", str(out)), folder, LIMIT, before=recipe.stop)
                require(raw, name, 0 if recipe.stop is None else 130)
                for path in [path for pattern in LARGE for path in out.glob(pattern)]:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                out.rename(folder / name)


def require(raw: Raw, name: str, code: int) -> None:
    if raw.code != code:
        raise RuntimeError(f"fixture {name}: exit code {raw.code}: {raw.stderr.decode('utf-8', 'replace')[-2000:]}")


def texts(count: int = 60) -> list[str]:
    """Each mostly of words of one topic."""
    rng = np.random.default_rng(0)
    groups = [WORDS[i : i + 6] for i in range(0, 24, 6)]
    return [
        " ".join(
            str(rng.choice(groups[number % 4])) if rng.random() < 0.7 else str(rng.choice(COMMON)) for _ in range(30)
        )
        for number in range(count)
    ]


def write_texts(folder: Path) -> None:
    """The corpus in every format and packing, stop words, topics of the user's own, documents in the authors' form."""
    import pyarrow
    import pyarrow.parquet

    documents = texts()
    plain = ("\n".join(documents) + "\n").encode()
    lines = "".join(json.dumps({"text": text, "id": i}) + "\n" for i, text in enumerate(documents)).encode()
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerows([["id", "text"], *([i, text] for i, text in enumerate(documents))])
    content = {"corpus.txt": plain, "corpus.jsonl": lines, "corpus.csv": table.getvalue().encode()}
    packed: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": _zstandard,
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
        for ending, pack in packed.items():
            (folder / f"{name}{ending}").write_bytes(pack(data))
    pyarrow.parquet.write_table(pyarrow.table({"text": documents}), folder / "corpus.parquet")
    (folder / "stop.txt").write_text("\n".join(COMMON) + "\n")
    pairs = [(word, ("kitchen", "sea", "music", "law")[i // 6]) for i, word in enumerate(WORDS)]
    (folder / "given.csv").write_text("word,topic\n" + "".join(f"{word},{topic}\n" for word, topic in pairs))
    (folder / "given.json").write_text(json.dumps(dict(pairs)))
    rng = np.random.default_rng(1)
    rows = [" ".join(map(str, rng.integers(0, 4, size=8))) for _ in range(10)]
    (folder / "documents.txt").write_text("\n".join(rows) + "\n")


def _zstandard(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def write_matrices(folder: Path) -> None:
    """A value matrix of 2 topics of 2 words in every format, and topic proportions."""
    from safetensors.numpy import save_file

    matrix = np.random.default_rng(2).normal(size=(5, 5))
    np.save(folder / "matrix.npy", matrix)
    np.savetxt(folder / "matrix.csv", matrix, delimiter=",")
    save_file({"value": matrix}, folder / "matrix.safetensors")
    np.save(folder / "proportions.npy", np.array([[0.5, 0.5], [0.9, 0.1]]))
