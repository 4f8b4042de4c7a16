"""Theorem 2: training the value matrix alone, on documents of growing length."""

from __future__ import annotations

import itertools

import numpy as np

from topicscope.figures import Figure, Lines, Series, TableData
from topicscope.measure import estimate
from topicscope.paper.block_figures import heat
from topicscope.paper.experiment import Context, Experiment, train_many
from topicscope.paper.infinite import INFINITE, verdict
from topicscope.paper.outcome import Outcome
from topicscope.theory import Setting, theorem2 as closed_form
from topicscope.training import Run

LENGTHS: tuple[int | str, ...] = (100, 1000, 10_000, "infinite")


def theorem2(context: Context) -> Outcome:
    distances: dict[str, list[float]] = {}
    last: list[Run] = []
    s = Setting.of(10, 10, 3)
    exact = closed_form(s)
    matrix = exact.matrix()
    for length in LENGTHS:
        count = (
            120 if length == "infinite" else context.pick(2000, 10_000) if length != 10_000 else context.pick(400, 2000)
        )
        settings = INFINITE | {
            "steps": context.pick(600, 2000),
            "batch_size": 40,
            "data": {"documents": count, "dev_documents": 100},
            "optimizer": {"name": "sgd", "lr": 10.0},
            "documents": {"kind": "fixed", "topics_per_document": 3, "length": length},
            "objective": {"loss": "squared", "l2": {"value": 1e-7}},
            "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
        }
        last = train_many(context, settings)
        distances[str(length)] = [
            float(np.linalg.norm(run.weights["value"] - matrix) / np.linalg.norm(matrix)) for run in last
        ]
    means = [estimate(values) for values in distances.values()]
    falls = all(a.mean > b.mean for a, b in itertools.pairwise(means))
    final = means[-1].mean
    x = [100.0, 1000.0, 10_000.0, 100_000.0]
    line = Lines(
        "distance to Theorem 2",
        [
            Series(
                "trained",
                x,
                [m.mean for m in means],
                [max(m.low, 0) for m in means],
                [m.high for m in means],
                markers=True,
            )
        ],
        "document length N (last: infinite)",
        "relative distance",
        log_x=True,
        log_y=True,
    )
    figures = [
        Figure(
            "theorem2",
            "Training against the closed form",
            "Left: the trained value matrix on infinite documents. Right: its distance to Theorem 2 falls as documents grow.",
            [heat("W_V, infinite documents", last[0].weights["value"], last[0]), line],
        )
    ]
    rows = [[length, str(m)] for length, m in zip(distances, means, strict=True)]
    return Outcome(
        "W_V converges to three constants",
        f"same topic {exact.same_topic:.5f}, different {exact.different_topic:.6f}, [MASK] {exact.mask_column:.5f}",
        "; ".join(f"N = {row[0]}: {row[1]}" for row in rows),
        verdict(falls and final < 1e-3),
        f"relative distance on infinite documents {final:.2g}; it falls with N: {'yes' if falls else 'no'}",
        figures,
        [TableData("Relative distance of the trained W_V to Theorem 2", ["length", "distance (95%)"], rows)],
        {"distance": distances},
        last[0].config.as_dict(),
    )


EXPERIMENT = Experiment(
    "theorem2",
    "Under uniform attention and vanishing L2 the value matrix converges to Theorem 2.",
    "The relative distance of the trained matrix falls with document length and is below .001 on infinite documents.",
    theorem2,
    40,
)
