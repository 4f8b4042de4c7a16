"""The force on attention at finite documents: what is left of sigma times the projector on topic contrasts (R2).

    python tools/finite_force.py            # two minutes on one core
    python tools/finite_force.py --train    # and SGD on such documents: when key is half-way; five minutes more

Documents of N words are drawn and masked as `train` does. The force -dLoss/dL at uniform attention is averaged over
them at two value matrices: Theorem 2, where W_V stands after a time of order 1/lambda, and W* of this N, where it
stands after a time of order N T v. By symmetry the force has a number for each relation of key and query word.
"""

import argparse
import math
from typing import NamedTuple

import numpy as np

from topicscope import RunConfig, train
from topicscope.theory import Growth, optimum
from topicscope.world import Fixed, Masking, TopicModel

WORLDS = ((4, 3, 2), (5, 4, 2))
LENGTHS = (5, 10, 30, 100, 300, 1000)
BATCHES, WORDS = 20, 1_000_000  # of a batch; the standard error is that of the batches
MOST = 10_000  # documents of a batch


class Force(NamedTuple):
    """Mean force and standard error, over sigma: on topic contrasts, on differences inside a topic, on [MASK]."""

    contrasts: tuple[float, float]
    inside: tuple[float, float]
    mask: tuple[float, float]  # query [MASK], key [MASK]


def documents(world: tuple[int, int, int], length: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Shown shares x (B, V) and, summed over masked positions, P(true word, word shown) (B, V, V) of a batch."""
    topics, v, tau = world
    masking, size, batch = Masking(), topics * v + 1, min(MOST, WORDS // length)
    chosen = rng.random((batch, topics)).argsort(1)[:, :tau]
    topic = np.take_along_axis(chosen, rng.integers(tau, size=(batch, length)), 1)
    true = 1 + topic * v + rng.integers(v, size=(batch, length))
    masked = rng.random((batch, length)) < masking.p_mask
    empty = ~masked.any(1)
    masked[empty, rng.integers(length, size=int(empty.sum()))] = True
    how = rng.random((batch, length))
    instead = np.where(how < 1 - masking.p_random, 0, 1 + rng.integers(topics * v, size=(batch, length)))
    shown = np.where(masked & (how >= masking.p_correct), instead, true)
    row = np.repeat(np.arange(batch), length).reshape(batch, length)
    x = np.bincount((row * size + shown).ravel(), minlength=batch * size).reshape(batch, size) / length
    weight = (masked / masked.sum(1, keepdims=True)).ravel()
    pairs = ((row * size + true) * size + shown).ravel()
    return x, np.bincount(pairs, weight, batch * size * size).reshape(batch, size, size)


def force(value: np.ndarray, x: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """-dLoss/dL[i, j] = 2 E[x_i (e_i - x)' W' (y - W x); the position shows j]."""
    predicted = x @ value.T
    error = pairs - predicted[:, :, None] * pairs.sum(1, keepdims=True)
    by_key = np.einsum("yi,byj->bij", value, error, optimize=True)
    change = by_key - np.einsum("bi,bij->bj", x, by_key)[:, None, :]
    return 2 * np.einsum("bi,bij->ij", x, change) / len(x)


def by_relation(matrix: np.ndarray, topics: int, v: int) -> tuple[float, float, float]:
    """Eigenvalues on topic contrasts and on differences inside topics, and the entry of [MASK] with itself."""
    words = matrix[1:, 1:].reshape(topics, v, topics, v)
    diagonal = float(np.trace(matrix[1:, 1:])) / (topics * v)
    blocks = np.einsum("avaw->", words) / (topics * v)  # the whole own block, per word
    other = (float(words.sum()) / (topics * v) - blocks) / ((topics - 1) * v)
    same = (blocks - diagonal) / (v - 1)
    return blocks - v * other, diagonal - same, float(matrix[0, 0])


def measured(world: tuple[int, int, int], length: int, value: np.ndarray, sigma: float) -> Force:
    rng = np.random.default_rng([18, *world, length])
    found = [by_relation(force(value, *documents(world, length, rng)), *world[:2]) for _ in range(BATCHES)]
    mean, error = np.mean(found, 0) / sigma, np.std(found, 0, ddof=1) / math.sqrt(BATCHES) / sigma
    return Force(*zip(mean.tolist(), error.tolist(), strict=True))


def forces() -> None:
    print("forces over sigma; at Theorem 2: contrasts, inside topics; at W* of N: the same, and [MASK] on [MASK]")
    for world in WORLDS:
        topics = TopicModel(*world[:2])
        sigma = Growth.of(topics, Fixed(topics_per_document=world[2])).sigma
        for length in LENGTHS:
            best = optimum(topics, Fixed(topics_per_document=world[2], length=length))
            early = measured(world, length, best.least_norm_matrix(), sigma)
            late = measured(world, length, best.matrix(), sigma)
            cells = (early.contrasts, early.inside, late.contrasts, late.inside, late.mask)
            print(
                f"{world} {length:6}  " + "  ".join(f"{mean:8.3f} +- {error:.3f}" for mean, error in cells), flush=True
            )
        print(f"sigma {sigma:.6g}")


def trained(world: tuple[int, int, int], length: int | str, rate: float = 4.0, scale: float = 1e-3) -> None:
    """SGD with fresh documents: the step at which |W_K| is half-way to the plateau of infinite documents."""
    topics, width = TopicModel(*world[:2]), world[0] * world[1] + 1
    growth = Growth.of(topics, Fixed(topics_per_document=world[2]))
    said = growth.half_time(width, growth.expected_start(width, scale)) / rate
    steps = 50 * round(1.6 * said / 50)
    config = RunConfig.of(
        {
            "topic_model": {"topics": world[0], "words_per_topic": world[1]},
            "documents": {"kind": "fixed", "topics_per_document": world[2], "length": length},
            "model": {"attention_dim": width, "init_scale": scale, "prediction_bias": "none"},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": rate},
            "data": {"documents": 100_000, "dev_documents": 10},
        },
        steps=steps,
        batch_size=400,
        evaluate_every=None,
        checkpoint_every=None,
        floors=False,
    )
    run = train(config, with_floors=False)
    norm = np.array(run.metrics["norm_key"])
    above = np.flatnonzero(norm >= (norm[0] + growth.plateau_norm(width)) / 2)
    singular = np.linalg.svd(run.weights["key"].T @ run.weights["query"], compute_uv=False)
    half = f"{above[0]:,} ({above[0] / said:.3f} of it)" if len(above) else f"not in {steps:,}"
    print(
        f"{world} N = {length}: predicted for infinite documents {said:,.0f}, key half-way at {half}; singular values "
        f"1, T - 1, T: {singular[0]:.3g}, {singular[world[0] - 2]:.3g}, {singular[world[0] - 1]:.3g}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    forces()
    if parser.parse_args().train:
        for length in ("infinite", 300, 100, 30, 10):
            trained((4, 3, 2), length)


if __name__ == "__main__":
    main()
