"""What Tables 3 and 4 share: rows of runs with their mean attention by relation, as cells and as a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topicscope import measure, training
from topicscope.measure import Estimate, estimate
from topicscope.pages import Figure, Points
from topicscope.paper.blocks import Blocks, blocks_of
from topicscope.paper.experiment import Context, by_category, train_many
from topicscope.world import word_counts

Triple = tuple[float, float, float]
"""Mean attention to the same word, to other words of the topic, to words of different topics."""

RELATIONS = {
    "same_word": "same word",
    "same_topic": "same topic, other word",
    "different_topic": "different topic",
}


@dataclass(frozen=True)
class AttentionRow:
    """The paper's rate; of each run its value matrix, and its mean attention by relation over the unmasked dev set."""

    lr: float
    blocks: list[Blocks]
    attention: list[measure.AttentionMeans]
    config: training.RunConfig


def train_row(context: Context, lr: float, **settings: Any) -> AttentionRow:
    runs = train_many(context, **settings)
    return AttentionRow(lr, [blocks_of(run) for run in runs], [dev_attention(run) for run in runs], runs[0].config)


def dev_attention(run: training.Run) -> measure.AttentionMeans:
    """Mean attention by relation over the unmasked dev documents of a one-hot run."""
    model = run.config.topic_model
    counts = word_counts(training.RunData(run.config).dev.finite().words, model.vocabulary)
    return measure.attention_means(training.word_scores(run.weights), model.topic_of_word, counts)


def attention_estimates(attention: Sequence[measure.AttentionMeans]) -> list[Estimate]:
    """Same word, same topic, different topic: means and intervals over seeds."""
    return [estimate([getattr(one, name) for one in attention]) for name in RELATIONS]


def paper_cell(paper: Triple) -> str:
    return " / ".join(f"{x:.3g}" for x in paper)


def attention_cells(means: Sequence[Estimate]) -> list[str]:
    return [f"{m.mean:.4g} ± {m.high - m.mean:.2g}" for m in means]


def attention_figure(name: str, title: str, alt: str, rows: dict[str, list[Estimate]]) -> Figure:
    """One series per relation, one category per row."""
    by_relation = zip(RELATIONS.values(), zip(*rows.values(), strict=True), strict=True)
    panel = Points(
        name.replace("table", "Table "),
        list(rows),
        [by_category(relation, means) for relation, means in by_relation],
        "mean attention of a pair of positions",
    )
    return Figure(name, title, alt, [panel], 1)
