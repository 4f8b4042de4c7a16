"""Assumptions: what survives where one is relaxed, in W* and in training.

The block pattern under other documents, sizes, masking rates and word probabilities, with trained attention; and W(t)
beside training under uniform attention, in worlds that the theorems leave out (`relaxed_worlds`).
"""

from dataclasses import asdict, dataclass

from topicscope import training
from topicscope.pages import Figure, Points, TableData
from topicscope.paper.blocks import Blocks, blocks_of, contrast, mean_spread
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, by_category, train_many
from topicscope.paper.flows import all_of
from topicscope.paper.relaxed_worlds import (
    TOLERANCE,
    World,
    changes_table,
    matrices_figure,
    measure_worlds,
    worlds_figure,
    worlds_table,
)

VARIATIONS: dict[str, dict[str, dict[str, object]]] = {
    "the paper's setting": {},
    "fixed tau = 3": {"documents": {"kind": "fixed", "topics_per_document": 3}},
    "T = 5": {"topic_model": {"topics": 5}},
    "T = 20, v = 5": {"topic_model": {"topics": 20, "words_per_topic": 5}},
    "v = 20": {"topic_model": {"words_per_topic": 20}},
    "alpha = 0.03": {"documents": {"alpha": 0.03}},
    "alpha = 1": {"documents": {"alpha": 1.0}},
    "p_mask = 0.4": {"masking": {"p_mask": 0.4}},
    "p_correct = p_random = 0.3": {"masking": {"p_correct": 0.3, "p_random": 0.3}},
    "unequal words": {
        "topic_model": {"word_probabilities": [0.28, 0.2, 0.14, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02]}
    },
}


@dataclass(frozen=True)
class Found:
    """The value matrices of every setting, and what each relaxed world shows."""

    settings: dict[str, list[Blocks]]
    worlds: dict[str, World]
    config: training.RunConfig


def measure(context: Context) -> Found:
    runs = {
        name: train_many(
            context,
            steps=context.pick(800, 3000),
            optimizer={"lr": 0.01},
            model={"prediction_bias": "none"},
            data={"documents": 4000, "dev_documents": 200},
            **change,
        )
        for name, change in VARIATIONS.items()
    }
    return Found(
        {name: [blocks_of(run) for run in here] for name, here in runs.items()},
        measure_worlds(context),
        next(iter(runs.values()))[0].config,
    )


def judge(found: Found) -> Outcome:
    contrasts = {name: contrast(runs) for name, runs in found.settings.items()}
    spreads = {name: mean_spread(runs) for name, runs in found.settings.items()}
    shown, worlds = list(contrasts.values()), found.worlds
    blocks = sum(c.above_zero for c in shown)
    holds = [world.holds for world in worlds.values()]
    worst = max(worlds, key=lambda name: worlds[name].distance.mean)
    open_worlds = [name for name, world in worlds.items() if world.holds is None]
    rows = [
        [name, str(c), f"{c.mean / spreads[name]:.2g}", "yes" if c.above_zero else "no"]
        for name, c in contrasts.items()
    ]
    return Outcome(
        paper="conclusions are robust (no numbers)",
        theory="the same-topic mean of W* is above its different-topic mean; W(t) is the value matrix at time t",
        measured=f"{blocks} of {len(shown)} settings show blocks; {sum(h is True for h in holds)} of {len(holds)} "
        f"relaxed worlds are as predicted, the largest relative distance to W(t) is {worlds[worst].distance} ({worst})",
        verdict=all_of([*(c.above_zero for c in shown), *holds]),
        reason=f"the same-topic minus different-topic mean of W_V is above zero (95% over seeds) in {blocks} of "
        f"{len(shown)} settings with trained attention; in {sum(h is True for h in holds)} of {len(holds)} worlds with "
        f"uniform attention it is too, and W_V is within {100 * TOLERANCE:g}% of W(t) and nearer to this W(t) than to "
        "that of the unrelaxed world"
        + (f". Larger batches would decide: {', '.join(open_worlds)}" if open_worlds else ""),
        figures=[
            worlds_figure(worlds),
            matrices_figure(worlds),
            Figure(
                "assumptions-settings",
                "Same-topic minus different-topic mean of W_V under other settings, attention trained",
                "Means with 95% intervals for ten settings; blocks survive above zero.",
                [
                    Points(
                        "contrast",
                        list(contrasts),
                        [by_category("contrast", shown)],
                        "same minus different topic",
                        [(0.0, "none")],
                    )
                ],
                columns=1,
            ),
        ],
        tables=[
            worlds_table(worlds),
            changes_table(worlds),
            TableData(
                "Contrast of W_V (same-topic minus different-topic mean) and spread (standard deviation of its "
                "different-topic entries); attention trained, cross entropy",
                ["setting", "contrast (95%)", "contrast / spread", "blocks"],
                rows,
            ),
        ],
        numbers={name: {"contrast": asdict(c), "spread": spreads[name]} for name, c in contrasts.items()}
        | {"worlds": {name: world.numbers() for name, world in worlds.items()}},
        config=found.config.as_dict(),
        ours=worlds[worst].distance.mean,
    )


EXPERIMENT = Experiment(
    id="assumptions",
    claim="The block pattern survives where an assumption is relaxed, and W(t) predicts the value matrix in training.",
    rule="With trained attention, in every setting the same-topic minus different-topic mean of W_V has a 95% interval "
    "above zero. With uniform attention (squared loss, SGD from zero), in every relaxed world: that mean is above zero "
    "in W* and, 95% over seeds, after training; the 95% interval of the relative distance to W(t) is at most "
    f"{TOLERANCE:g} (Frobenius norm, last step); and this distance is smaller, 95% over seeds, than that to W(t) of "
    f"the unrelaxed world. Undecided where the interval of a distance has {TOLERANCE:g} inside, or that of the "
    "difference of both distances has zero inside. Revised after a first run: the first rule did not compare with the "
    "unrelaxed world, and two worlds were within the limit of both matrices. Documents of 5 words were tried and left "
    "out: at seed 0 they were 6.7% from W(t), and 2.8% [2.5, 3.0] with six times as many documents.",
    measure=measure,
    judge=judge,
    seconds=40,
    number=Number(
        "worst distance to W(t)",
        "Frobenius norm of the trained W_V minus the predicted W(t), over the norm of W(t) (a ratio; 0 in theory), "
        "mean over seeds, largest over relaxed worlds; the paper prints no number",
    ),
)
