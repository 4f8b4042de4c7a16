"""`--world-from`: training and theory on the topics of a corpus, and bad input in one line."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.calling import topicscope
from tests.cli import answer
from tests.language.test_topic_fits import fitted
from tests.sealed import rewrite
from topicscope.ground import file_digest, read_tensors, write_tensors

SMALL = ["--steps", "3", "--batch-size", "4", "--set", "data.documents=20", "--set", "data.dev_documents=10"]
UNIFORM = ["--uniform-attention", "--loss", "squared", "--device", "cpu"]


def without_mixtures(folder: Path) -> Path:
    """The folder as it would be, had it no mixtures."""
    tensors, head = folder / "topics.safetensors", json.loads((folder / "topics.json").read_text())
    arrays, _ = read_tensors(tensors, "")
    write_tensors(tensors, {name: array for name, array in arrays.items() if name != "document_topics"})
    rewrite(folder, "topics.safetensors", tensors.read_bytes())
    rewrite(folder, "topics.json", json.dumps(head | {"digest": file_digest(tensors)}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fitted().save(tmp_path / "topics")


def test_a_run_on_the_topics_of_a_corpus_needs_their_folder_no_more(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    out = topicscope("train", "--world-from", str(folder), "--words", "6", *UNIFORM, *SMALL, "--out", str(run)).stdout
    assert "6 of 12 words" in " ".join(out.split())
    theory = answer("theory", "optimum", "--world-from", str(folder), "--words", "6")
    assert np.shape(theory["matrix"]) == (7, 7)
    shutil.rmtree(folder)
    compared = answer("theory", "optimum", "--matrix", str(run))
    assert compared["loss"] == pytest.approx(theory["loss"], abs=1e-12)
    assert set(compared["distances"]) == {"optimum", "theorem2", "limit", "own_documents"}
    assert "dev loss" in topicscope("show", str(run)).stdout
    again = tmp_path / "again"
    topicscope("train", "--config", str(run / "config.yaml"), "--out", str(again))
    assert (again / "results.json").read_bytes() == (run / "results.json").read_bytes()
    topicscope("train", "--resume", "--out", str(again))


def test_the_page_has_the_words_as_text(tmp_path: Path) -> None:
    topics = fitted()
    named = replace(topics, words=("<b>x</b>", "$a$", *topics.words[2:]))
    run = tmp_path / "run"
    given = ["--world-from", str(named.save(tmp_path / "topics")), "--words", "12"]
    topicscope("train", *given, *UNIFORM, *SMALL, "--out", str(run))
    topicscope("report", str(run))
    page = (run / "report.html").read_text()
    assert "<b>x" not in page
    assert "word5" in page


def test_a_prior_of_ones_own_takes_the_place_of_the_mixtures(folder: Path) -> None:
    asked = ["theory", "optimum", "--world-from", str(folder), "--words", "6", "--json"]
    own = answer(*asked, "--prior", "dirichlet", "--alpha", "0.3", "--length", "20")
    assert own["settings"]["prior"]["alpha"] == 0.3
    corpus = answer(*asked)
    assert own["loss"] != corpus["loss"]
    own_length = corpus["settings"]["length"]
    assert own_length not in ([100, 150], 20)
    for prior, length in (
        (["--prior", "dirichlet"], own_length),  # the length of the corpus's documents stays
        (["--prior", "fixed", "--topics-per-document", "2"], own_length),
        (["--prior", "fixed", "--length", "infinite"], "infinite"),
        (["--prior", "infinite"], "infinite"),
        (["--length", "20"], 20),
        (["--prior", "dirichlet", "--set", "documents.length=20"], 20),
    ):
        assert answer(*asked, *prior)["settings"]["length"] == length


def test_bad_input_is_one_line(folder: Path, tmp_path: Path) -> None:
    bare = str(replace(fitted(), document_lengths=np.zeros(40, int)).save(tmp_path / "bare"))
    without = without_mixtures(fitted().save(tmp_path / "without"))
    for arguments, said in (
        (["train", "--world-from", bare], "no document mixtures"),
        (["train", "--world-from", str(without)], "document_topics"),
        (["train", "--world-from", str(tmp_path / "nowhere")], "nowhere"),
        (["train", "--words", "5"], "--world-from"),
        (["train", "--world-from", str(folder), "--topics", "5"], "3 columns"),
        (["train", "--world-from", str(folder), "--words-per-topic", "5"], "leave topic_model.words_per_topic out"),
        (["train", "--world-from", str(folder), "--resume", "--out", str(tmp_path / "r")], "leave --world-from out"),
        (["theory", "optimum", "--world-from", bare], "no document mixtures"),
    ):
        result = topicscope(*arguments, code=2)
        assert said in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
