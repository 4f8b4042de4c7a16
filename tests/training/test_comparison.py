"""A run against W*: what it trains to, its own documents' optimum, and where there is no W*."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training.settings import SMALL
from topicscope import RunConfig, train
from topicscope.ground import Stream
from topicscope.laws import training_optimum, world_optimum
from topicscope.theory import given_moments, relative_distance, uniform_optimum
from topicscope.training import RunData, compare_with_optimum, own_optimum
from topicscope.world import mask_keys, word_counts

UNIFORM: dict[str, Any] = {
    **SMALL,
    "dtype": "float64",
    "objective": {"loss": "squared"},
    "model": {"key": "zero", "query": "zero", "prediction_bias": "none"},
}


def config(**more: Any) -> RunConfig:
    return RunConfig.of(UNIFORM, **more)


def test_a_run_says_how_far_it_is_from_the_optimum() -> None:
    run = train(config(), with_floors=False)
    expected = relative_distance(run.weights["value"], world_optimum(run.config).matrix())
    assert run.results["distance_to_optimum"] == pytest.approx(expected, rel=1e-12)
    assert any("from W*" in sentence for sentence in run.summary())
    assert run.facts()["W_V, distance to W* (relative)"] == run.results["distance_to_optimum"]
    assert run.facts()["exact loss of W* (all documents)"] == world_optimum(run.config).loss
    mean = train(config(objective={"loss": "squared-mean"}), with_floors=False)
    assert mean.results["optimum_loss"] == pytest.approx(run.results["optimum_loss"] / 7, rel=1e-12)


@pytest.mark.parametrize(
    "settings", [{"objective": {"loss": "cross-entropy"}}, {"model": {"key": "trained", "query": "trained"}}]
)
def test_a_run_that_does_not_end_in_the_optimum_says_nothing_of_it(settings: dict[str, Any]) -> None:
    run = train(RunConfig.of(UNIFORM | settings))
    assert training_optimum(run.config) == (None, None, "")
    assert not {"distance_to_optimum", "no_optimum", "optimum_loss"} & set(run.results)
    assert not any("W*" in sentence for sentence in run.summary())


def test_a_run_that_has_no_optimum_says_why() -> None:
    run = train(config(objective={"loss": "squared", "l2": 0.1}))
    assert "distance_to_optimum" not in run.results
    (sentence,) = (sentence for sentence in run.summary() if "W*" in sentence)
    assert sentence == f"No distance to W*: {run.results['no_optimum']}."
    assert run.results["no_optimum"].startswith("the L2 penalty (objective.l2) moves the optimum")


def test_own_documents_have_an_optimum_of_their_own() -> None:
    """No other matrix has a lower expected loss on the run's documents; one draw of masks is another problem."""
    fresh, once = config(data={"documents": 60}), config(data={"documents": 60}, masking={"fresh": False})
    exact, documents = own_optimum(fresh), RunData(fresh).train.finite()
    moments = given_moments(word_counts(documents.words, 7), fresh.masking)
    assert np.abs(exact @ moments.shown - moments.joint).max() < 1e-14  # the gradient vanishes
    masked = documents.masked(once.masking, once.topic_model, mask_keys(Stream.TRAIN_MASKS, once.seed))
    rows = masked.batches(once.topic_model, once.masking, np.dtype("float64"), uniform=True)
    drawn = own_optimum(once)
    assert drawn == pytest.approx(uniform_optimum(rows).matrix)
    assert relative_distance(drawn, exact) > 0.1


PROPORTIONS = [[1, 0, 0], [0.5, 0.5, 0], [0, 0.3, 0.7]]
WHOLE_LAW: dict[str, Any] = {
    "documents": {"kind": "given", "proportions": PROPORTIONS, "length": "infinite"},
    "data": {"documents": 3},
    "batch_size": 3,
}


def test_gradient_descent_ends_in_the_optimum_of_its_own_documents() -> None:
    descent: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": 3.0}, "model": {"init_scale": 0.0}}
    run = train(config(**WHOLE_LAW, **descent, steps=2000), with_floors=False)
    distances = compare_with_optimum(run).distances
    assert distances["own_documents"] < 1e-4
    assert distances["optimum"] < 1e-4  # every document of the law is there, once
    assert distances["theorem2"] < 1e-4
    assert distances["limit"] > 0.1


@pytest.mark.parametrize("loss", ["squared", "squared-mean"])
def test_a_run_of_sgd_is_compared_with_where_flow_would_be(loss: str) -> None:
    """A start that is not zero, a frozen bias, and the whole law in every step: only the size of a step is left."""
    model, rate = {"init_scale": 0.3, "prediction_bias": 0.2}, 0.07 if loss == "squared-mean" else 0.01
    descent: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": rate}, "objective": {"loss": loss}, "model": model}
    compared = compare_with_optimum(train(config(**WHOLE_LAW, **descent, steps=400), with_floors=False))
    assert compared.distances["predicted"] < 0.002
    assert compared.distances["optimum"] > 0.3
    assert compared.notes == ()


def test_where_flow_predicts_nothing_the_comparison_says_why() -> None:
    """The table of laws has the other reasons (tests/laws/test_coverage.py)."""
    compared = compare_with_optimum(train(config(optimizer={"name": "adam"}), with_floors=False))
    assert "predicted" not in compared.distances
    assert compared.notes == ("No predicted W(t): it holds for SGD without momentum.",)


def test_a_run_that_diverged_is_compared_with_a_warning() -> None:
    run = train(config(optimizer={"name": "sgd", "lr": 1e3}, steps=40, evaluate_every=20), with_floors=False)
    assert run.status == "diverged"
    warned, unpredicted = compare_with_optimum(run).notes
    assert warned == f"The run diverged at step {run.results['steps']}: its matrix is the last one that was sound."
    assert unpredicted == "No predicted W(t): the run diverged."
    assert run.results["steps"] == 2
    assert run.results["dev_step"] == 0  # step 20 was taken, but behind the end of the run
    assert "dev loss" not in run.facts()
    assert run.facts()["dev loss at step 0, before it diverged"] == run.results["dev_loss"]


def test_documents_from_a_file_have_no_law(tmp_path: Any) -> None:
    (tmp_path / "text").write_text("0 1 2 3 END\n4 5 5 1 END\n2 2 3 0 END\n")
    run = train(config(data={"train_file": str(tmp_path / "text"), "documents": 3}), with_floors=False)
    comparison = compare_with_optimum(run)
    assert comparison.best is None
    assert list(comparison.distances) == ["own_documents"]
    assert "documents come from a file" in comparison.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("world", range(3))
def test_sgd_is_where_flow_is_predicted_to_be(world: int) -> None:
    """Within 2% of W(t) at the last step, when the slowest topic contrast is half learnt."""
    rng = np.random.default_rng(world)
    topics = int(rng.integers(2, 5))
    settings = {
        "topic_model": {"topics": topics, "words_per_topic": 3, "word_probabilities": rng.dirichlet([3] * 3).tolist()},
        "documents": {
            "kind": "given",
            "proportions": rng.dirichlet([0.4] * topics, 5).tolist(),
            "length": "infinite" if world % 2 else 12,
        },
        "masking": {"p_mask": float(rng.uniform(0.1, 0.5)), "p_correct": 0.2},
        "data": {"documents": 100_000},
        "batch_size": 500 if world % 2 else 4000,  # infinite documents repeat the five of the law
        "steps": 600,
    }
    best = world_optimum(config(**settings))
    time = max(mode.half_time or 0 for mode in best.modes if mode.name.startswith("topic"))
    run = train(config(**settings, optimizer={"name": "sgd", "lr": time / 600}, snapshots=[0]), with_floors=False)
    predicted = best.value_at(time, run.snapshots[0]["value"])
    assert relative_distance(run.weights["value"], predicted) < 0.02
    assert relative_distance(run.weights["value"], best.matrix()) > 0.1  # slow modes are not learnt yet
