"""What a probe found, as sections of a page: ratios, controls, layer x head maps, topics, co-occurrence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicscope.figures.panels import Figure, Heat, Lines, Panel, Points, Section, Series
from topicscope.figures.probe_tables import (
    MAIN_MEASURES,
    at_first,
    cooccurrence_table,
    difference_table,
    head_table,
    ratio_table,
    topic_table,
)
from topicscope.language import HeadRow, Probe, ProbeRow, TopicRow, short

SHOWN = 8
"""Topics at each end that a figure shows: the tightest and the loosest."""


def probe_sections(probe: Probe) -> list[Section]:
    given = bool(probe.rows) and probe.rows[0].threshold is None
    sections = [
        Section(
            "Are words of a topic nearer, and do they attend each other more?",
            "Same-topic mean over different-topic mean; 'undefined' where the different-topic mean may be zero. "
            "Attention is that of the encoder where there is one.",
            figures=[] if given else [ratio_figure(probe.rows)],
            tables=[ratio_table(probe.rows)],
        ),
        Section(
            "Is it more than chance, or word frequency?",
            "Difference: same-topic mean less different-topic mean. 95%: bootstrap over topics (embeddings) or "
            "documents (attention). Shuffled topics: the middle 95% of the difference when topics are given to words "
            "at random; p: the share of shuffles with as large a difference. Matched frequencies: the difference when "
            "the different-topic pairs have the word frequencies of the same-topic pairs. Random weights: the mean of "
            "five models for embeddings, one model for attention.",
            tables=[difference_table(probe.rows)],
        ),
    ]
    if probe.heads:
        sections.append(
            Section(
                "Which heads carry topics?",
                "Attention is debiased (weight x positions that can be attended / 100): without any preference every "
                "head has .01. Counted from 0.",
                figures=head_figures(probe.heads),
                tables=[head_table(probe.heads)],
            )
        )
    if probe.topics:
        sections.append(
            Section(
                "Which topics are tight, and which near each other?",
                "The tightest and the loosest topics, and the topics nearest to and farthest from them.",
                figures=topic_figures(probe.topics),
                tables=[topic_table(probe.topics)],
            )
        )
    if probe.cooccurrence:
        sections.append(
            Section(
                "Topics against co-occurrence (Table 2).",
                "As many pairs as a topic has: those that stand in the same fifty words of text most often.",
                tables=[cooccurrence_table(probe.cooccurrence)],
            )
        )
    return sections


def ratio_figure(rows: Sequence[ProbeRow]) -> Figure:
    """The three ratios against the threshold, one curve per model."""
    shown = [row for row in rows if row.threshold is not None and row.topics_per_word == rows[0].topics_per_word]
    models = dict.fromkeys((row.model, row.variant) for row in shown)
    panels: list[Panel] = []
    for measure in MAIN_MEASURES:
        # embeddings of random weights have no ratio worth a curve: their different-topic mean may be zero
        wanted = [key for key in models if key[1] == "trained" or measure == "attention"]
        curves = [ratio_curve([row for row in shown if (row.model, row.variant) == key], measure) for key in wanted]
        series = [curve for curve in curves if curve is not None]
        panels.append(Lines(measure, series, "threshold", "same / different", log_x=True, levels=[(1.0, "no effect")]))
    alt = "Ratios of cosine, dot product and attention against the threshold."
    return Figure("probe-ratios", "Same topic over different topic", alt, panels, columns=3)


def ratio_curve(rows: Sequence[ProbeRow], measure: str) -> Series | None:
    """Of one model; None where no ratio is defined."""
    xs, ys, ends = [], [], []
    for row in rows:
        effect = row.effects[measure]
        if effect is not None and effect.ratio is not None and row.threshold is not None:
            xs.append(row.threshold)
            ys.append(effect.ratio)
            ends.append(effect.ratio_interval or (effect.ratio, effect.ratio))
    if not xs:
        return None
    trained = rows[0].variant == "trained"
    name = short(rows[0].model) + ("" if trained else ", random weights")
    group = None if trained else "random weights, all models"
    return Series(name, xs, ys, [low for low, _ in ends], [high for _, high in ends], group, markers=True)


def head_figures(heads: Sequence[HeadRow], name: str = "probe-heads") -> list[Figure]:
    """Layer x head maps of the attention ratio, at the first threshold of each model."""
    figures: list[Figure] = []
    for model in dict.fromkeys(head.model for head in heads):
        mine = at_first([head for head in heads if head.model == model])
        panels: list[Panel] = []
        for part in dict.fromkeys(head.part for head in mine):
            here = [head for head in mine if head.part == part]
            z = np.full((max(head.layer for head in here) + 1, max(head.head for head in here) + 1), np.nan)
            for head in here:
                z[head.layer, head.head] = np.nan if head.effect.ratio is None else head.effect.ratio
            panels.append(Heat(f"{part} attention", z.tolist(), "head", "layer"))
        title = f"{short(model)}: attention ratio of every head"
        figures.append(Figure(f"{name}-{len(figures) + 1}", title, "Heat maps, layers by heads.", panels))
    return figures


def topic_figures(topics: Sequence[TopicRow], name: str = "probe-topics") -> list[Figure]:
    """Mean cosine inside the tightest and the loosest topics of each model."""
    figures: list[Figure] = []
    for model in dict.fromkeys(topic.model for topic in topics):
        mine = at_first([topic for topic in topics if topic.model == model])
        mine.sort(key=lambda topic: -topic.cosine)
        shown = mine if len(mine) <= 2 * SHOWN else mine[:SHOWN] + mine[-SHOWN:]
        curves: dict[str, list[float | None]] = {
            "inside the topic": [topic.cosine for topic in shown],
            "to the nearest topic": [topic.nearest_cosine for topic in shown],
            "to the farthest topic": [topic.farthest_cosine for topic in shown],
        }
        series = []
        for label, values in curves.items():
            known = [(float(place), value) for place, value in enumerate(values) if value is not None]
            series.append(Series(label, [place for place, _ in known], [value for _, value in known]))
        panel = Points("mean cosine by topic", [topic.name for topic in shown], series, "cosine")
        alt = "Mean cosine inside topics and to other topics."
        figures.append(Figure(f"{name}-{len(figures) + 1}", f"{short(model)}: topics", alt, [panel], columns=1))
    return figures
