"""A whole run, from Python and by command: it learns, repeats, and does what its settings say."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, call

import numpy as np
import pytest

from tests.command import error_line, topicscope
from tests.pretraining import small
from tests.refusals import refused
from topicscope import InputError, read
from topicscope.ground import read_metrics
from topicscope.language import load_model
from topicscope.pretraining import accelerated, is_main, pretrain, run, stored_configs


def test_a_run_learns_and_follows_every_layer(whole: Path) -> None:
    metrics = read_metrics(whole)
    results = json.loads((whole / "results.json").read_text())
    assert results["status"] == "done"
    assert results["first_loss"] == metrics["loss"][0]  # of the first step, before anything was learnt
    assert results["loss"] == pytest.approx(metrics["loss"][10:60].mean(), rel=1e-12)  # of the last fifty steps
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
    assert small.files(tmp_path / "again") == small.files(whole)
    in_memory = pretrain(small.config(corpus))
    stored = read_metrics(whole)
    for name, column in in_memory.metrics.items():
        np.testing.assert_array_equal(column, stored[name])
    other = pretrain(small.config(corpus, seed=1, steps=3))
    assert not np.array_equal(other.metrics["loss"][:3], in_memory.metrics["loss"][:3])


def test_progress_names_its_phases_and_never_shows_a_loss_that_is_none(corpus: str, tmp_path: Path) -> None:
    calls: list[tuple[str, float, float | None, str]] = []

    def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        calls.append((phase, done, total, note))

    configs = small.config(corpus, steps=10, snapshots="none").with_seeds(2)
    pretrain(configs, tmp_path / "runs", progress=progress)
    one = ["reading text", "pretraining", "pretraining", "writing the model"]
    assert [phase for phase, *_ in calls] == ["training a tokenizer", *one, *one]
    assert {(done, total) for phase, done, total, _ in calls if phase != "pretraining"} == {(0, None)}
    assert [note for phase, *_, note in calls if phase == "reading text"] == ["run 1 of 2", "run 2 of 2"]
    counted = [(done, total) for phase, done, total, _ in calls if phase == "pretraining"]
    assert counted == [(5, 20), (10, 20), (15, 20), (20, 20)]
    assert calls[2][3].startswith("run 1 of 2, loss 4.")
    calls.clear()
    pretrain(small.config(corpus, optimizer={"name": "sgd", "lr": 1e6, "clip": None}), progress=progress)
    assert calls[-2][0] == "pretraining"
    assert re.fullmatch(r"[1-9][\d,]* tokens/s", calls[-2][3])
    assert not any("nan" in note for *_, note in calls)


@pytest.mark.parametrize("architecture", ["roberta", "albert", "electra", "bart"])
def test_every_architecture_trains(architecture: str, corpus: str, tmp_path: Path) -> None:
    run = pretrain(
        small.config(corpus, steps=30, model={"architecture": architecture}, optimizer={"lr": 0.005}), tmp_path / "run"
    )
    assert run.metrics["loss"][-6:-1].mean() < run.metrics["loss"][0] - 0.3
    load_model(tmp_path / "run" / "model")  # gives its attention
    layer = next(iter(run.results.layers))
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
    assert run.results.vocabulary == size
    assert run.metrics["loss"][-6:-1].mean() < run.metrics["loss"][0]
    assert run.metrics["lr"][:6].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5])


def test_micro_batches_add_up_to_the_batch(corpus: str) -> None:
    """Without dropout the parts of a batch matter by rounding only. All tokens are predicted, none is hidden."""
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


def test_several_runs_share_a_folder_and_a_tokenizer(corpus: str, tmp_path: Path) -> None:
    refused("holds no pretraining run to resume", stored_configs, tmp_path)
    configs = small.config(corpus, steps=12, snapshots="none").with_seeds(2)
    both = pretrain(configs, tmp_path / "two")
    alone = pretrain(configs[1])
    np.testing.assert_array_equal(both[1].metrics["loss"], alone.metrics["loss"])
    assert not np.array_equal(both[0].metrics["loss"], both[1].metrics["loss"])
    stored = read(tmp_path / "two")
    assert type(stored) is type(both)
    assert [run.results for run in stored] == [run.results for run in both]
    assert stored.table().column("seed").to_pylist() == [0, 1]
    assert read(tmp_path / "two" / "run-001").results == both[1].results
    assert stored_configs(tmp_path / "two") == configs
    assert len(stored.sections()[0].figures[0].panels[0].series) == 2
    refused("was made with another config", pretrain, configs[0], tmp_path / "two", resume=True)


def test_several_runs_stopped_in_the_second_go_on_there(corpus: str, tmp_path: Path) -> None:
    configs = small.config(corpus, steps=6, snapshots=[0], checkpoint_every=2).with_seeds(2)
    pretrain(configs, tmp_path / "whole")
    out = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        pretrain(configs, out, progress=small.stop_at(11, KeyboardInterrupt()))
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["run-000", "run-001"]
    refused("not empty", pretrain, configs, out)
    assert pretrain(configs, out, resume=True).status == "done"
    assert small.files(out) == small.files(tmp_path / "whole")
    resumed = [json.loads((out / f"run-00{i}" / "environment.json").read_text())["resumed_at"] for i in range(2)]
    assert resumed == [None, 4]
    assert list(out.rglob("checkpoint.safetensors")) == []
    assert pretrain(configs[:1], tmp_path / "whole", force=True).folder == tmp_path / "whole"


def test_the_environment_says_how_the_run_went(corpus: str, tmp_path: Path) -> None:
    began = time.perf_counter()
    pretrain(small.config(corpus, steps=3, snapshots="none"), tmp_path / "run")
    took = time.perf_counter() - began
    found = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert 0 < found["wall_seconds"] < took
    assert found["tokens_per_second"] * found["wall_seconds"] == pytest.approx(3 * 8 * 24)
    assert (found["device"], found["processes"], found["resumed_at"]) == ("cpu", 1, None)
    assert found["text"] == "300 documents"
    refused("not empty", pretrain, small.config(corpus, steps=3), tmp_path / "run")


def test_an_error_after_some_work_leaves_it_to_go_on_with(corpus: str, tmp_path: Path) -> None:
    config, out = small.config(corpus, steps=10, checkpoint_every=4), tmp_path / "run"
    refused("enough", pretrain, config, out, progress=small.stop_at(5, InputError("enough")))
    before = small.files(out)
    assert {"tokenizer/tokenizer.json", "metrics.jsonl", "checkpoint.safetensors"} <= set(before)
    assert any(name.startswith("snapshots/step-000000/") for name in before)
    with pytest.raises(InputError, match="too much"):  # nor does an error while it is resumed take anything away
        pretrain(config, out, resume=True, progress=small.stop_at(0, InputError("too much")))
    assert set(small.files(out)) >= set(before)
    assert pretrain(config, out, resume=True).status == "done"


def test_without_a_config_there_is_nothing_to_train() -> None:
    refused("takes a PretrainConfig or several", pretrain, [])


def test_the_device_of_the_caller_goes_before_the_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accelerated(small.config(device="cuda"), "cpu").device.type == "cpu"
    assert accelerated(small.config(device="cpu")).device.type == "cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match="bf16 is for GPUs only, and this run is on the CPU"):
        accelerated(small.config(device="cuda", bf16=True), "cpu")
    refused("finds no usable GPU", accelerated, small.config(device="cuda"))
    for rank, main in ((None, True), ("0", True), ("1", False)):
        monkeypatch.delenv("RANK", raising=False) if rank is None else monkeypatch.setenv("RANK", rank)
        assert is_main() == main


@pytest.mark.parametrize(
    ("made", "processes", "there", "asked", "reset"),
    [
        (False, 1, "cpu", "cuda", False), (True, 1, "cpu", "cuda", True), (True, 1, "cuda", "cpu", True),
        (True, 1, "cuda", "cuda", False), (True, 1, "cpu", "cpu", False), (True, 2, "cpu", "cuda", False),
    ],
)  # fmt: skip
def test_a_device_can_be_changed_within_a_process(
    made: bool, processes: int, there: str, asked: str, reset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library keeps the first one; where several processes run, it stays."""
    library = MagicMock()
    state = library.state.AcceleratorState
    state._shared_state = {"device": there} if made else {}
    state.return_value = SimpleNamespace(num_processes=processes, device=SimpleNamespace(type=there))
    monkeypatch.setattr(run, "needed", lambda *names: library)
    monkeypatch.setattr(run, "usable_device", lambda name: name)
    assert accelerated(small.config(device=asked)) is library.Accelerator.return_value
    library.Accelerator.assert_called_once_with(cpu=asked == "cpu")
    assert state._reset_state.mock_calls == ([call(reset_partial_state=True)] if reset else [])


def test_runs_with_tokenizers_of_their_own_have_them(corpus: str) -> None:
    sizes = [120, 100, 120]
    runs = pretrain([small.config(corpus, steps=2, tokenizer={"vocab_size": size}) for size in sizes])
    assert [run.results.vocabulary for run in runs] == sizes


def test_a_run_that_diverges_says_so(corpus: str, tmp_path: Path) -> None:
    run = pretrain(small.config(corpus, optimizer={"name": "sgd", "lr": 1e6, "clip": None}), tmp_path / "run")
    assert run.status == "diverged"
    assert np.isfinite(run.metrics["loss"]).all()
    assert len(run.metrics["loss"]) < 60
    assert run.results.layers == {}  # no stages of a run that has no end
    assert not (tmp_path / "run" / "model").exists()
    topicscope("report", str(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").exists()


def test_texts_and_a_tokenizer_that_the_caller_has(tmp_path: Path) -> None:
    run = pretrain(
        small.config("nowhere.txt", steps=3), tmp_path / "run", texts=small.texts(), tokenizer=small.tokenizer()
    )
    assert run.status == "done"
    assert run.tokenizer.get_vocab() == small.tokenizer().get_vocab()


def test_two_processes_give_the_same_loss_curve(whole: Path, corpus: str, tmp_path: Path) -> None:
    """With dropout, and to 1e-4: as accelerate starts them."""
    (tmp_path / "config.yaml").write_bytes((whole / "config.yaml").read_bytes())
    launcher = "-m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0 "
    launcher += "--mixed_precision no --dynamo_backend no -m topicscope pretrain --json"
    places = ["--config", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, *launcher.split(), *places], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["processes"] == 2
    one, two = read_metrics(whole), read_metrics(tmp_path / "run")
    assert np.nanmax(np.abs(one["loss"] - two["loss"])) < 1e-4
    for name in ("norm_key_0", "norm_query_1", "norm_value_0"):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-3)
    assert json.loads(done.stdout)["steps"] == 60  # one process prints


def test_a_short_run_has_no_rotation(corpus: str) -> None:
    figures = pretrain(small.config(corpus, steps=5)).sections()[0].figures
    titles = [panel.title for panel in figures[0].panels]
    assert any("||W_V||_F (layer 1)" in title for title in titles), titles
    assert not any("rotation" in title for title in titles)


def test_a_corpus_without_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "junk.txt.gz").write_bytes(b"no such thing")
    for name in ("empty.txt", "junk.txt.gz"):
        line = error_line(topicscope("pretrain", "--corpus", str(tmp_path / name), code=2).stderr)
        assert "the corpus has no text" in line
        assert name in line


def test_the_command_writes_figure_5_and_speaks_json(corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["pretrain", "--corpus", corpus, "--steps", "12", *small.FLAGS, "--out", str(out), "--runs", "2"]
    arguments += ["--snapshots", "none"]
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
    assert said in error_line(done.stderr)
    assert done.stdout == ""


def test_no_corpus_is_one_line(tmp_path: Path) -> None:
    for arguments, said in (([], "no text is given"), (["--corpus", str(tmp_path / "none.txt")], "no such corpus")):
        assert said in error_line(topicscope("pretrain", *arguments, code=2).stderr)
