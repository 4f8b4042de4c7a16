"""`export`: event files, every kind of folder as Parquet, models with their cards; and what is refused."""

import functools
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from tests.language.samples import model_folder
from tests.test_reading import MAKERS, probe_config
from topicscope import InputError, export, probe, read
from topicscope.exporting import event_file
from topicscope.exporting.targets import checksum, record, tag, varint


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard reads from a folder: steps and values by tag."""
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard (extra dev)"
    )
    accumulated = reader.EventAccumulator(str(folder), size_guidance={reader.SCALARS: 0})
    accumulated.Reload()
    return {
        name: [(event.step, event.value) for event in accumulated.Scalars(name)]
        for name in accumulated.Tags()[reader.SCALARS]
    }


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    steps = np.array([0.0, 1, 2, 300, 70_000, 2.0**33])
    curves = {
        "step": steps,
        "loss": np.array([2.5, 1.0, 0.1, 1e-30, -4.0, 3e38]),
        "norm_value": np.array([np.nan, 1.0, np.nan, np.inf, 2.0, -np.inf]),
        "nothing": np.full(6, np.nan),
    }
    (tmp_path / "events.out.tfevents.0.x").write_bytes(event_file(curves))
    found = scalars(tmp_path)
    loss = [(int(step), float(np.float32(value))) for step, value in zip(steps, curves["loss"], strict=True)]
    assert found == {"loss/train": loss, "norm/value": [(1, 1.0), (70_000, 2.0)]}


def test_a_damaged_byte_is_noticed(tmp_path: Path) -> None:
    """The checksums are those that TensorBoard compares: a reader that did not would pass this file."""
    content = bytearray(event_file({"step": np.arange(3.0), "loss": np.ones(3)}))
    content[-8] ^= 1
    (tmp_path / "events.out.tfevents.0.x").write_bytes(content)
    assert [step for step, _ in scalars(tmp_path)["loss/train"]] == [0, 1]


def test_records_as_the_format_has_them() -> None:
    assert checksum(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert checksum(b"\xff" * 32) == 0x62A8AB43
    assert checksum(bytes(range(32))) == 0x46DD794E
    data = record(b"abc")
    assert (struct.unpack("<Q", data[:8])[0], data[12:15], len(data)) == (3, b"abc", 8 + 4 + 3 + 4)
    assert [varint(n).hex() for n in (0, 1, 127, 128, 300)] == ["00", "01", "7f", "8001", "ac02"]
    names = ["loss", "dev_loss", "held_out_loss", "norm_key_0", "rotation_1", "lr"]
    assert [*map(tag, names)] == ["loss/train", "loss/dev", "loss/held_out", "norm/key_0", "rotation/1", "lr"]


Capture = pytest.CaptureFixture[str]


Made = Callable[[str], tuple[Path, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Makes each kind of folder once; returns its home, in which it is 'out', and the result."""

    @functools.cache
    def make(kind: str) -> tuple[Path, Any]:
        home = tmp_path_factory.mktemp(kind)
        return home, MAKERS[kind](home)

    return make


@pytest.mark.parametrize("kind", MAKERS)
def test_the_table_of_every_kind_becomes_parquet(made: Made, kind: str) -> None:
    home, _ = made(kind)
    exported = export(home / "out", "parquet")
    assert exported.out == home / "out.parquet"
    stored, table = pq.read_table(exported.out), read(home / "out").table()
    assert stored.column_names == table.column_names
    assert stored.num_rows == table.num_rows > 0
    for name in table.column_names:
        np.testing.assert_equal(stored[name].to_pylist(), table[name].to_pylist())


def curve(result: Any, name: str) -> list[tuple[int, float]]:
    values = result.metrics[name]
    return [(step, float(np.float32(value))) for step, value in enumerate(values) if np.isfinite(value)]


def test_curves_of_a_run_and_of_several(made: Made, tmp_path: Path) -> None:
    home, run = made("train")
    export(home / "out", "tensorboard", tmp_path / "board")
    found = scalars(tmp_path / "board")
    assert found["norm/value"] == curve(run, "norm_value")
    assert found["loss/train"] == curve(run, "loss")
    assert found["loss/dev"] == curve(run, "dev_loss")
    assert len(found["norm/key"]) == 21
    home, runs = made("runs")
    exported = export(home / "out", "tensorboard")
    assert exported.out == home / "out-tensorboard"
    for number, run in enumerate(runs):
        assert scalars(exported.out / f"run-{number:03d}-seed-{number}")["loss/train"] == curve(run, "loss")


def test_curves_of_a_sweep_have_a_folder_per_point(made: Made) -> None:
    home, sweep = made("sweep")
    exported = export(home / "out", "tensorboard")
    places = sorted(path.name for path in exported.out.iterdir() if path.is_dir())
    assert places == [f"optimizer.lr={row['optimizer.lr']}-{row['point'][:6]}" for row in sweep.rows]
    for place, curves in zip(places, sweep.curves(), strict=True):
        assert [value for _, value in scalars(exported.out / place)["norm/key"]] == curves["norm_key"].tolist()


def front(card: Path) -> Any:
    """The metadata of a model card."""
    opening, metadata, _ = card.read_text().split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(metadata)


def test_the_curves_of_a_pretrained_model_and_the_model_with_its_card(made: Made) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    home, run = made("pretrain")
    found = scalars(export(home / "out", "tensorboard").out)
    assert found["norm/query_0"] == curve(run, "norm_query_0")
    assert found["loss/train"] == curve(run, "loss")
    exported = export(home / "out", "hf")
    card = (exported.out / "README.md").read_text()
    assert front(exported.out / "README.md")["pipeline_tag"] == "fill-mask"
    assert f"| parameters | {run.results.parameters:,} |" in card
    assert f"{run.results.loss:.5g}" in card
    assert str(home) not in card  # the place of the text is nobody's business
    assert "corpus.txt" in card
    loaded: Any = AutoModelForMaskedLM.from_pretrained(exported.out)
    assert loaded.num_parameters() == run.model.num_parameters()
    assert len(AutoTokenizer.from_pretrained(exported.out)) == run.results.vocabulary
    assert sorted([*exported.files]) == sorted(path.name for path in exported.out.iterdir())


def test_a_probed_model_has_its_verdicts(made: Made) -> None:
    home, result = made("probe")
    (home / "model" / "README.md").write_text("the model's own card")
    (home / "model" / "notes.txt").write_text("private")
    exported = export(home / "out", "hf")
    card = (exported.out / "README.md").read_text()
    for place, answer in result.verdicts[0].answers.items():
        assert f"| {place} | {answer.answer} | {' | '.join(answer.controls.values())} |" in card
    assert (exported.out / "README.source.md").read_text() == "the model's own card"
    assert not (exported.out / "notes.txt").exists()
    weights = "model.safetensors"
    assert (exported.out / weights).read_bytes() == (home / "model" / weights).read_bytes()


def test_one_of_several_models_and_one_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = model_folder(tmp_path)
    shutil.copytree(first, tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    probe(probe_config(tmp_path).changed({"models": [str(first), "other"]}), "out")
    with pytest.raises(InputError, match="has 2 models; choose one with --model: model, other"):
        export("out", "hf")
    with pytest.raises(InputError, match="no model 'others' in out; did you mean 'other'"):
        export("out", "hf", model="others")
    assert "config.json" in export("out", "hf", "one", model="other").files
    shutil.rmtree(tmp_path / "other")
    exported = export("out", "hf", "card", model="other")
    assert exported.files == ["README.md", "exported.json"]
    assert "nothing is fetched" in exported.notes[0]
    assert front(tmp_path / "card" / "README.md")["base_model"] == "other"


def test_names_are_no_markup(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    odd = folder.rename(tmp_path / "<img src=x>_[a](b)|c")
    probe(probe_config(tmp_path).changed({"models": str(odd)}), tmp_path / "out")
    card = (export(tmp_path / "out", "hf").out / "README.md").read_text()
    assert r"# \<img src=x\>\_\[a\](b)\|c" in card
    assert "<img" not in card.replace(r"\<img", "")


@pytest.fixture(scope="module")
def folder(made: Made) -> Path:
    return made("train")[0] / "out"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda at, _: export(at, "csv"), "no target 'csv'; known: hf, parquet, tensorboard"),
        (lambda at, _: export(at, "hf"), "holds no language model to export; expected a finished run of pretrain"),
        (lambda at, _: export(at, "parquet", model="x"), "model x: only --to hf"),
        (lambda _, home: export(home / "none", "parquet"), "no such folder"),
        (lambda _, home: export(home, "parquet"), "is not a folder that topicscope wrote"),
        (lambda at, _: export(at, "tensorboard", at / "board"), "is inside the folder that is exported"),
        (lambda at, _: export(at, "tensorboard", at), "is inside the folder that is exported"),
        (lambda at, home: export(at, "tensorboard", home / "file"), "is a file, or a broken link"),
        (lambda at, home: export(at, "parquet", home / "file"), "exists and is not an export of topicscope"),
        (lambda at, home: export(at, "parquet", home / "file", force=True), "is not an export of topicscope"),
        (lambda at, home: export(at, "parquet", home / "mine", force=True), "is not an export of topicscope"),
        (lambda at, home: export(at, "tensorboard", home / "mine", force=True), "is not an export of topicscope"),
        (lambda at, home: export(at, "parquet", home / "pipe"), "exists and is not an export of topicscope"),
        (lambda at, home: export(at, "parquet", home / "pipe", force=True), "is not an export of topicscope"),
        (lambda at, home: export(at, "parquet", home / "file" / "x"), "cannot be made or written to|is a file"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    folder: Path, tmp_path: Path, call: Callable[[Path, Path], Any], said: str
) -> None:
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "exported.json").write_text('{"files": []}')
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    before = {path: path.stat().st_mtime_ns for home in (folder.parent, tmp_path) for path in home.rglob("*")}
    with pytest.raises(InputError, match=said) as error:
        call(folder, tmp_path)
    assert "\n" not in str(error.value)
    assert {path: path.stat().st_mtime_ns for home in (folder.parent, tmp_path) for path in home.rglob("*")} == before


@pytest.mark.parametrize("to", ["tensorboard", "parquet"])
def test_force_replaces_an_earlier_export(folder: Path, tmp_path: Path, to: str) -> None:
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    export(folder, to, tmp_path / "there")
    first = content()
    with pytest.raises(InputError, match="already exists"):
        export(folder, to, tmp_path / "there")
    export(folder, to, tmp_path / "there", force=True)
    assert content() == first


def test_what_has_no_curves_says_so(made: Made) -> None:
    home, _ = made("landscape")
    with pytest.raises(InputError, match="has no curves over steps for TensorBoard"):
        export(home / "out", "tensorboard")
    assert not (home / "out-tensorboard").exists()


def test_the_command_prints_what_was_written(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    from topicscope.cli.results import export as command

    assert command(folder, "parquet", tmp_path / "t.parquet", as_json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["out"], printed["files"]) == (str(tmp_path / "t.parquet"), ["t.parquet"])
    assert command(folder, "tensorboard", tmp_path / "board") == 0
    assert f"Written to {tmp_path / 'board'} (2 files).\nTo view it: tensorboard" in capsys.readouterr().out
