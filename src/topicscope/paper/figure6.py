"""Figure 6: a value matrix that came out diagonal."""

from dataclasses import dataclass

import numpy as np

from topicscope import training
from topicscope.pages import Figure
from topicscope.paper.blocks import DIAGONAL_RULE, RELATIONS, Blocks, WordMatrix, blocks_of
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, train_many, verdict
from topicscope.theory import Setting


@dataclass(frozen=True)
class ValueRun:
    """The value matrix of one run, and its means."""

    blocks: Blocks
    matrix: WordMatrix
    config: training.RunConfig


def measure(context: Context) -> list[ValueRun]:
    runs = train_many(
        context,
        steps=context.pick(2500, 5000),
        optimizer={"lr": 0.003},
        objective={"loss": "squared-mean"},
        model={"prediction_bias": "none"},
    )
    return [ValueRun(blocks_of(run), WordMatrix.of(run.weights["value"], run), run.config) for run in runs]


def judge(found: list[ValueRun]) -> Outcome:
    diagonal = sum(run.blocks.diagonal_stands_out for run in found)
    best = max(found, key=lambda run: run.blocks.diagonal - run.blocks.same)
    words = best.matrix.values[1:, 1:].astype(float)
    rest = words[~np.eye(len(words), dtype=bool)]
    return Outcome(
        paper="mean of the diagonal 1.02, of all other entries about 0 (standard deviation .21), one run",
        theory=f"the diagonal optimum has c3 = {Setting.of().constants.c3:.3g} on the diagonal",
        measured=f"in the run with the clearest diagonal: mean of the diagonal {best.blocks.diagonal:.3g}, of all "
        f"other entries {rest.mean():.2g} (standard deviation {rest.std():.2g})",
        verdict=verdict(diagonal > 0),
        reason=f"{diagonal} of {len(found)} runs without L2 came out diagonal",
        figures=[
            Figure(
                "figure6",
                "A value matrix that came out diagonal",
                "Heat map of the value matrix: a bright diagonal, no blocks.",
                [best.matrix.heat("W_V, squared loss, Adam .003")],
                columns=1,
            )
        ],
        numbers={"diagonal": [{name: getattr(run.blocks, name) for name in RELATIONS} for run in found]},
        config=best.config.as_dict(),
        ours=best.blocks.diagonal,
    )


EXPERIMENT = Experiment(
    id="figure6",
    claim="Without L2 the trained value matrix is sometimes diagonal.",
    rule=f"At least one run without L2 is diagonal. {DIAGONAL_RULE}",
    measure=measure,
    judge=judge,
    seconds=6,
    number=Number(
        "mean of the diagonal",
        "mean diagonal entry of W_V in the run with the clearest diagonal (weights have no unit)",
        (1.02, 1.02),
        "the paper shows one run whose steps are not printed, and entries grow as long as training goes on",
    ),
)
