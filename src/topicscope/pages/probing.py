"""What a probe found: ratios, controls, layer x head maps, topics, co-occurrence; the paper's Tables 1, 2 and 5."""

from collections.abc import Sequence

import numpy as np

from topicscope.language import (
    HeadRow,
    Measurement,
    Probe,
    ProbeRow,
    TopicRow,
    short,
)
from topicscope.pages.ablation import ablation_sections
from topicscope.pages.documents import document_sections
from topicscope.pages.labels import label_sections
from topicscope.pages.panels import Heat, Lines, Points, Series, banded
from topicscope.pages.parts import Figure, Section
from topicscope.pages.probe_tables import (
    MAIN_MEASURES,
    at_first,
    commonest_table,
    cooccurrence_table,
    difference_table,
    head_table,
    measure_name,
    ratio_table,
    topic_table,
)
from topicscope.pages.states import setting_name, state_sections
from topicscope.pages.verdicts import check_table, forest_figures, verdict_table

SHOWN = 8  # topics at each end that a figure shows: the tightest and the loosest


def probe_sections(probe: Probe) -> list[Section]:
    given = bool(probe.rows) and probe.rows[0].threshold is None
    sections = [
        Section(
            "Does the model encode topics?",
            "Yes needs every control, at every threshold: more than topics shuffled among words (chance), than pairs "
            "of equal word frequencies, than the pairs of words that co-occur most, and than fresh weights. "
            "'Unsure' says what to raise.",
            figures=forest_figures(probe.rows),
            tables=[verdict_table(probe.verdicts), check_table(probe.verdicts)],
        ),
        Section(
            "Are words of a topic closer, and do they attend to each other more?",
            "Same-topic mean over different-topic mean; 'undefined' where the different-topic mean may be zero. "
            "Attention is that of the encoder where there is one: the mean over all heads, and that over the topical "
            "heads, if there are any. The answer on attention is on the better of the two; its sentence says which.",
            figures=[] if given else [ratio_figure(probe.rows)],
            tables=[ratio_table(probe.rows)],
        ),
        Section(
            "Is it more than chance, or word frequency?",
            "Difference: same-topic mean minus different-topic mean. 95%: bootstrap over topics (embeddings) or "
            "documents (attention). Shuffled topics: the middle 95% of the difference when topics are given to words "
            "at random; p: the share of shuffles with as large a difference."
            + smallest_p(probe.config)
            + " Matched frequencies: the difference when "
            "the different-topic pairs have the word frequencies of the same-topic pairs. Random weights: the mean of "
            "five models for embeddings, one model for attention.",
            tables=[difference_table(probe.rows)],
        ),
        Section(
            "Which heads carry topics?",
            "Difference: attention to words of the same topic minus that to words of other topics. Attention is "
            "debiased (weight x positions that can be attended / 100): without any preference every head has .01. "
            "p: how often some head of the model stands out as far when topics are shuffled among words. Layers and "
            "heads are counted from 0.",
            figures=head_figures(probe.heads),
            tables=[head_table(probe.heads)],
        ),
        Section(
            "Which topics are tight, and which are near each other?",
            "The tightest and the loosest topics, and the topics nearest to and farthest from them.",
            figures=topic_figures(probe.topics),
            tables=[topic_table(probe.topics)],
        ),
        Section(
            "Topics against co-occurrence (Table 2).",
            "As many pairs as a topic has: those that stand in the same fifty words of text most often, whatever their "
            "topics. Some of them may share a topic, so a 'no' of this control says that co-occurrence may explain an "
            "effect, not that it does.",
            tables=[cooccurrence_table(probe.cooccurrence), commonest_table(probe.cooccurrence)],
        ),
    ]
    measured = (probe.verdicts, True, True, probe.heads, probe.topics, probe.cooccurrence)
    shown = [section for section, there in zip(sections, measured, strict=True) if there]
    return [
        *shown,
        *state_sections(probe),
        *ablation_sections(probe),
        *label_sections(probe),
        *document_sections(probe),
    ]


def smallest_p(settings: Measurement) -> str:
    """What the numbers of shuffles allow."""
    if not settings.shuffles:
        return ""
    smallest = [f"{1 / (1 + number):.2g}" for number in (settings.shuffles, settings.attention_shuffles)]
    return (
        f" With {settings.shuffles} shuffles p cannot be below {smallest[0]}; of attention and hidden states, with "
        f"{settings.attention_shuffles}, not below {smallest[1]} (more shuffles: --shuffles)."
    )


def ratio_figure(rows: Sequence[ProbeRow]) -> Figure:
    """Ratios of cosine, dot product and attention against the threshold: one panel per measure, one curve per model.

    Args:
        rows: Effects of a probe, `probe.rows`.

    Returns:
        The figure; a ratio that is undefined leaves no point.

    Example:
        See `ratio_table`.
    """
    shown = [row for row in rows if row.threshold is not None and row.topics_per_word == rows[0].topics_per_word]
    models = dict.fromkeys((row.model, row.variant) for row in shown)
    panels = []
    for measure in MAIN_MEASURES:
        # embeddings of random weights have no ratio worth a curve: their different-topic mean may be zero
        wanted = [key for key in models if key[1] == "trained" or measure == "attention"]
        curves = (ratio_curve([row for row in shown if (row.model, row.variant) == key], measure) for key in wanted)
        series = [curve for curve in curves if curve.x]
        panels.append(
            Lines(
                measure_name(measure),
                series,
                "threshold",
                "same / different",
                log_x=True,
                levels=[(1.0, "no effect")],
            )
        )
    alt = "Ratios of cosine, dot product and attention against the threshold."
    return Figure("probe-ratios", "Same topic over different topic", alt, panels, columns=3)


def ratio_curve(rows: Sequence[ProbeRow], measure: str) -> Series:
    """Of one model; without points where no ratio is defined."""
    effects = [(row.threshold, row.effects[measure]) for row in rows]
    points = [
        (threshold, effect.ratio, effect.ratio_interval)
        for threshold, effect in effects
        if threshold is not None and effect is not None and effect.ratio is not None
    ]
    if rows[0].variant == "trained":
        return banded(short(rows[0].model), points)
    return banded(f"{short(rows[0].model)}, random weights", points, "random weights, all models")


def head_figures(heads: Sequence[HeadRow]) -> list[Figure]:
    """Which heads attend more to words of the same topic: one map per model, layers by heads.

    Args:
        heads: Heads of a probe, `probe.heads`.

    Returns:
        One figure per model, at its first threshold; one panel per part (encoder, decoder, cross).

    Example:
        >>> from topicscope.pages import head_table
        >>> from topicscope.measure import Effect
        >>> about = {"model": "bert", "threshold": 0.001, "topics_per_word": "one", "part": "encoder", "layer": 0}
        >>> even = Effect(same=0.01, different=0.01, difference=0.0, ratio=1.0, interval=(-0.002, 0.002))
        >>> topical = Effect(same=0.03, different=0.01, difference=0.02, ratio=3.0, interval=(0.015, 0.025))
        >>> heads = [HeadRow(**about, head=0, effect=even, corrected_p=0.9)]
        >>> heads += [HeadRow(**about, head=1, effect=topical, corrected_p=0.01)]
        >>> head_figures(heads)[0].panels[0].z  # layer 0: heads 0 and 1
        [[0.0, 0.02]]
        >>> [(row[3], row[4], row[-1]) for row in head_table(heads).rows]
        [('1', '0.02 [0.015, 0.025]', 'topical'), ('0', '0 [-0.002, 0.002]', '-')]
    """
    figures: list[Figure] = []
    for model in dict.fromkeys(head.model for head in heads):
        mine = at_first([head for head in heads if head.model == model])
        panels = []
        for part in dict.fromkeys(head.part for head in mine):
            here = [head for head in mine if head.part == part]
            z = np.full((max(head.layer for head in here) + 1, max(head.head for head in here) + 1), np.nan)
            for head in here:
                z[head.layer, head.head] = head.effect.difference
            panels.append(Heat(f"{part} attention", z.tolist(), "head", "layer", shown_in=f"{model} {part}"))
        name, title = (
            f"probe-heads-{len(figures) + 1}",
            f"{short(model)}: more attention to the same topic, head by head, {setting_name(mine)}",
        )
        alt = "Difference of attention inside and between topics (.01 is even attention), layers by heads."
        figures.append(Figure(name, title, alt, panels))
    return figures


def topic_figures(topics: Sequence[TopicRow]) -> list[Figure]:
    """Mean cosine inside the tightest and the loosest topics of each model, and to other topics.

    Args:
        topics: `probe.topics`.

    Returns:
        One figure per model: the tightest topic first, at most 8 from each end.

    Example:
        >>> about = {"model": "bert", "threshold": 0.001, "topics_per_word": "one", "words": 10}
        >>> about |= {"nearest": "plants", "nearest_cosine": 0.1, "farthest": "law", "farthest_cosine": 0.0}
        >>> inside = {"water": 0.3, "music": 0.5}
        >>> rows = [TopicRow(**about, topic=n, name=name, cosine=inside[name]) for n, name in enumerate(inside)]
        >>> panel = topic_figures(rows)[0].panels[0]
        >>> panel.categories, {series.name: series.y for series in panel.series}["inside the topic"]
        (['music', 'water'], [0.5, 0.3])
    """
    figures: list[Figure] = []
    for model in dict.fromkeys(topic.model for topic in topics):
        mine = sorted(at_first([row for row in topics if row.model == model]), key=lambda topic: -topic.cosine)
        shown = mine if len(mine) <= 2 * SHOWN else mine[:SHOWN] + mine[-SHOWN:]
        curves: dict[str, list[float | None]] = {
            "inside the topic": [topic.cosine for topic in shown],
            "to the nearest topic": [topic.nearest_cosine for topic in shown],
            "to the farthest topic": [topic.farthest_cosine for topic in shown],
        }
        series = []
        for label, values in curves.items():
            known = {float(place): value for place, value in enumerate(values) if value is not None}
            series.append(Series(label, list(known), list(known.values())))
        panel = Points("mean cosine by topic", [topic.name for topic in shown], series, "cosine")
        alt = "Mean cosine inside topics and to other topics."
        figures.append(Figure(f"probe-topics-{len(figures) + 1}", f"{short(model)}: topics", alt, [panel], columns=1))
    return figures
