"""Hidden states and ablation of a probe, as figures and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.pages import samples
from topicscope.language import AblationRow, MixtureScore, Probe, StateRow
from topicscope.measure import Effect
from topicscope.pages import Lines, Points, ablation_figures, ablation_table, state_figures, state_table
from topicscope.pages.probe import ablation_section, shown_states, state_section


def effect(difference: float) -> Effect:
    low, high = difference - 0.01, difference + 0.01
    return Effect(
        same=difference + 0.1,
        different=0.1,
        difference=difference,
        ratio=None,
        interval=(low, high),
        null_interval=(-0.02, 0.04),
        p_value=0.01,
    )


def score(r2: float | None) -> MixtureScore:
    return MixtureScore(
        mixture_r2=r2,
        mixture_interval=None if r2 is None else (r2 - 0.1, r2 + 0.1),
        bag_of_words_r2=0.45,
        bag_of_words_interval=(0.4, 0.5),
        half_document_r2=0.9,
        half_document_interval=(0.8, 0.95),
        shuffled_r2=-0.01,
        documents=50,
        by_position={"1/4": 0.1, "2/4": None},
    )


def row(layer: int, **more: Any) -> StateRow:
    difference = more.pop("difference", 0.05 * (layer + 1))
    given: dict[str, Any] = {"model": "org/bert", "variant": "trained", "threshold": 0.002, "topics_per_word": "one"}
    given |= {"part": "encoder", "words": 90, "cooccurring": {}, "mixture": score(0.5 + layer / 10)}
    effects = {"raw": effect(difference), "centred": effect(2 * difference), "all_but_top": None}
    return StateRow(**given | {"effects": effects} | more, layer=layer)


ROWS = [
    *(row(layer) for layer in range(3)),
    *(row(layer, threshold=0.001, words=40, difference=9.0) for layer in range(3)),
    *(row(layer, variant="random", difference=0.0, mixture=score(0.1)) for layer in range(3)),
]


def panels(rows: list[StateRow]) -> list[Lines]:
    (figure,) = state_figures(rows)
    assert all(isinstance(panel, Lines) for panel in figure.panels)
    return [panel for panel in figure.panels if isinstance(panel, Lines)]


def test_curves_are_of_the_threshold_with_most_words() -> None:
    assert {one.threshold for one in shown_states(ROWS)} == {0.002}
    raw, centred, mixture, single = panels(ROWS)  # of the third treatment there is nothing to draw
    assert [series.name for series in raw.series] == ["trained", "random weights", "shuffled topics"]
    trained, fresh, null = raw.series
    assert (trained.x, trained.y) == ([0.0, 1.0, 2.0], [0.05 * 1, 0.05 * 2, 0.05 * 3])
    assert (trained.low, fresh.y) == ([y - 0.01 for y in trained.y], [0.0] * 3)
    assert (null.low, null.high, null.y) == ([-0.02] * 3, [0.04] * 3, [0.01] * 3)
    assert centred.series[0].y == [2 * y for y in trained.y]
    assert [series.name for series in mixture.series] == ["trained", "random weights", "shuffled mixtures"]
    assert mixture.series[0].y == [0.5, 0.6, 0.7]
    assert mixture.levels == [(0.45, "bag of words"), (0.9, "half of the words")]
    assert [(series.name, series.y) for series in single.series] == [("after 1/4 of the words", [0.1] * 3)]


def test_parts_and_models_have_figures_of_their_own() -> None:
    rows = [*ROWS, *(row(layer, part="decoder") for layer in range(2)), row(0, model="other", mixture=None)]
    figures = state_figures(rows)
    assert [figure.name for figure in figures] == ["probe-states-1", "probe-states-2", "probe-states-3"]
    assert "bert, decoder" in figures[1].title
    assert len(figures[2].panels) == 2  # without mixtures nothing is said of them
    assert state_figures([replace(ROWS[0], mixture=None, effects=dict.fromkeys(ROWS[0].effects))]) == []


def test_states_have_a_section_and_a_line_per_layer() -> None:
    table = state_table(ROWS)
    assert table.rows[1] == [
        *("bert", "encoder 1", "90", "0.1 [0.09, 0.11]", "-", "0.01"),
        *("0.6 [0.5, 0.7]", "0.1", "0.45"),
    ]
    assert len(table.rows) == 3
    empty = replace(ROWS[0], mixture=None, effects=dict.fromkeys(ROWS[0].effects))
    assert state_table([empty]).rows == [["bert", "encoder 0 (embedding output)", "90", "-", "-", "-", "-", "-", "-"]]
    section = state_section(Probe(states=ROWS))
    assert (len(section.figures), len(section.tables)) == (1, 1)


AT_TOPICS = AblationRow(
    model="org/bert",
    heads=3,
    draws=19,
    at="topic words",
    positions=1200,
    documents=50,
    loss=4.0,
    topical_rise=0.5,
    topical_interval=(0.4, 0.6),
    random_rise=0.1,
    random_interval=(0.0, 0.2),
    difference=0.4,
    interval=(0.2, 0.55),
    mean_interval=(0.3, 0.5),
    answer="yes",
    remark="layer 0 has too few other heads",
)
RISES = [AT_TOPICS, replace(AT_TOPICS, at="other words", topical_rise=0.2, answer="unsure", why="too few", remark="")]
OFF = [
    AblationRow(model="electra", heads=0, draws=0, at=at, why="no output head") for at in ("topic words", "other words")
]


def test_points_are_rises_with_intervals() -> None:
    (figure,) = ablation_figures([*RISES, *OFF])
    (panel,) = samples.panels(figure, Points)
    assert panel.categories == ["at topic words", "at other words"]
    topical, random = panel.series
    assert (list(topical.y), list(random.y)) == ([0.5, 0.2], [0.1, 0.1])
    assert (list(topical.low or []), list(topical.high or [])) == ([0.4, 0.4], [0.6, 0.6])
    assert (topical.name, random.name) == ("topical heads", "random heads of the same layers")


def test_the_table_says_why() -> None:
    table = ablation_table([*RISES, *OFF])
    assert table.folded
    assert [row[:6] for row in table.rows] == [
        ["bert", "topic words", "yes", "3", "19", "1,200 in 50"],
        ["bert", "other words", "unsure", "3", "19", "1,200 in 50"],
        ["electra", "topic words", "off", "0", "0", "0 in 0"],
        ["electra", "other words", "off", "0", "0", "0 in 0"],
    ]
    assert table.rows[0][6:] == [
        *("4", "0.5 [0.4, 0.6]", "0.1 [0, 0.2]", "0.4 [0.2, 0.55]", "layer 0 has too few other heads")
    ]
    assert table.rows[2][6:] == ["-", "-", "-", "-", "no output head"]
    assert all(len(row) == len(table.columns) for row in table.rows)
    section = ablation_section(Probe(ablation=RISES))
    assert section.title == "Does the model use its topical heads?"
    assert [figure.name for figure in section.figures] == ["probe-ablation-1"]
    assert ablation_section(Probe(ablation=OFF)).figures == []
