"""Word maps and fitted topics, as data."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope.figures import Heat, Lines, Points, topic_model_table, word_figure, word_table
from topicscope.figures.words import topic_model_figure, topic_model_sections, word_sections
from topicscope.language import TopicFit, Topics, WordMap

WORDS = WordMap("org/bert", ("frog", "toad"), (0, 0), (1, 2), np.array([[1.0, 0.123456789], [0.123456789, 1.0]]))


def topics(likelihood: list[float], iterations: int = 25) -> Topics:
    """Two topics of five words; the second has the later words."""
    fit = TopicFit(
        backend="plain",
        topics=2,
        iterations=iterations,
        seed=0,
        min_documents=1,
        documents=2,
        tokens=20,
        log_likelihood=likelihood,
        coherence=[0.12345, -0.5],
    )
    return Topics(
        words=("a", "b", "c", "d", "e"),
        token=np.arange(5),
        probability=np.array([[0.5, 0.2, 0.15, 0.1, 0.05], [0.05, 0.1, 0.15, 0.2, 0.5]]),
        frequency=np.ones(5),
        document_topics=np.array([[0.25, 0.75], [0.5, 0.5]]),
        document_lengths=np.array([10, 10]),
        cooccurring=np.zeros((0, 2), dtype=int),
        vocabulary_size=5,
        fingerprint="",
        fit=fit,
    )


def test_a_word_map_has_names_and_five_digits() -> None:
    figure = word_figure(WORDS)
    (heat,) = figure.panels
    assert isinstance(heat, Heat)
    assert (figure.name, figure.columns, heat.title, heat.labels) == ("figure3", 1, "bert", ["frog", "toad*"])
    assert heat.z == [[1.0, 0.12346], [0.12346, 1.0]]
    table = word_table(WORDS)
    assert table.columns == ["", "frog", "toad*"]
    assert table.rows == [["frog", "1.00", "0.12"], ["toad*", "0.12", "1.00"]]
    (section,) = word_sections(WORDS)
    assert (section.figures, section.tables) == ([figure], [table])


def test_topics_have_shares_coherence_and_top_words() -> None:
    table = topic_model_table(topics([]))
    assert table.columns == ["topic", "share", "c_npmi", "top words"]
    assert table.rows == [["0", "37.5%", "0.123", "a b c d e"], ["1", "62.5%", "-0.500", "e d c b a"]]
    (section,) = topic_model_sections(topics([]))
    assert section.tables == [table]


@pytest.mark.parametrize(
    ("likelihood", "sweeps"), [([-9.0, -8.0], [10.0, 20.0]), ([-9.0, -8.0, -7.5], [10.0, 20.0, 25.0])]
)
def test_the_fit_is_drawn_against_sweeps_every_ten_and_at_the_end(likelihood: list[float], sweeps: list[float]) -> None:
    figure = topic_model_figure(topics(likelihood))
    fit, coherence = figure.panels
    assert isinstance(fit, Lines)
    assert (fit.series[0].x, fit.series[0].y, figure.columns) == (sweeps, likelihood, 1)
    assert isinstance(coherence, Points)
    assert coherence.categories == ["0: a b c", "1: e d c"]
    assert (coherence.series[0].x, coherence.series[0].y) == ([0.0, 1.0], [0.12345, -0.5])


@pytest.mark.parametrize("likelihood", [[], [-9.0]])
def test_a_trace_of_one_point_is_no_curve(likelihood: list[float]) -> None:
    (panel,) = topic_model_figure(topics(likelihood)).panels
    assert isinstance(panel, Points)
