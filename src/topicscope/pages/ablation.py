"""Does a model use its topical heads? The rise of its loss without them, beside that without random heads."""

from collections.abc import Sequence

from topicscope.language import AblationRow, Probe, interval_text, short
from topicscope.measure import Interval
from topicscope.pages.panels import Points, Series
from topicscope.pages.parts import Figure, Section, TableData

TOPICAL, RANDOM = "topical heads", "random heads of the same layers"


def ablation_sections(probe: Probe) -> list[Section]:
    if not probe.ablation:
        return []
    return [
        Section(
            "Does the model use its topical heads?",
            "Rise of the loss (nats per predicted token) when these heads output their mean at every position, "
            "so that nothing which they say about the text is left. Encoders predict masked tokens, decoders the next "
            "token. Topic words: the words of all topics; other words: all other tokens. Random heads: sets of as many "
            "other heads of the same layers. 95%: documents are drawn again, and of random heads one set each time, so "
            "the interval also shows how random sets differ. Difference: topical minus random. 'Yes' needs an interval "
            "of the difference above zero.",
            figures=ablation_figures(probe.ablation),
            tables=[ablation_table(probe.ablation)],
        )
    ]


def ablation_figures(rows: Sequence[AblationRow]) -> list[Figure]:
    """How much the loss rises without topical heads, and without as many random heads.

    Args:
        rows: `probe.ablation`.

    Returns:
        One figure per model whose loss was measured; rises in nats per token, with 95% intervals.

    Example:
        >>> from topicscope.pages import ablation_table
        >>> rises = {"topical_rise": 0.1, "topical_interval": (0.08, 0.12)}
        >>> rises |= {"random_rise": 0.01, "random_interval": (0.0, 0.02)}
        >>> rises |= {"difference": 0.09, "interval": (0.06, 0.12), "answer": "yes"}
        >>> rows = [AblationRow(model="bert", heads=2, draws=5, at="topic words", **rises)]
        >>> [(series.name, series.y) for series in ablation_figures(rows)[0].panels[0].series]
        [('topical heads', [0.1]), ('random heads of the same layers', [0.01])]
        >>> ablation_table(rows).rows[0][:3], ablation_table(rows).rows[0][-2]
        (['bert', 'topic words', 'yes'], '0.09 [0.06, 0.12]')
    """
    figures: list[Figure] = []
    measured = [row for row in rows if row.topical_rise is not None]
    for model in dict.fromkeys(row.model for row in measured):
        mine = [row for row in measured if row.model == model]
        names = [f"at {row.at}" for row in mine]
        series = [
            rises(TOPICAL, [(row.topical_rise, row.topical_interval) for row in mine]),
            rises(RANDOM, [(row.random_rise, row.random_interval) for row in mine]),
        ]
        panel = Points("heads output their mean", names, series, "rise of the loss (nats)", [(0.0, "no rise")])
        title = f"{short(model)}: the loss without topical heads"
        alt = "Rise of the loss without topical heads and without random heads, with 95% intervals."
        figures.append(Figure(f"probe-ablation-{len(figures) + 1}", title, alt, [panel], 1))
    return figures


def rises(name: str, found: Sequence[tuple[float | None, Interval | None]]) -> Series:
    points = [
        (float(at), rise, between or (rise, rise)) for at, (rise, between) in enumerate(found) if rise is not None
    ]
    return Series(
        name,
        [at for at, _, _ in points],
        [rise for _, rise, _ in points],
        [low for _, _, (low, _) in points],
        [high for _, _, (_, high) in points],
    )


def ablation_table(rows: Sequence[AblationRow]) -> TableData:
    """How much the loss rises without topical heads, as a table with the answer and its reason.

    Args:
        rows: `probe.ablation`.

    Returns:
        One row per model and kind of position.

    Example:
        See `ablation_figures`.
    """
    cells = [
        [
            short(row.model),
            row.at,
            row.answer,
            str(row.heads),
            str(row.draws),
            f"{row.positions:,} in {row.documents}",
            "-" if row.loss is None else f"{row.loss:.3g}",
            number_text(row.topical_rise, row.topical_interval),
            number_text(row.random_rise, row.random_interval),
            number_text(row.difference, row.interval),
            "; ".join(text for text in (row.why, row.remark) if text),
        ]
        for row in rows
    ]
    columns = ["model", "at", "matter more?", "heads", "random sets", "tokens in documents", "loss"]
    columns += ["rise, topical (95%)", "rise, random (95%)", "difference (95%)", "why"]
    return TableData("Rise of the loss without topical heads, and without random ones", columns, cells, folded=True)


def number_text(value: float | None, between: Interval | None) -> str:
    return "-" if value is None else f"{value:.3g} {interval_text(between)}"
