"""How a command of the documentation is run in a moment: a place with what it names, and smaller numbers."""

import glob
import gzip
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np

from tests.docs.pages import ROOT, Command, commands, pages
from topicscope.paper import EXPERIMENTS

WORDS = {
    "animals": "frog toad lizard newt gecko turtle",
    "music": "mozart beethoven schubert cello choir flute",
    "maths": "algebra arithmetic calculus geometry number proof",
}
MODELS = ("bert-base-uncased", "path/to/model", "path/to/gpt2", "MODEL", "models/checkpoint-10", "models/checkpoint-20")
SECONDS = 2  # of an experiment that is run here

SMALL_DATA = ["--set", "data.documents=40", "--set", "data.dev_documents=20"]
SMALL = {"model.layers": 1, "model.dim": 16, "model.heads": 2, "tokenizer.vocab_size": 120}
SMALL_MODEL = [f"--set={name}={number}" for name, number in SMALL.items()]
SMALL_TEXT = ["--documents=12", "--max-documents=60", "--iterations=5", "--bootstrap=20"]
SHORTER = {
    "train": ["--steps", "20", *SMALL_DATA],
    "pretrain": ["--steps", "4", *SMALL_MODEL, "--set=length=16", "--set=batch_size=4"],
    "sweep": ["--dry-run"],
    "topics": ["--iterations=5", "--max-documents=60", "--min-documents=1"],
    "probe": [*SMALL_TEXT, "--shuffles=20", "--threshold=0.1", "--show-documents=1"],
    "timeline": [*SMALL_TEXT, "--threshold=0.1"],
}
"""Appended to a command: of an option that is given twice the last counts."""


OF_A_FIT = ("--iterations", "--max-documents", "--threshold")


def texts(documents: int = 120) -> list[dict[str, str]]:
    """Documents of a main topic, whose name is their label, and some words of the next."""
    rng = np.random.default_rng(0)
    topics = [(name, words.split()) for name, words in WORDS.items()]
    result = []
    for number in range(documents):
        (name, main), (_, other) = topics[number % 3], topics[(number + 1) % 3]
        words = [*rng.choice(main, size=18), *rng.choice(other, size=6)]
        result.append({"subject": name, "text": " ".join(rng.permutation(words))})
    return result


def furnish(place: Path, model: Path | None) -> None:
    """The files and folders that the pages name."""
    lines = [json.dumps(document) for document in texts()]
    (place / "articles.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (place / "articles.txt").write_text("\n".join(document["text"] for document in texts()))
    (place / "texts").mkdir()
    shutil.copy(place / "articles.txt", place / "texts" / "all.txt")
    rows = [f"{word},{topic}" for topic, words in WORDS.items() for word in words.split()]
    (place / "mytopics.csv").write_text("\n".join(["word,topic", *rows]))
    np.savetxt(place / "A.csv", np.repeat(np.eye(3), 4, axis=0) / 4, delimiter=",")
    np.savetxt(place / "theta.csv", np.eye(10), delimiter=",")  # proportions of ten documents
    (place / "grid.yaml").write_text("base: {steps: 20}\naxes: {optimizer.lr: [0.01, 0.1]}\n")
    (place / "examples").symlink_to(ROOT / "examples")
    for name in MODELS if model else ():
        shutil.copytree(model, place / name)  # type: ignore[arg-type]


def why_not(command: Command) -> str:
    """Why a command is parsed and not run; empty where it is run."""
    name, *rest = command.arguments
    if command.slow:
        return command.slow
    if name.startswith("-"):
        return "changes the user's shell (tests/cli/test_terminals.py)"
    if name == "explore":
        return "serves pages until it is stopped (tests/explorer)"
    if name == "bench":
        return "measures speed for minutes (tests/tools)"
    if name == "reproduce":
        ids = [word for word in rest if word in EXPERIMENTS]
        seconds = sum(EXPERIMENTS[word].seconds for word in ids or EXPERIMENTS)
        return f"trains for about {seconds} s (tests/paper)" if seconds > SECONDS or "full" in rest else ""
    if command.arguments[:2] == ("theory", "verify"):
        return "takes half a minute (tests/cli/test_theory_cli.py)"
    if "ray" in rest:
        return "needs Ray (tests/ground/test_ray_engine.py)"
    if "cuda" in rest:
        return "needs a GPU"
    if any("@step" in word or word.startswith("hf:") for word in rest):
        return "needs the network"
    return ""


def reads(arguments: tuple[str, ...]) -> list[str]:
    """The folders of runs that a command reads: those that it does not write."""
    pairs = pairwise(("", *arguments))
    return [word for before, word in pairs if word.startswith("runs/") and before not in ("--out", "-o")]


def writes(arguments: tuple[str, ...]) -> str:
    """The folder that a command writes, if it names one; `reproduce` has one of its own."""
    named = [after for word, after in pairwise(arguments) if word in ("--out", "-o")]
    return named[0] if named else "runs/reproduce" if arguments[0] == "reproduce" else ""


def maker(folder: str) -> Command | None:
    """The first command of the documentation that writes a folder, or the one that it lies in."""
    every = [command for page in pages() for command in commands(page)]
    names = {writes(command.arguments) or "-": command for command in reversed(every)}
    return next((names[name] for name in (folder, str(Path(folder).parent)) if name in names), None)


def found(folder: str) -> str:
    """The folder, or one of its name with another number, which is smaller here; empty where neither is there."""
    others = sorted(glob.glob(re.sub(r"\d+$", "*", folder)))
    return folder if Path(folder).exists() else others[0] if others else ""


def missing(folders: list[str]) -> list[str]:
    return [folder for folder in folders if not found(folder)]


def shortened(arguments: tuple[str, ...]) -> list[str]:
    """The same command with smaller numbers, patterns expanded as a shell does."""
    name = arguments[0]
    words = [part for word in arguments for part in (sorted(glob.glob(word)) if "*" in word else [word])]
    words = [found(word) if word in reads(arguments) else word for word in words]
    if name in ("topics", "probe", "timeline"):  # as many topics as the texts have; several numbers stay different
        given = [number for number, word in enumerate(words) if word == "--topics"]
        for offset, number in enumerate(given):
            words[number + 1] = str(3 + offset)
    sandbox = name == "timeline" and "--corpus" not in words  # of a run of `train`: its topics are known
    as_file = any(word.endswith((".csv", ".json")) for word in words)  # topics as a file: nothing is fitted or cut
    more = [] if sandbox or "--resume" in words else SHORTER.get(name, [])
    words += [option for option in more if not (as_file and option.startswith(OF_A_FIT))]
    return words + (["--topics", "3"] if fits(name, words) else [])


def fits(name: str, words: list[str]) -> bool:
    """Whether the command fits topics, and does not say how many."""
    says = {"--topics", "--topics-from", "--label-field"} & set(words)
    return not says and (name == "topics" or (name in ("probe", "timeline") and "--corpus" in words))
