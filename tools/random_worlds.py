"""Training in random worlds beside the predicted W(t): SGD on the squared loss under uniform attention.

    python tools/random_worlds.py --worlds 50           # topics of their own words; about eight minutes on one core
    python tools/random_worlds.py --worlds 12 --overlap # any word-by-topic matrix

A run ends when its slowest topic contrast should be half learnt, so that W* itself is still far away.
"""

import argparse
from typing import Any

import numpy as np

from topicscope import RunConfig, train
from topicscope.laws import world_optimum
from topicscope.theory import relative_distance

STEPS, MOST_STEPS = 1500, 3000
STABLE = 0.02  # rate x largest eigenvalue
CLOSE = 0.02  # relative Frobenius distance to W(t)
CHANCES = {"p_mask": (0.1, 0.5), "p_correct": (0.05, 0.3), "p_random": (0.05, 0.3)}


def random_world(number: int, *, overlap: bool) -> dict[str, Any]:
    """2 to 5 topics, any masking; three priors and four kinds of length take turns."""
    rng = np.random.default_rng([17, number])
    topics, v = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    masking = {name: float(rng.uniform(*ends)) for name, ends in CHANCES.items()}
    kind = ("fixed", "dirichlet", "given")[number % 3]
    documents: dict[str, Any] = {"kind": kind}
    documents["length"] = ("infinite", int(rng.integers(4, 30)), [5, 15], "infinite")[number % 4]
    if kind == "fixed":
        documents["topics_per_document"] = int(rng.integers(1, topics))
    elif kind == "dirichlet":
        documents["alpha"] = float(rng.uniform(0.1, 1))
    else:
        documents["proportions"] = rng.dirichlet(np.full(topics, 0.4), 5).tolist()
    topic_model: dict[str, Any] = {"topics": topics}
    if overlap:
        topic_model["matrix"] = rng.dirichlet(np.full(3 * topics, 0.5), topics).T.tolist()
    else:
        topic_model["words_per_topic"] = v
        if number % 2:
            topic_model["word_probabilities"] = rng.dirichlet(np.full(v, 3.0), topics).tolist()
    return {"topic_model": topic_model, "documents": documents, "masking": masking}


def trained(number: int, *, overlap: bool) -> tuple[str, float]:
    """A line of the table, and the distance of the last value matrix to W(t)."""
    world = random_world(number, overlap=overlap)
    best = world_optimum(RunConfig.of(world, floors=False))
    assert best is not None
    time = max(mode.half_time or 0 for mode in best.modes if mode.name.startswith("topic"))
    lr = min(time / STEPS, STABLE / best.modes[0].eigenvalue)
    steps = min(MOST_STEPS, int(np.ceil(time / lr / 50)) * 50)  # a contrast that takes longer is not learnt at the end
    finite = world["documents"]["length"] != "infinite"  # whose batches are noisier
    config = RunConfig.of(
        world,
        steps=steps,
        batch_size=2500 if finite else 1000,
        data={"documents": 100_000 if finite else 40_000, "dev_documents": 10},
        model={"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.02},
        objective={"loss": "squared"},
        optimizer={"name": "sgd", "lr": lr},
        dtype="float64",
        evaluate_every=None,
        checkpoint_every=None,
        floors=False,
        snapshots=[0],
    )
    run = train(config, with_floors=False)
    value, start = run.weights["value"], run.snapshots[0]["value"]
    distance = relative_distance(value, best.value_at(lr * steps, start.astype(float)))
    about = config.topic_model
    words = "overlap" if overlap else "equal words" if about.uniform else "unequal words"
    others = [relative_distance(value, matrix) for matrix in (best.matrix(), best.least_norm_matrix())]
    return (
        f"{number:6} T = {about.topics}, {about.words:2} words  {words:13} {world['documents']['kind']:9} "
        f"N = {world['documents']['length']!s:8}  {steps:5} steps  {distance:7.4f}  {others[0]:6.3f}  {others[1]:9.3f}",
        distance,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--overlap", action="store_true")
    options = parser.parse_args()
    print(f"{'world':78}  to W(t)   to W*  Theorem 2")
    distances = []
    for number in range(options.first, options.first + options.worlds):
        line, distance = trained(number, overlap=options.overlap)
        print(line, flush=True)
        distances.append(distance)
    near = sum(distance < CLOSE for distance in distances)
    print(f"within {CLOSE:.0%}: {near} of {len(distances)}; worst {max(distances):.4f}, mean {np.mean(distances):.4f}")


if __name__ == "__main__":
    main()
