from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.command import topicscope

PAPER = ["--topics", "100", "--words-per-topic", "300", "--topics-per-document", "20", "--convention", "paper"]


def test_theorem2_contract() -> None:
    flags = ["--topics", "10", "--words-per-topic", "10", "--p-mask", "0.15", "--p-correct", "0.1", "--p-random", "0.1"]
    found = json.loads(topicscope("theory", "theorem2", *flags, "--json").stdout)
    assert found["same_topic"] == pytest.approx(0.108020, abs=5e-7)
    assert found["different_topic"] == pytest.approx(-0.0075867, abs=5e-8)
    assert found["mask_column"] == pytest.approx(0.054191, abs=5e-7)
    assert found["mask_row"] == 0


def test_landscape_contract_and_files(tmp_path: Path) -> None:
    out = tmp_path / "figure7"
    found = json.loads(
        topicscope(
            "theory", "landscape", "--value-matrix", "diagonal", *PAPER, "--cap", "--json", "--out", str(out)
        ).stdout
    )
    assert set(found["minimum"]) == {"alpha", "beta", "gamma", "loss"}
    assert found["grid_minimum"]["loss"] == pytest.approx(0.58328, abs=5e-6)
    assert found["minimum"]["loss"] <= found["grid_minimum"]["loss"]
    assert found["uniform_loss"] > 0.99
    assert found["inside_bounds"] is True
    assert sorted(path.name for path in out.iterdir()) == [
        f"landscape.{kind}" for kind in ("csv", "json", "npz", "png", "svg")
    ]
    grid = np.load(out / "landscape.npz")
    with (out / "landscape.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == grid["loss"].size == 110 * 110
    assert min(float(row["loss"]) for row in rows) == grid["loss"].min() == found["grid_minimum"]["loss"]
    assert "not empty" in topicscope("theory", "landscape", "--out", str(out), code=2).stderr


def test_theorems_in_words(tmp_path: Path) -> None:
    assert "How to read it" in topicscope("theory", "theorem2", "--topics", "3", "--words-per-topic", "2").stdout
    assert "Theorem 3: gamma lies in" in topicscope("theory", "theorem3").stdout
    assert "alpha -> 0" in topicscope("theory", "theorem5").stdout
    np.save(tmp_path / "w.npy", np.zeros((7, 7)))
    found = json.loads(
        topicscope(
            "theory",
            "theorem2",
            "--topics",
            "3",
            "--words-per-topic",
            "2",
            "--matrix",
            str(tmp_path / "w.npy"),
            "--json",
        ).stdout
    )
    assert found["comparison"]["largest_difference"] == pytest.approx(max(found["same_topic"], found["mask_column"]))
    found = json.loads(
        topicscope(
            "theory",
            "theorem1",
            "--topics",
            "3",
            "--words-per-topic",
            "2",
            "--embedding",
            str(tmp_path / "w.npy"),
            "--json",
        ).stdout
    )
    assert found["membership"]["violation"] > 0.5


def test_verify_contract() -> None:
    found = json.loads(topicscope("theory", "verify", "--json").stdout)
    assert found["failed"] == 0
    for certificate in found["certificates"]:
        assert {"claim", "settings", "error", "tolerance", "holds"} <= set(certificate)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["landscape", "--topics-per-document", "11"],
            "topics_per_document = 11: expected a number from 1 to topics = 10",
        ),
        (["theorem2", "--p-mask", "0"], "p_mask = 0: expected a probability strictly between 0 and 1"),
        (["theorem3", "--p-mask", "1.5"], "p_mask = 1.5"),
        (["theorem1", "--p-correct", "0.5", "--p-random", "0.5"], "p_correct + p_random = 1: expected less than 1"),
        (["theorem5", "--words-per-topic", "1"], "divides by v - 1"),
        (["landscape", "--value-matrix", "diagonal", "--words-per-topic", "1"], "divides by v - 1"),
        (["landscape", "--value-matrix", "round"], "--value-matrix"),
        (["theorem2", "--topics", "0"], "topics = 0"),
        (["theorem2", "--matrix", "nowhere.npy"], "cannot read a matrix from nowhere.npy"),
        (["theorem2", "--matrix", "{tmp}/nan.npy"], "not finite"),
        (["theorem2", "--matrix", "{tmp}/complex.npy"], "no array of real numbers"),
        (["theorem1", "--embedding", "{tmp}/empty.npy"], "cannot read a matrix"),
        (["theorem1", "--embedding", "{tmp}/rowless.npy"], "expected a matrix with rows and columns"),
        (["theorem4"], "No such command 'theorem4'"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    np.save(tmp_path / "nan.npy", np.full((101, 101), np.nan))
    np.save(tmp_path / "complex.npy", np.full((101, 101), 1j))
    np.save(tmp_path / "rowless.npy", np.zeros((0, 101)))
    (tmp_path / "empty.npy").write_bytes(b"")
    result = topicscope("theory", *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments), code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
