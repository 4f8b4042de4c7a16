"""The verdicts of a probe: a table of controls, and every difference with its interval over the band of shuffles."""

from collections.abc import Sequence

from topicscope.language import CONTROLS, Check, CheckRow, ModelVerdict, ProbeRow, interval_text, short
from topicscope.measure import Effect, Interval
from topicscope.pages.panels import Points, Series
from topicscope.pages.parts import Figure, TableData

NAMES = {
    "chance": "chance",
    "frequency": "frequency",
    "cooccurrence": "co-occurrence",
    "fresh_weights": "fresh weights",
}
SHUFFLED = "shuffled topics (95%)"
WEIGHTS = {"trained": "trained", "random": "fresh weights"}
MEASURES = {
    "cosine": "cosine of word embeddings",
    "attention": "attention, mean over heads",
    "topical": "topical heads",
}


def verdict_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    """The verdicts of a probe: does each model encode topics, and does that survive each control?

    Args:
        verdicts: `probe.verdicts`.

    Returns:
        One row per model and place (embeddings, hidden states, attention), one column per control.

    Example:
        >>> from topicscope.pages import check_table
        >>> from topicscope.language import Answer
        >>> seen = Check(answer="no", why="pairs that co-occur show more", number=-0.142, interval=(-0.17, -0.11))
        >>> about = {"control": "cooccurrence", "threshold": 0.001, "topics_per_word": "one"}
        >>> row = CheckRow(**about, words=50, pairs=40.0, check=seen)
        >>> controls = {"chance": "yes", "frequency": "yes", "cooccurrence": "no", "fresh_weights": "yes"}
        >>> embeddings = Answer(answer="no", controls=controls, sentence="embeddings: no.", checks=[row])
        >>> off = Answer(answer="off", controls={}, sentence="not measured.")
        >>> verdicts = [ModelVerdict(model="bert", embeddings=embeddings, states=off, attention=off)]
        >>> verdict_table(verdicts).rows  # one 'no' is enough for a 'no'
        [['bert', 'embeddings', 'no', 'yes', 'yes', 'no', 'yes']]
        >>> check_table(verdicts).rows[0][2:8]
        ['co-occurrence', '0.001', 'no', '50', '40', '-0.142 [-0.17, -0.11]']
    """
    cells = [
        [short(verdict.model), place, answer.answer, *(answer.controls[control] for control in CONTROLS)]
        for verdict in verdicts
        for place, answer in verdict.answers.items()
        if answer.checks
    ]
    columns = ["model", "where", "encodes topics?", *(f"beyond {name}" for name in NAMES.values())]
    return TableData("Does the model encode topics, beyond each control?", columns, cells)


def check_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    """What each control looked at: its number, how many words and pairs it had, and why it answers so.

    Args:
        verdicts: `probe.verdicts`.

    Returns:
        One row per model, place, control and threshold; controls that are off have none.

    Example:
        See `verdict_table`.
    """
    cells = [
        [
            short(verdict.model),
            place,
            NAMES[row.control],
            "-" if row.threshold is None else f"{row.threshold:g}",
            row.check.answer,
            *counts(row),
            number_text(row.check),
            row.check.why,
        ]
        for verdict in verdicts
        for place, answer in verdict.answers.items()
        for row in answer.checks
        if row.check.answer != "off"
    ]
    columns = ["model", "where", "control", "threshold", "answer", "words", "pairs", "number (95%)", "why"]
    return TableData("What each control saw", columns, cells, folded=True)


def counts(row: CheckRow) -> list[str]:
    return [str(row.words), "-" if row.pairs is None else f"{row.pairs:,.0f}"]


def number_text(check: Check) -> str:
    return "-" if check.number is None else f"{check.number:.3g} {interval_text(check.interval)}"


def forest_figures(rows: Sequence[ProbeRow]) -> list[Figure]:
    """Differences between same-topic and different-topic pairs, beside those of shuffled topics and of fresh weights.

    Args:
        rows: Effects of a probe, `probe.rows`.

    Returns:
        One figure per model, one panel per measure, one category per threshold; with 95% intervals.

    Example:
        See `ratio_table`.
    """
    figures: list[Figure] = []
    for model in dict.fromkeys(row.model for row in rows):
        mine = [row for row in rows if row.model == model]
        panels = [forest(mine, name, title) for name, title in MEASURES.items() if any(getattr(r, name) for r in mine)]
        alt = (
            "Same-topic mean minus different-topic mean, with 95% intervals, beside the middle 95% of the same "
            "difference with topics shuffled among words. Zero: no topics."
        )
        title = f"{short(model)}: is it more than chance?"
        colours = {SHUFFLED: "#9aa0a6"}
        figures.append(Figure(f"probe-forest-{len(figures) + 1}", title, alt, panels, len(panels), colours))
    return figures


def forest(rows: Sequence[ProbeRow], measure: str, title: str) -> Points:
    settings = list(dict.fromkeys((row.threshold, row.topics_per_word) for row in rows))
    names = ["given topics" if t is None else f"{t:g}" + ("" if w == "one" else f", {w}") for t, w in settings]
    found: dict[str, list[tuple[int, float, Interval]]] = {}
    for row in rows:
        effect: Effect | None = getattr(row, measure)
        if effect is None:
            continue
        at = settings.index((row.threshold, row.topics_per_word))
        if row.variant == "trained" and effect.null_interval is not None:
            low, high = effect.null_interval
            found.setdefault(SHUFFLED, []).append((at, (low + high) / 2, (low, high)))
        between = effect.interval or (effect.difference, effect.difference)
        found.setdefault(WEIGHTS[row.variant], []).append((at, effect.difference, between))
    series = [
        Series(
            name,
            [float(at) for at, _, _ in points],
            [middle for _, middle, _ in points],
            [low for _, _, (low, _) in points],
            [high for _, _, (_, high) in points],
        )
        for name, points in sorted(found.items(), key=lambda pair: [*WEIGHTS.values(), SHUFFLED].index(pair[0]))
    ]
    return Points(title, names, series, "difference", [(0.0, "no difference")])
