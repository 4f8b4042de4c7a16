"""An experiment of the paper, and what all of them share: scales, seeds, training, block patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from topicscope.measure import Estimate, estimate
from topicscope.paper.outcome import Figure, Heat, Outcome, TableData
from topicscope.training import Run, build_config, seeds, train

ScaleName = Literal["quick", "full"]


@dataclass(frozen=True)
class Context:
    """How large, and from which seed; every random draw follows from it."""

    scale: ScaleName = "quick"
    seed: int = 0

    @property
    def runs(self) -> int:
        """Seeds of each setting."""
        return 3 if self.scale == "quick" else 5

    def pick(self, quick: int, full: int) -> int:
        return quick if self.scale == "quick" else full


@dataclass(frozen=True)
class Experiment:
    """`claim` is the paper's; `rule` decides the verdict and is fixed here, before any run."""

    id: str
    claim: str
    rule: str
    run: Callable[[Context], Outcome]
    seconds: int  # roughly, quick scale, one core


def train_many(context: Context, settings: dict[str, Any], count: int | None = None) -> list[Run]:
    """The same run with several seeds, as one ensemble on one thread."""
    config = build_config({"device": "cpu", "evaluate_every": None, "seed": 1000 * context.seed, **settings})
    return train(seeds(config, count or context.runs), with_floors=False)


PAIRS = (("cross-entropy", "sgd"), ("cross-entropy", "adam"), ("squared", "sgd"), ("squared", "adam"))
"""The four panels of Figures 1, 2, 9 and 10: top cross entropy, bottom squared; left SGD, right Adam."""

SGD_LR = 1.0
"""The paper's SGD has lr .01 for some 100,000 steps; 1.0 for a hundredth of the steps follows the same path."""


def optimizer(name: str) -> dict[str, Any]:
    return {"name": name, "lr": SGD_LR if name == "sgd" else 0.01}


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
    return Heat(title, rounded, topics=model.topics, words_per_topic=model.words_per_topic, low=float(low), high=float(high))


def four_panels(
    context: Context,
    name: str,
    what: str,
    which: str,
    settings: Callable[[str, str], dict[str, Any]],
    paper_means: Sequence[tuple[float, float, float]],
    weak: Sequence[int] = (),
) -> Outcome:
    """Figures 1, 2, 9 and 10. `weak`: panels that show no blocks in the paper itself, and do not decide the verdict."""
    panels: list[Any] = []
    rows: list[list[str]] = []
    numbers: dict[str, Any] = {}
    shown: list[bool] = []
    config: dict[str, Any] = {}
    for i, (loss, method) in enumerate(PAIRS):
        runs = train_many(context, settings(loss, method))
        config = runs[0].config.as_dict()
        first = runs[0]
        found = contrast(runs, which)
        means = {key: estimate([run.results[which][key] for run in runs]) for key in ("same", "different", "diagonal")}
        noise = float(np.mean([spread(matrix_of(run, which), run.config.topic_model.topic_of_word) for run in runs]))
        shown.append(found.above_zero)
        label = f"{loss}, {method.upper() if method == 'sgd' else 'Adam'}"
        panels.append(heat(label, matrix_of(first, which), first))
        paper = " / ".join(f"{x:g}" for x in paper_means[i])
        measured = " / ".join(f"{means[key].mean:.3g}" for key in ("same", "different", "diagonal"))
        rows.append([label, paper, measured, str(found), f"{found.mean / noise:.2g}", "yes" if found.above_zero else "no"])
        numbers[label] = {"contrast": found.__dict__, "means": {k: v.mean for k, v in means.items()}, "spread": noise, "seeds": found.runs}
    decisive = [ok for i, ok in enumerate(shown) if i not in weak]
    verdict = "reproduced" if all(decisive) else "not reproduced"
    good = f"{sum(shown)} of 4 panels show blocks: same-topic minus different-topic mean has a 95% interval above zero"
    table = TableData(
        "Means of the entries: same topic / different topic / diagonal", ["panel", "paper", "measured", "contrast (95%)", "contrast / spread", "blocks"], rows
    )
    figure = Figure(name, what, f"Four heat maps of {what}, words ordered by topic; blocks on the diagonal are topics.", panels)
    order = "same minus different topic, in order: "
    measured_text = order + ", ".join(f"{numbers[row[0]]['contrast']['mean']:.3g}" for row in rows)
    paper_text = order + ", ".join(f"{means[0] - means[1]:.3g}" for means in paper_means)
    return Outcome(paper_text, "blocks: same topic above different topic", measured_text, verdict, good, [figure], [table], numbers, config)  # type: ignore[arg-type]
