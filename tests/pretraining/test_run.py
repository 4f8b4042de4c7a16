"""A whole run: it learns, repeats, resumes to the same bytes, and its models load and can be probed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.command import topicscope
from tests.pretraining import small
from topicscope import build_config, train
from topicscope.ground import old_folders as folders
from topicscope.ground.errors import InputError
from topicscope.ground.old_folders import read_metrics
from topicscope.language import load_model
from topicscope.pretraining import checkpoint, pretrain, seeds
from topicscope.pretraining.loop import Loop
from topicscope.pretraining.run import accelerated


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("\n".join(small.texts()))
    return str(path)


@pytest.fixture(scope="module")
def whole(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "run"
    pretrain(small.config(corpus), out)
    return out


def files(folder: Path) -> dict[str, bytes]:
    """Everything that a run is, but for when and where it ran."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != "environment.json"
    }


def test_a_run_learns_and_follows_every_layer(whole: Path) -> None:
    metrics = read_metrics(whole)
    results = json.loads((whole / "results.json").read_text())
    assert results["status"] == "done"
    assert len(metrics["loss"]) == 61  # a line before every step, and one for the final weights
    assert np.isnan(metrics["loss"][-1])
    assert metrics["loss"][0] == pytest.approx(np.log(120), abs=0.3)  # nothing known yet
    assert metrics["loss"][-11:-1].mean() < metrics["loss"][0] - 0.5
    assert set(results["layers"]) == {"0", "1"}
    for layer in "01":
        assert metrics[f"norm_key_{layer}"][0] == pytest.approx(1e-3 * 16, rel=0.2)
        assert metrics[f"norm_value_{layer}"][-1] > 10 * metrics[f"norm_value_{layer}"][0]
    assert results["tokens"] == 60 * 8 * 24


def test_the_same_run_twice_is_the_same_bytes_and_memory_agrees(whole: Path, corpus: str, tmp_path: Path) -> None:
    pretrain(small.config(corpus), tmp_path / "again")
    assert files(tmp_path / "again") == files(whole)
    in_memory = pretrain(small.config(corpus))
    stored = read_metrics(whole)
    for name, column in in_memory.metrics.items():
        np.testing.assert_array_equal(column, stored[name])
    other = pretrain(small.config(corpus, seed=1))
    assert not np.array_equal(other.metrics["loss"], in_memory.metrics["loss"])


def test_stopped_in_the_middle_and_resumed_is_the_same_bytes(whole: Path, corpus: str, tmp_path: Path) -> None:
    """Stopped twice, in the middle of a block: once after a saved state, once before any new one."""

    class StoppedError(Exception):
        pass

    def stop_at(step: int) -> Any:
        def progress(_run: int, done: int, _loss: float, _rate: float) -> None:
            if done >= step:
                raise StoppedError

        return progress

    out = tmp_path / "run"
    with pytest.raises(StoppedError):
        pretrain(small.config(corpus), out, progress=stop_at(35))
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 20
    with pytest.raises(StoppedError):
        pretrain(small.config(corpus), out, resume=True, progress=stop_at(25))
    with pytest.raises(InputError, match="holds a run with another config"):
        pretrain(small.config(corpus, seed=5), out, resume=True)
    pretrain(small.config(corpus), out, resume=True)
    assert files(out) == files(whole)
    assert pretrain(small.config(corpus), out, resume=True).results == json.loads(
        (whole / "results.json").read_text()
    )  # nothing left to do


def test_killed_and_resumed_is_the_same_bytes(corpus: str, tmp_path: Path) -> None:
    """kill -9 by the clock, from the command line."""
    command = [
        sys.executable,
        "-m",
        "topicscope",
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
        "--checkpoints",
        "[0,150]",
        "--set",
        "save_every=40",
    ]
    subprocess.run([*command, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    out = tmp_path / "killed"
    process = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while not (out / "state.safetensors").exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "results.json").exists()
    subprocess.run(
        [sys.executable, "-m", "topicscope", "pretrain", "--resume", "--out", str(out)], check=True, capture_output=True
    )
    whole, killed = (files(tmp_path / name) for name in ("whole", "killed"))
    assert set(whole) == set(killed)
    assert [name for name in whole if whole[name] != killed[name] and name != "report.html"] == []


def test_a_state_of_another_config_or_a_damaged_one_is_refused(corpus: str, tmp_path: Path) -> None:
    config, path = small.config(corpus), tmp_path / "state.safetensors"
    loop = Loop(config, small.texts(), small.tokenizer(), None, accelerated(config))
    loop.advance()
    checkpoint.save(path, 1, config, loop.model, loop.optimizer, loop.tracker, loop.rows)
    fresh = Loop(config, small.texts(), small.tokenizer(), None, accelerated(config))
    assert checkpoint.load(path, config, fresh.model, fresh.optimizer, fresh.tracker, fresh.rows) == 1
    assert all(torch.equal(a, b) for a, b in zip(fresh.model.parameters(), loop.model.parameters(), strict=True))
    with pytest.raises(InputError, match="another config"):
        checkpoint.load(path, small.config(corpus, seed=1), fresh.model, fresh.optimizer, fresh.tracker, fresh.rows)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match="damaged or cut off"):
        checkpoint.load(path, config, fresh.model, fresh.optimizer, fresh.tracker, fresh.rows)


def test_models_load_with_the_library_and_can_be_probed(whole: Path) -> None:
    model = transformers.AutoModel.from_pretrained(whole / "model")
    assert model.config.num_hidden_layers == 2
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(whole / "model")
    assert len(tokenizer) == 120
    loaded = load_model(whole / "model")
    assert loaded.window == small.LENGTH
    kept = sorted(path.name for path in (whole / "checkpoints").iterdir())
    assert kept[0] == "step-000000"
    assert kept[-1] == "step-000060"
    last = transformers.AutoModelForMaskedLM.from_pretrained(whole / "checkpoints" / "step-000060")
    end = transformers.AutoModelForMaskedLM.from_pretrained(whole / "model")
    assert all(torch.equal(a, b) for a, b in zip(last.parameters(), end.parameters(), strict=True))
    first = load_model(whole / "checkpoints" / "step-000000")
    assert float(first.model.encoder.layer[0].attention.self.key.weight.detach().norm()) == pytest.approx(
        read_metrics(whole)["norm_key_0"][0], rel=1e-6
    )


@pytest.mark.parametrize("architecture", ["roberta", "albert", "electra", "bart"])
def test_every_architecture_trains(architecture: str, corpus: str, tmp_path: Path) -> None:
    run = pretrain(
        small.config(corpus, steps=30, model={"architecture": architecture}, optimizer={"lr": 0.005}), tmp_path / "run"
    )
    assert run.metrics["loss"][-6:-1].mean() < run.metrics["loss"][0] - 0.3
    load_model(tmp_path / "run" / "model")  # gives its attention
    layer = next(iter(run.results["layers"]))
    assert run.metrics[f"norm_value_{layer}"][-1] > 2 * run.metrics[f"norm_value_{layer}"][0]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_other_tokenizers_and_sgd(kind: str, corpus: str) -> None:
    size = {"bpe": 330, "unigram": 60}[kind]
    run = pretrain(
        small.config(
            corpus,
            tokenizer={"train": kind, "vocab_size": size},
            optimizer={"name": "sgd", "lr": 0.5, "momentum": 0.9, "warmup": 5},
        )
    )
    assert run.results["vocabulary"] == size
    assert run.metrics["loss"][-6:-1].mean() < run.metrics["loss"][0]
    assert run.metrics["lr"][:6].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5])


def test_micro_batches_add_up_to_the_batch(corpus: str) -> None:
    """Without dropout it does not matter how a batch is parted, but for rounding; masks are drawn by micro-batch, so compare what they make of one."""
    one, two = (
        pretrain(
            small.config(
                corpus,
                steps=1,
                micro_batch=micro,
                model={"dropout": 0.0},
                masking={"p_mask": 1.0, "p_correct": 1.0, "p_random": 0.0},
            )
        )
        for micro in (8, 2)
    )
    assert one.metrics["loss"][0] == pytest.approx(two.metrics["loss"][0], rel=1e-6)
    for layer in "01":
        assert one.metrics[f"norm_value_{layer}"][1] == pytest.approx(two.metrics[f"norm_value_{layer}"][1], rel=1e-4)


def test_two_processes_give_the_same_loss_curve(whole: Path, corpus: str, tmp_path: Path) -> None:
    """With dropout, and to 1e-4: as accelerate starts them."""
    (tmp_path / "config.yaml").write_bytes((whole / "config.yaml").read_bytes())
    launcher = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--main_process_port",
        "0",
    ]
    launcher += ["--mixed_precision", "no", "--dynamo_backend", "no", "-m", "topicscope", "pretrain"]
    done = subprocess.run(
        [*launcher, "--config", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "run"), "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["processes"] == 2
    one, two = read_metrics(whole), read_metrics(tmp_path / "run")
    assert np.nanmax(np.abs(one["loss"] - two["loss"])) < 1e-4
    for name in ("norm_key_0", "norm_query_1", "norm_value_0"):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-3)
    assert json.loads(done.stdout)["steps"] == 60  # one process prints


def test_several_runs_share_a_folder_and_a_tokenizer(corpus: str, tmp_path: Path) -> None:
    configs = seeds(small.config(corpus, steps=12, checkpoints="none"), 2)
    both = pretrain(configs, tmp_path / "two")
    alone = pretrain(configs[1])
    np.testing.assert_array_equal(both[1].metrics["loss"], alone.metrics["loss"])
    assert not np.array_equal(both[0].metrics["loss"], both[1].metrics["loss"])
    assert (tmp_path / "two" / "run-001" / "results.json").exists()


def test_a_run_that_diverges_says_so(corpus: str, tmp_path: Path) -> None:
    run = pretrain(small.config(corpus, optimizer={"name": "sgd", "lr": 1e30, "clip": None}), tmp_path / "run")
    assert run.status == "diverged"
    assert np.isfinite(run.metrics["loss"]).all()
    assert len(run.metrics["loss"]) < 60
    assert run.results["layers"] == {}  # no stages of a run that has no end
    assert not (tmp_path / "run" / "model").exists()
    topicscope("report", str(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").exists()


def test_a_short_run_has_a_page_without_rotation(corpus: str, tmp_path: Path) -> None:
    arguments = [
        "--steps",
        "5",
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
    ]
    done = topicscope("pretrain", "--corpus", corpus, *arguments, "--out", str(tmp_path / "run"), "--json")
    assert json.loads(done.stdout)["steps"] == 5
    page = (tmp_path / "run" / "report.html").read_text()
    assert "||W_V||_F (layer 1)" in page
    assert "rotation of W_V over 10 steps (layer" not in page


def test_a_folder_in_use_is_not_touched_by_force(whole: Path, corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    before = files(out)
    with folders.lock(out), pytest.raises(InputError, match="another process is writing"):
        pretrain(small.config(corpus, seed=9), out, force=True)
    assert files(out) == before
    sandbox = build_config({"steps": 5, "data": {"documents": 50, "dev_documents": 10}, "floors": False})
    train(sandbox, tmp_path / "sandbox")
    stored = files(tmp_path / "sandbox")
    with folders.lock(tmp_path / "sandbox"), pytest.raises(InputError, match="another process is writing"):
        train(sandbox, tmp_path / "sandbox", force=True)
    assert files(tmp_path / "sandbox") == stored


def test_a_text_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    path, out = tmp_path / "texts.txt", tmp_path / "run"
    path.write_text("\n".join(small.texts()))

    def stop(_run: int, done: int, _loss: float, _rate: float) -> None:
        if done >= 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(small.config(str(path)), out, progress=stop)
    text = path.read_text()
    path.write_text(text[:-5] + "xxxxx")  # as long as before
    with pytest.raises(InputError, match="the text has changed"):
        pretrain(small.config(str(path)), out, resume=True)
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
        assert list(out.iterdir()) == []
    with pytest.raises(InputError):
        pretrain(seeds(small.config(corpus, tokenizer={"vocab_size": 9000}), 2), out)
    assert list(out.iterdir()) == []
    pretrain(small.config(corpus, steps=3), out)


def test_a_corpus_without_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "junk.txt.gz").write_bytes(b"no such thing")
    for name in ("empty.txt", "junk.txt.gz"):
        done = topicscope("pretrain", "--corpus", str(tmp_path / name), code=2)
        assert "the corpus has no text" in done.stderr
        assert name in done.stderr


def test_the_command_writes_figure_5_and_speaks_json(corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = [
        "pretrain",
        "--corpus",
        corpus,
        "--steps",
        "12",
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
    ]
    arguments += ["--vocab-size", "120", "--out", str(out), "--runs", "2", "--checkpoints", "none"]
    done = topicscope(*arguments, "--json")
    assert [run["seed"] for run in json.loads(done.stdout)] == [0, 1]
    assert (out / "figures" / "figure5.png").stat().st_size > 10_000
    page = (out / "report.html").read_text()
    assert "layer 1" in page
    (out / "report.html").unlink()
    topicscope("report", str(out))
    assert (out / "report.html").read_text() == page
    assert "not empty" in topicscope(*arguments, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dim", "18", "--heads", "4"], "not divisible by 4 heads"),
        (["--vocab-size", "9000"], "fewer than the vocabulary of 9000"),
        (["--batch-size", "5000", "--vocab-size", "120"], "fewer than a batch of 5000"),
        (["--bf16"], "bf16 is for GPUs only"),
        (["--tokenizer", "no/such/folder/at/all"], "no such model"),
        (["--architecture", "gpt"], "architecture"),
        (["--init-scale", "[1,2]"], "2 scales for 4 layers"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, corpus: str, tmp_path: Path) -> None:
    done = topicscope("pretrain", "--corpus", corpus, *arguments, "--out", str(tmp_path / "run"), code=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_no_corpus_is_one_line(tmp_path: Path) -> None:
    for arguments, said in (([], "--corpus"), (["--corpus", str(tmp_path / "none.txt")], "no such corpus")):
        done = topicscope("pretrain", *arguments, code=2)
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_texts_and_a_tokenizer_that_the_caller_has(tmp_path: Path) -> None:
    run = pretrain(
        small.config("nowhere.txt", steps=3), tmp_path / "run", texts=small.texts(), tokenizer=small.tokenizer()
    )
    assert run.status == "done"
    assert run.tokenizer.get_vocab() == small.tokenizer().get_vocab()
