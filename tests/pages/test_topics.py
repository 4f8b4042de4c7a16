"""Fitted topics and word maps as figures and tables."""

from dataclasses import replace

import numpy as np
import pytest

from tests.pages import samples
from topicscope.language import TopicFit, Topics, WordMap
from topicscope.language.topics import quality_of
from topicscope.pages import Circles, Heat, Lines, Points, compared_table, topic_model_table, word_figure, word_table
from topicscope.pages.topics import compared_section, fit_figure, map_section, topic_model_sections, word_sections


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


def test_topics_have_shares_quality_neighbours_and_top_words() -> None:
    table = topic_model_table(topics([]))
    assert table.columns == ["topic", "share", "c_npmi", "stability", "nearest", "top words"]
    assert table.rows == [
        ["0", "37.5%", "0.123", "-", "1 (0.50)", "a b c d e"],
        ["1", "62.5%", "-0.500", "-", "0 (0.50)", "e d c b a"],
    ]
    twice = topics([])
    twice = replace(twice, fit=replace(twice.fit, stability=[0.25, 1.0]))
    assert [row[3] for row in topic_model_table(twice).rows] == ["0.2", "1.0"]
    placed, listed = topic_model_sections(topics([]))
    assert (placed.title, listed.tables) == ("Topic map", [table])


@pytest.mark.parametrize(
    ("likelihood", "sweeps"), [([-9.0, -8.0], [10.0, 20.0]), ([-9.0, -8.0, -7.5], [10.0, 20.0, 25.0])]
)
def test_the_fit_is_drawn_against_sweeps_every_ten_and_at_the_end(likelihood: list[float], sweeps: list[float]) -> None:
    figure = fit_figure(topics(likelihood))
    fit, coherence = figure.panels
    assert isinstance(fit, Lines)
    assert (fit.series[0].x, fit.series[0].y, figure.columns) == (sweeps, likelihood, 1)
    assert isinstance(coherence, Points)
    assert coherence.categories == ["0: a b c", "1: e d c"]
    assert (coherence.series[0].x, coherence.series[0].y) == ([0.0, 1.0], [0.12345, -0.5])


@pytest.mark.parametrize("likelihood", [[], [-9.0]])
def test_a_trace_of_one_point_is_no_curve(likelihood: list[float]) -> None:
    assert len(samples.panels(fit_figure(topics(likelihood)), Points)) == 1


def many(count: int) -> Topics:
    """As many topics of one word each."""
    few = topics([])
    return replace(
        few,
        words=tuple(f"w{i}" for i in range(count)),
        probability=np.eye(count),
        document_topics=np.full((1, count), 1 / count),
        fit=replace(few.fit, topics=count, coherence=[0.1] * count),
    )


def test_many_topics_have_no_names_and_not_all_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(fit_figure(many(8)).panels) == 1
    assert fit_figure(many(9)).panels == []
    assert topic_model_sections(many(9))[-1].figures == []
    monkeypatch.setattr("topicscope.pages.topics.MOST_MAPPED", 30)
    section = map_section(many(31))
    (circles,) = samples.panels(section.figures[0], Circles)
    assert len(circles.x) == 30
    assert "The 30 largest of 31 topics are shown" in section.note


def test_the_map_has_a_circle_for_each_topic() -> None:
    section = map_section(topics([]))
    (circles,) = samples.panels(section.figures[0], Circles)
    assert (circles.sizes, circles.values, circles.names) == ([0.375, 0.625], [0.12345, -0.5], ["0", "1"])
    assert circles.texts[1] == ["topic 1: 62.5% of the text, c_npmi -0.500", "e d c b a"]
    assert circles.x == pytest.approx([-circles.x[1], circles.x[1]])
    assert circles.y == [0.0, 0.0]
    assert "keep 100% of the squared distances" in section.note


def test_numbers_of_topics_are_drawn_and_listed() -> None:
    fits = [
        quality_of([0.2, 0.1], 0.9, [0.5, 0.5], 900.0, 2000.0, 7),
        quality_of([-0.1, -0.2, 0.0], 0.8, [0.5, 0.25, 0.75], 800.0, 2000.0, 7),
    ]
    section = compared_section(fits)
    coherence, diversity, stability, perplexity = section.figures[0].panels
    assert isinstance(coherence, Lines)
    (series,) = coherence.series
    assert series.x == [2.0, 3.0]
    assert series.y == pytest.approx([0.15, -0.1])
    assert series.low is not None
    assert series.low[0] == pytest.approx(0.15 - 2 * 0.05)
    assert isinstance(diversity, Lines)
    assert isinstance(stability, Lines)
    assert isinstance(perplexity, Lines)
    assert [one.y for one in perplexity.series] == [[900.0, 800.0], [2000.0, 2000.0]]
    assert compared_table(fits).rows == [
        ["2", "0.150 ± 0.050", "0.90", "0.50", "900", "2,000", "0.135", "-"],
        ["3", "-0.100 ± 0.058", "0.80", "0.50", "800", "2,000", "-0.100", "poor"],
    ]
    plain = [quality_of([0.2, 0.1], 0.9), quality_of([0.3, 0.1, 0.2], 0.8)]
    assert len(compared_section(plain).figures[0].panels) == 2
    assert compared_table(plain).rows[0][3:6] == ["-", "-", "-"]


WORDS = WordMap("org/bert", ("frog", "toad"), (0, 0), (1, 2), np.array([[1.0, 0.123456789], [0.123456789, 1.0]]))


def test_a_word_map_has_names_and_five_digits() -> None:
    figure = word_figure(WORDS)
    (heat,) = samples.panels(figure, Heat)
    assert (figure.name, figure.columns, heat.title, heat.labels) == ("figure3", 1, "bert", ["frog", "toad*"])
    assert heat.z == [[1.0, 0.12346], [0.12346, 1.0]]
    table = word_table(WORDS)
    assert table.columns == ["", "frog", "toad*"]
    assert table.rows == [["frog", "1.00", "0.12"], ["toad*", "0.12", "1.00"]]
    (section,) = word_sections(WORDS)
    assert (section.figures, section.tables) == ([figure], [table])
    assert "blocks on the diagonal are brighter" in section.note
