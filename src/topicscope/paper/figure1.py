"""Figure 1: inner products of the trained embeddings, everything trained; blocks come first, the diagonal later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topicscope.pages import Figure, Lines, Series
from topicscope.paper.blocks import (
    RELATIONS,
    RULE,
    Panel as BlockPanel,
    contrast_number,
    judge_panels,
    panel_of,
    train_panels,
)
from topicscope.paper.experiment import Context, Experiment, Outcome


@dataclass(frozen=True)
class Path:
    """Means of the Gram matrix of one run, step by step."""

    same: np.ndarray
    different: np.ndarray
    diagonal: np.ndarray


@dataclass(frozen=True)
class Panel(BlockPanel):
    """The runs of a panel with their paths."""

    paths: list[Path]


def measure(context: Context) -> list[Panel]:
    """Everything trained, embedding and head tied."""
    return [
        Panel(
            **vars(panel_of(runs, "gram")),
            paths=[Path(*(run.metrics[f"gram_{name}"] for name in RELATIONS)) for run in runs],
        )
        for runs in train_panels(context, {"embedding": "trained"})
    ]


def judge(found: list[Panel]) -> Outcome:
    outcome = judge_panels(
        found,
        name="figure1",
        what="W_E'W_E, everything trained",
        paper_means=[(0.156, -0.016, 0.188), (6.44, -0.70, 19.0), (-0.0004, 0, 0.0398), (0.018, -0.002, 0.171)],
        weak=(2,),
        diagonal_counts=True,
    )
    paths = Figure(
        "figure1-path",
        "When blocks come and go",
        "Same-topic minus different-topic mean, and diagonal minus same-topic mean, of W_E'W_E against training steps.",
        [path_lines(panel.label, panel.paths) for panel in found],
    )
    return replace(outcome, figures=[*outcome.figures, paths])


def path_lines(title: str, paths: Sequence[Path]) -> Lines:
    """Same minus different topic, and diagonal minus same topic; the band is from the lowest to the highest seed."""
    length = min(len(path.same) for path in paths)
    at = np.unique(np.geomspace(1, length, 150).astype(int)) - 1
    curves = {
        "same minus different topic": np.array([(path.same - path.different)[at] for path in paths]),
        "diagonal minus same topic": np.array([(path.diagonal - path.same)[at] for path in paths]),
    }
    series = [
        Series(name, (at + 1.0).tolist(), y.mean(0).tolist(), y.min(0).tolist(), y.max(0).tolist())
        for name, y in curves.items()
    ]
    return Lines(title, series, "step", "difference of means", log_x=True)


EXPERIMENT = Experiment(
    id="figure1",
    claim="The inner products of trained embeddings are block-wise by topic (special case: diagonal).",
    rule=RULE
    + " A panel without that contrast still passes if it is diagonal: the mean of the diagonal is above twice "
    "its start and above the same-topic mean (both differences have a 95% interval over seeds above zero). The "
    "squared-SGD panel looks untrained in the paper; it is shown and not judged.",
    measure=measure,
    judge=judge,
    seconds=40,
    number=contrast_number("W_E'W_E", 7.14),
)
