"""The tables of a probe: ratios as in the paper's Tables 1, 2 and 5, differences, heads, topics, co-occurrence."""

from collections.abc import Sequence
from typing import TypeVar

from topicscope.language import (
    CooccurrenceRow,
    HeadRow,
    PairContrast,
    ProbeRow,
    TopicRow,
    interval_text,
    ratio_text,
    short,
    standing_heads,
)
from topicscope.pages.parts import TableData
from topicscope.pages.states import setting_name

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


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def measure_name(measure: str, what: str = "") -> str:
    """Of attention it says of which heads. `what`: of the measure, such as ' ratio'."""
    plain = f"{measure}{what}".replace("_", " ")
    return f"attention{what}, {HEADS[measure]}" if measure in HEADS else plain


def at_first(rows: Sequence[Row]) -> list[Row]:
    """The rows at the first threshold and kind of topics."""
    return [row for row in rows if (row.threshold, row.topics_per_word) == (rows[0].threshold, rows[0].topics_per_word)]


def family(model: str, kind: str) -> str:
    """The ratios that the paper prints for this kind of model (Tables 1 and 5).

    Args:
        model: Name or folder of the model.
        kind: 'one' or 'many' topics per word: Table 1 or Table 5.

    Returns:
        Cosine, dot product and attention at each of three thresholds; '-' where the paper has none.

    Example:
        >>> family("google-bert/bert-base-uncased", "one"), family("gpt2", "one")
        ('1.21 1.19 1.32 / 1.13 1.15 1.28 / 1.11 1.13 1.22', '-')
    """
    known = [name for name in ("roberta", "albert", "electra", "bart", "bert") if name in short(model.lower())]
    return " / ".join(" ".join(f"{x:g}" for x in row) for row in PAPER[kind][known[0]]) if known else "-"


def ratio_table(rows: Sequence[ProbeRow]) -> TableData:
    """The paper's Table 1 for a probe: same-topic mean over different-topic mean, with 95% intervals.

    Args:
        rows: Effects of a probe, `probe.rows`.

    Returns:
        One row per model, weights and threshold, one column per measure.

    Example:
        >>> from topicscope.pages import forest_figures, ratio_figure
        >>> from topicscope.measure import Effect
        >>> means = {"same": 0.3, "different": 0.1, "difference": 0.2, "interval": (0.1, 0.3)}
        >>> cosine = Effect(**means, ratio=3.0, ratio_interval=(2.0, 4.5))
        >>> about = {"model": "bert", "variant": "trained", "threshold": 0.001, "topics_per_word": "one"}
        >>> about |= {"words": 50, "topics": 5, "embedding": "matrix", "window": 512}
        >>> rows = [ProbeRow(**about, embeddings={"cosine": cosine, "dot": None}, attention=None, parts={})]
        >>> ratio_table(rows).rows[0][5:], difference_table(rows).rows[0][4:9]
        (['3 [2, 4.5]', '-', '-'], ['cosine', '0.3', '0.1', '0.2', '[0.1, 0.3]'])
        >>> ratio_figure(rows).panels[0].series[0].y, forest_figures(rows)[0].panels[0].series[0].y
        ([3.0], [0.2])
    """
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
    """Every effect of a probe: same-topic mean minus different-topic mean, its 95% interval and its controls.

    Args:
        rows: Effects of a probe, `probe.rows`.

    Returns:
        One row per model, weights, threshold and measure.

    Example:
        See `ratio_table`.
    """
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
            "-"
            if effect.matched is None
            else f"{number(effect.matched.difference)} {interval_text(effect.matched.interval)}",
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

    Args:
        heads: Heads of a probe, `probe.heads`.
        count: At most so many heads per model.

    Returns:
        One row per head.

    Example:
        See `head_figures`.
    """
    models = dict.fromkeys(head.model for head in heads)
    ranked = [pair for name in models for pair in standing_heads([h for h in heads if h.model == name])[:count]]
    return TableData(
        f"Heads with the strongest evidence (smallest p first), {setting_name([head for head, _ in ranked])}",
        ["model", "part", "layer", "head", "difference (95%)", "same", "different", "pairs", "p, corrected", "remark"],
        [
            [
                short(head.model),
                head.part,
                str(head.layer),
                str(head.head),
                f"{number(head.effect.difference)} {interval_text(head.effect.interval)}",
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
    """All topics at the first threshold."""
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
    """The paper's Table 2 for a probe: pairs of one topic against the pairs that stand together most often.

    Args:
        rows: `probe.cooccurrence`.

    Returns:
        One row per model and threshold; of each measure the two means, the second with its 95% interval.

    Example:
        >>> cosine = PairContrast(same_topic=0.218, cooccurring=0.36, interval=(0.33, 0.39), pairs=40)
        >>> about = {"model": "bert", "variant": "trained", "threshold": 0.001, "topics_per_word": "one"}
        >>> about |= {"words": 50, "topics": 5, "embedding": "matrix", "window": 512, "pairs": 40}
        >>> table = cooccurrence_table([CooccurrenceRow(**about, cosine=cosine, attention=None)])
        >>> dict(zip(table.columns, table.rows[0]))["cosine: co-occurring (95%)"]  # more than one topic has: 0.218
        '0.36 [0.33, 0.39]'
    """
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
    for model in dict.fromkeys(row.model for row in rows):
        longest = max((row.commonest for row in rows if row.model == model), key=len)
        cells += [[short(model), str(place), *pair] for place, pair in enumerate(longest, start=1)]
    return TableData("The pairs that co-occur most", ["model", "place", "word", "word"], cells)


def both(row: CooccurrenceRow, measure: str) -> tuple[str, str]:
    """The mean of pairs of one topic, and that of pairs that stand together."""
    pair: PairContrast | None = getattr(row, measure)
    if pair is None:
        return "-", "-"
    return number(pair.same_topic), f"{number(pair.cooccurring)} {interval_text(pair.interval)}"
