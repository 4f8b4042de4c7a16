"""Labels from hidden states: planted in one layer, nowhere, or shuffled; the command and its contract."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.command import topicscope
from tests.language import tiny
from tests.language.samples import THETA, model_folder
from tests.language.test_labels import NAMES, labelled, lines
from topicscope.language import (
    LabelRow,
    LoadedModel,
    Measurement,
    Probe,
    TimelineConfig,
    label_words,
    probe_model,
    read_probe,
    timeline,
    whole_words,
)
from topicscope.language.probes import label_sentences
from topicscope.pages import Lines, sections

TOKENIZER = tiny.tokenizer("wordpiece")
VOCABULARY = whole_words(TOKENIZER, ["the"])
BARE = Measurement(thresholds=[THETA], bootstrap=200, shuffles=0, random=False, cooccurrence=False)
LAYER = 2


class Planted(torch.nn.Module):
    """Four layers of noise, the same for all words. In layer 2 each position shows the label of its document."""

    def __init__(self, label_of: dict[int, int], strength: float, size: int = 16) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.config = SimpleNamespace(is_encoder_decoder=False, model_type="bert", max_position_embeddings=64)
        self.device, self.size, self.label_of = torch.device("cpu"), size, label_of
        self.word = torch.from_numpy(rng.normal(size=(len(TOKENIZER), size)))
        self.vector = strength * torch.from_numpy(rng.normal(size=(len(NAMES), size)))

    def get_output_embeddings(self) -> None:
        """It predicts no words."""

    def get_input_embeddings(self) -> Any:
        return SimpleNamespace(weight=self.word)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> Any:
        noise = torch.Generator().manual_seed(int(input_ids.sum()))
        count, length = input_ids.shape
        layers = [torch.randn(count, length, self.size, generator=noise, dtype=torch.float64) for _ in range(4)]
        labels = [
            self.label_of.get(int(mark(ids[mask > 0])), 0) for ids, mask in zip(input_ids, attention_mask, strict=True)
        ]
        layers[LAYER] += self.vector[labels][:, None]
        weights = torch.full((count, 1, length, length), 1 / length, dtype=torch.float64)
        return SimpleNamespace(attentions=(weights,), hidden_states=tuple(layers))


def mark(ids: Any) -> int:
    """Tells documents apart by their tokens."""
    return int(sum((place + 1) * int(token) ** 2 for place, token in enumerate(ids)))


def planted(strength: float, seed: int = 0, *, shuffled: bool = False) -> list[LabelRow]:
    """The label that the states show is that of the text; `shuffled`: the probe is given others."""
    texts, labels = labelled(150, seed)
    truth = {mark(TOKENIZER(text)["input_ids"]): NAMES.index(label) for text, label in zip(texts, labels, strict=True)}
    if shuffled:
        labels = [labels[i] for i in np.random.default_rng(seed).permutation(len(labels))]
    loaded = LoadedModel("planted", Planted(truth, strength), TOKENIZER, 60)
    words = label_words(texts, labels, VOCABULARY)
    return probe_model(loaded, texts, words, BARE, labels=labels, vocabulary=VOCABULARY).labels


def test_labels_are_found_in_the_layer_that_holds_them() -> None:
    rows = planted(2.0)
    assert [row.layer for row in rows] == [0, 1, 2, 3]
    assert rows[LAYER].accuracy > 0.97
    assert rows[LAYER].macro_f1 > 0.97
    assert rows[LAYER].chosen_folds == 5
    assert rows[LAYER].chosen_accuracy == rows[LAYER].accuracy
    assert rows[0].bag_of_words > 0.97  # nine words of ten are of the label
    for row in (rows[0], rows[1], rows[3]):
        assert abs(row.accuracy - row.majority) < 0.12, "noise guesses like chance"
        assert row.chosen_folds == 0
    (sentence,) = label_sentences(rows)
    assert "encoder 2 in 5 of 5" in sentence


def test_a_model_without_labels_is_no_better_than_the_most_common_one() -> None:
    wrong = 0
    for seed in range(5):
        rows = planted(0.0, seed)
        assert all(row.interval is not None for row in rows)
        wrong += rows[0].chosen_interval is None or rows[0].chosen_interval[0] > rows[0].majority
    assert wrong == 0


def test_shuffled_labels_are_not_found() -> None:
    rows = planted(2.0, shuffled=True)
    assert all(row.interval is not None and row.interval[0] < row.majority for row in rows)
    assert rows[0].bag_of_words < rows[0].majority + 0.1


def test_labels_of_few_documents_are_left_out_and_said() -> None:
    texts, labels = labelled(60)
    loaded = LoadedModel("planted", Planted({}, 0.0), TOKENIZER, 60)
    words = label_words(texts, labels, VOCABULARY)
    given: list[str | None] = ["chess", None, *labels[2:]]
    probe = probe_model(loaded, texts, words, BARE, labels=given, vocabulary=VOCABULARY)
    assert "labels from hidden states: 1 labels with fewer than 5 of the 59 documents are left out" in probe.notes
    assert {(row.documents, row.classes) for row in probe.labels} == {(58, 4)}
    none = probe_model(loaded, texts, words, BARE, labels=[*labels[:4], *[None] * 56], vocabulary=VOCABULARY)
    assert none.labels == []
    assert any("fewer than two labels have 5 of the 4 documents" in note for note in none.notes)


def test_labels_without_states_are_said_to_be_left_out() -> None:
    texts, labels = labelled(60)
    loaded = LoadedModel("planted", Planted({}, 0.0), TOKENIZER, 60)
    words, without = label_words(texts, labels, VOCABULARY), replace(BARE, states=False)
    probe = probe_model(loaded, texts, words, without, labels=labels, vocabulary=VOCABULARY)
    assert probe.labels == []
    assert "labels are not guessed: that takes hidden states, which are off (--no-states)" in probe.notes
    both = probe_model(loaded, texts, words, BARE, labels=labels, vocabulary=VOCABULARY)
    assert not any("labels are not guessed" in note for note in both.notes)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts, labels = labelled(120)
    records = [{"text": text, "subject": label} for text, label in zip(texts, labels, strict=True)]
    return lines(tmp_path_factory.mktemp("corpus") / "a.jsonl", [*records, {"text": "bread boat"}])


@pytest.mark.process
def test_the_command_and_its_contract(corpus: Path, tmp_path: Path) -> None:
    model = model_folder(tmp_path)
    command = ["probe", str(model), "--corpus", str(corpus), "--label-field", "subject", "--threshold", str(THETA)]
    few = ["--documents", "80", "--bootstrap", "50", "--shuffles", "50"]
    done = topicscope(*command, *few, "--json", "--out", str(tmp_path / "out"))
    found = json.loads(done.stdout)
    assert {"model", "variant", "layer", "accuracy", "interval", "macro_f1", "majority", "bag_of_words"} <= set(
        found["labels"]["rows"][0]
    )
    assert [(row["variant"], row["layer"]) for row in found["labels"]["rows"]] == [
        (variant, layer) for variant in ("trained", "random") for layer in range(3)
    ]
    assert all(0 <= row["majority"] < 0.5 < row["bag_of_words"] <= 1 for row in found["labels"]["rows"])
    assert any("labels of 'subject': 4 (" in note for note in found["notes"])
    assert any("1 without a label" in note for note in found["notes"])
    assert {row["name"].split(":")[0] for row in found["topics"]} == set(NAMES)
    result = read_probe(tmp_path / "out")
    assert isinstance(result, Probe)
    assert json.loads(json.dumps(result.as_dict())) == {key: found[key] for key in result.as_dict()}
    with (tmp_path / "out" / "labels.csv").open(newline="") as stream:
        assert [float(row["accuracy"]) for row in csv.DictReader(stream)] == [row.accuracy for row in result.labels]
    assert any("labels from hidden states: accuracy" in sentence for sentence in result.summary())
    with (tmp_path / "out" / "label-words-1.csv").open(newline="") as stream:
        listed = list(csv.DictReader(stream))
    assert {row["topic"] for row in listed} == set(NAMES)
    assert all(float(row["z"]) > 1.96 for row in listed)
    (section,) = [one for one in sections(result) if one.title.startswith("Do hidden states predict the label")]
    panel = section.figures[0].panels[0]
    assert isinstance(panel, Lines)
    assert [series.name for series in panel.series] == ["trained", "random weights"]
    assert [label for _, label in panel.levels] == ["bag of words", "most common label"]
    again = topicscope(*command, *few, "--json")
    assert json.loads(again.stdout)["labels"] == found["labels"]
    for more, said in (
        (["--topics", "4"], "topics = 4: no effect with the labels of a corpus (label_field)"),
        (["--topics-from", str(corpus)], "label_field and topics_from both say"),
        (["--label-field", "genre"], "no document has a label in the field 'genre'; the corpus has 'text', 'subject'"),
    ):
        refused = topicscope(*command, *more, "--out", str(tmp_path / "refused"), code=2)
        assert said in refused.stderr.replace("\n", " ")
        assert not (tmp_path / "refused").exists()


def test_a_timeline_takes_labels_as_topics(corpus: Path, tmp_path: Path) -> None:
    model = model_folder(tmp_path)
    for step in (1, 2):
        shutil.copytree(model, tmp_path / "run" / f"step-{step}")
    config = TimelineConfig(
        str(tmp_path / "run"), str(corpus), label_field="subject", threshold=THETA, documents=30, bootstrap=20
    )
    result = timeline(config)
    assert any("24 words of 4 topics, 30 documents" in note for note in result.notes)
    assert any(note.startswith("labels of 'subject': 4 (") for note in result.notes)
