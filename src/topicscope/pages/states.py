"""Hidden states of a probe, layer by layer: where words of one topic are alike, and where a document's topics are."""

from collections.abc import Sequence

from topicscope.language import TREATMENTS, HeadRow, Probe, StateRow, TopicRow, interval_text, short
from topicscope.measure import Effect
from topicscope.pages.panels import Lines, Series, banded
from topicscope.pages.parts import Figure, Section, TableData

TITLES = {
    "raw": "cosine of states",
    "centred": "minus the mean state",
    "all_but_top": "minus the three main directions too",
}
FRESH, SHUFFLED = "random weights", "shuffled topics"


def state_sections(probe: Probe) -> list[Section]:
    if not probe.states:
        return []
    return [
        Section(
            "In which layers are topics?",
            "Layer 0 is the output of the embedding layer. Difference: mean cosine of the hidden states of two words "
            "of one topic minus that of two words of different topics. The two words stand in different documents, so "
            "a shared context does not make them alike. 95%: bootstrap over topics; the band of shuffled topics is "
            "the middle 95% when topics are given to words at random. R2: how much of a document's topic mixture a "
            "linear (ridge) map of its mean state at words predicts in documents that it was not fitted to, of all "
            "variance between documents. Bag of words: the same from log word counts. Half of the words: the mixture "
            "that the topic model infers from every second word, as it is. Shuffled: mixtures given to other "
            "documents. Random weights: the same architecture, untrained.",
            figures=state_figures(probe.states),
            tables=[state_table(probe.states)],
        )
    ]


def setting_name(rows: Sequence[StateRow | HeadRow | TopicRow]) -> str:
    """Of which words the rows are, by the first of them."""
    if not rows or rows[0].threshold is None:
        return "given topics"
    many = ", many topics per word" if rows[0].topics_per_word == "many" else ""
    return f"threshold {rows[0].threshold:g}{many}"


def shown_states(rows: Sequence[StateRow]) -> list[StateRow]:
    """Of each model the rows at the threshold with most words."""
    chosen = []
    for model in dict.fromkeys(row.model for row in rows):
        mine = [row for row in rows if row.model == model]
        most = max(mine, key=lambda row: row.words)
        chosen += [
            row for row in mine if (row.threshold, row.topics_per_word) == (most.threshold, most.topics_per_word)
        ]
    return chosen


def state_figures(rows: Sequence[StateRow]) -> list[Figure]:
    """In which layers topics are: differences of cosines of hidden states, and R^2 of topic mixtures.

    Args:
        rows: `probe.states`.

    Returns:
        One figure per part of a model, with layers to the right; at the threshold with most words.

    Example:
        >>> from topicscope.pages import state_table
        >>> about = {"model": "bert", "variant": "trained", "part": "encoder"}
        >>> about |= {"threshold": 0.001, "topics_per_word": "one"}
        >>> cosine = Effect(same=0.3, different=0.1, difference=0.2, ratio=3.0, interval=(0.1, 0.3), p_value=0.01)
        >>> effects = {"raw": cosine, "centred": None, "all_but_top": None}
        >>> rows = [StateRow(**about, layer=1, words=50, effects=effects, cooccurring={}, mixture=None)]
        >>> [(panel.title, panel.series[0].x, panel.series[0].y) for panel in state_figures(rows)[0].panels]
        [('cosine of states', [1.0], [0.2])]
        >>> state_table(rows).rows[0][:6]
        ['bert', 'encoder 1', '50', '0.2 [0.1, 0.3]', '-', '0.01']
    """
    figures: list[Figure] = []
    rows = shown_states(rows)
    for model, part in dict.fromkeys((row.model, row.part) for row in rows):
        mine = [row for row in rows if (row.model, row.part) == (model, part)]
        drawn = [*(difference_panel(mine, name) for name in TREATMENTS), mixture_panel(mine), position_panel(mine)]
        panels = [panel for panel in drawn if panel.series]
        if not panels:
            continue
        title = f"{short(model)}, {part}: hidden states by layer, {setting_name(mine)}"
        name = f"probe-states-{len(figures) + 1}"
        alt = "Curves over layers: same-topic minus different-topic cosine, and R2 of the topic mixture."
        figures.append(Figure(name, title, alt, panels, columns=3))
    return figures


def difference_panel(rows: Sequence[StateRow], treatment: str) -> Lines:
    effects = [(row.variant, float(row.layer), effect) for row in rows if (effect := row.effects[treatment])]
    series = [
        banded(name, [(layer, e.difference, e.interval) for kind, layer, e in effects if kind == variant])
        for variant, name in (("trained", "trained"), ("random", FRESH))
    ]
    null = [(layer, e.null_interval) for kind, layer, e in effects if kind == "trained" and e.null_interval]
    series.append(banded(SHUFFLED, [(layer, (low + high) / 2, (low, high)) for layer, (low, high) in null]))
    return Lines(TITLES[treatment], [one for one in series if one.x], "layer", "same minus different topic")


def mixture_panel(rows: Sequence[StateRow]) -> Lines:
    scores = [(row.variant, float(row.layer), row.mixture) for row in rows if row.mixture is not None]
    series = [
        banded(
            name,
            [
                (layer, score.mixture_r2, score.mixture_interval)
                for kind, layer, score in scores
                if kind == variant and score.mixture_r2 is not None
            ],
        )
        for variant, name in (("trained", "trained"), ("random", FRESH))
    ]
    chance = [
        (layer, score.shuffled_r2, None)
        for kind, layer, score in scores
        if kind == "trained" and score.shuffled_r2 is not None
    ]
    series.append(banded("shuffled mixtures", chance))
    levels = []
    for score in (scores[0][2],) if scores else ():
        named = ((score.bag_of_words_r2, "bag of words"), (score.half_document_r2, "half of the words"))
        levels = [(r2, label) for r2, label in named if r2 is not None]
    title = "topic mixture from the mean state"
    return Lines(title, [one for one in series if one.x], "layer", "R2", levels=levels)


def position_panel(rows: Sequence[StateRow]) -> Lines:
    """Of the trained model: one curve per place in the document."""
    scores = [(float(row.layer), row.mixture) for row in rows if row.mixture is not None and row.mixture.by_position]
    places = dict.fromkeys(place for _, score in scores for place in score.by_position)
    series = []
    for place in places:
        known = {layer: r2 for layer, score in scores if (r2 := score.by_position.get(place)) is not None}
        series.append(Series(f"after {place} of the words", list(known), list(known.values()), markers=True))
    return Lines("topic mixture from a single state", [one for one in series if one.x], "layer", "R2")


def state_table(rows: Sequence[StateRow]) -> TableData:
    """Topics in hidden states, layer by layer: differences of cosines with p, and R^2 of topic mixtures.

    Args:
        rows: `probe.states`.

    Returns:
        One row per layer of the trained models, at the threshold with most words.

    Example:
        See `state_figures`.
    """
    shown = shown_states(rows)
    fresh = {(row.model, row.part, row.layer): row for row in shown if row.variant == "random"}
    cells = []
    for row in (row for row in shown if row.variant == "trained"):
        other, score = fresh.get((row.model, row.part, row.layer)), row.mixture
        untrained = other.mixture.mixture_r2 if other and other.mixture else None
        cells.append(
            [
                short(row.model),
                f"{row.part} {row.layer}{' (embedding output)' if row.layer == 0 else ''}",
                str(row.words),
                *(difference_text(effect) for effect in (row.raw, row.effects["all_but_top"])),
                _number(row.raw.p_value if row.raw else None),
                f"{_number(score.mixture_r2)} {interval_text(score.mixture_interval)}" if score else "-",
                _number(untrained),
                _number(score.bag_of_words_r2 if score else None),
            ]
        )
    title = "Hidden states by layer: same minus different topic (cosine), and R2 of the topic mixture, "
    columns = ["model", "layer", "words", "difference (95%)", "without main directions (95%)", "p"]
    return TableData(title + setting_name(shown), [*columns, "R2 (95%)", f"R2, {FRESH}", "R2, bag of words"], cells)


def difference_text(effect: Effect | None) -> str:
    return "-" if effect is None else f"{effect.difference:.3g} {interval_text(effect.interval)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
