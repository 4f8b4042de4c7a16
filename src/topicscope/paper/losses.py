"""A claim without numbers in the paper: the cost of training a part alone, against everything and the Bayes floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from topicscope import training
from topicscope.figures import Figure, Points, Series, TableData
from topicscope.measure import Estimate, estimate
from topicscope.paper.experiment import Context, Experiment, train_many
from topicscope.paper.outcome import Outcome, verdict
from topicscope.theory import bayes_loss

EVERYTHING = "everything"
PARTS: dict[str, dict[str, Any]] = {
    EVERYTHING: {"embedding": "trained"},
    "only the embedding": {"embedding": "trained", "key": "zero", "query": "zero", "value": "identity"},
    "only the value matrix": {"key": "zero", "query": "zero"},
}
UNIFORM = {"cross-entropy": float(np.log(100)), "squared": 0.99}
"""Loss of the uniform prediction over 100 words."""


@dataclass(frozen=True)
class Found:
    """Dev losses by what was trained and by seed, and the floors: all that a document says, and its topics alone."""

    loss: str
    dev: dict[str, list[float]]
    bayes: float
    bayes_topics: float
    config: dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One training, against training everything and the floors."""

    loss: str
    trained: str
    dev: Estimate
    bayes: float
    bayes_topics: float
    lost: float  # dev loss above that of training everything
    gain: float  # of training everything over the uniform prediction

    @property
    def share(self) -> float:
        return self.lost / self.gain

    @property
    def small(self) -> bool:
        """Less than a fifth; False where there is no gain at all."""
        return self.lost < 0.2 * self.gain


def measure(context: Context) -> list[Found]:
    return [measure_loss(context, loss) for loss in UNIFORM]


def measure_loss(context: Context, loss: str) -> Found:
    base = {"steps": context.pick(2000, 8000), "objective": {"loss": loss}, "optimizer": {"lr": 0.003}}
    runs = {name: train_many(context, base | {"model": model}) for name, model in PARTS.items()}
    dev = {name: [run.results["dev_loss"] for run in here] for name, here in runs.items()}
    c = runs[EVERYTHING][0].config
    data = training.RunData(c)
    bayes, bayes_topics = (
        bayes_loss(c.objective.loss, c.topic_model, c.documents, c.masking, data.dev_masked, own_word=own_word).loss
        for own_word in (True, False)
    )
    return Found(loss, dev, bayes, bayes_topics, c.as_dict())


def rows_of(found: Found) -> list[Row]:
    dev = {name: estimate(losses) for name, losses in found.dev.items()}
    everything = dev[EVERYTHING].mean
    gain = UNIFORM[found.loss] - everything
    return [
        Row(found.loss, name, value, found.bayes, found.bayes_topics, value.mean - everything, gain)
        for name, value in dev.items()
    ]


def panel_of(rows: list[Row]) -> Points:
    places = [float(i) for i in range(len(rows))]
    values = [r.dev.mean for r in rows], [r.dev.low for r in rows], [r.dev.high for r in rows]
    levels = [(rows[0].bayes, "Bayes"), (rows[0].bayes_topics, "Bayes, from topics alone")]
    series = [Series("dev loss", places, *values)]
    return Points(f"dev loss, {rows[0].loss}", [r.trained for r in rows], series, "loss", levels)


def judge(found: list[Found]) -> Outcome:
    by_loss = [rows_of(losses) for losses in found]
    rows = [row for here in by_loss for row in here]
    copying = [here[0] for here in by_loss if here[0].dev.high < here[0].bayes_topics]
    panels: list[Any] = [panel_of(here) for here in by_loss]
    columns = ["loss", "trained", "dev loss (95%)", "above Bayes", "above Bayes from topics", "lost share of the gain"]
    cells = [
        [
            r.loss,
            r.trained,
            str(r.dev),
            f"{r.dev.mean - r.bayes:.4g}",
            f"{r.dev.mean - r.bayes_topics:.4g}",
            f"{100 * r.share:.1f}%",
        ]
        for r in rows
    ]
    alt = "Dev losses of three kinds of training with floors."
    return Outcome(
        paper="'only slightly more' (no number)",
        theory="-",
        measured="; ".join(f"{r.trained} {r.dev.mean:.4g}" for r in rows),
        verdict=verdict(all(r.small for r in rows)),
        reason="training a part alone loses "
        + ", ".join(f"{100 * r.share:.1f}% ({r.loss}, {r.trained})" for r in rows if r.trained != EVERYTHING)
        + " of what training everything gains over the uniform prediction"
        + "".join(
            f"; with the {r.loss} loss, training everything goes below what topics alone allow ({r.bayes_topics:.4g}): "
            "it comes to copy the shown word, which uniform attention cannot"
            for r in copying
        ),
        figures=[Figure("losses", "What training a part alone costs", alt, panels)],
        tables=[TableData("Dev losses", columns, cells)],
        numbers={
            f"{r.loss}, {r.trained}": {
                "dev_loss": r.dev.mean,
                "bayes": r.bayes,
                "bayes_topics": r.bayes_topics,
                "share_of_gain": r.share,
            }
            for r in rows
        },
        config=found[0].config,
    )


EXPERIMENT = Experiment(
    id="losses",
    claim="Training only the embedding, or only the value matrix, costs only slightly more than training everything.",
    rule="Each loses less than a fifth of the gain that training everything has over the uniform prediction, for both "
    "losses.",
    measure=measure,
    judge=judge,
    seconds=40,
)
