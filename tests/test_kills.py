"""Whatever kills a command, at whatever change of a file: run again, or resumed, it ends where it would have ended.

`make test` tries a few of the changes of each command, `make kills` all of them.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.kills import KILLED, OUT, Ended, Fault, content, differences, remove, run
from tests.language import tiny
from tests.pretraining import small
from topicscope.ground import folders

TRAIN = [
    *("train", "--topics", "2", "--words-per-topic", "2", "--steps", "101", "--no-floors", "--device", "cpu"),
    *("--set", "data.documents=20", "--set", "data.dev_documents=10", "--set", "checkpoint_every=50"),
]
PRETRAIN = [
    *("pretrain", "--corpus", "{inputs}/corpus.txt", "--tokenizer", "{inputs}/model", "--layers", "1", "--heads", "1"),
    *("--dim", "4", "--steps", "4", "--batch-size", "2", "--length", "8", "--device", "cpu"),
    *("--set", "checkpoint_every=2"),
]
TEXT = ["--corpus", "{inputs}/corpus.txt", "--topics", "2", "--iterations", "5", "--max-documents", "20"]
COMMANDS = {
    "train": [*TRAIN, "--snapshots", "[0,50]"],
    "train --runs 3": [*TRAIN, "--runs", "3"],
    "topics": [
        *("topics", "{inputs}/corpus.txt", "--tokenizer", "{inputs}/model", "--topics", "2", "--iterations", "5"),
        *("--max-documents", "20", "--set", "min_documents=1"),
    ],
    "probe": [
        *("probe", "{inputs}/model", *TEXT, "--documents", "4", "--bootstrap", "10", "--shuffles", "0", "--no-random"),
        *("--no-matched", "--no-cooccurrence", "--device", "cpu", "--threshold", "0.2"),
    ],
    "timeline": [
        *("timeline", "{inputs}/pretrained", *TEXT, "--documents", "4", "--bootstrap", "10", "--no-matched"),
        *("--device", "cpu", "--threshold", "0.2"),
    ],
    "timeline of train": ["timeline", "{inputs}/trained", "--bootstrap", "10"],
    "words": ["words", "{inputs}/model", "bread", "butter", "/", "boat", "anchor"],
    "sweep": ["sweep", "{inputs}/grid.yaml", "--engine", "serial"],
    "pretrain": [*PRETRAIN, "--snapshots", "[0,2]"],
    "pretrain --runs 2": [*PRETRAIN, "--snapshots", "none", "--runs", "2"],
    "reproduce": ["reproduce", "figure7", "figure8", "--engine", "serial"],
    "theory landscape": ["theory", "landscape"],
}
REPLACING = ("topics", "probe", "timeline", "timeline of train", "words")  # an old folder of theirs is replaced
RESUMED = ("train", "pretrain")
FEW = 3  # changes of each command that are tried, evenly spread, where not all are


def some(count: int) -> list[int]:
    """The numbers 1..count, all of them or a few, the last included."""
    every = os.environ.get("TOPICSCOPE_EVERY_KILL")
    return list(range(1, count + 1)) if every else sorted({*range(2, count, max(1, count // FEW)), count})


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a model, a grid, and runs with snapshots."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "corpus.txt").write_text("\n".join(small.texts(40)))
    tokenizer = tiny.tokenizer("wordpiece")
    tokenizer.save_pretrained(folder / "model")
    tiny.model("encoder", len(tokenizer)).save_pretrained(folder / "model")
    base = {
        "steps": 5,
        "data": {"documents": 20, "dev_documents": 5},
        "floors": False,
        "topic_model": {"topics": 2, "words_per_topic": 2},
        "device": "cpu",
    }
    (folder / "grid.yaml").write_text(yaml.safe_dump({"base": base, "axes": {"seed": [0, 1], "batch_size": [4, 5]}}))
    for name, command in (("trained", "train"), ("pretrained", "pretrain")):
        assert command in COMMANDS
        made = run(folder, [*filled(command, folder), "--out", name])
        assert made.code == 0, made.err
    return folder


def filled(command: str, inputs: Path) -> list[str]:
    return [part.format(inputs=inputs) for part in COMMANDS[command]]


def again(command: list[str], cwd: Path, *options: str) -> Ended:
    """The same command; where it is refused and may be resumed, with --resume. One of both has to work."""
    ended = run(cwd, [*command, "--out", OUT, *options])
    if ended.code == 2 and command[0] in RESUMED:
        ended = run(cwd, [command[0], "--resume", "--out", OUT])
    return ended


def check_whole(cwd: Path, expected: dict[str, object], ended: Ended, where: str) -> None:
    assert ended.code == 0, f"{where}: {ended.err}"
    assert "Traceback" not in ended.err, where
    assert differences(content(cwd / OUT), expected) == [], where


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_killed_anywhere_ends_in_the_same_bytes(command: str, inputs: Path, tmp_path: Path) -> None:
    arguments = filled(command, inputs)
    undisturbed = run(tmp_path, [*arguments, "--out", OUT])
    assert undisturbed.code == 0, undisturbed.err
    expected = content(tmp_path / OUT)
    assert not [name for name in expected if "tmp" in name]
    appends = len(expected["metrics.jsonl"].splitlines()) // 50 if "metrics.jsonl" in expected else 0
    faults = [Fault("kill", n) for n in some(undisturbed.changes)] + [
        Fault("half", n + 1) for n in range(min(appends, 2))
    ]
    assert undisturbed.changes > 10
    for fault in faults:
        remove(tmp_path)
        killed = run(tmp_path, [*arguments, "--out", OUT], fault)
        assert killed.code == KILLED, f"{fault}: {killed.err}"
        check_whole(tmp_path, expected, again(arguments, tmp_path), str(fault))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_named_in_one_line_and_loses_nothing(command: str, inputs: Path, tmp_path: Path) -> None:
    """At every file: the disk is full from there on. And a file system that takes no larger files."""
    arguments = filled(command, inputs)
    undisturbed = run(tmp_path, [*arguments, "--out", OUT])
    expected = content(tmp_path / OUT)
    largest = max(path.stat().st_size for path in (tmp_path / OUT).rglob("*"))
    limits = [Fault("limit", size) for size in (100, largest - 1)]
    for fault in [*(Fault("full", n) for n in some(undisturbed.makes)), *limits]:
        remove(tmp_path)
        failed = run(tmp_path, [*arguments, "--out", OUT], fault)
        assert failed.code == 1, f"{fault}: {failed.err}"
        line = failed.err.splitlines()[-1]
        assert line.startswith("topicscope: "), f"{fault}: {failed.err}"
        assert re.search(rf"\((\S*/)?{OUT}\b", line), f"{fault}: {failed.err}"  # the file
        assert "free some space, then continue" in line, f"{fault}: {failed.err}"
        assert "Traceback" not in failed.err
        assert not [*(tmp_path / OUT).rglob("*.tmp")], str(fault)
        check_whole(tmp_path, expected, again(arguments, tmp_path), str(fault))


@pytest.mark.slow
@pytest.mark.parametrize("command", [*REPLACING, "train", "theory landscape"])
def test_a_command_killed_over_an_old_result_leaves_it_whole_or_refused(
    command: str, inputs: Path, tmp_path: Path
) -> None:
    arguments, force = filled(command, inputs), [] if command in REPLACING else ["--force"]
    assert run(tmp_path, [*arguments, "--out", OUT]).code == 0
    expected = content(tmp_path / OUT)
    other = {"train": ["--seed", "3"], "theory landscape": ["--value-matrix", "diagonal"], "words": ["flour"]}
    old = [*arguments, *other.get(command, ["--set", "seed=3"])]
    remove(tmp_path)
    assert run(tmp_path, [*old, "--out", OUT]).code == 0
    (tmp_path / OUT).rename(tmp_path / "old")
    shown = run(tmp_path, ["show", "old", "--json"]).out.replace('"old"', f'"{OUT}"')
    assert json.loads(shown)
    shutil.copytree(tmp_path / "old", tmp_path / OUT)
    changes = run(tmp_path, [*arguments, "--out", OUT, *force]).changes
    assert differences(content(tmp_path / OUT), expected) == []
    new, seen = run(tmp_path, ["show", OUT, "--json"]).out, set()
    assert new != shown
    for n in some(changes):
        remove(tmp_path)
        shutil.copytree(tmp_path / "old", tmp_path / OUT)
        assert run(tmp_path, [*arguments, "--out", OUT, *force], Fault("kill", n)).code == KILLED
        result = run(tmp_path, ["show", OUT, "--json"])
        assert (result.code, result.out) in ((0, shown), (0, new), (2, "")), f"{n}: {result}"
        seen.add(result.out)
        check_whole(tmp_path, expected, again(arguments, tmp_path, *force), f"kill at {n}")
    assert "" in seen or len(seen) > 1  # the new one too, where anything is changed after it is whole


WRONG = {
    "train": [["--set", "nonsense=1"], ["--device", "abacus"], ["--lr", "-1"]],
    "topics": [["--tokenizer", "{inputs}/nowhere"], ["--set", "corpus=nowhere.txt"], ["--engine", "abacus"]],
    "probe": [["--set", "models=nowhere"], ["--set", "corpus=nowhere.txt"], ["--device", "abacus"]],
    "timeline": [["--set", "snapshots=nowhere"], ["--threshold", "0.0001"], ["--engine", "abacus"]],
    "timeline of train": [["--set", "snapshots=nowhere"], ["--bootstrap", "-1"]],
    "words": [["--embedding", "nonsense"], ["/", "/", ""]],
    "sweep": [["--engine", "abacus"], ["--workers", "0"]],
    "pretrain": [["--set", "text.corpus=nowhere.txt"], ["--tokenizer", "{inputs}/nowhere"], ["--device", "abacus"]],
    "reproduce": [["nonsense"], ["--engine", "abacus"], ["--seed", "-1"]],
    "theory landscape": [["--value-matrix", "nonsense"], ["--topics", "0"]],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", WRONG)
def test_a_start_that_fails_leaves_nothing(command: str, inputs: Path, tmp_path: Path) -> None:
    """Neither the folder nor those above it; and the right command then works in the same folder."""
    arguments, deep = filled(command, inputs), f"{OUT}/deep/er"
    for wrong in WRONG[command]:
        failed = run(tmp_path, [*arguments, *(part.format(inputs=inputs) for part in wrong), "--out", deep])
        assert failed.code == 2, f"{wrong}: {failed}"
        said = failed.err.replace("topicscope: estimate: ", "")  # what comes before the work, where it takes long
        assert said.count("topicscope: ") == 1, f"{wrong}: {failed}"
        assert not (tmp_path / OUT).exists(), wrong
    short = run(tmp_path, [*arguments, "--out", deep], Fault("memory"))
    assert short.code in (1, 2), short
    assert "not enough memory" in short.err, short
    assert not (tmp_path / OUT).exists()
    assert run(tmp_path, [*arguments, "--out", deep]).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_second_process_is_refused(command: str, inputs: Path, tmp_path: Path) -> None:
    arguments = [*filled(command, inputs), "--out", OUT]
    for number in range(2):
        with folders.lock(tmp_path / OUT):
            for second in (arguments, ["report", OUT])[: number + 1]:
                refused = run(tmp_path, second)
                assert refused.code == 2, refused
                assert "another process is writing to out" in refused.err or "not empty" in refused.err
                assert second is arguments or "another process" in refused.err
        assert number or run(tmp_path, arguments).code == 0
