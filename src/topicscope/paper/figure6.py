"""Figure 6: a value matrix that came out diagonal."""

from __future__ import annotations

import numpy as np

from topicscope.figures import Figure
from topicscope.paper.attention_rows import DIAGONAL_RULE, is_diagonal
from topicscope.paper.block_figures import heat
from topicscope.paper.experiment import Context, Experiment, train_many
from topicscope.paper.outcome import Outcome
from topicscope.theory import Setting


def figure6(context: Context) -> Outcome:
    settings = {
        "steps": context.pick(2500, 5000),
        "optimizer": {"lr": 0.003},
        "objective": {"loss": "squared-mean"},
        "model": {"prediction_bias": "none"},
    }
    runs = train_many(context, settings)
    diagonal = [run for run in runs if is_diagonal(run)]
    best = max(runs, key=lambda run: run.results["value"]["diagonal"] - run.results["value"]["same"])
    inner = best.weights["value"][1:, 1:].astype(float)
    rest = inner[~np.eye(len(inner), dtype=bool)]
    measured = f"diagonal mean {best.results['value']['diagonal']:.3g}, rest {rest.mean():.2g} (sd {rest.std():.2g}); {len(diagonal)} of {len(runs)} runs"
    figure = Figure(
        "figure6",
        "A value matrix that came out diagonal",
        "Heat map of the value matrix: a bright diagonal, no blocks.",
        [heat("W_V, squared loss, Adam .003", best.weights["value"], best)],
        1,
    )
    return Outcome(
        "diagonal mean 1.02, rest about 0 (sd .21), one run",
        f"the diagonal optimum has c3 = {Setting.of().constants.c3:.3g} on the diagonal",
        measured,
        "reproduced" if diagonal else "not reproduced",
        f"{len(diagonal)} of {len(runs)} runs without L2 came out diagonal",
        [figure],
        [],
        {"diagonal": [run.results["value"] for run in runs]},
        best.config.as_dict(),
    )


EXPERIMENT = Experiment(
    "figure6",
    "Without L2 the trained value matrix is sometimes diagonal.",
    f"At least one run without L2 is diagonal. {DIAGONAL_RULE}",
    figure6,
    6,
)
