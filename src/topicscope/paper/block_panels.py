"""What Figures 1, 2, 9 and 10 share: four panels of a matrix over words, their settings, and the verdict rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from topicscope import training
from topicscope.figures import Figure, TableData
from topicscope.measure import estimate
from topicscope.paper.blocks import (
    RELATIONS,
    Blocks,
    Which,
    WordMatrix,
    blocks_of,
    contrast,
    diagonal_has_doubled,
    matrix_of,
)
from topicscope.paper.experiment import Context, train_many
from topicscope.paper.outcome import Outcome, verdict

PAIRS = (("cross-entropy", "sgd"), ("cross-entropy", "adam"), ("squared", "sgd"), ("squared", "adam"))
"""The four panels: top cross entropy, bottom squared; left SGD, right Adam."""

SGD_LR = {"cross-entropy": 1.0, "squared": 0.3}
"""The paper's SGD has lr .01 for some 100,000 steps; a larger rate follows the same path in fewer steps.

Squared loss has curvature 2 along the prediction bias, so that its rate has to stay below 1.
"""

RULE = (
    "For each panel the mean over words of the same topic minus that over different topics, diagonal left out: "
    "its 95% interval over seeds excludes zero from above. A run that diverges counts against its panel."
)

Means = tuple[float, float, float]
"""Same topic, different topic, diagonal."""


@dataclass(frozen=True)
class Panel:
    """The runs of one panel: what the matrix of each shows, and the matrix of the first."""

    loss: str
    method: str
    runs: list[Blocks]
    first: WordMatrix
    config: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.loss}, {'SGD' if self.method == 'sgd' else 'Adam'}"

    def pattern(self, *, diagonal_counts: bool) -> str:
        lost = sum(run.diverged for run in self.runs)
        if lost:
            return f"{lost} of {len(self.runs)} diverged"
        if contrast(self.runs).above_zero:
            return "blocks"
        return "diagonal" if diagonal_counts and diagonal_has_doubled(self.runs) else "neither"


def optimizer(loss: str, method: str) -> dict[str, Any]:
    return {"name": method, "lr": SGD_LR[loss] if method == "sgd" else 0.01}


def value_settings(context: Context, loss: str, method: str, *, l2: float, attention: bool) -> dict[str, Any]:
    """Figures 2, 9 and 10: one-hot embedding, the value matrix trained, attention uniform or trained."""
    model = {} if attention else {"key": "zero", "query": "zero"}
    return {
        "steps": context.pick(1500, 5000),
        "model": model | {"prediction_bias": "none"},
        "objective": {"loss": loss, "l2": {"value": l2} if l2 else 0.0},
        "optimizer": optimizer(loss, method),
    }


def panel_of(loss: str, method: str, runs: Sequence[training.Run], which: Which) -> Panel:
    blocks, first = [blocks_of(run, which) for run in runs], WordMatrix.of(matrix_of(runs[0], which), runs[0])
    return Panel(loss, method, blocks, first, runs[0].config.as_dict())


def measure_values(context: Context, *, l2: float, attention: bool) -> list[Panel]:
    """The panels in the order of PAIRS."""
    return [
        panel_of(
            loss,
            method,
            train_many(context, value_settings(context, loss, method, l2=l2, attention=attention)),
            "value",
        )
        for loss, method in PAIRS
    ]


def judge_panels(
    panels: Sequence[Panel],
    name: str,
    what: str,
    paper_means: Sequence[Means],
    *,
    weak: Sequence[int] = (),
    diagonal_counts: bool = False,
) -> Outcome:
    """`weak`: panels that show no blocks in the paper itself, and do not decide the verdict."""
    patterns = {panel.label: panel.pattern(diagonal_counts=diagonal_counts) for panel in panels}
    contrasts = [contrast(panel.runs) for panel in panels]
    rows, numbers = [], {}
    for panel, shown, printed in zip(panels, contrasts, paper_means, strict=True):
        means = {key: estimate([getattr(run, key) for run in panel.runs]).mean for key in RELATIONS}
        noise = float(np.mean([run.spread for run in panel.runs]))
        rows.append(
            [
                panel.label,
                " / ".join(f"{x:g}" for x in printed),
                " / ".join(f"{x:.3g}" for x in means.values()),
                str(shown),
                f"{shown.mean / noise:.2g}",
                patterns[panel.label],
            ]
        )
        numbers[panel.label] = {
            "contrast": asdict(shown),
            "contrasts": [run.contrast for run in panel.runs],
            "means": means,
            "spread": noise,
            "seeds": shown.runs,
            "pattern": patterns[panel.label],
        }
    columns = ["panel", "paper", "measured", "contrast (95%)", "contrast / spread", "pattern"]
    heats: list[Any] = [panel.first.heat(panel.label) for panel in panels]
    alt = f"Four heat maps of {what}, words ordered by topic; blocks on the diagonal are topics."
    order = "same minus different topic, in order: "
    good = [pattern in {"blocks", "diagonal"} for i, pattern in enumerate(patterns.values()) if i not in weak]
    return Outcome(
        paper=order + ", ".join(f"{same - different:.3g}" for same, different, _ in paper_means),
        theory="blocks: same topic above different topic",
        measured=order + ", ".join(f"{shown.mean:.3g}" for shown in contrasts),
        verdict=verdict(all(good)),
        reason="; ".join(f"{label}: {pattern}" for label, pattern in patterns.items())
        + f". SGD runs at {SGD_LR['cross-entropy']:g} and {SGD_LR['squared']:g} for the paper's .01, in fewer steps: "
        "sizes are not comparable, patterns are",
        figures=[Figure(name, what, alt, heats)],
        tables=[TableData("Means of the entries: same topic / different topic / diagonal", columns, rows)],
        numbers=numbers,
        config=panels[0].config,
    )
