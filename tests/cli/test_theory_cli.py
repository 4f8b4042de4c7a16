import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.calling import TINY, error_line, topicscope
from topicscope import InputError, read
from topicscope.theory import AttentionLandscape, Setting, theorem1, theorem2

PAPER = ["--topics", "100", "--words-per-topic", "300", "--topics-per-document", "20", "--convention", "paper"]
COMMANDS = ("theorem1", "theorem2", "theorem3", "theorem5", "landscape", "verify")


def test_landscape_contract_and_files(tmp_path: Path) -> None:
    out = tmp_path / "figure7"
    given = ["landscape", "--value-matrix", "diagonal", *PAPER, "--cap", "--out", str(out)]
    found = json.loads(topicscope("theory", *given, "--json").stdout)
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
    assert json.loads(topicscope(*again, "--json").stdout) == found
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
    sizes, given = ["--topics", "3", "--words-per-topic", "2", "--json"], str(tmp_path / "w.npy")
    found = json.loads(topicscope("theory", "theorem2", *sizes, "--matrix", given).stdout)
    exact = theorem2(Setting.of(3, 2)).numbers()
    assert {name: found[name] for name in exact} == exact
    assert found["comparison"]["largest_difference"] == pytest.approx(max(found["same_topic"], found["mask_column"]))
    found = json.loads(topicscope("theory", "theorem1", *sizes, "--embedding", given).stdout)
    assert found["membership"]["violation"] > 0.5


def test_matrices_come_from_run_folders_and_safetensors(tmp_path: Path) -> None:
    sizes, out = ["--topics", "3", "--words-per-topic", "2", "--json"], tmp_path / "run"
    topicscope("train", *TINY, "--embedding", "trained", "--no-floors", "--out", str(out))
    weights = read(out).weights
    setting = Setting.of(3, 2)
    for path in (out, out / "weights.safetensors"):
        second = json.loads(topicscope("theory", "theorem2", *sizes, "--matrix", str(path)).stdout)["comparison"]
        assert second["largest_difference"] == pytest.approx(
            np.abs(weights["value"] - theorem2(setting).matrix()).max()
        )
        first = json.loads(topicscope("theory", "theorem1", *sizes, "--embedding", str(path)).stdout)["membership"]
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
        (["theorem2", "--matrix", "nowhere.npy"], "matrix nowhere.npy cannot be read: No such file"),
        (["theorem2", "--matrix", "{tmp}/nan.npy"], "not finite"),
        (["theorem2", "--matrix", "{tmp}/complex.npy"], "no array of real numbers"),
        (["theorem1", "--embedding", "{tmp}/empty.npy"], "cannot read a matrix"),
        (["theorem2", "--matrix", "{tmp}"], "has no weights.safetensors; give the folder of one finished training run"),
        (["theorem2", "--matrix", "{tmp}/nowhere.safetensors"], "nowhere.safetensors cannot be read: No such file"),
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
    assert message in error_line(result.stderr)
    assert result.stdout == ""
