"""A claim without numbers in the paper: the cost of training a part alone, against everything and the Bayes floor."""

from dataclasses import dataclass

import numpy as np

from topicscope import training
from topicscope.measure import estimate
from topicscope.pages import Figure, Points, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, by_category, train_many, verdict
from topicscope.theory import bayes_loss

EVERYTHING = "everything"
PARTS = {
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
    config: training.RunConfig


def measure(context: Context) -> list[Found]:
    return [measure_loss(context, loss) for loss in UNIFORM]


def measure_loss(context: Context, loss: str) -> Found:
    base = {"steps": context.pick(2000, 8000), "objective": {"loss": loss}, "optimizer": {"lr": 0.003}}
    runs = {name: train_many(context, **base, model=model) for name, model in PARTS.items()}
    dev = {name: [run.results["dev_loss"] for run in here] for name, here in runs.items()}
    c = runs[EVERYTHING][0].config
    masked = training.RunData(c).dev_masked
    bayes, bayes_topics = (
        bayes_loss(c.objective.loss, c.topic_model, c.documents, c.masking, masked, own_word=own_word).loss
        for own_word in (True, False)
    )
    return Found(loss, dev, bayes, bayes_topics, c)


def judge(found: list[Found]) -> Outcome:
    """What each training loses of the gain of training everything; less than a fifth is small, if there is a gain."""
    rows, numbers, panels, small, copying = [], {}, [], [], ""
    for one in found:
        dev = {trained: estimate(losses) for trained, losses in one.dev.items()}
        everything = dev[EVERYTHING]
        gain = UNIFORM[one.loss] - everything.mean
        levels = [(one.bayes, "Bayes"), (one.bayes_topics, "Bayes, from topics alone")]
        panels.append(
            Points(f"dev loss, {one.loss}", list(dev), [by_category("dev loss", list(dev.values()))], "loss", levels)
        )
        if everything.high < one.bayes_topics:
            copying += (
                f"; with the {one.loss} loss, training everything goes below what topics alone allow "
                f"({one.bayes_topics:.4g}): it learns to copy the shown word, which uniform attention cannot"
            )
        for trained, here in dev.items():
            lost = here.mean - everything.mean
            small.append(lost < 0.2 * gain)
            numbers[f"{one.loss}, {trained}"] = {
                "dev_loss": here.mean,
                "bayes": one.bayes,
                "bayes_topics": one.bayes_topics,
                "share_of_gain": lost / gain,
            }
            above = [f"{here.mean - floor:.4g}" for floor, _ in levels]
            rows.append([one.loss, trained, str(here), *above, f"{100 * (lost / gain):.1f}%"])
    return Outcome(
        paper="'only slightly more' (no number)",
        theory="-",
        measured="dev loss: " + "; ".join(f"{name} {here['dev_loss']:.4g}" for name, here in numbers.items()),
        verdict=verdict(all(small)),
        reason="training a part alone loses "
        + ", ".join(f"{share} ({loss}, {trained})" for loss, trained, *_, share in rows if trained != EVERYTHING)
        + f" of what training everything gains over the uniform prediction{copying}",
        figures=[
            Figure(
                "losses",
                "What training a part alone costs",
                "Dev losses of three ways of training, beside the Bayes floors.",
                [*panels],
            )
        ],
        tables=[
            TableData(
                "Dev losses",
                [
                    *("loss", "trained", "dev loss (95%)"),
                    *("above Bayes", "above Bayes from topics", "lost share of the gain"),
                ],
                rows,
            )
        ],
        numbers=numbers,
        config=found[0].config.as_dict(),
        ours=max(here["share_of_gain"] for here in numbers.values()),
    )


EXPERIMENT = Experiment(
    id="losses",
    claim="Training only the embedding, or only the value matrix, ends at only slightly more loss than training "
    "everything.",
    rule="For both losses: the gain is the loss of the uniform prediction minus the dev loss of training everything. "
    "Training either part alone ends less than a fifth of the gain above training everything (means over seeds).",
    measure=measure,
    judge=judge,
    seconds=40,
    number=Number(
        "largest lost share",
        "loss of training one part alone minus that of training everything, over the gain that training everything has "
        "over the uniform prediction (a share of 1), largest of the parts and losses; the paper says 'only slightly'",
    ),
)
