"""Words and topics by name, on the axes of a run's matrices."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope import InputError
from topicscope.figures import Heat
from topicscope.figures.train_run import brief, word_heat
from topicscope.figures.word_names import named_words, topic_names
from topicscope.training import Run, RunConfig

A = [[0.7, 0.0], [0.1, 0.5], [0.2, 0.1], [0.0, 0.4]]


def run_with(names: list[str] | None) -> Run:
    model = {"matrix": A} | ({} if names is None else {"word_names": names})
    return Run(RunConfig.of({"topic_model": model}), "done", {"status": "done"}, {"step": np.arange(2.0)}, {})


def test_words_stand_topic_by_topic_the_most_probable_first() -> None:
    run = run_with(["oil", "<b>sea</b>", "gas", "fish"])
    named = named_words(run)
    assert named is not None
    assert named[0].tolist() == [0, 1, 3, 2, 4]
    assert named[1] == ["[MASK]", "oil", "gas", "<b>sea</b>", "fish"]
    assert topic_names(run) == ["1: oil, gas", "2: <b>sea</b>, fish"]
    matrix = np.arange(25.0).reshape(5, 5)
    (heat,) = word_heat("W_V", matrix, run, "topic of the input word", "topic of the output word")
    assert isinstance(heat, Heat)
    assert (heat.labels, heat.x_label, heat.y_label) == (named[1], "input word", "output word")
    assert heat.z[2] == [15.0, 16.0, 18.0, 17.0, 19.0]


def test_without_names_there_are_numbers() -> None:
    assert named_words(run_with(None)) is None
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
