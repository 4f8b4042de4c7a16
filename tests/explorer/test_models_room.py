"""A probe of several models: each has the topics and the notes of its own tokenizer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.explorer.test_models_in_browser import SMALL
from tests.language.samples import corpus_file, model_folder
from topicscope.explorer.results_rooms import models_view, topics_of_word
from topicscope.explorer.workspace import Place, Workspace
from topicscope.ground import InputError, load_settings
from topicscope.language import ProbeConfig, Topics, probe

pytestmark = [pytest.mark.model]

FEW: dict[str, Any] = {"documents": 10, "bootstrap": 5, "shuffles": 5, "show_documents": 1, "random": False}
FEW |= {"thresholds": [0.03]}  # of both tokenizers' words it keeps some, not all
NAMES = ("left", "right", "third")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two models with one tokenizer, and between them one with another, whose topics are numbered otherwise."""
    home = tmp_path_factory.mktemp("models")
    models = []
    for name, tokens in zip(NAMES, ("wordpiece", "bpe", "wordpiece"), strict=True):
        (home / name).mkdir()
        models.append(str(model_folder(home / name, tokens=tokens).rename(home / name / name)))
    probe(ProbeConfig(models, str(corpus_file(home)), **SMALL | FEW), home / "runs" / "three")
    second = home / "runs" / "three" / "topics-2"
    topics, config = Topics.load(second), load_settings(second / "config.yaml")
    mixtures = np.roll(topics.document_topics, 1, 1)
    replace(topics, probability=np.roll(topics.probability, 1, 0), document_topics=mixtures).save(second, config)
    (found,) = Workspace(home / "runs").places()
    return found


def expected(place: Place, folder: str, word: str) -> tuple[int, float]:
    topics = Topics.load(place.path / folder)
    joint = topics.shares * topics.probability[:, topics.words.index(word)]
    return int(joint.argmax()), float(joint.max() / joint.sum())


def answers(place: Place, word: str, model: int | None) -> list[tuple[str, int, float]]:
    found = topics_of_word(place, word, model)["answers"]
    return [(one["models"], one["topics"][0]["topic"], one["topics"][0]["share"]) for one in found]


def test_a_word_is_looked_up_in_the_topics_of_the_chosen_model(place: Place) -> None:
    words = Topics.load(place.path / "topics-1").words
    for word in words:
        first = ("left, third", *expected(place, "topics-1", word))
        second = ("right", *expected(place, "topics-2", word))
        assert first[1] != second[1]  # else the answer could be that of any model
        assert answers(place, word, 0) == [first]
        assert answers(place, word, 1) == [second]
        assert answers(place, word, 2) == [first]  # it shares the tokenizer, and so the topics
        assert answers(place, word, None) == [first, second]
    with pytest.raises(InputError, match="no such model"):
        topics_of_word(place, words[0], 3)


def test_maps_and_their_files_have_the_names_of_the_models(place: Place) -> None:
    figures = {figure.name: figure for section in models_view(place).sections for figure in section.figures}
    titles = {name: figure.title for name, figure in figures.items() if name.startswith("topic-map")}
    assert titles == {"topic-map-1": "left, third: Topic map", "topic-map-2": "right: Topic map"}
    one = models_view(place, 1)
    assert [section.title for section in one.sections if "Topic map" in section.title] == ["right: Topic map"]
    names = [figure.name for section in one.sections for figure in section.figures]
    assert len(names) == len(set(names))  # files are found by them
    shares = Topics.load(place.path / "topics-2").shares
    (figure,) = (figure for section in one.sections for figure in section.figures if figure.name == "topic-map-1")
    (circles,) = figure.panels
    np.testing.assert_array_equal(circles.sizes, shares)  # type: ignore[union-attr]


def test_notes_say_whose_topics_they_are_about(place: Place) -> None:
    every = [note for note in models_view(place).intro if "topics: mean coherence (c_npmi)" in note]
    assert [note.split(": ")[0] for note in every] == ["left, third", "right"]
    poor = [note for note in models_view(place).intro if "Poor topics" in note]
    assert all(note.startswith(("left, third: Poor topics: ", "right: Poor topics: ")) for note in poor)
    for number, start in enumerate(("left, third", "right", "left, third")):
        intro = models_view(place, number).intro
        assert [note.split(": ")[0] for note in intro if "topics: mean coherence (c_npmi)" in note] == [start]
        others = [name for name in NAMES if name != NAMES[number]]
        assert not any(note.startswith(tuple(f"{name}: " for name in others)) for note in intro)
        assert any(note.startswith("corpus: ") for note in intro)
