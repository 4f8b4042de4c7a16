"""The command line: what is too large or contradicts itself is one line and exit code 2, before anything happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import TINY, error_line, topicscope


@pytest.mark.process
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


@pytest.mark.process
@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
def test_a_run_with_the_largest_numbers_ends_as_diverged_or_done(loss: str) -> None:
    large = ["--set", "model.init_scale=1e6", "--lr", "1e6", "--optimizer", "sgd", "--l2", "1e6", "--loss", loss]
    result = topicscope("train", *TINY, *large, code=(0, 1))
    assert ("diverged" in result.stderr) == (result.returncode == 1)
    assert "Traceback" not in result.stderr


@pytest.mark.process
def test_a_grid_of_a_billion_points_is_counted_not_built(tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text("axes:\n  seed: {seeds: 1000000000}\n")
    result = topicscope("sweep", str(grid), "--out", str(tmp_path / "sweep"), code=2)
    assert "1,000,000,000 points" in error_line(result.stderr)
    grid.write_text("base: {data: {documents: 100000000}}\naxes:\n  seed: {seeds: 2}\n")
    result = topicscope("sweep", str(grid), "--engine", "serial", "--out", str(tmp_path / "sweep"), code=2)
    assert "make it smaller (data.documents 100000000)" in error_line(result.stderr)
    assert not (tmp_path / "sweep").exists()
