"""`topicscope theory`: theorems, landscape, certificates and dynamics, and bad input in one line."""

import csv
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.calling import TINY, error_line, topicscope
from tests.cli import answer
from topicscope import InputError, read
from topicscope.theory import AttentionLandscape, Setting, dynamics, theorem1, theorem2

PAPER = ["--topics", "100", "--words-per-topic", "300", "--topics-per-document", "20", "--convention", "paper"]
COMMANDS = ("theorem1", "theorem2", "theorem3", "theorem5", "landscape", "verify")


def test_landscape_contract_and_files(tmp_path: Path) -> None:
    out = tmp_path / "figure7"
    given = ["landscape", "--value-matrix", "diagonal", *PAPER, "--cap", "--out", str(out)]
    found = answer("theory", *given)
    assert set(found["minimum"]) == {"alpha", "beta", "gamma", "loss"}
    assert found["grid_minimum"]["loss"] == pytest.approx(0.58328, abs=5e-6)
    assert found["minimum"]["loss"] <= found["grid_minimum"]["loss"]
    assert found["uniform_loss"] > 0.99
    assert found["inside_bounds"] is True
    assert {path.name for path in out.iterdir() if not path.name.startswith(".")} == {
        *("about.json", "config.yaml", "environment.json", "results.json"),
        *(f"landscape.{kind}" for kind in ("csv", "npz", "png", "svg")),
    }
    assert json.loads((out / "results.json").read_text()) == found
    back = read(out)
    assert isinstance(back, AttentionLandscape)
    assert back.as_dict() == found
    assert np.array_equal(back.grid.loss, np.load(out / "landscape.npz")["loss"])
    assert back.table().num_rows == 110 * 110
    (section,) = back.sections()
    assert section.tables[0].rows[1][-1] == f"{found['minimum']['loss']:.6g}"
    again = section.command.split()[1:]
    assert answer(*again) == found
    assert "best attention" in topicscope("show", str(out)).stdout
    grid = np.load(out / "landscape.npz")
    with (out / "landscape.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == grid["loss"].size == 110 * 110
    assert min(float(row["loss"]) for row in rows) == grid["loss"].min() == found["grid_minimum"]["loss"]
    assert "not empty" in topicscope("theory", "landscape", "--out", str(out), code=2).stderr
    topicscope("theory", "landscape", "--out", str(out), "--force")
    assert json.loads((out / "results.json").read_text())["value_matrix"] == "blocks"
    assert "Theorem 3: gamma lies in" in read(out).summary()[0]
    (out / "landscape.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"figure7/landscape\.npz is damaged"):
        read(out)


def test_theorems_in_words(tmp_path: Path) -> None:
    assert "How to read it" in topicscope("theory", "theorem2", "--topics", "3", "--words-per-topic", "2").stdout
    assert "Theorem 3: gamma lies in" in topicscope("theory", "theorem3").stdout
    assert "alpha -> 0" in topicscope("theory", "theorem5").stdout
    np.save(tmp_path / "w.npy", np.zeros((7, 7)))
    sizes, given = ["--topics", "3", "--words-per-topic", "2"], str(tmp_path / "w.npy")
    found = answer("theory", "theorem2", *sizes, "--matrix", given)
    exact = theorem2(Setting.of(3, 2)).numbers()
    assert {name: found[name] for name in exact} == exact
    assert {"same_topic", "different_topic", "mask_column", "mask_row"} <= set(found)
    assert found["mask_row"] == 0
    assert found["comparison"]["largest_difference"] == pytest.approx(max(found["same_topic"], found["mask_column"]))
    found = answer("theory", "theorem1", *sizes, "--embedding", given)
    assert found["membership"]["violation"] > 0.5


def test_matrices_come_from_run_folders_and_safetensors(tmp_path: Path) -> None:
    sizes, out = ["--topics", "3", "--words-per-topic", "2"], tmp_path / "run"
    topicscope("train", *TINY, "--embedding", "trained", "--no-floors", "--out", str(out))
    weights = read(out).weights
    setting = Setting.of(3, 2)
    for path in (out, out / "weights.safetensors"):
        second = answer("theory", "theorem2", *sizes, "--matrix", str(path))["comparison"]
        assert second["largest_difference"] == pytest.approx(
            np.abs(weights["value"] - theorem2(setting).matrix()).max()
        )
        first = answer("theory", "theorem1", *sizes, "--embedding", str(path))["membership"]
        assert first["violation"] == pytest.approx(
            theorem1(setting).examine(weights["embedding"]).numbers["violation"], rel=1e-5
        )


def test_all_commands_have_the_same_options() -> None:
    """Each option is declared once: commands that share one show the same words for it."""
    helps = {name: topicscope("theory", name, "--help").stdout for name in COMMANDS}
    for option in ("--topics", "--words-per-topic", "--p-mask", "--p-correct", "--p-random", "--json"):
        assert [name for name, text in helps.items() if f"{option} " not in text] == (
            [] if option == "--json" else ["verify"]
        )
    for option in ("--topics-per-docum", "--convention"):
        assert [name for name, text in helps.items() if option in text] == ["theorem3", "theorem5", "landscape"]


@pytest.mark.slow
def test_verify_contract() -> None:
    found = answer("theory", "verify")
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
        (["theorem2", "--matrix", "nowhere.npy"], "matrix nowhere.npy cannot be read: No such file"),
        (["theorem2", "--matrix", "{tmp}/nan.npy"], "not finite"),
        (["theorem2", "--matrix", "{tmp}/complex.npy"], "no array of real numbers"),
        (["theorem1", "--embedding", "{tmp}/empty.npy"], "cannot read a matrix"),
        (["theorem2", "--matrix", "{tmp}"], "has no weights.safetensors; give the folder of one finished training run"),
        (["theorem2", "--matrix", "{tmp}/nowhere.safetensors"], "nowhere.safetensors cannot be read: No such file"),
        (["theorem1", "--embedding", "{tmp}/rowless.npy"], "expected a matrix with rows and columns"),
        (["theorem4"], "No such command 'theorem4'"),
        (["dynamics", "--topics-per-document", "11"], "more than topics"),
        (["dynamics", "--optimizer", "sgd"], "learning rate"),
        (["dynamics", "--init-scale", "nan"], "init_scale"),
        (["dynamics", "--p-mask", "2"], "p_mask"),
        (["dynamics", "--alpha", "0.1"], "alpha"),
        (["dynamics", "--length", "many"], "--length"),
        (["dynamics", "--attention-dim", "0"], "attention_dim"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    np.save(tmp_path / "nan.npy", np.full((101, 101), np.nan))
    np.save(tmp_path / "complex.npy", np.full((101, 101), 1j))
    np.save(tmp_path / "rowless.npy", np.zeros((0, 101)))
    (tmp_path / "empty.npy").write_bytes(b"")
    result = topicscope("theory", *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments), code=2)
    assert message in error_line(result.stderr)
    assert result.stdout == ""


SIZES = ["--topics", "5", "--words-per-topic", "4", "--topics-per-document", "2"]
MASKS = ["--p-mask", "0.2", "--p-correct", "0.15", "--p-random", "0.1"]
numbers = partial(answer, "theory", "dynamics")


def test_the_contract_of_dynamics() -> None:
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
def test_steps_of_dynamics(optimizer: list[str], value: float, attention: float) -> None:
    steps = numbers(*SIZES, "--optimizer", *optimizer)["steps"]
    assert (steps["value"], steps["attention"]) == pytest.approx((value, attention), rel=1e-4)


def test_a_person_sees_the_table_of_dynamics_and_reasons() -> None:
    shown = topicscope("theory", "dynamics", *SIZES).stdout
    for text in ("l_star", "6.29", "half-way", "saddle"):
        assert text in shown
    for arguments in (["--p-correct", "0"], ["--prior", "dirichlet", "--length", "100-150"]):
        assert "Not covered: key and query" in topicscope("theory", "dynamics", *arguments).stdout


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
