"""Table 4: mean attention by relation where the value matrix came out diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from topicscope.figures import TableData
from topicscope.paper.attention_rows import (
    AttentionRow,
    AttentionRun,
    Triple,
    attention_cells,
    attention_estimates,
    attention_figure,
    paper_cell,
    train_row,
)
from topicscope.paper.blocks import DIAGONAL_RULE
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome, verdict
from topicscope.theory import Setting, theorem5

PAPER: dict[float, Triple] = {0.003: (0.0916, 0.00185, 0.00256), 0.01: (0.0918, 0.00182, 0.00256)}
"""By learning rate, cross entropy."""


def measure(context: Context) -> list[AttentionRow]:
    """Cross entropy, then squared loss, at each rate."""
    return [
        train_row(
            context,
            {
                "steps": context.pick(2500, 10_000),
                "optimizer": {"lr": lr},
                "objective": {"loss": loss},
                "model": {"prediction_bias": "none"},
            },
            lr,
        )
        for loss in ("cross-entropy", "squared-mean")
        for lr in PAPER
    ]


def ordered(runs: Sequence[AttentionRun]) -> bool:
    """Whether every run attends the same word most, then other topics, the own topic least."""
    return all(run.attention.same_word > run.attention.different_topic > run.attention.same_topic for run in runs)


def judge(found: list[AttentionRow]) -> Outcome:
    setting = Setting.of(10, 10, 3)
    diagonal = {
        f"{row.loss}, Adam {row.lr:g}": [run for run in row.runs if run.blocks.diagonal_stands_out] for row in found
    }
    means = {label: attention_estimates(runs) for label, runs in diagonal.items() if runs}
    orders = {label: ordered(runs) for label, runs in diagonal.items() if runs}
    counts = {
        label: f"{len(runs)} of {len(row.runs)}" for (label, runs), row in zip(diagonal.items(), found, strict=True)
    }
    rows = [
        [
            label,
            paper_cell(PAPER[row.lr]),
            *(attention_cells(means[label]) if label in means else ["-"] * 3),
            counts[label],
            ("yes" if orders[label] else "no") if label in orders else "-",
        ]
        for label, row in zip(diagonal, found, strict=True)
    ]
    numbers = {
        label: {
            "means": [mean.mean for mean in means[label]],
            "alpha": [run.attention.alpha for run in runs],
            "beta": [run.attention.beta for run in runs],
            "inside_theorem5": [theorem5(setting).contains(run.attention.alpha, run.attention.beta) for run in runs],
        }
        for label, runs in diagonal.items()
        if runs
    }
    entropy = any(runs for row, runs in zip(found, diagonal.values(), strict=True) if row.loss == "cross-entropy")
    columns = ["loss and rate", "paper (cross entropy)", "same word", "same topic", "different topic"]
    columns += ["diagonal runs", "order as claimed"]
    alt = "Mean attention by relation in runs whose value matrix came out diagonal."
    return Outcome(
        paper="same word .092 > different topic .0026 > same topic .0018, in 7 of 10 cross-entropy runs",
        theory="Theorem 5: beta large, alpha a small fraction of it",
        measured="diagonal runs: " + ", ".join(f"{count} ({label})" for label, count in counts.items()),
        verdict=verdict(entropy and all(orders.values())),
        reason=f"diagonal runs: {', '.join(f'{len(runs)} ({label})' for label, runs in diagonal.items())}. "
        f"{DIAGONAL_RULE} In the runs that came out diagonal the order same word > different topic > same topic holds "
        f"in {sum(orders.values())} of {len(orders)} settings",
        figures=[attention_figure("table4", "Attention by relation, diagonal W_V", alt, means)] if means else [],
        tables=[TableData("Diagonal runs", columns, rows)],
        numbers=numbers,
        config=found[0].config,
    )


EXPERIMENT = Experiment(
    id="table4",
    claim="With diagonal W_V (cross entropy) words attend themselves most, then other topics, their own topic least.",
    rule="At least one cross-entropy run is diagonal, and every diagonal run has the order "
    f"same word > different topic > same topic. {DIAGONAL_RULE}",
    measure=measure,
    judge=judge,
    seconds=40,
)
