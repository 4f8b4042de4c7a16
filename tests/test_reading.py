"""Every kind of folder that a command writes can be read, shown and drawn; a result shows itself in a notebook."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.language.samples import corpus_file, model_folder
from tests.pretraining import small
from topicscope import InputError, RunConfig, pretrain, probe, read, reproduce, sweep, train
from topicscope.cli.results import report, show
from topicscope.ground import read_about
from topicscope.language import ProbeConfig, TopicsConfig, WordsConfig, fit_corpus, map_words
from topicscope.paper import Context, chosen
from topicscope.reading import READERS
from topicscope.theory import Setting, attention_landscape
from topicscope.training import sandbox_timeline

TINY: dict[str, Any] = {
    "steps": 20,
    "batch_size": 4,
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "data": {"documents": 20, "dev_documents": 10},
    "device": "cpu",
}
THETA = 0.05


def make_train(home: Path) -> Any:
    return train(RunConfig.of(TINY), home / "out")


def make_runs(home: Path) -> Any:
    return train(RunConfig.of(TINY).with_seeds(2), home / "out")


def make_pretrain(home: Path) -> Any:
    corpus = home / "corpus.txt"
    corpus.write_text("\n".join(small.texts()))
    return pretrain(small.config(str(corpus), steps=12), home / "out")


def probe_config(home: Path) -> ProbeConfig:
    sizes: dict[str, Any] = {"topics": 4, "iterations": 5, "documents": 20, "bootstrap": 10, "shuffles": 10}
    return ProbeConfig(str(model_folder(home)), str(corpus_file(home)), thresholds=[THETA], device="cpu", **sizes)


def make_probe(home: Path) -> Any:
    return probe(probe_config(home), home / "out")


def make_topics(home: Path) -> Any:
    config = TopicsConfig(str(corpus_file(home)), str(model_folder(home)), topics=[4], iterations=5)
    return fit_corpus(config, home / "out")


def make_timeline(home: Path) -> Any:
    train(RunConfig.of(TINY, snapshots=[0, 10, 20]), home / "run")
    return sandbox_timeline(home / "run", home / "out", bootstrap=20)


def make_words(home: Path) -> Any:
    groups = [["butter", "bread"], ["coral", "boat"]]
    return map_words(WordsConfig(str(model_folder(home)), groups), home / "out")


def make_sweep(home: Path) -> Any:
    return sweep({"base": TINY, "axes": {"optimizer.lr": [0.01, 0.1]}}, home / "out")


def make_landscape(home: Path) -> Any:
    return attention_landscape(Setting.of(), "blocks", out=home / "out")


def make_reproduction(home: Path) -> Any:
    return reproduce(chosen(["figure7"]), Context(), home / "out")


MAKERS: dict[str, Callable[[Path], Any]] = {
    "train": make_train,
    "runs": make_runs,
    "pretrain": make_pretrain,
    "probe": make_probe,
    "topics": make_topics,
    "timeline": make_timeline,
    "words": make_words,
    "sweep": make_sweep,
    "landscape": make_landscape,
    "reproduce": make_reproduction,
}


def test_every_kind_is_tried() -> None:
    assert set(MAKERS) - {"runs"} == set(READERS)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_folder_reads_back_shows_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    made = MAKERS[kind](tmp_path)
    folder = tmp_path / "out"
    about = read_about(folder)
    assert about is not None
    assert (about.kind, about.status) == ("train" if kind == "runs" else kind, "done")
    stored = read(folder)
    assert type(stored) is type(made)
    assert stored.summary() == made.summary()
    assert stored.table().to_pydict().keys() == made.table().to_pydict().keys()
    assert stored.table().num_rows == made.table().num_rows > 0
    assert len(repr(stored)) < 200
    html = stored._repr_html_()
    assert "<table" in html
    assert "<script" not in html
    assert stored.plot().axes
    show([folder], as_json=True)
    [entry, *_] = json.loads(capsys.readouterr().out)
    assert entry["kind"] == about.kind
    assert entry["results"] is not None
    show([folder], as_json=False)
    assert made.summary()[0].split(".")[0][:30] in " ".join(capsys.readouterr().out.split()) or kind == "runs"
    report(folder)
    assert (folder / "report.html").stat().st_size > 100_000
    assert type(read(folder)) is type(made)  # drawing changes nothing


def test_several_folders_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(RunConfig.of(TINY), tmp_path / "a")
    train(RunConfig.of(TINY, optimizer={"lr": 0.5}), tmp_path / "b")
    show([tmp_path / "a", tmp_path / "b"], as_json=False)
    shown = capsys.readouterr().out
    assert "optimizer.lr" in shown
    assert "0.5" in shown
    assert "batch_size" not in shown  # settings that are the same are left out


def test_foreign_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    for command in (lambda: show([tmp_path]), lambda: report(tmp_path), lambda: read(tmp_path)):
        with pytest.raises(InputError, match="not a folder that topicscope wrote"):
            command()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
