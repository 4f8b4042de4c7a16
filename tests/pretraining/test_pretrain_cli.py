"""`topicscope pretrain`: pages, JSON, several processes, and bad input in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command import error_line, topicscope
from tests.pretraining import small
from topicscope.ground import read_metrics
from topicscope.pretraining import pretrain


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
