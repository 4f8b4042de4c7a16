"""The folder of a run: resumed to the same bytes, read back, refused; and what a run says of itself."""

import dataclasses
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
from tests.refusals import refused
from tests.waiting import wait_until
from topicscope import InputError, read
from topicscope.ground import file_digest, folders, read_metrics
from topicscope.language import load_model
from topicscope.measure import Stages, layer_metrics
from topicscope.pretraining import (
    PretrainResults,
    PretrainRun,
    PretrainRuns,
    pretrain,
    read_pretrain,
)
from topicscope.pretraining.run import PRETRAIN, stored_metrics, write_pretrained


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
    refused("was made with another config", pretrain, small.config(corpus, seed=5), out, resume=True)
    pretrain(small.config(corpus), out, resume=True)
    assert small.files(out) == small.files(whole)
    assert json.loads((out / "environment.json").read_text())["resumed_at"] == 20
    again = pretrain(small.config(corpus), out, resume=True)  # nothing left to do
    assert again.results.as_dict() == json.loads((whole / "results.json").read_text())


def test_killed_and_resumed_is_the_same_bytes(corpus: str, tmp_path: Path) -> None:
    """kill -9 by the clock, from the command line."""
    settings: dict[str, Any] = {"steps": 160, "snapshots": [0, 90], "checkpoint_every": 20}
    pretrain(small.config(corpus, **settings, model={"init_scale": 0.0001}), tmp_path / "whole")
    out = tmp_path / "killed"
    command = ["pretrain", "--corpus", corpus, "--steps", "160", *small.FLAGS, "--snapshots", "[0,90]"]
    command += ["--set", "checkpoint_every=20", "--out", str(out)]
    process = started(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: (out / "checkpoint.safetensors").exists() or process.poll() is not None)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "results.json").exists()
    topicscope("pretrain", "--resume", "--out", str(out))
    whole, killed = (small.files(tmp_path / name) for name in ("whole", "killed"))
    assert set(whole) <= set(killed)  # the command writes figures and a page, too
    assert [name for name in whole if whole[name] != killed[name]] == []


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


def test_a_text_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    path, out = tmp_path / "texts.txt", tmp_path / "run"
    path.write_text("\n".join(small.texts()))
    with pytest.raises(KeyboardInterrupt):
        pretrain(small.config(str(path)), out, progress=small.stop_at(30, KeyboardInterrupt()))
    text = path.read_text()
    path.write_text(text[:-5] + "xxxxx")  # as long as before
    before = small.files(out)
    refused("the text has changed", pretrain, small.config(str(path)), out, resume=True)
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
        flipped, shutil.rmtree, lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        lambda folder: (folder / "digests.json").write_text("[3]"),
        lambda folder: (folder / "digests.json").write_text('{"tokenizer.json": 3}'),
        lambda folder: (folder / "digests.json").unlink(), a_file, a_fifo,
    ],
)  # fmt: skip
def test_a_run_does_not_go_on_with_a_damaged_tokenizer(
    stopped: Path, corpus: str, tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    damage(out / "tokenizer")
    refused(r"tokenizer.*; start the run again \(--force\)", pretrain, small.config(corpus), out, resume=True)


def test_a_damaged_model_of_a_finished_run_is_refused(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    run = read_pretrain(tmp_path / "run")
    assert isinstance(run, PretrainRun)
    weights = tmp_path / "run" / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"model\.safetensors is damaged: it is not what topicscope wrote"):
        _ = run.model


def metrics_of(steps: int = 80, late: int = 20) -> dict[str, np.ndarray]:
    """Two layers: the value's norm is half-way at step 10, key and query follow `late` steps after it, or 15."""
    time = np.arange(steps, dtype=float)

    def risen(middle: float) -> np.ndarray:
        return np.clip((time - middle + 5) / 10, 0.0, 1.0)

    metrics = {"step": time, "loss": np.r_[5 * np.exp(-time[:-1] / 20), np.nan], "lr": np.full(steps, 0.1)}
    for layer, after in (("0", late), ("1", 15)):
        metrics |= {f"norm_{part}_{layer}": risen(10 + after) for part in ("key", "query")}
        metrics[f"norm_value_{layer}"] = risen(10)
    return metrics


def diverged(folder: Path | None = None) -> PretrainRun:
    results = dataclasses.replace(small.run_of(metrics_of()).results, status="diverged", loss=None, layers={})
    return PretrainRun(small.config(), results, metrics_of(), folder)


def test_results_go_through_json() -> None:
    results = small.run_of(metrics_of()).results
    assert results.layers == {"0": Stages(10, 30, 30), "1": Stages(10, 25, 25)}
    assert PretrainResults.from_dict(json.loads(json.dumps(results.as_dict()))) == results
    flat = dataclasses.replace(results, layers={"0": Stages(10, np.nan, 30)})
    data = json.loads(json.dumps(flat.as_dict(), allow_nan=False))
    assert data["layers"]["0"]["t50_key"] is None  # it has not risen
    again = PretrainResults.from_dict(data).layers["0"]
    assert np.isnan(again.key)
    assert (again.value, again.query) == (10, 30)
    with pytest.raises(dataclasses.FrozenInstanceError):
        results.seed = 1  # type: ignore[misc]


def test_a_run_says_what_it_is() -> None:
    run = small.run_of(metrics_of(), seed=3)
    assert run.summary() == [
        f"Seed 3: loss {run.results.loss:.4f} after 79 steps (1,000 tokens, a vocabulary of 120).",
        run.course.sentence,
    ]
    held_out = dataclasses.replace(run.results, held_out_loss=4.25)
    said = dataclasses.replace(run, results=held_out).summary()[0]
    assert said.startswith(f"Seed 3: loss {run.results.loss:.4f}, held-out loss 4.2500 after 79 steps")
    assert run.course.halves == Stages(10, 25, 25)  # of the layer with the smallest separation
    assert run.facts() == {
        "status": "done", "steps": 79, "first loss": 5.0, "training loss (last 50 steps)": run.results.loss,
        "held-out loss": None, "gradient norm (last 50 steps)": None, "phase": run.course.phase,
        "separation, layer 0": 3.0, "separation, layer 1": 2.5,
    }  # fmt: skip
    assert run.table().num_rows == 80
    assert repr(run) == "PretrainRun(seed 3, done, 79 steps)"
    assert run in {run}
    assert run != small.run_of(metrics_of(), seed=3)  # each is itself
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.folder = Path()  # type: ignore[misc]
    assert set(layer_metrics(run.metrics, "1")) == {"norm_key", "norm_query", "norm_value"}
    np.testing.assert_array_equal(layer_metrics(run.metrics, "1")["norm_key"], run.metrics["norm_key_1"])


def test_several_runs_say_what_they_are() -> None:
    runs = PretrainRuns([small.run_of(metrics_of(), seed) for seed in (0, 1)])
    assert runs.folder is None
    assert (runs.status, repr(runs)) == ("done", "PretrainRuns(2 runs, done)")
    assert runs.summary() == [*runs[0].summary(), *runs[1].summary()]
    rows = runs.table().to_pylist()
    assert rows == [{"seed": seed, **runs[seed].facts()} for seed in (0, 1)]
    mixed = PretrainRuns([*runs, diverged()], Path("runs"))
    assert (mixed.status, mixed.folder) == ("diverged", Path("runs"))
    assert repr(mixed) == "PretrainRuns(3 runs, diverged)"
    assert mixed.table().column("separation, layer 0").to_pylist() == [3.0, 3.0, None]


def test_a_run_without_a_model_says_so(tmp_path: Path) -> None:
    for run, said in (
        (small.run_of(metrics_of()), "79 steps"),
        (diverged(), "diverged"),
        (diverged(tmp_path), "diverged"),
    ):
        with pytest.raises(InputError, match=rf"PretrainRun\(seed 0, .*{said}.* has no model"):
            _ = run.model
    with pytest.raises(InputError, match=r"PretrainRun\(seed 0, done, 79 steps\) has no tokenizer"):
        _ = small.run_of(metrics_of()).tokenizer
    model, tokenizer = object(), object()
    just_trained = dataclasses.replace(diverged(tmp_path), trained=(model, tokenizer))
    assert just_trained.model is model
    assert just_trained.tokenizer is tokenizer


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("300 documents", False),
        ("300 documents, 2 broken lines", True),
        ("300 documents, 1 lines with bad encoding", True),
        ("2 broken lines, 1 lines with bad encoding", True),
        (None, False),
    ],
)
def test_text_that_could_not_be_read_is_told(text: str | None, told: bool, tmp_path: Path) -> None:
    run = dataclasses.replace(small.run_of(metrics_of()), folder=tmp_path)
    assert len(run.summary()) == 2  # the folder does not say
    (tmp_path / "environment.json").write_text(json.dumps({"text": text}))
    assert run.summary()[2:] == ([f"Not all of the text could be read: {text}"] if told else [])


def stored(folder: Path, run: PretrainRun, lines: list[dict[str, Any]]) -> None:
    with folders.open_folder(folder, PRETRAIN, run.config.as_dict()) as opened:
        opened.file("metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        opened.finish(run.results.as_dict(), run.status)


def test_metrics_have_a_column_for_what_no_step_had(tmp_path: Path) -> None:
    empty = {name: column.tolist() for name, column in stored_metrics(tmp_path).items()}
    assert empty == {"loss": [], "lr": [], "gradient_norm": [], "held_out_loss": []}
    stored(tmp_path / "run", diverged(), [{"step": 0, "lr": 0.5, "norm_key_0": 1.0}, {"step": 1, "norm_key_0": 2.0}])
    metrics = read(tmp_path / "run").metrics
    added = ["loss", "gradient_norm", "held_out_loss", "rotation_0"]
    assert list(metrics) == ["step", "lr", "norm_key_0", *added]
    for name in added:
        np.testing.assert_array_equal(metrics[name], [np.nan, np.nan])
    np.testing.assert_array_equal(metrics["lr"], [0.5, np.nan])
    with pytest.raises(InputError, match="has no model"):
        _ = read(tmp_path / "run").model


@pytest.mark.parametrize(
    "results", [[], 3, None, {"status": "done"}, {"layers": []}, {"layers": {"0": {}}}, {"layers": {"0": [1]}}]
)
def test_damaged_results_are_one_line(results: Any, tmp_path: Path) -> None:
    stored(tmp_path / "run", diverged(), [])
    path, about = tmp_path / "run" / "results.json", tmp_path / "run" / "about.json"
    path.write_text(json.dumps(results))
    refused(r"results\.json is damaged: it is not what topicscope wrote", read, tmp_path / "run")
    content = json.loads(about.read_text())
    content["digests"]["results.json"] = file_digest(path)  # under a seal that is in order
    about.write_text(json.dumps(content))
    refused(r"^results\.json in \S+ is damaged \(", read, tmp_path / "run")


class Part:
    """Writes one file, or fails."""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name, self.fails = name, fails

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / self.name).write_text(self.name)
        if self.fails:
            raise OSError("no space left")


def test_what_is_kept_is_whole_or_as_it_was(tmp_path: Path) -> None:
    write_pretrained(tmp_path / "model", Part("a"), Part("b"))
    with pytest.raises(OSError, match="no space"):
        write_pretrained(tmp_path / "model", Part("c", fails=True))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["a", "b", "digests.json"]
    write_pretrained(tmp_path / "model", Part("d"))  # not with what the failed try left
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["d", "digests.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_run_says_that_nothing_was_held_out() -> None:
    unasked = small.run_of(metrics_of())
    asked = dataclasses.replace(unasked, config=unasked.config.changed({"held_out.share": 0.02}))
    held_out = dataclasses.replace(asked, results=dataclasses.replace(asked.results, held_out_loss=1.5))
    said = "There is no held-out loss: 2% of the documents is too little to fill a row of 24 tokens."
    assert asked.summary()[2].startswith(said)
    assert not any("no held-out loss" in line for line in (*unasked.summary(), *held_out.summary()))
