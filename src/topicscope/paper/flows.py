"""Training under uniform attention beside gradient flow: what `assumptions`, `coarse-to-fine` and `topic-order` share.

SGD on the squared loss from zero, so that W(t) of `theory.optimum` says where every step should be (t = rate x step).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope import training
from topicscope.ground import merged
from topicscope.pages import Verdict
from topicscope.paper.experiment import Context, train_many, verdict

FLOW: dict[str, Any] = {
    "dtype": "float64",
    "objective": {"loss": "squared"},
    "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
    "data": {"documents": 20_000, "dev_documents": 50},
    "batch_size": 200,
}


def train_flow(context: Context, rate: float, steps: int, kept: int = 0, **settings: Any) -> list[training.Run]:
    """Only the value matrix is trained, by SGD of this rate; `kept` matrices of its course are kept.

    The full scale has four times the steps in the same time of flow.
    """
    finer = context.pick(1, 4)
    total = finer * steps
    own: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": rate / finer}, "steps": total}
    own |= {"snapshots": list(range(0, total + 1, total // kept))} if kept else {}
    return train_many(context, **merged(FLOW | own, settings))


def time_of(run: training.Run, step: int | None = None) -> float:
    """Gradient-flow time of a step; of the last one where none is given."""
    return run.config.optimizer.lr * (run.config.total_steps if step is None else step)


def half_way(times: Float[np.ndarray, " S"], shares: Float[np.ndarray, " S"]) -> float:
    """When a share of the end first reaches one half, between two times by a straight line; NaN where it does not."""
    above = np.flatnonzero(shares >= 0.5)
    if not len(above):
        return float("nan")
    after = int(above[0])
    if after == 0:
        return float(times[0])
    low, high = shares[after - 1 : after + 1]
    return float(times[after - 1] + (0.5 - low) / (high - low) * (times[after] - times[after - 1]))


def all_of(checks: list[bool | None]) -> Verdict:
    """Not reproduced where one check fails; undecided where none fails and one says nothing (None)."""
    if False in checks:
        return verdict(False)
    return "undecided" if None in checks else verdict(True)
