"""Theorem 2: training the value matrix alone, on documents of growing length."""

import itertools
from dataclasses import dataclass

import numpy as np

from topicscope import training
from topicscope.measure import estimate
from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.blocks import WordMatrix
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, train_many, verdict
from topicscope.theory import Setting, theorem2

DOCUMENTS: dict[int | str, tuple[int, int]] = {
    100: (2000, 10_000),
    1000: (2000, 10_000),
    10_000: (400, 2000),
    "infinite": (120, 120),
}
"""By length, their number at quick and at full scale: fewer where they are long."""


@dataclass(frozen=True)
class Found:
    """Relative distance to Theorem 2 by document length and seed; W_V of the first run on infinite documents."""

    distance: dict[str, list[float]]
    value: WordMatrix
    config: training.RunConfig


def measure(context: Context) -> Found:
    exact = theorem2(Setting.of(10, 10, 3)).matrix()
    runs = {
        str(length): train_many(
            context,
            dtype="float64",
            steps=context.pick(600, 2000),
            batch_size=40,
            data={"documents": context.pick(*counts), "dev_documents": 100},
            optimizer={"name": "sgd", "lr": 10.0},
            documents={"kind": "fixed", "topics_per_document": 3, "length": length},
            objective={"loss": "squared", "l2": {"value": 1e-7}},
            model={"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
        )
        for length, counts in DOCUMENTS.items()
    }
    size, last = np.linalg.norm(exact), runs["infinite"][0]
    distance = {
        length: [float(np.linalg.norm(run.weights["value"] - exact) / size) for run in here]
        for length, here in runs.items()
    }
    return Found(distance, WordMatrix.of(last.weights["value"], last), last.config)


def judge(found: Found) -> Outcome:
    exact = theorem2(Setting.of(10, 10, 3))
    distances = {length: estimate(values) for length, values in found.distance.items()}
    means = list(distances.values())
    falls = all(longer.mean < shorter.mean for shorter, longer in itertools.pairwise(means))
    x = [10.0 ** (2 + i) for i in range(len(means))]  # infinite stands beside 10,000, one decade on
    y, low, high = [m.mean for m in means], [max(m.low, 0) for m in means], [m.high for m in means]
    line = Lines(
        "distance to Theorem 2",
        [Series("trained", x, y, low, high, markers=True)],
        "document length N (last: infinite)",
        "|W_V - W*| / |W*|",
        log_x=True,
        log_y=True,
    )
    return Outcome(
        paper="W_V converges to three constants",
        theory=f"same topic {exact.same_topic:.5f}, different {exact.different_topic:.6f}, "
        f"[MASK] {exact.mask_column:.5f}",
        measured="|W_V - W*| / |W*|, W* of Theorem 2, for documents of N words: "
        + "; ".join(f"N = {length}: {distance}" for length, distance in distances.items()),
        verdict=verdict(falls and means[-1].mean < 1e-3),
        reason=f"|W_V - W*| / |W*| is {means[-1].mean:.2g} on infinite documents (below .001 asked); it falls from "
        f"each N to the next: {'yes' if falls else 'no'}",
        figures=[
            Figure(
                "theorem2",
                "Training against the closed form",
                "Left: the trained value matrix on infinite documents. "
                "Right: its distance to Theorem 2 falls as documents grow.",
                [found.value.heat("W_V, infinite documents"), line],
            )
        ],
        tables=[
            TableData(
                "Relative distance of the trained W_V to Theorem 2",
                ["length", "distance (95%)"],
                [[length, str(distance)] for length, distance in distances.items()],
            )
        ],
        numbers={"distance": found.distance},
        config=found.config.as_dict(),
        ours=means[-1].mean,
    )


EXPERIMENT = Experiment(
    id="theorem2",
    claim="Under uniform attention and vanishing L2 the value matrix converges to the matrix of Theorem 2.",
    rule="The distance |W_V - W*| / |W*| of the trained W_V to the matrix W* of Theorem 2 (Frobenius norms, mean over "
    "seeds) falls from each document length to the next and is below .001 on infinite documents.",
    measure=measure,
    judge=judge,
    seconds=40,
    number=Number(
        "distance to Theorem 2",
        "Frobenius norm of the trained W_V minus the matrix of Theorem 2, over the norm of that matrix (a ratio; 0 in "
        "theory), on infinite documents, mean over seeds",
    ),
)
