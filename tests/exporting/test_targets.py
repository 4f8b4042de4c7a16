"""`export`: every kind of folder as Parquet, curves for TensorBoard, models with their cards; and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from tests.exporting.test_events import scalars
from tests.language.samples import corpus_file, model_folder
from tests.test_reading import MAKERS, TINY, make_pretrain, make_probe, make_runs, make_sweep, make_train
from topicscope import InputError, RunConfig, export, probe, read, train
from topicscope.language import ProbeConfig

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("kind", MAKERS)
def test_the_table_of_every_kind_becomes_parquet(tmp_path: Path, kind: str) -> None:
    MAKERS[kind](tmp_path)
    exported = export(tmp_path / "out", "parquet")
    assert exported.out == tmp_path / "out.parquet"
    stored, table = pq.read_table(exported.out), read(tmp_path / "out").table()
    assert stored.column_names == table.column_names
    assert stored.num_rows == table.num_rows > 0
    for name in table.column_names:
        np.testing.assert_equal(stored[name].to_pylist(), table[name].to_pylist())


def curve(result: Any, name: str) -> list[tuple[int, float]]:
    values = result.metrics[name]
    return [(step, float(np.float32(value))) for step, value in enumerate(values) if np.isfinite(value)]


def test_curves_of_a_run(tmp_path: Path) -> None:
    run = make_train(tmp_path)
    export(tmp_path / "out", "tensorboard", tmp_path / "board")
    found = scalars(tmp_path / "board")
    assert found["norm/value"] == curve(run, "norm_value")
    assert found["loss/train"] == curve(run, "loss")
    assert found["loss/dev"] == curve(run, "dev_loss")
    assert len(found["norm/key"]) == 21


def test_curves_of_several_runs(tmp_path: Path) -> None:
    runs = make_runs(tmp_path)
    exported = export(tmp_path / "out", "tensorboard")
    assert exported.out == tmp_path / "out-tensorboard"
    for number, run in enumerate(runs):
        found = scalars(exported.out / f"run-{number:03d}-seed-{number}")
        assert found["loss/train"] == curve(run, "loss")


def test_curves_of_pretraining_have_layers(tmp_path: Path) -> None:
    run = make_pretrain(tmp_path)
    found = scalars(export(tmp_path / "out", "tensorboard").out)
    assert found["norm/query_0"] == curve(run, "norm_query_0")
    assert found["loss/train"] == curve(run, "loss")


def test_curves_of_a_sweep_have_a_folder_per_point(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path)
    exported = export(tmp_path / "out", "tensorboard")
    places = sorted(path.name for path in exported.out.iterdir() if path.is_dir())
    assert places == [f"optimizer.lr={row['optimizer.lr']}-{row['point'][:6]}" for row in sweep.rows]
    for place, curves in zip(places, sweep.curves(), strict=True):
        assert [value for _, value in scalars(exported.out / place)["norm/key"]] == curves["norm_key"].tolist()


def front(card: Path) -> Any:
    """The metadata of a model card."""
    opening, metadata, _ = card.read_text().split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(metadata)


def test_a_pretrained_model_with_its_card(tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    run = make_pretrain(tmp_path)
    exported = export(tmp_path / "out", "hf")
    card = (exported.out / "README.md").read_text()
    assert front(exported.out / "README.md")["pipeline_tag"] == "fill-mask"
    assert f"| parameters | {run.results.parameters:,} |" in card
    assert f"{run.results.loss:.5g}" in card
    assert str(tmp_path) not in card  # the place of the text is nobody's business
    assert "corpus.txt" in card
    loaded: Any = AutoModelForMaskedLM.from_pretrained(exported.out)
    assert loaded.num_parameters() == run.model.num_parameters()
    assert len(AutoTokenizer.from_pretrained(exported.out)) == run.results.vocabulary
    assert sorted([*exported.files]) == sorted(path.name for path in exported.out.iterdir())


def test_a_probed_model_has_its_verdicts(tmp_path: Path) -> None:
    made = make_probe(tmp_path)
    (tmp_path / "model" / "README.md").write_text("the model's own card")
    (tmp_path / "model" / "notes.txt").write_text("private")
    exported = export(tmp_path / "out", "hf")
    card = (exported.out / "README.md").read_text()
    for place, answer in made.verdicts[0].answers.items():
        assert f"| {place} | {answer.answer} | {' | '.join(answer.controls.values())} |" in card
    assert (exported.out / "README.source.md").read_text() == "the model's own card"
    assert not (exported.out / "notes.txt").exists()
    weights = "model.safetensors"
    assert (exported.out / weights).read_bytes() == (tmp_path / "model" / weights).read_bytes()


def test_one_of_several_models_and_one_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = model_folder(tmp_path)
    shutil.copytree(first, tmp_path / "other")
    sizes: dict[str, Any] = {"topics": 4, "iterations": 5, "documents": 20, "bootstrap": 10, "shuffles": 10}
    models = [str(first), "other"]
    monkeypatch.chdir(tmp_path)
    probe(ProbeConfig(models, str(corpus_file(tmp_path)), thresholds=[0.05], device="cpu", **sizes), "out")
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
    sizes: dict[str, Any] = {"topics": 4, "iterations": 5, "documents": 20, "bootstrap": 10, "shuffles": 10}
    config = ProbeConfig(str(odd), str(corpus_file(tmp_path)), thresholds=[0.05], device="cpu", **sizes)
    probe(config, tmp_path / "out")
    card = (export(tmp_path / "out", "hf").out / "README.md").read_text()
    assert r"# \<img src=x\>\_\[a\](b)\|c" in card
    assert "<img" not in card.replace(r"\<img", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    train(RunConfig.of(TINY), place / "out")
    return place / "out"


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


def test_what_has_no_curves_says_so(tmp_path: Path) -> None:
    MAKERS["landscape"](tmp_path)
    with pytest.raises(InputError, match="has no curves over steps for TensorBoard"):
        export(tmp_path / "out", "tensorboard")
    assert not (tmp_path / "out-tensorboard").exists()


def test_the_command_prints_what_was_written(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    from topicscope.cli.results import export as command

    assert command(folder, "parquet", tmp_path / "t.parquet", as_json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["out"], printed["files"]) == (str(tmp_path / "t.parquet"), ["t.parquet"])
    assert command(folder, "tensorboard", tmp_path / "board") == 0
    assert f"Written to {tmp_path / 'board'} (2 files).\nTo view it: tensorboard" in capsys.readouterr().out
