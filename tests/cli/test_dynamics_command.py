"""`theory dynamics`: its JSON, its table and bad input in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.calling import topicscope
from topicscope.theory import Setting, dynamics

SIZES = ["--topics", "5", "--words-per-topic", "4", "--topics-per-document", "2"]
MASKS = ["--p-mask", "0.2", "--p-correct", "0.15", "--p-random", "0.1"]


def numbers(*arguments: str) -> dict[str, Any]:
    return json.loads(topicscope("theory", "dynamics", *arguments, "--json").stdout)


def test_the_contract() -> None:
    found = numbers(*SIZES, *MASKS, "--init-scale", "0.002", "--attention-dim", "8")
    same = dynamics(Setting.of(5, 4, 2, p_mask=0.2, p_correct=0.15, p_random=0.1), init_scale=0.002, attention_dim=8)
    assert {"rate", "half_time", "modes"} <= set(found["value"])
    names = {"sigma", "rank", "e_fold", "l_star", "alpha_star", "plateau_norm", "constant", "half_time"}
    assert names <= set(found["attention"])
    assert found["steps"] is None
    assert found["attention"]["half_time"] == pytest.approx(same.attention.half_time)
    assert found["value"]["half_time"] == pytest.approx(same.value.half_time)
    assert found["attention"]["rank"] == 4
    usual = numbers()  # ten topics of ten words
    assert usual["settings"]["attention_dim"] == 101
    assert usual["attention"]["half_time"] == pytest.approx(1.407e6, rel=1e-3)


@pytest.mark.parametrize(
    ("optimizer", "value", "attention"),
    [(["sgd", "--lr", "4"], 6.176, 9996.8), (["adam", "--lr", "0.001", "--eps", "1e-20"], 194.51, 255.70)],
)
def test_steps(optimizer: list[str], value: float, attention: float) -> None:
    steps = numbers(*SIZES, "--optimizer", *optimizer)["steps"]
    assert (steps["value"], steps["attention"]) == pytest.approx((value, attention), rel=1e-4)


def test_a_person_sees_a_table_and_reasons() -> None:
    shown = topicscope("theory", "dynamics", *SIZES).stdout
    for text in ("l_star", "6.29", "half-way", "saddle"):
        assert text in shown
    for arguments in (["--p-correct", "0"], ["--prior", "dirichlet", "--length", "100-150"]):
        assert "Not covered: key and query" in topicscope("theory", "dynamics", *arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--topics-per-document", "11"], "more than topics"),
        (["--optimizer", "sgd"], "learning rate"),
        (["--init-scale", "nan"], "init_scale"),
        (["--p-mask", "2"], "p_mask"),
        (["--alpha", "0.1"], "alpha"),
        (["--length", "many"], "--length"),
        (["--attention-dim", "0"], "attention_dim"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], text: str) -> None:
    answer = topicscope("theory", "dynamics", *arguments, code=2)
    assert text in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_the_picture(tmp_path: Path) -> None:
    for name, start in (("law.png", b"\x89PNG"), ("law.svg", b"<?xml")):
        found = numbers(*SIZES, "--out", str(tmp_path / name))
        assert found["written"] == str(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("name", "more", "text"),
    [
        ("law.jpg", [], "ending in .png or .svg"),
        ("nowhere/law.png", [], "an existing folder"),
        ("law.png", ["--loss", "cross-entropy"], "no norms are predicted"),
    ],
)
def test_a_picture_that_cannot_be_made(tmp_path: Path, name: str, more: list[str], text: str) -> None:
    failed = topicscope("theory", "dynamics", *SIZES, *more, "--out", str(tmp_path / name), code=2)
    assert text in failed.stderr
    assert not list(tmp_path.iterdir())
