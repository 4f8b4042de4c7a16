"""A probe: verdicts, effects, heads, topics, co-occurrence; the paper's Tables 1, 2 and 5."""

from collections.abc import Iterator, Sequence

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
from topicscope.pages.panels import Figure, Heat, Lines, Points, Section, Series, TableData, banded, curve_of
from topicscope.pages.probe_layers import (
    ablation_section,
    against_chance,
    at_first,
    by_model,
    document_section,
    label_section,
    number,
    setting_name,
    setting_of,
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


def measure_name(measure: str, what: str = "") -> str:
    """Of attention it says of which heads. `what`: of the measure, such as ' ratio'."""
    return f"attention{what}, {HEADS[measure]}" if measure in HEADS else f"{measure}{what}".replace("_", " ")


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
    return TableData(
        "Every effect, and the same by chance",
        [
            *("model", "weights", "threshold", "topics per word", "measure", "same", "different", "difference", "95%"),
            *("shuffled topics", "p", "matched frequencies"),
        ],
        [
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
        ],
        folded=True,
    )


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
    kinds = ("same topic", "co-occurring (95%)")
    return TableData(
        "Pairs of one topic against the pairs that co-occur most",
        [
            *("model", "threshold", "pairs", "of them of one topic"),
            *(f"{measure_name(name)}: {kind}" for name in measures for kind in kinds),
        ],
        [
            [
                short(row.model),
                number(row.threshold),
                str(row.pairs),
                "-" if row.of_one_topic is None else str(row.of_one_topic),
                *(cell for name in measures for cell in both(row, name)),
            ]
            for row in rows
        ],
    )


def commonest_table(rows: Sequence[CooccurrenceRow]) -> TableData:
    """The pairs that the control begins with; those of all thresholds begin alike."""
    longest = {model: max((row.commonest for row in mine), key=len) for _, model, mine in by_model(rows)}
    return TableData(
        "The pairs that co-occur most",
        ["model", "place", "word", "word"],
        [[short(model), str(at), *pair] for model, pairs in longest.items() for at, pair in enumerate(pairs, start=1)],
    )


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
    return TableData(
        "Does the model encode topics, beyond each control?",
        ["model", "where", "encodes topics?", *(f"beyond {name}" for name in NAMES.values())],
        [
            [short(verdict.model), place, answer.answer, *(answer.controls[control] for control in CONTROLS)]
            for verdict in verdicts
            for place, answer in verdict.answers.items()
            if answer.checks
        ],
    )


def check_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    return TableData(
        "What each control saw",
        ["model", "where", "control", "threshold", "answer", "words", "pairs", "number (95%)", "why"],
        [
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
        ],
        folded=True,
    )


def forest_figures(rows: Sequence[ProbeRow]) -> list[Figure]:
    """Differences between same-topic and different-topic pairs, beside shuffled topics and fresh weights."""
    return [
        Figure(
            f"probe-forest-{place}",
            f"{short(model)}: is it more than chance?",
            "Same-topic mean minus different-topic mean, with 95% intervals, beside the middle 95% of the same "
            "difference with topics shuffled among words. Zero: no topics.",
            [forest(mine, name, title) for name, title in MEASURES.items() if any(row.effects[name] for row in mine)],
            len(MEASURES),
            {SHUFFLED: "#9aa0a6"},
        )
        for place, model, mine in by_model(rows)
    ]


def forest(rows: Sequence[ProbeRow], measure: str, title: str) -> Points:
    settings = list(dict.fromkeys(setting_of(row) for row in rows))
    effects = [(row.variant, float(settings.index(setting_of(row))), row.effects[measure]) for row in rows]
    return Points(
        title,
        ["given topics" if t is None else f"{t:g}" + ("" if w == "one" else f", {w}") for t, w in settings],
        against_chance(effects, FOREST_NAMES, SHUFFLED),
        "difference",
        [(0.0, "no difference")],
    )


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
    return Figure(
        "probe-ratios",
        "Same topic over different topic",
        "Ratios of cosine, dot product and attention against the threshold.",
        [
            Lines(
                measure_name(measure),
                [curve for curve in ratio_curves(shown, measure) if curve.x],
                "threshold",
                "same / different",
                log_x=True,
                levels=[(1.0, "no effect")],
            )
            for measure in MAIN_MEASURES
        ],
        columns=3,
    )


def ratio_curves(rows: Sequence[ProbeRow], measure: str) -> Iterator[Series]:
    for model, variant in dict.fromkeys((row.model, row.variant) for row in rows):
        points = [
            (row.threshold or 0.0, effect.ratio, effect.ratio_interval)
            for row in rows
            if (row.model, row.variant) == (model, variant) and (effect := row.effects[measure]) is not None
        ]
        if variant == "trained":
            yield banded(short(model), points)
        elif measure == "attention":  # of embeddings the different-topic mean may be zero: no ratio worth a curve
            yield banded(f"{short(model)}, random weights", points, "random weights, all models")


def head_figures(heads: Sequence[HeadRow]) -> list[Figure]:
    """Which heads attend more to words of the same topic: one map per model, layers by heads."""
    return [
        Figure(
            f"probe-heads-{place}",
            f"{short(model)}: more attention to the same topic, head by head, {setting_name(mine)}",
            "Difference of attention inside and between topics (.01 is even attention), layers by heads.",
            [head_map(model, part, at_first(mine)) for part in dict.fromkeys(head.part for head in at_first(mine))],
        )
        for place, model, mine in by_model(heads)
    ]


def head_map(model: str, part: str, heads: Sequence[HeadRow]) -> Heat:
    here = {(head.layer, head.head): head.effect.difference for head in heads if head.part == part}
    z = np.full(np.max(list(here), axis=0) + 1, np.nan)
    for place, difference in here.items():
        z[place] = difference
    return Heat(f"{part} attention", z.tolist(), "head", "layer", shown_in=f"{model} {part}")


def topic_figures(topics: Sequence[TopicRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-topics-{place}",
            f"{short(model)}: topics",
            "Mean cosine inside topics and to other topics.",
            [topic_panel(sorted(at_first(mine), key=lambda topic: -topic.cosine))],
            columns=1,
        )
        for place, model, mine in by_model(topics)
    ]


def topic_panel(topics: list[TopicRow]) -> Points:
    shown = topics if len(topics) <= 2 * SHOWN else topics[:SHOWN] + topics[-SHOWN:]
    curves: dict[str, list[float | None]] = {
        "inside the topic": [topic.cosine for topic in shown],
        "to the nearest topic": [topic.nearest_cosine for topic in shown],
        "to the farthest topic": [topic.farthest_cosine for topic in shown],
    }
    series = [curve_of(label, enumerate(values)) for label, values in curves.items()]
    return Points("mean cosine by topic", [topic.name for topic in shown], series, "cosine")
