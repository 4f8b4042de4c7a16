"""A probe: verdicts, effects, heads, topics, co-occurrence; the paper's Tables 1, 2 and 5."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from topicscope.language import (
    CONTROLS,
    CooccurrenceRow,
    HeadRow,
    Measurement,
    ModelVerdict,
    PairContrast,
    Probe,
    ProbeRow,
    TopicRow,
    interval_text,
    ratio_text,
    short,
    standing_heads,
)
from topicscope.measure import Effect
from topicscope.pages.panels import Figure, Heat, Lines, Points, Section, Series, TableData, banded
from topicscope.pages.probe_layers import (
    ablation_section,
    by_model,
    document_section,
    label_section,
    number,
    setting_name,
    state_section,
    with_interval,
)

MAIN_MEASURES = ("cosine", "dot", "attention")
# the verdict on attention is on one of the two: tables have both
HEADS = {"attention": "mean over all heads", "topical": "topical heads"}

PAPER = {
    "one": {
        "bert": ((1.21, 1.19, 1.32), (1.13, 1.15, 1.28), (1.11, 1.13, 1.22)),
        "albert": ((5.64, 6.29, 1.33), (4.18, 3.74, 1.28), (3.24, 2.93, 1.22)),
        "bart": ((2.80, 2.67, 1.35), (1.95, 1.92, 1.31), (1.63, 1.62, 1.23)),
        "electra": ((5.98, 5.37, 2.14), (7.70, 7.35, 2.09), (7.46, 8.08, 1.95)),
        "roberta": ((6.44, 6.81, 1.40), (5.73, 6.31, 1.31), (5.24, 5.30, 1.22)),
    },
    "many": {
        "bert": ((1.14, 1.04, 1.23), (0.97, 1.05, 1.17), (0.99, 0.93, 1.13)),
        "albert": ((4.15, 3.06, 1.23), (3.09, 3.04, 1.17), (1.54, 1.44, 1.11)),
        "bart": ((2.51, 1.76, 1.27), (1.63, 1.12, 1.20), (1.06, 0.85, 1.11)),
        "electra": ((5.28, 3.99, 1.70), (5.56, 5.57, 1.58), (6.39, 5.61, 1.48)),
        "roberta": ((4.39, 5.01, 1.19), (5.20, 4.25, 1.15), (4.71, 4.15, 1.12)),
    },
}  # ratios same / different of cosine, dot and attention at thresholds .0005, .001, .002: Tables 1 and 5

Row = TypeVar("Row", HeadRow, TopicRow, ProbeRow)


def measure_name(measure: str, what: str = "") -> str:
    """Of attention it says of which heads. `what`: of the measure, such as ' ratio'."""
    plain = f"{measure}{what}".replace("_", " ")
    return f"attention{what}, {HEADS[measure]}" if measure in HEADS else plain


def at_first(rows: Sequence[Row]) -> list[Row]:
    """The rows at the first threshold and kind of topics."""
    return [row for row in rows if (row.threshold, row.topics_per_word) == (rows[0].threshold, rows[0].topics_per_word)]


def family(model: str, kind: str) -> str:
    """The ratios that the paper prints for this kind of model (Tables 1 and 5)."""
    known = [name for name in ("roberta", "albert", "electra", "bart", "bert") if name in short(model.lower())]
    return " / ".join(" ".join(f"{x:g}" for x in row) for row in PAPER[kind][known[0]]) if known else "-"


def ratio_table(rows: Sequence[ProbeRow]) -> TableData:
    measures = [*MAIN_MEASURES, *(["topical"] if any(row.topical for row in rows) else [])]
    return TableData(
        "Same topic over different topic, with 95% intervals",
        [
            "model",
            "weights",
            "threshold",
            "topics per word",
            "words",
            *(measure_name(name, " ratio") for name in measures),
        ],
        [[*setting(row), str(row.words), *(ratio_text(row.effects[name]) for name in measures)] for row in rows],
    )


def setting(row: ProbeRow) -> list[str]:
    return [short(row.model), row.variant, number(row.threshold), row.topics_per_word]


def difference_table(rows: Sequence[ProbeRow]) -> TableData:
    """Every effect of a probe: same-topic mean minus different-topic mean, its 95% interval and its controls."""
    cells = [
        [
            *setting(row),
            measure_name(measure),
            number(effect.same, 4),
            number(effect.different, 4),
            number(effect.difference),
            interval_text(effect.interval),
            interval_text(effect.null_interval),
            number(effect.p_value),
            "-" if effect.matched is None else with_interval(effect.matched.difference, effect.matched.interval),
        ]
        for row in rows
        for measure, effect in row.effects.items()
        if effect is not None
    ]
    columns = ["model", "weights", "threshold", "topics per word", "measure", "same", "different", "difference", "95%"]
    controls = ["shuffled topics", "p", "matched frequencies"]
    return TableData("Every effect, and the same by chance", columns + controls, cells, folded=True)


def head_table(heads: Sequence[HeadRow], count: int = 10) -> TableData:
    """The attention heads with the strongest evidence of topics: smallest p first, then largest difference.

    Numbers are those at the first threshold. Heads that stand out at every threshold are marked as topical; heads that
    were not judged come last.
    """
    ranked = [pair for _, _, mine in by_model(heads) for pair in standing_heads(mine)[:count]]
    return TableData(
        f"Heads with the strongest evidence (smallest p first), {setting_name([head for head, _ in ranked])}",
        ["model", "part", "layer", "head", "difference (95%)", "same", "different", "pairs", "p, corrected", "remark"],
        [
            [
                short(head.model),
                head.part,
                str(head.layer),
                str(head.head),
                with_interval(head.effect.difference, head.effect.interval),
                number(head.effect.same, 4),
                number(head.effect.different, 4),
                "-" if head.effect.pairs is None else f"{head.effect.pairs:,.0f}",
                number(head.corrected_p),
                head.remark or ("topical" if topical else "-"),
            ]
            for head, topical in ranked
        ],
    )


def topic_table(topics: Sequence[TopicRow]) -> TableData:
    return TableData(
        f"Topics: inside, nearest, farthest (mean cosine), {setting_name(topics)}",
        ["model", "topic", "words", "inside", "nearest", "farthest"],
        [
            [
                short(topic.model),
                topic.name,
                str(topic.words),
                number(topic.cosine),
                f"{topic.nearest} ({number(topic.nearest_cosine)})",
                f"{topic.farthest} ({number(topic.farthest_cosine)})",
            ]
            for topic in at_first(topics)
        ],
    )


def cooccurrence_table(rows: Sequence[CooccurrenceRow]) -> TableData:
    """The paper's Table 2 for a probe: pairs of one topic against the pairs that stand together most often."""
    measures = ["cosine", "attention", *(["topical"] if any(row.topical for row in rows) else [])]
    columns = [f"{measure_name(name)}: {which}" for name in measures for which in ("same topic", "co-occurring (95%)")]
    cells = [
        [
            short(row.model),
            number(row.threshold),
            str(row.pairs),
            "-" if row.of_one_topic is None else str(row.of_one_topic),
            *(cell for name in measures for cell in both(row, name)),
        ]
        for row in rows
    ]
    title = "Pairs of one topic against the pairs that co-occur most"
    return TableData(title, ["model", "threshold", "pairs", "of them of one topic", *columns], cells)


def commonest_table(rows: Sequence[CooccurrenceRow]) -> TableData:
    """The pairs that the control begins with; those of all thresholds begin alike."""
    cells = []
    for _, model, mine in by_model(rows):
        longest = max((row.commonest for row in mine), key=len)
        cells += [[short(model), str(place), *pair] for place, pair in enumerate(longest, start=1)]
    return TableData("The pairs that co-occur most", ["model", "place", "word", "word"], cells)


def both(row: CooccurrenceRow, measure: str) -> tuple[str, str]:
    pair: PairContrast | None = getattr(row, measure)
    if pair is None:
        return "-", "-"
    return number(pair.same_topic), f"{number(pair.cooccurring)} {interval_text(pair.interval)}"


NAMES = {
    "chance": "chance",
    "frequency": "frequency",
    "cooccurrence": "co-occurrence",
    "fresh_weights": "fresh weights",
}
SHUFFLED = "shuffled topics (95%)"
FOREST_NAMES = {"trained": "trained", "random": "fresh weights"}
MEASURES = {
    "cosine": "cosine of word embeddings",
    "attention": "attention, mean over heads",
    "topical": "topical heads",
}


def verdict_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    cells = [
        [short(verdict.model), place, answer.answer, *(answer.controls[control] for control in CONTROLS)]
        for verdict in verdicts
        for place, answer in verdict.answers.items()
        if answer.checks
    ]
    columns = ["model", "where", "encodes topics?", *(f"beyond {name}" for name in NAMES.values())]
    return TableData("Does the model encode topics, beyond each control?", columns, cells)


def check_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    cells = [
        [
            short(verdict.model),
            place,
            NAMES[row.control],
            number(row.threshold, 6),
            row.check.answer,
            str(row.words),
            "-" if row.pairs is None else f"{row.pairs:,.0f}",
            with_interval(row.check.number, row.check.interval),
            row.check.why,
        ]
        for verdict in verdicts
        for place, answer in verdict.answers.items()
        for row in answer.checks
        if row.check.answer != "off"
    ]
    columns = ["model", "where", "control", "threshold", "answer", "words", "pairs", "number (95%)", "why"]
    return TableData("What each control saw", columns, cells, folded=True)


def forest_figures(rows: Sequence[ProbeRow]) -> list[Figure]:
    """Differences between same-topic and different-topic pairs, beside shuffled topics and fresh weights."""
    figures = []
    alt = (
        "Same-topic mean minus different-topic mean, with 95% intervals, beside the middle 95% of the same "
        "difference with topics shuffled among words. Zero: no topics."
    )
    for place, model, mine in by_model(rows):
        panels = [forest(mine, name, title) for name, title in MEASURES.items() if any(getattr(r, name) for r in mine)]
        title = f"{short(model)}: is it more than chance?"
        figures.append(Figure(f"probe-forest-{place}", title, alt, panels, len(panels), {SHUFFLED: "#9aa0a6"}))
    return figures


def forest(rows: Sequence[ProbeRow], measure: str, title: str) -> Points:
    settings = list(dict.fromkeys((row.threshold, row.topics_per_word) for row in rows))
    names = ["given topics" if t is None else f"{t:g}" + ("" if w == "one" else f", {w}") for t, w in settings]
    effects: list[tuple[str, float, Effect]] = [
        (row.variant, float(settings.index((row.threshold, row.topics_per_word))), effect)
        for row in rows
        if (effect := getattr(row, measure)) is not None
    ]
    series = [
        banded(name, [(x, e.difference, e.interval) for of, x, e in effects if of == variant], markers=False)
        for variant, name in FOREST_NAMES.items()
    ]
    null = [(x, e.null_interval) for of, x, e in effects if of == "trained" and e.null_interval is not None]
    series.append(banded(SHUFFLED, [(x, (low + high) / 2, (low, high)) for x, (low, high) in null], markers=False))
    return Points(title, names, [curve for curve in series if curve.x], "difference", [(0.0, "no difference")])


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
        state_section(probe),
        ablation_section(probe),
        label_section(probe),
        document_section(probe),
    ]
    measured = (
        *(probe.verdicts, True, True, probe.heads, probe.topics, probe.cooccurrence),
        *(probe.states, probe.ablation, probe.labels, probe.documents),
    )
    return [section for section, rows in zip(sections, measured, strict=True) if rows]


def smallest_p(settings: Measurement) -> str:
    if not settings.shuffles:
        return ""
    smallest = [f"{1 / (1 + number):.2g}" for number in (settings.shuffles, settings.attention_shuffles)]
    return (
        f" With {settings.shuffles} shuffles p cannot be below {smallest[0]}; of attention and hidden states, with "
        f"{settings.attention_shuffles}, not below {smallest[1]} (more shuffles: --shuffles)."
    )


def ratio_figure(rows: Sequence[ProbeRow]) -> Figure:
    """Ratios of cosine, dot product and attention against the threshold; a ratio that is undefined has no point."""
    shown = [row for row in rows if row.threshold is not None and row.topics_per_word == rows[0].topics_per_word]
    models = dict.fromkeys((row.model, row.variant) for row in shown)
    panels = []
    for measure in MAIN_MEASURES:
        # Embeddings of random weights have no ratio worth a curve: their different-topic mean may be zero.
        wanted = [key for key in models if key[1] == "trained" or measure == "attention"]
        curves = (ratio_curve([row for row in shown if (row.model, row.variant) == key], measure) for key in wanted)
        series = [curve for curve in curves if curve.x]
        levels = [(1.0, "no effect")]
        panels.append(Lines(measure_name(measure), series, "threshold", "same / different", log_x=True, levels=levels))
    alt = "Ratios of cosine, dot product and attention against the threshold."
    return Figure("probe-ratios", "Same topic over different topic", alt, panels, columns=3)


def ratio_curve(rows: Sequence[ProbeRow], measure: str) -> Series:
    effects = [(row.threshold or 0.0, effect) for row in rows if (effect := row.effects[measure]) is not None]
    points = [(threshold, effect.ratio, effect.ratio_interval) for threshold, effect in effects]
    if rows[0].variant == "trained":
        return banded(short(rows[0].model), points)
    return banded(f"{short(rows[0].model)}, random weights", points, "random weights, all models")


def head_figures(heads: Sequence[HeadRow]) -> list[Figure]:
    """Which heads attend more to words of the same topic: one map per model, layers by heads."""
    figures = []
    for place, model, all_rows in by_model(heads):
        mine = at_first(all_rows)
        panels = []
        for part in dict.fromkeys(head.part for head in mine):
            here = [head for head in mine if head.part == part]
            z = np.full((max(head.layer for head in here) + 1, max(head.head for head in here) + 1), np.nan)
            for head in here:
                z[head.layer, head.head] = head.effect.difference
            panels.append(Heat(f"{part} attention", z.tolist(), "head", "layer", shown_in=f"{model} {part}"))
        title = f"{short(model)}: more attention to the same topic, head by head, {setting_name(mine)}"
        alt = "Difference of attention inside and between topics (.01 is even attention), layers by heads."
        figures.append(Figure(f"probe-heads-{place}", title, alt, panels))
    return figures


def topic_figures(topics: Sequence[TopicRow]) -> list[Figure]:
    figures = []
    for place, model, all_rows in by_model(topics):
        mine = sorted(at_first(all_rows), key=lambda topic: -topic.cosine)
        shown = mine if len(mine) <= 2 * SHOWN else mine[:SHOWN] + mine[-SHOWN:]
        curves: dict[str, list[float | None]] = {
            "inside the topic": [topic.cosine for topic in shown],
            "to the nearest topic": [topic.nearest_cosine for topic in shown],
            "to the farthest topic": [topic.farthest_cosine for topic in shown],
        }
        series = []
        for label, values in curves.items():
            known = {float(x): value for x, value in enumerate(values) if value is not None}
            series.append(Series(label, list(known), list(known.values())))
        panel = Points("mean cosine by topic", [topic.name for topic in shown], series, "cosine")
        alt = "Mean cosine inside topics and to other topics."
        figures.append(Figure(f"probe-topics-{place}", f"{short(model)}: topics", alt, [panel], columns=1))
    return figures
