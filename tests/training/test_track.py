"""What is measured at every step, against the weights and gradients themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training.settings import SMALL as ANY_RUN
from topicscope import RunConfig, train
from topicscope.training import BLOCK, Ensemble
from topicscope.training.ensemble import CompiledTracker, Tracker

SMALL = ANY_RUN | {"steps": BLOCK + 15, "dtype": "float64", "snapshots": list(range(BLOCK + 16))}


@pytest.mark.parametrize(
    ("more", "matrices"),
    [
        ({}, {"value"}),
        ({"model": {"head": "identity"}}, {"value"}),
        ({"model": {"head": "untied"}}, set()),
        ({"model": {"embedding": "trained", "dim": 5}}, {"gram"}),
        ({"model": {"value": "diagonal"}}, set()),
        ({"model": {"embedding": "trained", "value": "identity"}}, {"gram"}),
    ],
)
def test_figures_of_every_step(more: dict[str, Any], matrices: set[str]) -> None:
    """Norms, the rotation over ten steps and the means over topics, from the weights kept at every step."""
    run = train(RunConfig.of(SMALL | more), with_floors=False)
    found, kept, topic = run.metrics, run.snapshots, run.config.topic_model.topic_of_word
    trained = [name.removeprefix("norm_") for name in found if name.startswith("norm_")]
    assert trained == list(run.config.model.trained_shapes(7))
    for name in trained:
        assert found[f"norm_{name}"] == pytest.approx([np.linalg.norm(kept[s][name]) for s in kept], rel=1e-12)
        assert np.isfinite(found[f"grad_{name}"][:-1]).all()
    assert {name.removesuffix("_same") for name in found if name.endswith("_same")} == matrices
    assert np.isnan(found["loss"][-1])
    assert "objective" not in found
    for step, weights in kept.items():
        for matrix in matrices:
            table = weights["value"] if matrix == "value" else weights["embedding"].T @ weights["embedding"]
            pairs = [(i, j) for i in range(1, 7) for j in range(1, 7)]
            same = [table[i, j] for i, j in pairs if topic[i] == topic[j] and i != j]
            different = [table[i, j] for i, j in pairs if topic[i] != topic[j]]
            assert found[f"{matrix}_same"][step] == pytest.approx(np.mean(same), rel=1e-9, abs=1e-12)
            assert found[f"{matrix}_different"][step] == pytest.approx(np.mean(different), rel=1e-9, abs=1e-12)
            assert found[f"{matrix}_diagonal"][step] == pytest.approx(np.diag(table)[1:].mean(), rel=1e-9, abs=1e-12)
    assert ("rotation" in found) == ("value" in trained)
    if "value" in trained:
        flat = {step: weights["value"].ravel() / np.linalg.norm(weights["value"]) for step, weights in kept.items()}
        assert np.isnan(found["rotation"][:10]).all()
        exact = [(1 - flat[step] @ flat[step - 10]) / 2 for step in range(10, BLOCK + 16)]
        assert found["rotation"][10:] == pytest.approx(exact, abs=1e-13)


def test_the_objective_is_the_loss_and_every_penalty() -> None:
    more = {"objective": {"l2": {"value": 0.1, "key": 0.3}}}
    found = train(RunConfig.of(SMALL | more), with_floors=False).metrics
    exact = found["loss"] + 0.1 * found["norm_value"] ** 2 + 0.3 * found["norm_key"] ** 2
    assert found["objective"] == pytest.approx(exact, rel=1e-13, nan_ok=True)


def test_gradients_are_those_that_gradient_descent_follows() -> None:
    """|W(s + 1) - W(s)| = lr |gradient|; a part that pauses has no gradient at that step."""
    phases = [{"parts": ["value"], "steps": 2}, {"parts": ["key", "query"], "steps": 1}]
    config = RunConfig.of(
        SMALL | {"optimizer": {"name": "sgd", "lr": 0.5}, "schedule": {"phases": phases, "repeat": True}}
    )
    run = train(config, with_floors=False)
    for step in range(BLOCK + 15):
        for name in ("value", "key", "query", "prediction_bias"):
            moved = np.linalg.norm(run.snapshots[step + 1][name] - run.snapshots[step][name])
            gradient = run.metrics[f"grad_{name}"][step]
            if name in phases[step % 3 == 2]["parts"]:  # type: ignore[operator]
                assert moved == pytest.approx(0.5 * gradient, rel=1e-9, abs=1e-15)
            else:
                assert moved == 0
                assert np.isnan(gradient)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model": {"key_bias": "trained", "head": "identity"}, "schedule": "alternating"},
        {"model": {"embedding": "trained", "dim": 5}},
        {"model": {"value": "diagonal"}},
        {"topic_model": {"topics": 6, "words_per_topic": 1}},
        {"topic_model": {"topics": 1, "words_per_topic": 6}},
    ],
    ids=str,
)
def test_compiled_figures_are_those_of_the_calls(more: dict[str, Any]) -> None:
    """Three models; a relation that no pair is in has no mean in either."""
    config = RunConfig.of(SMALL | {"snapshots": "none"} | more)
    tables = []
    for kind in (Tracker, CompiledTracker):
        ensemble = Ensemble(config.with_seeds(3))
        tracker = kind(ensemble.weights, config)
        for place in ensemble.feed.steps(0, 15):
            active = config.schedule.active(ensemble.step, ensemble.weights.trained)
            tracker.record(ensemble.step, ensemble.program.gradient(place.batch(), active), active)
            ensemble.optimiser.step(active)
            ensemble.step += 1
        tables.append(tracker.rows())
    assert np.array_equal(np.isnan(tables[0]), np.isnan(tables[1]))
    assert np.allclose(tables[0], tables[1], rtol=1e-12, atol=1e-14, equal_nan=True)


WORLDS: dict[str, dict[str, Any]] = {
    "unequal sizes": {"words_per_topic": [2, 1, 4]},
    "overlap": {"topics": 3, "words_per_topic": 4, "overlap": 0.25},
    "common words": {"topics": 3, "words_per_topic": 2, "common_words": 2, "common_share": 0.3},
    "a matrix": {"matrix": [[0.5, 0.0, 0.0], [0.5, 0.2, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.7]]},
}


@pytest.mark.parametrize("embedding", ["one-hot", "trained"])
@pytest.mark.parametrize("world", WORLDS)
def test_means_by_relation_in_other_worlds(world: str, embedding: str) -> None:
    """'Same' means that two words share a topic; whether figures are made by compiled loops or by PyTorch's calls."""
    settings = SMALL | {"topic_model": WORLDS[world], "model": {"embedding": embedding, "dim": None}, "steps": 12}
    config = RunConfig.of(settings | {"snapshots": list(range(13)), "objective": {"loss": "squared"}})
    run, a = train(config, with_floors=False), config.topic_model.word_topics
    matrix = "value" if embedding == "one-hot" else "gram"
    for step, weights in run.snapshots.items():
        table = weights["value"] if matrix == "value" else weights["embedding"].T @ weights["embedding"]
        pairs: dict[str, list[float]] = {"same": [], "different": [], "diagonal": []}
        for i in range(len(a)):
            for j in range(len(a)):
                name = "diagonal" if i == j else "same" if ((a[i] > 0) & (a[j] > 0)).any() else "different"
                pairs[name].append(table[i + 1, j + 1])
        for name, entries in pairs.items():
            assert run.metrics[f"{matrix}_{name}"][step] == pytest.approx(np.mean(entries), rel=1e-9, abs=1e-12)
    assert run.results[matrix]["same"] == pytest.approx(np.mean(pairs["same"]), rel=1e-6)
    ensemble = Ensemble([config])
    plain = Tracker(ensemble.weights, config)
    quick = CompiledTracker(ensemble.weights, config)
    for tracker in (plain, quick):
        tracker.record(0, 0.0, ())
    for name in pairs:
        place = plain.index[f"{matrix}_{name}"]
        assert plain.table[0, place].numpy() == pytest.approx(quick.table[0, place].numpy(), rel=1e-12)
