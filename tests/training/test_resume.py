"""Kill it anywhere, resume, and every byte is the same."""

import dataclasses
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command import started, topicscope
from tests.waiting import wait_until
from topicscope import InputError, RunConfig, read, train
from topicscope.ground import files, read_tensors
from topicscope.training.ensemble import Ensemble
from topicscope.training.run import load_checkpoint, save_checkpoint

SETTINGS: dict[str, Any] = {
    "steps": 330,
    "evaluate_every": 60,
    "checkpoint_every": 100,
    "device": "cpu",
    "batch_size": 8,
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "data": {"documents": 90, "dev_documents": 30},
}
SAME = ("config.yaml", "metrics.jsonl", "results.json", "weights.safetensors")


class KilledError(Exception):
    pass


def kill_after(blocks: int) -> Any:
    """A progress function that raises in the middle of the run."""
    calls = 0

    def progress(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == blocks:
            raise KilledError

    return progress


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a run, or of several, that depend on its config alone."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.name in SAME}
    assert {Path(name).name for name in found} == set(SAME)
    return found


@pytest.mark.parametrize("optimizer", [{"name": "adam"}, {"name": "sgd", "momentum": 0.9}])
def test_resumed_bytes_are_the_same(tmp_path: Path, optimizer: dict[str, Any]) -> None:
    """Wherever it is killed, before its first step too."""
    config = RunConfig.of(SETTINGS | {"optimizer": optimizer})
    train(config, tmp_path / "whole")
    for blocks in (1, 2, 3, 5, 6):
        cut = tmp_path / f"cut{blocks}"
        with pytest.raises(KilledError):
            train(config, cut, progress=kill_after(blocks))
        assert not (cut / "results.json").exists()
        run = train(config, cut, resume=True)
        assert contents(cut) == contents(tmp_path / "whole")
        assert not (cut / "checkpoint.safetensors").exists()
        assert len(run.metrics["loss"]) == 331


def test_an_ensemble_resumes_too(tmp_path: Path) -> None:
    configs = RunConfig.of(SETTINGS).with_seeds(3)
    configs[1] = dataclasses.replace(configs[1], optimizer=dataclasses.replace(configs[1].optimizer, lr=0.001))
    train(configs, tmp_path / "whole")
    with pytest.raises(KilledError):
        train(configs, tmp_path / "cut", progress=kill_after(4))
    train(configs, tmp_path / "cut", resume=True)
    whole, again = contents(tmp_path / "whole"), contents(tmp_path / "cut")
    assert len(whole) >= 3 * len(SAME)
    assert again == whole


def test_a_run_that_diverges_right_after_the_checkpoint_keeps_the_same_weights(tmp_path: Path) -> None:
    """Its last sound weights are those of the block before, which the checkpoint has to hold."""
    more = {
        "documents": {"kind": "infinite", "topics_per_document": 2},
        "model": {"key": "zero", "query": "zero"},
        "objective": {"loss": "squared"},
        "optimizer": {"name": "sgd", "lr": 0.962},
        "dtype": "float64",
    }
    config = RunConfig.of(SETTINGS | more)
    assert train(config, tmp_path / "whole").results["steps"] == 100
    with pytest.raises(KilledError):
        train(config, tmp_path / "cut", progress=kill_after(4))
    train(config, tmp_path / "cut", resume=True)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_killed_by_the_system(tmp_path: Path) -> None:
    """kill -9 of the real command in mid-run."""
    settings = ("checkpoint_every=50", "data.documents=500", "data.dev_documents=50")
    flags = ["--steps", "1500", "--device", "cpu", *(word for one in settings for word in ("--set", one))]
    topicscope("train", *flags, "--out", str(tmp_path / "whole"), "--json")
    cut = tmp_path / "cut"
    process = started("train", *flags, "--out", str(cut), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: (cut / "checkpoint.safetensors").exists() or process.poll() is not None)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (cut / "results.json").exists()
    topicscope("train", "--out", str(cut), "--resume")
    assert contents(cut) == contents(tmp_path / "whole")
    assert json.loads((cut / "environment.json").read_text())["resumed_at"] >= 50


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    config = RunConfig.of(SETTINGS)
    train(config, tmp_path)
    before = (tmp_path / "environment.json").read_bytes()
    again = train(config, tmp_path, resume=True)
    assert (tmp_path / "environment.json").read_bytes() == before
    assert again.results == read(tmp_path).results
    with pytest.raises(InputError, match="another config"):
        train(dataclasses.replace(config, seed=9), tmp_path, resume=True)


def test_a_damaged_checkpoint_or_another_config_is_refused(tmp_path: Path) -> None:
    config = RunConfig.of(SETTINGS)
    ensemble = Ensemble([config])
    ensemble.block(50)
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, ensemble, [""])
    other = Ensemble([dataclasses.replace(config, seed=1)])
    with pytest.raises(InputError, match="another config"):
        load_checkpoint(path, other)
    tensors, note = read_tensors(path, "")
    nameless = {key: value for key, value in note.items() if key not in ("fingerprint", "digest")}
    files.write_tensors(tmp_path / "nameless.safetensors", tensors, nameless)
    with pytest.raises(InputError, match="another config"):  # or of none that can be checked
        load_checkpoint(tmp_path / "nameless.safetensors", other)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="damaged or cut off"):
        load_checkpoint(path, Ensemble([config]))
