"""What the sandbox may show: matrices over words and attention by relation, built by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topicscope.measure import AttentionMeans
from topicscope.paper import matrices
from topicscope.paper.attention_tables import AttentionRow
from topicscope.paper.matrices import PAIRS, Blocks, Panel, WordMatrix
from topicscope.training import RunConfig

SEEDS = (-0.01, 0.0, 0.01)
"""What three seeds differ by."""


HALF = 4.3027 * 0.01 / 3**0.5
"""Half of their 95% interval: Student's t with two degrees of freedom."""


CONFIG = RunConfig(seed=0)


def changed(items: Sequence[Any], number: int, **changes: Any) -> list[Any]:
    """The list with other fields in one item."""
    return [replace(item, **changes) if i == number else item for i, item in enumerate(items)]


def matrix() -> WordMatrix:
    """Two topics of two words: blocks of 1 in zeros, and [MASK]."""
    topic = np.array([0, 1, 1, 2, 2])
    return WordMatrix((topic[:, None] == topic) * 1.0, 2, 2)


def block_runs(same: float = 0.3, different: float = -0.1, diagonal: float = 0.5) -> list[Blocks]:
    return [Blocks(same + shift, different, diagonal + shift, 0.2, diagonal_at_start=0.04) for shift in SEEDS]


def diagonal_runs() -> list[Blocks]:
    """No blocks, and a diagonal that has grown: the special case of Figure 1."""
    return block_runs(0.0, 0.0, 0.6)


def config_of(loss: str, method: str, lr: float = 0.01) -> RunConfig:
    return RunConfig.of({"objective": {"loss": loss}, "optimizer": {"name": method, "lr": lr}})


def panels() -> list[Panel]:
    return [Panel(block_runs(), matrix(), config_of(loss, method)) for loss, method in PAIRS]


def other_panel(number: int, runs: list[Blocks]) -> list[Panel]:
    return changed(panels(), number, runs=runs)


def weak_panels() -> dict[str, list[Panel]]:
    """What no panel of Figures 2, 9 and 10 may show."""
    one_low = [*block_runs()[:2], Blocks(-0.6, 0.0, 0.5, 0.2)]
    one_lost = [*block_runs()[:2], replace(block_runs()[2], diverged=True)]
    whole = {f"no contrast in panel {i}": other_panel(i, block_runs(0.0, 0.0)) for i in range(4)}
    return whole | {
        "interval below zero": other_panel(1, one_low),
        "contrast of exactly zero": other_panel(1, [Blocks(0.2, 0.2, 0.5, 0.1)] * 3),
        "one run of one panel diverged": other_panel(3, one_lost),
        "blocks of other topics": other_panel(0, block_runs(-0.3, 0.1)),
        "a diagonal instead of blocks": other_panel(2, diagonal_runs()),
    }


def gram_panels(number: int = 0, runs: list[Blocks] | None = None) -> list[matrices.GramPanel]:
    steps = np.arange(1.0, 401)
    paths = [matrices.GramPath(steps + seed, 0.5 * steps, 2 * steps + seed) for seed in range(3)]
    made = [matrices.GramPanel(**vars(panel), paths=paths) for panel in panels()]
    return made if runs is None else changed(made, number, runs=runs)


def small_diagonal(start: float, same: float = 0.0) -> list[Blocks]:
    return [Blocks(same, same, 0.6, 0.2, diagonal_at_start=start)] * 3


def attention_row(
    loss: str, method: str, lr: float, means: Sequence[AttentionMeans], runs: Sequence[Blocks]
) -> AttentionRow:
    config = config_of(loss, method, lr * (1000 if method == "sgd" else 1))
    return AttentionRow(lr, list(runs), list(means), config)


def topic_attention(same: float = 0.011, different: float = 0.007) -> list[AttentionMeans]:
    return [AttentionMeans(0.008 + shift / 100, same + shift / 100, different) for shift in SEEDS]


def block_rows(
    number: int = 0, means: list[AttentionMeans] | None = None, runs: list[Blocks] | None = None
) -> list[AttentionRow]:
    """Table 3, with other means or value matrices in one row."""
    rates = [("adam", 0.003), ("adam", 0.01), ("adam", 0.03), ("sgd", 0.01), ("sgd", 0.03)]
    return [
        attention_row(
            "cross-entropy",
            method,
            lr,
            (means if means and i == number else topic_attention()),
            (runs if runs and i == number else block_runs()),
        )
        for i, (method, lr) in enumerate(rates)
    ]


OWN_WORD = [AttentionMeans(0.09 + shift, 0.0018, 0.0026) for shift in SEEDS]
"""The order of Table 4: same word, different topic, same topic."""


def diagonal_rows(
    number: int = 0, means: list[AttentionMeans] | None = None, runs: list[Blocks] | None = None
) -> list[AttentionRow]:
    """Table 4: one run of each setting is diagonal, two are not and have another order; other numbers in one row."""
    blockwise = block_runs(0.3, -0.1, 0.4)
    mixed = [blockwise[0], Blocks(0.0, 0.0, 0.6), blockwise[2]]
    wrong = AttentionMeans(0.01, 0.02, 0.005)
    settings = itertools.product(("cross-entropy", "squared-mean"), (0.003, 0.01))
    return [
        attention_row(
            loss,
            "adam",
            lr,
            means if means and i == number else [wrong, OWN_WORD[1], wrong],
            runs if runs and i == number else mixed,
        )
        for i, (loss, lr) in enumerate(settings)
    ]


def no_cross_entropy_diagonals() -> list[AttentionRow]:
    flat: dict[str, Any] = {"blocks": block_runs(0.3, -0.1, 0.4), "attention": [OWN_WORD[0]] * 3}
    return [replace(row, **flat) if row.config.objective.loss == "cross-entropy" else row for row in diagonal_rows()]


def one_cross_entropy_diagonal() -> list[AttentionRow]:
    rows, row = no_cross_entropy_diagonals(), diagonal_rows()[1]
    return changed(rows, 1, blocks=row.blocks, attention=row.attention)


def no_diagonals() -> list[AttentionRow]:
    """Only the runs of Table 4 that are not diagonal."""
    return [replace(row, blocks=row.blocks[::2], attention=row.attention[::2]) for row in diagonal_rows()]


def value_runs(same: float, different: float, diagonal: float) -> list[matrices.ValueRun]:
    """Figure 6: the second of three runs has these means; the others have blocks."""
    means = [Blocks(0.3, -0.1, 0.4), Blocks(same, different, diagonal), Blocks(0.2, -0.1, 0.4)]
    return [matrices.ValueRun(blocks, matrix(), RunConfig(seed=seed)) for seed, blocks in enumerate(means)]
