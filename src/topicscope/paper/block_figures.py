"""What Figures 1, 2, 9 and 10 share: four panels of a matrix over words, their settings, and the verdict rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from topicscope.figures import Figure, Heat, TableData
from topicscope.measure import Estimate, estimate
from topicscope.paper.experiment import Context, train_many
from topicscope.paper.outcome import Outcome
from topicscope.training import Run

PAIRS = (("cross-entropy", "sgd"), ("cross-entropy", "adam"), ("squared", "sgd"), ("squared", "adam"))
"""The four panels: top cross entropy, bottom squared; left SGD, right Adam."""

SGD_LR = {"cross-entropy": 1.0, "squared": 0.3}
"""The paper's SGD has lr .01 for some 100,000 steps; a rate so many times larger follows the same path in fewer.

Squared loss has curvature 2 along the prediction bias, so that its rate has to stay below 1.
"""

RULE = (
    "For each panel the mean over words of the same topic minus that over different topics, diagonal left out: "
    "its 95% interval over seeds excludes zero from above. A run that diverges counts against its panel."
)


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


def train_pairs(context: Context, settings: Callable[[str, str], dict[str, Any]]) -> list[list[Run]]:
    """The runs of each panel."""
    return [train_many(context, settings(loss, method)) for loss, method in PAIRS]


def contrast(runs: Sequence[Run], which: str) -> Estimate:
    """Same-topic minus different-topic mean, diagonal left out, over seeds. `which`: 'value' or 'gram'."""
    return estimate([run.results[which]["same"] - run.results[which]["different"] for run in runs])


def spread(matrix: np.ndarray, topics: np.ndarray) -> float:
    """Standard deviation of the different-topic entries: what the contrast has to stand out from."""
    words = topics > 0
    inner = matrix[np.ix_(words, words)]
    return float(inner[topics[words][:, None] != topics[words]].std())


def matrix_of(run: Run, which: str) -> np.ndarray:
    return run.weights["value"] if which == "value" else run.weights["embedding"].T @ run.weights["embedding"]


def heat(title: str, matrix: np.ndarray, run: Run) -> Heat:
    model = run.config.topic_model
    low, high = np.quantile(matrix, [0.002, 0.998])
    rounded = np.round(matrix.astype(float), 6).tolist()
    return Heat(
        title, rounded, topics=model.topics, words_per_topic=model.words_per_topic, low=float(low), high=float(high)
    )


def is_diagonal(runs: Sequence[Run]) -> bool:
    """The special case of Figure 1: a Gram matrix whose diagonal has grown and stands above everything else.

    Near-zero embeddings have a diagonal too, so it has to have doubled from the start.
    """
    grown = estimate([run.results["gram"]["diagonal"] - 2 * float(run.metrics["gram_diagonal"][0]) for run in runs])
    above = estimate([run.results["gram"]["diagonal"] - run.results["gram"]["same"] for run in runs])
    return grown.above_zero and above.above_zero


def four_panels(
    name: str,
    what: str,
    which: str,
    panels: Sequence[Sequence[Run]],
    paper_means: Sequence[tuple[float, float, float]],
    weak: Sequence[int] = (),
) -> Outcome:
    """`weak`: panels that show no blocks in the paper itself, and do not decide the verdict. In a Gram matrix 'diagonal' is good too."""
    rows: list[list[str]] = []
    numbers: dict[str, Any] = {}
    found_patterns: list[str] = []
    heats: list[Any] = []
    for (loss, method), runs, printed in zip(PAIRS, panels, paper_means, strict=True):
        found = contrast(runs, which)
        means = {key: estimate([run.results[which][key] for run in runs]) for key in ("same", "different", "diagonal")}
        noise = float(np.mean([spread(matrix_of(run, which), run.config.topic_model.topic_of_word) for run in runs]))
        lost = sum(run.status == "diverged" for run in runs)
        pattern = f"{lost} of {len(runs)} diverged" if lost else "blocks" if found.above_zero else "neither"
        if pattern == "neither" and which == "gram" and is_diagonal(runs):
            pattern = "diagonal"
        found_patterns.append(pattern)
        label = f"{loss}, {method.upper() if method == 'sgd' else 'Adam'}"
        heats.append(heat(label, matrix_of(runs[0], which), runs[0]))
        paper = " / ".join(f"{x:g}" for x in printed)
        measured = " / ".join(f"{means[key].mean:.3g}" for key in ("same", "different", "diagonal"))
        rows.append([label, paper, measured, str(found), f"{found.mean / noise:.2g}", pattern])
        numbers[label] = {
            "contrast": found.__dict__,
            "contrasts": [run.results[which]["same"] - run.results[which]["different"] for run in runs],
            "means": {k: v.mean for k, v in means.items()},
            "spread": noise,
            "seeds": found.runs,
            "pattern": pattern,
        }
    good = all(pattern in {"blocks", "diagonal"} for i, pattern in enumerate(found_patterns) if i not in weak)
    table = TableData(
        "Means of the entries: same topic / different topic / diagonal",
        ["panel", "paper", "measured", "contrast (95%)", "contrast / spread", "pattern"],
        rows,
    )
    figure = Figure(
        name, what, f"Four heat maps of {what}, words ordered by topic; blocks on the diagonal are topics.", heats
    )
    order = "same minus different topic, in order: "
    return Outcome(
        order + ", ".join(f"{same - different:.3g}" for same, different, _ in paper_means),
        "blocks: same topic above different topic",
        order + ", ".join(f"{numbers[row[0]]['contrast']['mean']:.3g}" for row in rows),
        "reproduced" if good else "not reproduced",
        "; ".join(f"{row[0]}: {row[5]}" for row in rows)
        + f". SGD runs at {SGD_LR['cross-entropy']:g} and {SGD_LR['squared']:g} for the paper's .01, in fewer steps: sizes are not comparable, patterns are",
        [figure],
        [table],
        numbers,
        panels[0][0].config.as_dict(),
    )
