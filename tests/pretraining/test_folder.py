"""The folder of a run: resumed to the same bytes, read back, refused; its models load and can be probed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.command import started, topicscope
from tests.pretraining import small
from tests.waiting import wait_until
from topicscope import InputError, read
from topicscope.ground import folders, read_metrics
from topicscope.language import load_model
from topicscope.pretraining import Loop, PretrainRun, accelerated, pretrain, read_pretrain


def test_stopped_in_the_middle_and_resumed_is_the_same_bytes(whole: Path, corpus: str, tmp_path: Path) -> None:
    """Stopped twice, in the middle of a block: once after a saved state, once before any new one."""

    class StoppedError(Exception):
        pass

    out = tmp_path / "run"
    with pytest.raises(StoppedError):
        pretrain(small.config(corpus), out, progress=small.stop_at(35, StoppedError()))
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 20
    with pytest.raises(StoppedError):
        pretrain(small.config(corpus), out, resume=True, progress=small.stop_at(25, StoppedError()))
    with pytest.raises(InputError, match="was made with another config"):
        pretrain(small.config(corpus, seed=5), out, resume=True)
    pretrain(small.config(corpus), out, resume=True)
    assert small.files(out) == small.files(whole)
    assert json.loads((out / "environment.json").read_text())["resumed_at"] == 20
    again = pretrain(small.config(corpus), out, resume=True)  # nothing left to do
    assert again.results.as_dict() == json.loads((whole / "results.json").read_text())


def test_killed_and_resumed_is_the_same_bytes(corpus: str, tmp_path: Path) -> None:
    """kill -9 by the clock, from the command line."""
    command = [
        "pretrain",
        "--corpus",
        corpus,
        "--steps",
        "240",
        "--layers",
        "2",
        "--heads",
        "2",
        "--dim",
        "16",
        "--length",
        "24",
        "--batch-size",
        "8",
        "--vocab-size",
        "120",
        "--device",
        "cpu",
        "--snapshots",
        "[0,150]",
        "--set",
        "checkpoint_every=40",
    ]
    topicscope(*command, "--out", str(tmp_path / "whole"))
    out = tmp_path / "killed"
    process = started(*command, "--out", str(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: (out / "checkpoint.safetensors").exists() or process.poll() is not None)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "results.json").exists()
    topicscope("pretrain", "--resume", "--out", str(out))
    whole, killed = (small.files(tmp_path / name) for name in ("whole", "killed"))
    assert set(whole) == set(killed)
    assert [name for name in whole if whole[name] != killed[name] and name != "report.html"] == []


def test_a_checkpoint_of_another_config_or_a_damaged_one_is_refused(corpus: str, tmp_path: Path) -> None:
    def loop(**settings: Any) -> Loop:
        config = small.config(corpus, checkpoint_every=1, **settings)
        return Loop(config, small.texts(), small.tokenizer(), None, accelerated(config))

    trained, fresh, path = loop(), loop(), tmp_path / "checkpoint.safetensors"
    trained.advance()
    trained.save(path)
    fresh.load(path)
    assert fresh.step == fresh.first_step == 1
    assert all(torch.equal(a, b) for a, b in zip(fresh.model.parameters(), trained.model.parameters(), strict=True))
    with pytest.raises(InputError, match="another config"):
        loop(seed=1).load(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match="damaged or cut off"):
        fresh.load(path)


def test_a_run_reads_back_as_what_it_returned(corpus: str, tmp_path: Path) -> None:
    config = small.config(corpus, steps=12, snapshots=[0, 12])
    made = pretrain(config, tmp_path / "run")
    stored = read(tmp_path / "run")
    assert type(stored) is type(made) is PretrainRun
    assert (stored.config, stored.status, stored.results, stored.folder) == (config, "done", made.results, made.folder)
    for name, column in made.metrics.items():
        np.testing.assert_array_equal(stored.metrics[name], column)
    assert torch.equal(stored.model.cls.predictions.bias, made.model.cls.predictions.bias)
    assert stored.tokenizer.get_vocab() == made.tokenizer.get_vocab()
    assert stored.summary() == made.summary()
    assert stored.summary()[0].startswith("Seed 0: loss ")
    assert stored.table().column_names[:3] == ["step", "loss", "lr"]
    assert repr(stored) == "PretrainRun(seed 0, done, 12 steps)"
    results = tmp_path / "run" / "results.json"
    results.write_text(json.dumps({"status": "done"}))
    with pytest.raises(InputError, match=r"results\.json is damaged: it is not what topicscope wrote"):
        read(tmp_path / "run")


READING = """
import sys
from topicscope import read
run = read(sys.argv[1])
run.summary(), run.table(), run.sections()
print([name for name in ("torch", "transformers") if name in sys.modules])
"""


def test_reading_a_run_needs_neither_torch_nor_transformers(whole: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READING, str(whole)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_load_with_the_library_and_can_be_probed(whole: Path) -> None:
    model = transformers.AutoModel.from_pretrained(whole / "model")
    assert model.config.num_hidden_layers == 2
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(whole / "model")
    assert len(tokenizer) == 120
    loaded = load_model(whole / "model")
    assert loaded.window == small.LENGTH
    kept = sorted(path.name for path in (whole / "snapshots").iterdir())
    assert kept[0] == "step-000000"
    assert kept[-1] == "step-000060"
    last = transformers.AutoModelForMaskedLM.from_pretrained(whole / "snapshots" / "step-000060")
    end = transformers.AutoModelForMaskedLM.from_pretrained(whole / "model")
    assert all(torch.equal(a, b) for a, b in zip(last.parameters(), end.parameters(), strict=True))
    first = load_model(whole / "snapshots" / "step-000000")
    assert float(first.model.encoder.layer[0].attention.self.key.weight.detach().norm()) == pytest.approx(
        read_metrics(whole)["norm_key_0"][0], rel=1e-6
    )


def test_a_folder_in_use_is_not_touched_by_force(whole: Path, corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    before = small.files(out)
    with folders.lock(out), pytest.raises(InputError, match="another process is writing"):
        pretrain(small.config(corpus, seed=9), out, force=True)
    assert small.files(out) == before


def test_a_text_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    path, out = tmp_path / "texts.txt", tmp_path / "run"
    path.write_text("\n".join(small.texts()))

    with pytest.raises(KeyboardInterrupt):
        pretrain(small.config(str(path)), out, progress=small.stop_at(30, KeyboardInterrupt()))
    text = path.read_text()
    path.write_text(text[:-5] + "xxxxx")  # as long as before
    before = small.files(out)
    with pytest.raises(InputError, match="the text has changed"):
        pretrain(small.config(str(path)), out, resume=True)
    assert small.files(out) == before
    path.write_text(text)
    assert pretrain(small.config(str(path)), out, resume=True, device="cpu").status == "done"


def test_a_start_that_fails_leaves_nothing_in_the_way(corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for wrong in (
        {"tokenizer": {"vocab_size": 9000}},
        {"tokenizer": {"existing": "/no/such/folder"}},
        {"batch_size": 6000},
    ):
        with pytest.raises(InputError):
            pretrain(small.config(corpus, **wrong), out)
        assert not out.exists()
        with pytest.raises(InputError):
            pretrain(small.config(corpus, **wrong).with_seeds(2), out)
        assert not out.exists()
    pretrain(small.config(corpus, steps=3), out)


@pytest.fixture(scope="module")
def stopped(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(KeyboardInterrupt):
        pretrain(small.config(corpus), out, progress=small.stop_at(30, KeyboardInterrupt()))
    return out


def flipped(folder: Path) -> None:
    """Another letter in the vocabulary: the tokenizer loads, and is another one."""
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"butter"', '"batter"'))


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


def a_fifo(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        shutil.rmtree,
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        lambda folder: (folder / "digests.json").write_text("[3]"),
        lambda folder: (folder / "digests.json").write_text('{"tokenizer.json": 3}'),
        lambda folder: (folder / "digests.json").unlink(),
        a_file,
        a_fifo,
    ],
)
def test_a_run_does_not_go_on_with_a_damaged_tokenizer(
    stopped: Path, corpus: str, tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    damage(out / "tokenizer")
    with pytest.raises(InputError, match=r"tokenizer.*; start the run again \(--force\)") as caught:
        pretrain(small.config(corpus), out, resume=True)
    assert "\n" not in str(caught.value)


def test_a_damaged_model_of_a_finished_run_is_refused(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    run = read_pretrain(tmp_path / "run")
    assert isinstance(run, PretrainRun)
    weights = tmp_path / "run" / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"model\.safetensors is damaged: it is not what topicscope wrote"):
        _ = run.model
