"""Labels of documents from hidden states, layer by layer."""

from collections.abc import Sequence

from topicscope.language import LabelRow, Probe, accuracy_text, short
from topicscope.measure import FOLDS
from topicscope.pages.panels import Lines, banded
from topicscope.pages.parts import Figure, Section, TableData

WEIGHTS = (("trained", "trained"), ("random", "random weights"))


def label_sections(probe: Probe) -> list[Section]:
    if not probe.labels:
        return []
    return [
        Section(
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
    ]


def label_figures(rows: Sequence[LabelRow]) -> list[Figure]:
    """How well hidden states predict a document's label: accuracy and macro F1 by layer.

    Args:
        rows: `probe.labels`.

    Returns:
        One figure per part of every model; horizontal lines: bag of words, and always guessing the most common label.

    Example:
        >>> from topicscope.pages import label_table
        >>> from topicscope.language import LabelRow
        >>> of = {"model": "bert", "variant": "trained", "part": "encoder", "layer": 1, "documents": 200, "classes": 4}
        >>> of |= {"accuracy": 0.91, "interval": (0.85, 0.95), "macro_f1": 0.9, "macro_f1_interval": (0.84, 0.94)}
        >>> of |= {"majority": 0.25, "bag_of_words": 0.88, "bag_of_words_interval": (0.82, 0.92)}
        >>> of |= {"bag_of_words_macro_f1": 0.87}
        >>> of |= {"chosen_accuracy": 0.9, "chosen_interval": (0.84, 0.94), "chosen_macro_f1": 0.89, "chosen_folds": 5}
        >>> label_figures([LabelRow(**of)])[0].panels[0].levels
        [(0.88, 'bag of words'), (0.25, 'most common label')]
        >>> label_table([LabelRow(**of)]).rows[0][:3]
        ['bert', 'encoder 1', '0.91 [0.85, 0.95]']
    """
    figures: list[Figure] = []
    for model, part in dict.fromkeys((row.model, row.part) for row in rows):
        mine = [row for row in rows if (row.model, row.part) == (model, part)]
        first, panels = mine[0], []
        levels = {
            "accuracy": [(first.bag_of_words, "bag of words"), (first.majority, "most common label")],
            "macro F1": [(first.bag_of_words_macro_f1, "bag of words")],
        }
        for title, lines in levels.items():
            series = [
                banded(
                    name,
                    [
                        (float(row.layer), row.accuracy, row.interval)
                        if title == "accuracy"
                        else (float(row.layer), row.macro_f1, row.macro_f1_interval)
                        for row in mine
                        if row.variant == variant
                    ],
                )
                for variant, name in WEIGHTS
            ]
            panels.append(Lines(title, [one for one in series if one.x], "layer", title, levels=lines))
        title = f"{short(model)}, {part}: labels from the mean state"
        alt = "Curves over layers: accuracy and macro F1 of the label, trained and random weights."
        figures.append(Figure(f"probe-labels-{len(figures) + 1}", title, alt, panels))
    return figures


def label_table(rows: Sequence[LabelRow]) -> TableData:
    """How well hidden states predict a document's label, beside random weights, bag of words and the most common label.

    Args:
        rows: `probe.labels`.

    Returns:
        One row per layer of the trained models.

    Example:
        See `label_figures`.
    """
    fresh = {(row.model, row.part, row.layer): row for row in rows if row.variant == "random"}
    cells = []
    for row in (row for row in rows if row.variant == "trained"):
        other = fresh.get((row.model, row.part, row.layer))
        cells.append(
            [
                short(row.model),
                f"{row.part} {row.layer}",
                accuracy_text(row.accuracy, row.interval),
                accuracy_text(row.macro_f1, row.macro_f1_interval),
                accuracy_text(other.accuracy, other.interval) if other else "-",
                accuracy_text(row.bag_of_words, row.bag_of_words_interval),
                f"{row.majority:.2f}",
                f"{row.chosen_folds} of {FOLDS}",
            ]
        )
    title = "Labels from hidden states by layer"
    compared = ["random weights (95%)", "bag of words (95%)", "most common label", "layer chosen"]
    return TableData(title, ["model", "layer", "accuracy (95%)", "macro F1 (95%)", *compared], cells)
