"""The figure and the table of ablated heads, from rows built by hand."""

from __future__ import annotations

from dataclasses import replace

from topicscope.language import AblationRow, Probe
from topicscope.pages import Points, ablation_figures, ablation_table
from topicscope.pages.ablation import ablation_sections

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
ROWS = [AT_TOPICS, replace(AT_TOPICS, at="other words", topical_rise=0.2, answer="unsure", why="too few", remark="")]
OFF = [
    AblationRow(model="electra", heads=0, draws=0, at=at, why="no output head") for at in ("topic words", "other words")
]


def test_points_are_rises_with_intervals() -> None:
    (figure,) = ablation_figures([*ROWS, *OFF])
    (panel,) = figure.panels
    assert isinstance(panel, Points)
    assert panel.categories == ["at topic words", "at other words"]
    topical, random = panel.series
    assert (list(topical.y), list(random.y)) == ([0.5, 0.2], [0.1, 0.1])
    assert (list(topical.low or []), list(topical.high or [])) == ([0.4, 0.4], [0.6, 0.6])
    assert (topical.name, random.name) == ("topical heads", "random heads of the same layers")


def test_the_table_says_why() -> None:
    table = ablation_table([*ROWS, *OFF])
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


def test_the_page_has_a_section_where_it_was_measured() -> None:
    (section,) = ablation_sections(Probe(ablation=ROWS))
    assert section.title == "Does the model use its topical heads?"
    assert [figure.name for figure in section.figures] == ["probe-ablation-1"]
    assert ablation_sections(Probe()) == []
    assert ablation_sections(Probe(ablation=OFF))[0].figures == []
