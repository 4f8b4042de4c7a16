"""What Figure 6 and Tables 3 and 4 share: mean attention of a trained run, and when a value matrix counts as diagonal."""

from __future__ import annotations

from typing import Any

from topicscope.figures import Points, Series
from topicscope.measure import AttentionMeans, attention_means, estimate
from topicscope.training import Run, RunData, word_scores
from topicscope.world import word_counts

DIAGONAL_RULE = "Diagonal: the mean of the diagonal stands further above the same-topic mean than that does above the different-topic mean."


def dev_attention(run: Run) -> AttentionMeans:
    """Mean attention by relation over the unmasked dev documents of a one-hot run."""
    words = RunData(run.config).dev.finite().words
    return attention_means(
        word_scores(run.weights),
        run.config.topic_model.topic_of_word,
        word_counts(words, run.config.topic_model.vocabulary),
    )


def is_diagonal(run: Run) -> bool:
    """By DIAGONAL_RULE."""
    value = run.results["value"]
    return bool(value["diagonal"] - value["same"] > value["same"] - value["different"])


def row_of(label: str, paper: tuple[float, float, float], found: list[AttentionMeans]) -> tuple[list[str], list[Any]]:
    means = [estimate([getattr(m, name) for m in found]) for name in ("same_word", "same_topic", "different_topic")]
    cells = [label, " / ".join(f"{x:.3g}" for x in paper), *(f"{m.mean:.4g} ± {(m.high - m.mean):.2g}" for m in means)]
    return cells, means


def bars(title: str, labels: list[str], means: list[list[Any]]) -> Points:
    names = ("same word", "same topic, other word", "different topic")
    series = [
        Series(
            name,
            [float(i) for i in range(len(labels))],
            [m[k].mean for m in means],
            [m[k].low for m in means],
            [m[k].high for m in means],
        )
        for k, name in enumerate(names)
    ]
    return Points(title, labels, series, "mean attention of a pair of positions")
