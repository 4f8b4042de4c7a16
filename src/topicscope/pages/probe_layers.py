"""A probe layer by layer and document by document: hidden states, labels, ablation, marked texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from topicscope.language import (
    TREATMENTS,
    AblationRow,
    CooccurrenceRow,
    DocumentRow,
    HeadRow,
    LabelRow,
    Probe,
    ProbeRow,
    ShownDocument,
    StateRow,
    TopicRow,
    accuracy_text,
    interval_text,
    short,
)
from topicscope.measure import FOLDS, Effect, Interval
from topicscope.pages.panels import Figure, Lines, MarkedText, Points, Section, Series, TableData, banded, curve_of

TITLES = {
    "raw": "cosine of states",
    "centred": "minus the mean state",
    "all_but_top": "minus the three main directions too",
}
FRESH, SHUFFLED = "random weights", "shuffled topics"
WEIGHTS = {"trained": "trained", "random": FRESH}
TOPICAL, RANDOM = "topical heads", "random heads of the same layers"


def state_section(probe: Probe) -> Section:
    return Section(
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


def setting_name(rows: Sequence[StateRow | HeadRow | TopicRow]) -> str:
    """Of which words the rows are, by the first of them."""
    if not rows or rows[0].threshold is None:
        return "given topics"
    many = ", many topics per word" if rows[0].topics_per_word == "many" else ""
    return f"threshold {rows[0].threshold:g}{many}"


Row = TypeVar("Row", AblationRow, CooccurrenceRow, DocumentRow, HeadRow, ProbeRow, StateRow, TopicRow)
Layered = TypeVar("Layered", LabelRow, StateRow)
Chosen = TypeVar("Chosen", HeadRow, ProbeRow, StateRow, TopicRow)


def setting_of(row: Chosen) -> tuple[float | None, str]:
    return row.threshold, row.topics_per_word


def at_first(rows: Sequence[Chosen]) -> list[Chosen]:
    """The rows at the first threshold and kind of topics."""
    return [row for row in rows if setting_of(row) == setting_of(rows[0])]


def by_model(rows: Sequence[Row]) -> Iterator[tuple[int, str, list[Row]]]:
    """Number (from 1), name and rows of each model."""
    for place, model in enumerate(dict.fromkeys(row.model for row in rows), start=1):
        yield place, model, [row for row in rows if row.model == model]


def by_part(rows: Sequence[Layered]) -> Iterator[tuple[str, list[Layered]]]:
    """Short name and rows of each part (encoder, decoder) of each model."""
    for model, part in dict.fromkeys((row.model, row.part) for row in rows):
        yield f"{short(model)}, {part}", [row for row in rows if (row.model, row.part) == (model, part)]


def shown_states(rows: Sequence[StateRow]) -> list[StateRow]:
    """Of each model the rows at the threshold with most words."""
    most = {model: setting_of(max(mine, key=lambda row: row.words)) for _, model, mine in by_model(rows)}
    return [row for _, model, mine in by_model(rows) for row in mine if setting_of(row) == most[model]]


def state_figures(rows: Sequence[StateRow]) -> list[Figure]:
    figures: list[Figure] = []
    for part, mine in by_part(shown_states(rows)):
        drawn = [*(difference_panel(mine, name) for name in TREATMENTS), mixture_panel(mine), position_panel(mine)]
        if panels := [panel for panel in drawn if panel.series]:
            title = f"{part}: hidden states by layer, {setting_name(mine)}"
            alt = "Curves over layers: same-topic minus different-topic cosine, and R2 of the topic mixture."
            figures.append(Figure(f"probe-states-{len(figures) + 1}", title, alt, panels, columns=3))
    return figures


def against_chance(
    effects: Sequence[tuple[str, float, Effect | None]], weights: Mapping[str, str], shuffled: str
) -> list[Series]:
    """Differences of (variant, x, effect) for each kind of weights, and their middle 95% with shuffled topics.

    Curves without points are left out.
    """
    known = [(variant, x, effect) for variant, x, effect in effects if effect is not None]
    series = [
        banded(name, [(x, effect.difference, effect.interval) for of, x, effect in known if of == variant])
        for variant, name in weights.items()
    ]
    null = [(x, effect.null_interval) for of, x, effect in known if of == "trained" and effect.null_interval]
    series.append(banded(shuffled, [(x, (low + high) / 2, (low, high)) for x, (low, high) in null]))
    return [curve for curve in series if curve.x]


def curves_by_layer(values: Sequence[tuple[StateRow | LabelRow, float | None, Interval | None]]) -> list[Series]:
    return [
        banded(name, [(float(row.layer), value, ends) for row, value, ends in values if row.variant == variant])
        for variant, name in WEIGHTS.items()
    ]


def layer_panel(title: str, series: list[Series], y_label: str, levels: Sequence[tuple[float, str]] = ()) -> Lines:
    return Lines(title, [curve for curve in series if curve.x], "layer", y_label, levels=list(levels))


def difference_panel(rows: Sequence[StateRow], treatment: str) -> Lines:
    effects = [(row.variant, float(row.layer), row.effects[treatment]) for row in rows]
    return layer_panel(TITLES[treatment], against_chance(effects, WEIGHTS, SHUFFLED), "same minus different topic")


def mixture_panel(rows: Sequence[StateRow]) -> Lines:
    scores = [(row, row.mixture) for row in rows if row.mixture is not None]
    series = curves_by_layer([(row, score.mixture_r2, score.mixture_interval) for row, score in scores])
    chance = [(float(row.layer), score.shuffled_r2, None) for row, score in scores if row.variant == "trained"]
    series.append(banded("shuffled mixtures", chance))
    levels = [
        (r2, label)
        for _, score in scores[:1]
        for r2, label in ((score.bag_of_words_r2, "bag of words"), (score.half_document_r2, "half of the words"))
        if r2 is not None
    ]
    return layer_panel("topic mixture from the mean state", series, "R2", levels)


def position_panel(rows: Sequence[StateRow]) -> Lines:
    """Of the trained model: one curve per place in the document."""
    trained = [row for row in rows if row.variant == "trained"]
    scores = [(row.layer, row.mixture.by_position) for row in trained if row.mixture is not None]
    series = [
        curve_of(f"after {place} of the words", [(layer, r2.get(place)) for layer, r2 in scores], markers=True)
        for place in dict.fromkeys(place for _, r2 in scores for place in r2)
    ]
    return layer_panel("topic mixture from a single state", series, "R2")


def state_table(rows: Sequence[StateRow]) -> TableData:
    shown = shown_states(rows)
    fresh = {(row.model, row.part, row.layer): row.mixture for row in shown if row.variant == "random"}
    cells = []
    for row in (row for row in shown if row.variant == "trained"):
        untrained, score = fresh.get((row.model, row.part, row.layer)), row.mixture
        cells.append(
            [
                short(row.model),
                f"{row.part} {row.layer}{' (embedding output)' if row.layer == 0 else ''}",
                str(row.words),
                *(
                    "-" if effect is None else with_interval(effect.difference, effect.interval)
                    for effect in (row.raw, row.effects["all_but_top"])
                ),
                number(row.raw.p_value if row.raw else None),
                f"{number(score.mixture_r2)} {interval_text(score.mixture_interval)}" if score else "-",
                number(untrained.mixture_r2 if untrained else None),
                number(score.bag_of_words_r2 if score else None),
            ]
        )
    return TableData(
        f"Hidden states by layer: same minus different topic (cosine), and R2 of the topic mixture, "
        f"{setting_name(shown)}",
        [
            *("model", "layer", "words", "difference (95%)", "without main directions (95%)", "p"),
            *("R2 (95%)", f"R2, {FRESH}", "R2, bag of words"),
        ],
        cells,
    )


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def with_interval(value: float | None, interval: Interval | None) -> str:
    return "-" if value is None else f"{value:.3g} {interval_text(interval)}"


def ablation_section(probe: Probe) -> Section:
    return Section(
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


def ablation_figures(rows: Sequence[AblationRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-ablation-{place}",
            f"{short(model)}: the loss without topical heads",
            "Rise of the loss without topical heads and without random heads, with 95% intervals.",
            [
                Points(
                    "heads output their mean",
                    [f"at {row.at}" for row in mine],
                    [
                        banded(TOPICAL, [(x, row.topical_rise, row.topical_interval) for x, row in enumerate(mine)]),
                        banded(RANDOM, [(x, row.random_rise, row.random_interval) for x, row in enumerate(mine)]),
                    ],
                    "rise of the loss (nats)",
                    [(0.0, "no rise")],
                )
            ],
            columns=1,
        )
        for place, model, mine in by_model([row for row in rows if row.topical_rise is not None])
    ]


def ablation_table(rows: Sequence[AblationRow]) -> TableData:
    return TableData(
        "Rise of the loss without topical heads, and without random ones",
        [
            *("model", "at", "matter more?", "heads", "random sets", "tokens in documents", "loss"),
            *("rise, topical (95%)", "rise, random (95%)", "difference (95%)", "why"),
        ],
        [
            [
                short(row.model),
                row.at,
                row.answer,
                str(row.heads),
                str(row.draws),
                f"{row.positions:,} in {row.documents}",
                number(row.loss),
                with_interval(row.topical_rise, row.topical_interval),
                with_interval(row.random_rise, row.random_interval),
                with_interval(row.difference, row.interval),
                "; ".join(text for text in (row.why, row.remark) if text),
            ]
            for row in rows
        ],
        folded=True,
    )


def label_section(probe: Probe) -> Section:
    return Section(
        "Do hidden states predict the label of a document?",
        "Accuracy: the share of documents whose label a linear classifier (ridge regression to the labels, the "
        "largest counts) guesses from the mean state at words, in documents that it was not fitted to. Macro F1: "
        "the mean over labels of 2 hits / (documents of the label + guesses of it). 95%: bootstrap over documents. "
        "Bag of words: the same classifier on log word counts. Most common label: the accuracy of always guessing "
        "it. The largest of many layers is large by chance too. So 'layer chosen' takes for every fifth of the "
        "documents the layer that does best on the others. Random weights: the same architecture, untrained.",
        figures=label_figures(probe.labels),
        tables=[label_table(probe.labels)],
    )


def label_figures(rows: Sequence[LabelRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-labels-{place}",
            f"{part}: labels from the mean state",
            "Curves over layers: accuracy and macro F1 of the label, trained and random weights.",
            [
                layer_panel(
                    "accuracy",
                    curves_by_layer([(row, row.accuracy, row.interval) for row in mine]),
                    "accuracy",
                    [(mine[0].bag_of_words, "bag of words"), (mine[0].majority, "most common label")],
                ),
                layer_panel(
                    "macro F1",
                    curves_by_layer([(row, row.macro_f1, row.macro_f1_interval) for row in mine]),
                    "macro F1",
                    [(mine[0].bag_of_words_macro_f1, "bag of words")],
                ),
            ],
        )
        for place, (part, mine) in enumerate(by_part(rows), start=1)
    ]


def label_table(rows: Sequence[LabelRow]) -> TableData:
    fresh = {
        (row.model, row.part, row.layer): accuracy_text(row.accuracy, row.interval)
        for row in rows
        if row.variant == "random"
    }
    return TableData(
        "Labels from hidden states by layer",
        [
            *("model", "layer", "accuracy (95%)", "macro F1 (95%)"),
            *("random weights (95%)", "bag of words (95%)", "most common label", "layer chosen"),
        ],
        [
            [
                short(row.model),
                f"{row.part} {row.layer}",
                accuracy_text(row.accuracy, row.interval),
                accuracy_text(row.macro_f1, row.macro_f1_interval),
                fresh.get((row.model, row.part, row.layer), "-"),
                accuracy_text(row.bag_of_words, row.bag_of_words_interval),
                f"{row.majority:.2f}",
                f"{row.chosen_folds} of {FOLDS}",
            ]
            for row in rows
            if row.variant == "trained"
        ],
    )


def document_section(probe: Probe) -> Section:
    shown = shown_documents(probe)
    note = (
        "Contrast of a document: attention to words of the same topic minus attention to words of other topics, inside "
        f"the document; the mean over all heads, trained weights ({measured_at(probe.documents)}). Attention is "
        "debiased: without preference it is .01. All documents are in documents.csv and documents.parquet."
    )
    if shown:
        note += (
            " Below are documents to look at: those with the highest and the lowest contrast, among documents with "
            "enough pairs of words, and some at random. Words of topics are coloured, with the number of their topic. "
            "Point at a word, click it, or move with the arrow keys: the words that it attends to are filled, the more "
            "the larger the weight."
        )
    return Section(
        "What does it look like in documents?",
        note,
        figures=contrast_figures(probe.documents),
        tables=[document_table(probe)] if shown else [],
        texts=[marked_text(one, row, probe.heads) for one, row in shown],
    )


def measured_at(rows: Sequence[DocumentRow]) -> str:
    """The part and the threshold of the contrasts; of each model, where they differ."""
    places = {
        model: f"{row.part}, given topics"
        if row.threshold is None
        else f"{row.part}, threshold {row.threshold:g}, the one with most words"
        for _, model, (row, *_) in by_model(rows)
    }
    if len(set(places.values())) == 1:
        return next(iter(places.values()))
    return "; ".join(f"{short(model)}: {place}" for model, place in places.items())


def contrast_figures(rows: Sequence[DocumentRow]) -> list[Figure]:
    contrasts = {
        model: sorted(row.contrast for row in mine if row.contrast is not None) for _, model, mine in by_model(rows)
    }
    series = [curve_of(short(model), enumerate(values, start=1)) for model, values in contrasts.items() if values]
    panel = Lines("", series, "documents, lowest contrast first", "contrast", levels=[(0.0, "no difference")])
    alt = "Same-topic minus different-topic attention of each document, in order of size."
    return [Figure("probe-documents", "Contrast of each document", alt, [panel], columns=1)] if series else []


def document_table(probe: Probe) -> TableData:
    return TableData(
        "The documents below",
        [
            *("model", "document", "chosen for", "words", "tokens read", "of topics", "contrast"),
            *("pairs (same + different)", "loss"),
        ],
        [
            [
                short(row.model),
                row.named,
                one.why,
                f"{row.words:,}",
                f"{row.tokens:,}",
                f"{row.topic_words:,}",
                number(row.contrast),
                f"{row.same_pairs:,} + {row.different_pairs:,}",
                number(row.loss),
            ]
            for one, row in shown_documents(probe)
        ],
    )


def shown_documents(probe: Probe) -> list[tuple[ShownDocument, DocumentRow]]:
    rows = {(row.model, row.document): row for row in probe.documents}
    return [(one, rows[one.model, one.document]) for one in probe.shown]


def marked_text(document: ShownDocument, row: DocumentRow, ranked: Sequence[HeadRow]) -> MarkedText:
    """`ranked`: heads of all models, parts and thresholds, the largest difference first.

    Of those of the document's part at the first threshold, where heads are said to carry topics, the first that does
    is shown first.
    """
    mine = [head for head in ranked if (head.model, head.part) == (document.model, document.part)]
    order = [(head.layer, head.head) for head in at_first(mine)]
    places = {(one.layer, one.head): at for at, one in enumerate(document.heads) if one.topical}
    contrast = "" if row.contrast is None else f", contrast {row.contrast:.3g}"
    topics = ", ".join(f"{topic.name} {topic.share:.0%}" for topic in row.topics)
    words = sum(piece.topic is not None for piece in document.pieces)
    heads = sum(one.head is not None for one in document.heads)
    some = f"{heads} of {document.all_heads} heads, those with topics first."
    return MarkedText(
        f"{short(document.model)}, document {row.named}: {document.why}{contrast}",
        f"Main topics (shares of its mixture): {topics or 'none'}. {len(document.pieces)} words and marks"
        f"{', the first of a longer text' if document.cut else ''}; {words} of topics. "
        f"Attention of the {document.part}, by word: summed over the tokens of the word that is attended, the "
        f"mean over those of the word that attends. Kept: the {document.keys} largest weights of each word, rounded; "
        f"the mean over the heads of each layer, and "
        f"{'all heads.' if heads == document.all_heads else some}",
        [(piece.before, piece.text, piece.topic) for piece in document.pieces],
        [(topic.name, f"{topic.name} ({', '.join(topic.words)})") for topic in document.topics],
        [
            (
                f"{one.layer}",
                "mean over heads" if one.head is None else f"{one.head}{' (carries topics)' if one.topical else ''}",
                one.links,
            )
            for one in document.heads
        ],
        document.keys,
        ("layer", "head"),
        next((places[head] for head in order if head in places), 0),
        f"{document.model} {document.part}",
    )
