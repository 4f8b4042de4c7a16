"""Labels from hidden states, layer by layer, as data; and the sentence that they make.

row.accuracy, row.interval, row.bag_of_words; label_sentences(probe.labels)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from topicscope.language.probe_rows import short
from topicscope.measure import FOLDS, Interval, with_intervals


@dataclass(frozen=True, kw_only=True)
class LabelRow:
    """The label of a document from its mean state in one layer, by ridge regression, in documents held out of the fit.

    `chosen_*` are of the model as a whole: every fold takes the layer that does best on the other folds. So they are
    fair where the largest accuracy of all layers is not.

    Attributes:
        model: Name of the model.
        variant: 'trained' or random weights.
        part: Part of the model.
        layer: From 0, the embedding layer's output.
        documents: Number of documents.
        classes: Number of labels.
        accuracy: Share of documents whose label is right.
        interval: Its 95% interval.
        macro_f1: Mean F1 over labels.
        macro_f1_interval: Its 95% interval.
        majority: Share of the most common label.
        bag_of_words: Accuracy of the same classifier on log word counts.
        bag_of_words_interval: Its 95% interval.
        bag_of_words_macro_f1: Its mean F1.
        chosen_accuracy: Accuracy of the model as a whole.
        chosen_interval: Its 95% interval.
        chosen_macro_f1: Its mean F1.
        chosen_folds: Number of folds that took this layer.

    Example:
        See `accuracy_text`.
    """

    model: str
    variant: str
    part: str
    layer: int
    documents: int
    classes: int
    accuracy: float
    interval: Interval | None
    macro_f1: float
    macro_f1_interval: Interval | None
    majority: float
    bag_of_words: float
    bag_of_words_interval: Interval | None
    bag_of_words_macro_f1: float
    chosen_accuracy: float
    chosen_interval: Interval | None
    chosen_macro_f1: float
    chosen_folds: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**with_intervals(data))


def label_answer(rows: Sequence[LabelRow]) -> dict[str, Any]:
    """The answer for the first model, with the layer that most folds choose; and `rows`, of all models and layers."""
    mine = [row for row in rows if (row.model, row.variant) == (rows[0].model, "trained")]
    if not mine:
        return {}
    first, most = mine[0], max(mine, key=lambda row: row.chosen_folds)
    return {
        "model": first.model,
        "part": most.part,
        "layer": most.layer,
        "accuracy": first.chosen_accuracy,
        "interval": first.chosen_interval,
        "macro_f1": first.chosen_macro_f1,
        "majority": first.majority,
        "bag_of_words": first.bag_of_words,
        "rows": [row.as_dict() for row in rows],
    }


def label_sentences(rows: Sequence[LabelRow]) -> list[str]:
    """One for each model: the accuracy with the layer chosen inside the folds, beside what it is compared with."""
    sentences = []
    for model in dict.fromkeys(row.model for row in rows):
        mine = [row for row in rows if (row.model, row.variant) == (model, "trained")]
        fresh = [row for row in rows if (row.model, row.variant) == (model, "random")]
        if not mine:
            continue
        first, most = mine[0], max(mine, key=lambda row: row.chosen_folds)
        untrained = (
            f"; fresh weights {accuracy_text(fresh[0].chosen_accuracy, fresh[0].chosen_interval)}" if fresh else ""
        )
        sentences.append(
            f"{short(model)}, labels from hidden states: accuracy "
            f"{accuracy_text(first.chosen_accuracy, first.chosen_interval)}, macro F1 {first.chosen_macro_f1:.2f}; "
            f"bag of words {accuracy_text(first.bag_of_words, first.bag_of_words_interval)}; "
            f"most common label {first.majority:.2f}{untrained} ({first.classes} labels, {first.documents} documents; "
            f"the layer is chosen on the training folds, {most.part} {most.layer} in {most.chosen_folds} of "
            f"{FOLDS}). {what_it_shows(first, fresh[0] if fresh else None)}"
        )
    return sentences


def what_it_shows(ours: LabelRow, fresh: LabelRow | None) -> str:
    """Whether states tell more than what they are compared with; an interval has to lie above it."""
    compared = {"the most common label": ours.majority, "words alone": ours.bag_of_words}
    if fresh is not None:
        compared["fresh weights"] = fresh.chosen_accuracy
    low = -1.0 if ours.chosen_interval is None else ours.chosen_interval[0]
    below = [name for name, accuracy in compared.items() if low <= accuracy]
    return f"Not clearly more than {' or '.join(below)}." if below else f"More than {' and '.join(compared)}."


def accuracy_text(accuracy: float, interval: Interval | None) -> str:
    """An accuracy with its interval, for tables.

    Args:
        accuracy: From 0 to 1.
        interval: Its 95% interval, or None.

    Returns:
        The text.

    Example:
        >>> of = {"model": "bert", "variant": "trained", "part": "encoder", "layer": 1, "documents": 200, "classes": 4}
        >>> of |= {"accuracy": 0.91, "interval": (0.85, 0.95), "macro_f1": 0.9, "macro_f1_interval": (0.84, 0.94)}
        >>> of |= {"majority": 0.25, "bag_of_words": 0.88, "bag_of_words_interval": (0.82, 0.92)}
        >>> of |= {"bag_of_words_macro_f1": 0.87, "chosen_accuracy": 0.9, "chosen_interval": None}
        >>> row = LabelRow(**of, chosen_macro_f1=0.89, chosen_folds=5)
        >>> accuracy_text(row.accuracy, row.interval), accuracy_text(row.chosen_accuracy, row.chosen_interval)
        ('0.91 [0.85, 0.95]', '0.90 -')
    """
    return f"{accuracy:.2f} " + ("-" if interval is None else f"[{interval[0]:.2f}, {interval[1]:.2f}]")
