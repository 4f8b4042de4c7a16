"""Words and topics by name, on the axes of a run's matrices."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope import InputError
from topicscope.laws import world_optimum
from topicscope.pages import Heat
from topicscope.pages.train_run import brief
from topicscope.pages.word_names import named_words, topic_names, word_figures
from topicscope.training import Run, RunConfig

A = [[0.7, 0.0], [0.1, 0.5], [0.2, 0.1], [0.0, 0.4]]


def run_with(names: list[str] | None) -> Run:
    model = {"matrix": A} | ({} if names is None else {"word_names": names})
    uniform = {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared"}}
    results = {"status": "done", "value": {}, "distance_to_optimum": 1.0}
    weights = {"value": np.arange(25.0).reshape(5, 5), "prediction_bias": np.arange(5.0)}
    return Run(RunConfig.of({"topic_model": model} | uniform), "done", results, {"step": np.arange(2.0)}, weights)


def test_words_stand_topic_by_topic_the_most_probable_first() -> None:
    run = run_with(["oil", "<b>sea</b>", "gas", "fish"])
    named = named_words(run)
    assert named is not None
    assert named[0].tolist() == [0, 1, 3, 2, 4]
    assert named[1] == ["[MASK]", "oil", "gas", "<b>sea</b>", "fish"]
    assert topic_names(run) == ["1 oil", "2 <b>sea</b>"]
    (figure,) = word_figures(run)
    assert figure.title == "The most probable words of each main topic (4 of 4)"
    value, best = figure.panels
    assert isinstance(value, Heat)
    assert isinstance(best, Heat)
    assert (value.labels, value.x_label, value.y_label) == (named[1], "input word", "output word")
    assert value.z[2] == [15.0, 16.0, 18.0, 17.0, 19.0]
    optimal = world_optimum(run.config).matrix() - run.weights["prediction_bias"][:, None]
    order = named[0]
    np.testing.assert_allclose(best.z, optimal[np.ix_(order, order)], atol=1e-6)


def test_without_names_there_are_numbers() -> None:
    assert named_words(run_with(None)) is None
    assert word_figures(run_with(None)) == []
    assert topic_names(run_with(None)) == ["1", "2"]


def test_names_are_one_per_word() -> None:
    with pytest.raises(InputError, match=r"word_names has 3 names; expected one per word \(4\)"):
        run_with(["a", "b", "c"])


def test_the_page_does_not_list_long_settings() -> None:
    settings = {"topic_model": {"matrix": [[0.5] * 10] * 101, "sizes": [[1, 2], [3]]}, "steps": 3}
    assert brief(settings) == {
        "topic_model": {"matrix": "101 entries, in config.yaml", "sizes": [[1, 2], [3]]},
        "steps": 3,
    }
