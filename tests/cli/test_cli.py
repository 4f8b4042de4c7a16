"""The command as a user runs it: folders, files, and one line with exit code 2 for what is wrong or too large."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.calling import TINY, error_line, lines_said, topicscope
from tests.cli import answer


def test_several_runs_and_a_config_file(tmp_path: Path) -> None:
    out, many = tmp_path / "one", tmp_path / "many"
    topicscope("train", *TINY, "--out", str(out), "--schedule", "two-stage")
    given = ["--config", str(out / "config.yaml"), "--runs", "3", "--no-floors"]
    results = answer("train", *given, "--out", str(many))
    assert [result["seed"] for result in results] == [0, 1, 2]
    alone = json.loads((out / "results.json").read_text())
    assert results[0]["dev_loss"] == pytest.approx(alone["dev_loss"], rel=1e-5)
    assert (many / "run-002" / "weights.safetensors").exists()
    again = answer("train", "--resume", "--out", str(many))
    assert again == results


def test_force_replaces_all_runs_and_resume_knows_how_many(tmp_path: Path) -> None:
    out = tmp_path / "many"
    topicscope("train", *TINY, "--runs", "3", "--out", str(out), "--no-floors")
    (out / "mine.txt").write_text("keep")
    topicscope("train", *TINY, "--loss", "squared", "--out", str(out), "--force", "--no-floors")
    assert {path.name for path in out.iterdir()} == {
        *(".lock", "about.json", "config.yaml", "environment.json", "metrics.jsonl", "mine.txt", "results.json"),
        *("shown.safetensors", "weights.safetensors"),
    }
    topicscope("train", *TINY, "--runs", "3", "--out", str(out), "--force", "--no-floors")
    before = (out / "run-001" / "results.json").read_bytes()
    for name in (
        *("about.json", "results.json", "config.yaml", "metrics.jsonl", "shown.safetensors", "weights.safetensors"),
        "environment.json",
    ):
        (out / "run-001" / name).unlink()
    topicscope("train", "--resume", "--out", str(out))
    assert (out / "run-001" / "results.json").read_bytes() == before
    assert [run["results"]["seed"] for run in answer("show", str(out))] == [0, 1, 2]
    assert "leave the other options out" in topicscope("train", "--resume", "--force", "--out", str(out), code=2).stderr


def test_a_data_file_of_any_length_and_no_floors_for_it(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("0 1 2 END\n3 4 5 END\n")
    files = ["--set", f"data.train_file={tmp_path / 'd'}", "--set", f"data.dev_file={tmp_path / 'd'}"]
    short = ["--steps", "5", "--batch-size", "2", "--device", "cpu"]
    assert answer("train", *files, *short)["floors"] == {}


def test_probabilities_at_their_ends_are_silent() -> None:
    for ends in (["masking.p_random=0"], ["masking.p_correct=1", "masking.p_random=0"], ["masking.p_mask=1"]):
        result = topicscope("train", *TINY, *(flag for end in ends for flag in ("--set", end)), "--json")
        assert lines_said(result.stderr) == []


NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--set", "masking.p_correct=0.6", "--set", "masking.p_random=0.6"],
            "p_correct + p_random = 1.2 is more than 1",
        ),
        (["--set", "masking.p_mask=0"], "masking.p_mask = 0"),
        (["--words-per-topic", "0"], "words_per_topic = 0"),
        (["--prior", "fixed", "--topics-per-document", "11"], "topics_per_document = 11 is more than topics = 10"),
        (["--set", "optimzer.lr=1"], "unknown key 'optimzer'; did you mean 'optimizer'?"),
        (["--set", "model.dim=7"], "one-hot embedding needs dim"),
        (["--set", "version=9"], "version 9: this topicscope reads version 2"),
        (["--set", "steps"], "expected key=value"),
        (["--steps", "many"], "Invalid value for '--steps': 'many'"),
        (["--runs", "two"], "(see topicscope train --help)"),
        (["--stepz", "3"], "; see topicscope train --help)"),
        (["--lr", "-1"], "optimizer.lr = -1.0"),
        (["--config", "nowhere.yaml"], "the config nowhere.yaml cannot be read"),
        (["--resume"], "resume (--resume) needs out (--out)"),
        (["--schedule", "two-stages"], "did you mean 'two-stage'"),
        (["--nonsense"], "--nonsense"),
        (["--lr", "inf"], "optimizer.lr"),
        (["--set", "model.key_bias=fixed"], "model.key_bias = 'fixed': input should be 'none' or 'trained', or "),
        (["--set", "documents.length=foo"], "documents.length = 'foo'"),
        (["--value", "given"], "needs model.value_matrix"),
        (["--set", "documents.alpha=1e-100"], "documents.alpha = 1e-100"),
        (["--set", "schedule.repeat=true"], "repeat needs phases"),
        pytest.param(["--device", "cuda"], "PyTorch finds no usable GPU", marks=NO_GPU),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    out = [] if "--resume" in arguments else ["--out", str(tmp_path / "run")]
    result = topicscope("train", *arguments, *out, code=2)
    assert message in error_line(result.stderr)
    assert result.stdout == ""
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_bad_files_get_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("1 2 END\n1 600 END\n")
    result = topicscope("train", "--set", f"data.train_file={tmp_path / 'data'}", "--set", "data.documents=2", code=2)
    assert "line 2: word '600' is outside the vocabulary" in result.stderr
    full = tmp_path / "full"
    full.mkdir()
    (full / "note.txt").write_text("mine")
    assert "is not empty" in topicscope("train", *TINY, "--out", str(full), code=2).stderr
    assert [path.name for path in full.iterdir()] == ["note.txt"]
    out = tmp_path / "run"
    lost = topicscope("train", "--set", "data.train_file=nowhere", "--out", str(out), code=2).stderr
    assert "the data file nowhere cannot be read" in lost
    assert not out.exists()
    topicscope("train", *TINY, "--out", str(out))
    (out / "weights.safetensors").write_bytes((out / "weights.safetensors").read_bytes()[:50])
    for command in (["show", str(out)], ["report", str(out)], ["train", "--resume", "--out", str(out)]):
        result = topicscope(*command, code=2)
        assert "weights.safetensors is damaged: it is not what topicscope wrote" in error_line(result.stderr)


COMMANDS = (
    *("train", "reproduce", "list", "topics", "probe", "timeline", "words", "pretrain", "sweep", "show", "report"),
    *("bench", "theory theorem1", "theory theorem2", "theory theorem3", "theory theorem5", "theory landscape"),
    *("theory optimum", "theory verify"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    shown = topicscope(*command.split(), "--help").stdout
    assert "Example: topicscope" in " ".join(shown.split())
    assert "Args:" not in shown  # a docstring's sections are for Python
    assert ">>>" not in shown


def test_the_list_of_commands_is_quick_to_come() -> None:
    lines = [
        *("import sys", "sys.argv = ['topicscope', '--help']", "from topicscope.cli.main import main", "try: main()"),
        "except SystemExit: pass",
    ]
    code = "\n".join([*lines, "assert 'torch' not in sys.modules"])
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--set", "data.documents=100000000"], "make it smaller (data.documents 100000000)"),
        (["train", "--set", "model.attention_dim=1000000"], "model.attention_dim = 1000000"),
        (["train", *TINY, "--set", "model.init_scale=1e308"], "model.init_scale = 1e+308"),
        (["train", *TINY, "--uniform-attention", "--set", "model.key=trained"], "leave one of the two out"),
        (["train", *TINY, "--force"], "no folder is given: it needs out (--out)"),
        (["train", *TINY, "--runs", "1000000000"], "run a sweep with the axis seed"),
        (["theory", "theorem1", "--p-mask", "1e-300"], "p_mask = 1e-300"),
        (["theory", "landscape", "--force"], "no folder is given: it needs out (--out)"),
    ],
)
def test_refused_in_one_line(arguments: list[str], said: str) -> None:
    result = topicscope(*arguments, code=2)
    assert said in error_line(result.stderr)
    assert result.stdout == ""


@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_a_run_with_the_largest_numbers_ends_as_diverged_or_done(loss: str) -> None:
    large = ["--set", "model.init_scale=1e6", "--lr", "1e6", "--optimizer", "sgd", "--l2", "1e6", "--loss", loss]
    result = topicscope("train", *TINY, *large, code=(0, 1))
    assert ("diverged" in result.stderr) == (result.returncode == 1)
    assert "Traceback" not in result.stderr


def test_a_grid_of_a_billion_points_is_counted_not_built(tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text("axes:\n  seed: {seeds: 1000000000}\n")
    result = topicscope("sweep", str(grid), "--out", str(tmp_path / "sweep"), code=2)
    assert "1,000,000,000 points" in error_line(result.stderr)
    grid.write_text("base: {data: {documents: 100000000}}\naxes:\n  seed: {seeds: 2}\n")
    result = topicscope("sweep", str(grid), "--engine", "serial", "--out", str(tmp_path / "sweep"), code=2)
    assert "make it smaller (data.documents 100000000)" in error_line(result.stderr)
    assert not (tmp_path / "sweep").exists()
