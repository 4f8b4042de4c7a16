"""The figures and tables of a probe, of its hidden states and of its ablation."""

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.pages import samples
from topicscope.language import (
    AblationRow,
    CooccurrenceRow,
    HeadRow,
    MixtureScore,
    PairContrast,
    Probe,
    ProbeRow,
    StateRow,
    TopicRow,
)
from topicscope.measure import Effect, Matched
from topicscope.pages import (
    Heat,
    Lines,
    Points,
    ablation_figures,
    ablation_table,
    cooccurrence_table,
    difference_table,
    family,
    head_figures,
    head_table,
    ratio_figure,
    ratio_table,
    state_figures,
    state_table,
    topic_figures,
)
from topicscope.pages.probe import ablation_section, commonest_table, probe_sections, shown_states, state_section
from topicscope.pages.topics import SHOWN, topic_table

TABLE_1 = """
bert     1.21 1.19 1.32 / 1.13 1.15 1.28 / 1.11 1.13 1.22
albert   5.64 6.29 1.33 / 4.18 3.74 1.28 / 3.24 2.93 1.22
bart     2.8 2.67 1.35 / 1.95 1.92 1.31 / 1.63 1.62 1.23
electra  5.98 5.37 2.14 / 7.7 7.35 2.09 / 7.46 8.08 1.95
roberta  6.44 6.81 1.4 / 5.73 6.31 1.31 / 5.24 5.3 1.22
"""
TABLE_5 = """
bert     1.14 1.04 1.23 / 0.97 1.05 1.17 / 0.99 0.93 1.13
albert   4.15 3.06 1.23 / 3.09 3.04 1.17 / 1.54 1.44 1.11
bart     2.51 1.76 1.27 / 1.63 1.12 1.2 / 1.06 0.85 1.11
electra  5.28 3.99 1.7 / 5.56 5.57 1.58 / 6.39 5.61 1.48
roberta  4.39 5.01 1.19 / 5.2 4.25 1.15 / 4.71 4.15 1.12
"""
"""The paper's ratios of cosine, dot product and attention, by threshold."""


def effect(ratio: float | None, **more: Any) -> Effect:
    given: dict[str, Any] = {"same": 0.123456, "different": 0.1, "difference": 0.0234567, "interval": (0.01, 0.03)}
    return Effect(**given | {"ratio": ratio, "ratio_interval": (1.125, 1.25)} | more)


def row(model: str = "org/bert", variant: str = "trained", threshold: float | None = 0.001, **more: Any) -> ProbeRow:
    ratios = {name: more.pop(name, effect(1.2)) for name in ("cosine", "dot", "attention")}
    attention = ratios.pop("attention")
    given: dict[str, Any] = {"topics_per_word": "one", "words": 80, "topics": 4, "embedding": "matrix", "window": 128}
    about = given | {"model": model, "variant": variant, "threshold": threshold} | more
    return ProbeRow(**about, embeddings=ratios, attention=attention, parts={})


def head(layer: int, number: int, difference: float | None = 0.5, **more: Any) -> HeadRow:
    given: dict[str, Any] = {"model": "org/bert", "threshold": 0.001, "topics_per_word": "one", "part": "encoder"}
    found = effect(None) if difference is None else effect(1.5, difference=difference, pairs=1234.0)
    return HeadRow(**given | more, layer=layer, head=number, effect=found)


def topic(number: int, cosine: float, near: float | None = 0.3, far: float | None = 0.1, **more: Any) -> TopicRow:
    given: dict[str, Any] = {"model": "org/bert", "threshold": 0.001, "topics_per_word": "one", "words": 5 + number}
    names = {"topic": number, "name": f"topic {number}", "nearest": "kitchen", "farthest": "sea"}
    return TopicRow(**given | names | more, cosine=cosine, nearest_cosine=near, farthest_cosine=far)


@pytest.mark.parametrize(("kind", "table"), [("one", TABLE_1), ("many", TABLE_5)])
def test_the_ratios_of_the_paper_are_those_of_its_tables(kind: str, table: str) -> None:
    lines = dict(line.split(maxsplit=1) for line in table.strip().splitlines())
    assert len(lines) == 5
    for name, text in lines.items():
        assert family(f"someone/{name.upper()}-base", kind) == text
    assert family("bert/gpt2", kind) == "-"  # the folder's name does not count


def test_ratios_are_drawn_against_thresholds_one_curve_per_model() -> None:
    rows = [
        row(threshold=0.002, cosine=effect(1.5), attention=None),
        row(threshold=0.001, cosine=effect(None), attention=effect(1.3)),
        row(threshold=None, cosine=effect(9.0)),
        row(threshold=0.001, topics_per_word="many", cosine=effect(8.0)),
        row(variant="random", threshold=0.002, cosine=effect(7.0), attention=effect(1.01, ratio_interval=None)),
        row("roberta", threshold=0.002, cosine=effect(3.0)),
    ]
    figure = ratio_figure(rows)
    assert (figure.name, figure.columns, len(figure.panels)) == ("probe-ratios", 3, 3)
    cosine, dot, attention = (panel for panel in figure.panels if isinstance(panel, Lines))
    assert [panel.title for panel in (cosine, dot, attention)] == ["cosine", "dot", "attention, mean over all heads"]
    assert all(panel.log_x and not panel.log_y for panel in (cosine, dot, attention))
    assert cosine.levels == [(1.0, "no effect")]
    assert [(one.name, one.x, one.y, one.group) for one in cosine.series] == [
        ("bert", [0.002], [1.5], None),
        ("roberta", [0.002], [3.0], None),
    ]
    assert (cosine.series[0].low, cosine.series[0].high, cosine.series[0].markers) == ([1.125], [1.25], True)
    assert [(one.name, one.x, one.y, one.group) for one in attention.series] == [
        ("bert", [0.001], [1.3], None),
        ("bert, random weights", [0.002], [1.01], "random weights, all models"),
        ("roberta", [0.002], [1.2], None),
    ]
    assert (attention.series[1].low, attention.series[1].high) == ([1.01], [1.01])  # no interval
    assert [one.x for one in dot.series] == [[0.002, 0.001], [0.002]]


def test_heads_are_a_map_of_layers_by_heads_for_each_part() -> None:
    rows = [
        head(0, 0, 1.1),
        head(2, 1, 1.4),
        head(0, 0, 1.7, part="decoder"),
        head(0, 1, 9.0, threshold=0.002),
        head(0, 1, 9.0, topics_per_word="many"),
        head(0, 1, 2.5, model="roberta"),
    ]
    first, second = head_figures(rows)
    assert [first.name, second.name] == ["probe-heads-1", "probe-heads-2"]
    assert [first.title, second.title] == [
        f"{name}: more attention to the same topic, head by head, threshold 0.001" for name in ("bert", "roberta")
    ]
    encoder, decoder = (panel for panel in first.panels if isinstance(panel, Heat))
    assert [encoder.title, decoder.title] == ["encoder attention", "decoder attention"]
    assert (encoder.x_label, encoder.y_label) == ("head", "layer")
    gap = pytest.approx(math.nan, nan_ok=True)
    assert encoder.z == [[1.1, gap], [gap, gap], [gap, 1.4]]
    assert decoder.z == [[1.7]]
    assert [panel.z for panel in second.panels if isinstance(panel, Heat)] == [[[gap, 2.5]]]


def test_the_ten_strongest_heads_are_listed() -> None:
    rows = [head(i, i % 3, 2.625 - 0.125 * i, corrected_p=0.01) for i in range(12)]
    other = head(5, 0, model="roberta", remark="too few pairs")
    table = head_table([*rows, head(98, 0, 50.0, threshold=0.5), other])
    assert [row[2] for row in table.rows] == [*(str(layer) for layer in range(10)), "5"]  # of every model ten
    shown = ["bert", "encoder", "0", "0", "2.62 [0.01, 0.03]", "0.1235", "0.1", "1,234", "0.01", "-"]
    assert table.rows[0] == shown
    assert table.rows[-1][-2:] == ["-", "too few pairs"]
    assert len(table.columns) == len(shown)


@pytest.mark.parametrize("count", [1, 2 * SHOWN, 2 * SHOWN + 1])
def test_the_tightest_and_the_loosest_topics_are_drawn(count: int) -> None:
    topics = [topic(i, cosine=0.01 * i) for i in range(count)]
    (figure,) = topic_figures(topics)
    assert (figure.name, figure.title, figure.columns) == ("probe-topics-1", "bert: topics", 1)
    (panel,) = samples.panels(figure, Points)
    ordered = list(range(count))[::-1]
    shown = ordered if count <= 16 else ordered[:8] + ordered[-8:]
    assert panel.categories == [f"topic {i}" for i in shown]
    inside, near, far = panel.series
    assert inside.y == [0.01 * i for i in shown]
    assert inside.x == near.x == far.x == [float(i) for i in range(len(shown))]
    assert (near.y, far.y) == ([0.3] * len(shown), [0.1] * len(shown))


def test_topics_of_several_models_have_a_figure_each_and_unknown_cosines_no_point() -> None:
    rows = [topic(0, 0.2, None, 0.1), topic(1, 0.4, 0.3, None), topic(2, 0.9, threshold=0.5)]
    first, second = topic_figures([*rows, topic(7, 0.5, model="roberta")])
    (panel,) = samples.panels(first, Points)
    assert [(one.x, one.y) for one in panel.series] == [([0.0, 1.0], [0.4, 0.2]), ([0.0], [0.3]), ([1.0], [0.1])]
    assert (second.name, second.title) == ("probe-topics-2", "roberta: topics")
    assert topic_table(rows).rows == [
        ["bert", "topic 0", "5", "0.2", "kitchen (-)", "sea (0.1)"],
        ["bert", "topic 1", "6", "0.4", "kitchen (0.3)", "sea (-)"],
    ]


def test_ratios_and_effects_stand_in_tables_with_intervals_and_controls() -> None:
    table = ratio_table([row(dot=None), row("roberta", "random", None, attention=effect(None))])
    assert table.columns[5:] == ["cosine ratio", "dot ratio", "attention ratio, mean over all heads"]
    one = "1.2 [1.125, 1.25]"
    assert table.rows == [
        ["bert", "trained", "0.001", "one", "80", one, "-", one],
        ["roberta", "random", "-", "one", "80", one, one, "undefined"],
    ]
    controlled = effect(
        1.2, null_interval=(-0.5, 0.5), p_value=0.0123, matched=Matched(0.3, 0.2, 0.0111111, (0.005, 0.02))
    )
    bare = effect(1.2, interval=None)
    probed = row(cosine=controlled, dot=None, attention=bare)
    table = difference_table([replace(probed, embeddings=probed.embeddings | {"cosine_centred": bare})])
    assert table.columns[4:9] == ["measure", "same", "different", "difference", "95%"]
    assert table.columns[9:] == ["shuffled topics", "p", "matched frequencies"]
    numbers = ["0.1235", "0.1", "0.0235"]
    controls = ["[-0.5, 0.5]", "0.0123", "0.0111 [0.005, 0.02]"]
    assert [line[4:] for line in table.rows] == [
        ["cosine", *numbers, "[0.01, 0.03]", *controls],
        ["attention, mean over all heads", *numbers, "-", "-", "-", "-"],
        ["cosine centred", *numbers, "-", "-", "-", "-"],
    ]
    assert all(line[:4] == ["bert", "trained", "0.001", "one"] for line in table.rows)


def cooccurrence() -> CooccurrenceRow:
    about: dict[str, Any] = {
        "model": "org/bert",
        "variant": "trained",
        "threshold": 0.0005,
        "topics_per_word": "one",
        "words": 8,
    }
    cosine, attention = PairContrast(0.51239, 0.4, (0.3, 0.5)), PairContrast(None, 0.007, None)
    sizes: dict[str, Any] = {"topics": 4, "embedding": "matrix", "window": 128, "pairs": 90, "of_one_topic": 7}
    return CooccurrenceRow(**about, **sizes, cosine=cosine, attention=attention)


def test_pairs_of_a_topic_stand_beside_pairs_that_occur_together() -> None:
    table = cooccurrence_table([cooccurrence()])
    assert table.columns == [
        "model",
        "threshold",
        "pairs",
        "of them of one topic",
        "cosine: same topic",
        "cosine: co-occurring (95%)",
        "attention, mean over all heads: same topic",
        "attention, mean over all heads: co-occurring (95%)",
    ]
    assert table.rows == [["bert", "0.0005", "90", "7", "0.512", "0.4 [0.3, 0.5]", "-", "0.007 -"]]
    few = replace(cooccurrence(), commonest=[["boat", "anchor"]])
    more = replace(few, pairs=91, commonest=[["boat", "anchor"], ["<b>", "salt"]])
    other = replace(few, model="org/roberta", commonest=[["judge", "court"]])
    assert commonest_table([few, more, other]).rows == [
        ["bert", "1", "boat", "anchor"],
        ["bert", "2", "<b>", "salt"],
        ["roberta", "1", "judge", "court"],
    ]


def test_topical_heads_stand_beside_the_mean_over_all() -> None:
    """The verdict may be on them; a row without them, as of given topics, has a dash."""
    rows = [replace(row(), topical=effect(1.75)), row(threshold=0.002)]
    ratios = ratio_table(rows)
    assert ratios.columns[7:] == ["attention ratio, mean over all heads", "attention ratio, topical heads"]
    one = "1.2 [1.125, 1.25]"
    assert [line[7:] for line in ratios.rows] == [[one, "1.75 [1.125, 1.25]"], [one, "-"]]
    attention = [line[4] for line in difference_table(rows).rows if line[4].startswith("attention")]
    mean, topical = "attention, mean over all heads", "attention, topical heads"
    assert attention == [mean, topical, mean]
    contrast = PairContrast(0.03, 0.02, (0.01, 0.025))
    pairs = cooccurrence_table([replace(cooccurrence(), topical=contrast), cooccurrence()])
    assert pairs.columns[8:] == [
        "attention, topical heads: same topic",
        "attention, topical heads: co-occurring (95%)",
    ]
    assert [line[8:] for line in pairs.rows] == [["0.03", "0.02 [0.01, 0.025]"], ["-", "-"]]


def test_a_probe_shows_what_was_measured() -> None:
    whole = probe_sections(Probe([row(), row()], [head(0, 0)], [cooccurrence()], [topic(0, 0.2)]))
    assert [len(section.figures) for section in whole] == [1, 0, 1, 1, 0]
    assert [section.tables[0].title.split()[0] for section in whole] == ["Same", "Every", "Heads", "Topics:", "Pairs"]
    given = probe_sections(Probe([row(threshold=None), row()], [], [], [topic(0, 0.2)]))
    assert [len(section.figures) for section in given] == [0, 0, 1]  # topics that are given have no thresholds
    assert given[2].title == "Which topics are tight, and which are near each other?"


def around(difference: float) -> Effect:
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


def state(layer: int, **more: Any) -> StateRow:
    difference = more.pop("difference", 0.05 * (layer + 1))
    given: dict[str, Any] = {"model": "org/bert", "variant": "trained", "threshold": 0.002, "topics_per_word": "one"}
    given |= {"part": "encoder", "words": 90, "cooccurring": {}, "mixture": score(0.5 + layer / 10)}
    effects = {"raw": around(difference), "centred": around(2 * difference), "all_but_top": None}
    return StateRow(**given | {"effects": effects} | more, layer=layer)


STATES = [
    *(state(layer) for layer in range(3)),
    *(state(layer, threshold=0.001, words=40, difference=9.0) for layer in range(3)),
    *(state(layer, variant="random", difference=0.0, mixture=score(0.1)) for layer in range(3)),
]


def panels(rows: list[StateRow]) -> list[Lines]:
    (figure,) = state_figures(rows)
    assert all(isinstance(panel, Lines) for panel in figure.panels)
    return [panel for panel in figure.panels if isinstance(panel, Lines)]


def test_curves_are_of_the_threshold_with_most_words() -> None:
    assert {one.threshold for one in shown_states(STATES)} == {0.002}
    raw, centred, mixture, single = panels(STATES)  # of the third treatment there is nothing to draw
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
    rows = [*STATES, *(state(layer, part="decoder") for layer in range(2)), state(0, model="other", mixture=None)]
    figures = state_figures(rows)
    assert [figure.name for figure in figures] == ["probe-states-1", "probe-states-2", "probe-states-3"]
    assert "bert, decoder" in figures[1].title
    assert len(figures[2].panels) == 2  # without mixtures nothing is said of them
    assert state_figures([replace(STATES[0], mixture=None, effects=dict.fromkeys(STATES[0].effects))]) == []


def test_states_have_a_section_and_a_line_per_layer() -> None:
    table = state_table(STATES)
    assert table.rows[1] == [
        *("bert", "encoder 1", "90", "0.1 [0.09, 0.11]", "-", "0.01"),
        *("0.6 [0.5, 0.7]", "0.1", "0.45"),
    ]
    assert len(table.rows) == 3
    empty = replace(STATES[0], mixture=None, effects=dict.fromkeys(STATES[0].effects))
    assert state_table([empty]).rows == [["bert", "encoder 0 (embedding output)", "90", "-", "-", "-", "-", "-", "-"]]
    section = state_section(Probe(states=STATES))
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


def test_the_table_of_ablation_says_why() -> None:
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
