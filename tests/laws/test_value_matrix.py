"""The value matrix in words, W* where a run should end in it, and means by pair of topics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training.settings import SMALL
from topicscope import RunConfig, train
from topicscope.ground import merged
from topicscope.laws import contributions, coverage, topic_relations, training_optimum, value_matrix, world_optimum
from topicscope.theory import SymmetricOptimum, topics_alike
from topicscope.world import DocumentPrior, TopicModel

UNIFORM = {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared"}, "floors": False}
GROUPS = {
    "topic_model": {"topics": 4, "words_per_topic": 2},
    "documents": {"kind": "groups", "groups": 2, "rho": 0.9, "length": 9},
}
OVERLAP = {"topic_model": {"topics": 4, "words_per_topic": 4, "overlap": 0.25}}


def config(*more: dict[str, Any]) -> RunConfig:
    whole: dict[str, Any] = dict(SMALL)
    for one in more:
        whole = merged(whole, one)
    return RunConfig.of(whole)


def law(run: RunConfig) -> tuple[TopicModel, DocumentPrior]:
    return run.world.topic_model, run.world.prior


def map_by_loop(run: RunConfig, matrix: np.ndarray) -> np.ndarray:
    topics = run.topic_model.word_topics
    found = np.zeros((topics.shape[1],) * 2)
    for t in range(len(found)):
        for u in range(len(found)):
            total = pairs = 0.0
            for i in range(len(topics)):
                for j in range(len(topics)):
                    weight = topics[i, t] / sum(topics[i]) * topics[j, u] / sum(topics[j]) if i != j else 0.0
                    total, pairs = total + weight * matrix[i + 1, j + 1], pairs + weight
            found[t, u] = total / pairs
    return found


@pytest.mark.parametrize("world", [GROUPS, OVERLAP, {"topic_model": {"words_per_topic": [2, 3, 4], "zipf": 1.0}}])
def test_a_run_has_the_map_of_its_value_matrix_and_of_the_optimum(world: dict[str, Any]) -> None:
    run = train(config(UNIFORM, world))
    relations, value = run.results["relations"], run.weights["value"].astype(float)
    np.testing.assert_allclose(relations["value"]["topics"], map_by_loop(run.config, value), rtol=0, atol=1e-10)
    bias = contributions(run.config, run.weights) - value
    expected = map_by_loop(run.config, world_optimum(run.config).matrix() - bias)
    np.testing.assert_allclose(relations["optimum"]["topics"], expected, rtol=0, atol=1e-10)
    assert ("shared" in relations["value"]) == (world is OVERLAP)
    assert ("partners" in relations["value"]) == (world is GROUPS)


def test_partners_are_other_topics_of_one_group() -> None:
    run = train(config(UNIFORM, GROUPS))
    matrix, topic = run.weights["value"].astype(float), run.config.topic_model.topic_of_word
    sums: dict[str, list[float]] = {"same": [], "partner": [], "other": []}
    for i in range(1, 9):
        for j in range(1, 9):
            if i != j:
                together = (topic[i] - 1) // 2 == (topic[j] - 1) // 2
                sums["same" if topic[i] == topic[j] else "partner" if together else "other"].append(matrix[i, j])
    found = run.results["relations"]["value"]["partners"]
    assert found == {name: pytest.approx(np.mean(values), abs=1e-10) for name, values in sums.items()}
    assert run.facts()["W_V, topics of one group"] == found["partner"]
    best = run.results["relations"]["optimum"]["partners"]
    assert best["same"] > best["partner"] > best["other"]  # what 'same / different' hides


def test_words_by_topics_in_common() -> None:
    run = train(config(UNIFORM, OVERLAP))
    found, means = run.results["relations"]["value"]["shared"], run.results["value"]
    assert found == {"0": pytest.approx(means["different"]), "1": pytest.approx(means["same"])}
    wide = config(
        {"topic_model": {"topics": 3, "words_per_topic": 4, "overlap": 0.25, "common_words": 2}},
        {"topic_model": {"common_share": 0.2}},
    )
    assert list(topic_relations(wide, np.eye(wide.topic_model.vocabulary))["shared"]) == ["0", "1", "2", "3"]


def test_worlds_whose_topics_are_alike_have_no_relations() -> None:
    """The paper's worlds: same and different say everything, and results are what they were."""
    assert topics_alike(*law(RunConfig()))
    assert topics_alike(*law(config({"documents": {"kind": "fixed", "topics_per_document": 2}})))
    assert "relations" not in train(config()).results
    for unlike in ({"documents": {"alpha": [0.1, 0.2, 0.3]}}, {"topic_model": {"zipf": 1.0}}):
        assert not topics_alike(*law(config(unlike)))


@pytest.mark.parametrize(
    ("documents", "alike"),
    [
        ({"alpha": [0.2, 0.2, 0.2]}, True),
        ({"alpha": [0.2, 0.2, 0.3]}, False),
        ({"kind": "fixed", "topics_per_document": 2, "weights": [3, 3, 3]}, True),
        ({"kind": "fixed", "topics_per_document": 3, "weights": [1, 2, 3]}, True),  # all topics in every document
        ({"kind": "fixed", "topics_per_document": 2, "weights": [1, 2, 3]}, False),
        ({"kind": "given", "proportions": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}, True),
        ({"kind": "given", "proportions": [[1, 0, 0], [0, 1, 0], [0.5, 0, 0.5]]}, False),
        ({"kind": "logistic-normal", "covariance": 1.0}, True),
        ({"kind": "logistic-normal", "covariance": 1.0, "mean": [0, 0, 1]}, False),
        ({"kind": "groups", "groups": 3, "topics_per_document": 1}, True),  # one topic per document: no group shows
    ],
)
def test_topics_are_alike_where_the_optimum_is_a_handful_of_numbers(documents: dict[str, Any], alike: bool) -> None:
    one = config({"documents": documents | {"length": 9}})
    assert topics_alike(*law(one)) == alike
    assert isinstance(world_optimum(one), SymmetricOptimum) == alike
    assert (topic_relations(one, np.zeros((one.topic_model.vocabulary,) * 2)) == {}) == alike


def test_numbers_that_are_not_finite_and_large_worlds() -> None:
    one = config({"topic_model": {"words_per_topic": [1, 2, 3]}})
    assert topic_relations(one, np.zeros((7, 7)))["topics"][0] == [None, 0.0, 0.0]  # one word has no pair
    assert topic_relations(one, np.full((7, 7), np.inf)) == {}  # a run that diverged
    many = config({"topic_model": {"words_per_topic": [1] * 100 + [2], "topics": 101}})
    assert topic_relations(many, np.zeros((103, 103))) == {}


def test_contributions_are_what_the_model_adds_up() -> None:
    """U x of the model's own tables, biases and embedding included."""
    import torch

    from topicscope.model.passes import tables

    for model in (
        {"value_bias": "trained", "prediction_bias": "trained"},
        {"embedding": "trained", "dim": 4, "prediction_bias": 0.5},
        {"embedding": "trained", "dim": 4, "head": "untied", "value_bias": "trained"},
        {"embedding": "trained", "value": "identity"},
    ):
        run = train(config(UNIFORM, {"dtype": "float64", "model": model}), with_floors=False)
        parts = {name: torch.from_numpy(part)[None] for name, part in run.weights.items()}
        exact = tables(run.config.model, parts, 7).contributions[0].numpy()
        assert contributions(run.config, run.weights) == pytest.approx(exact, abs=1e-12)


def test_only_symmetry_makes_a_large_optimum_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal topics alone are not enough: with groups, or unequal weights, W* is a matrix that has to be solved for."""
    monkeypatch.setattr(value_matrix, "MOST_WORDS", 5)
    monkeypatch.setattr(coverage, "MOST_TOPICS", 3)
    equal = {"topics": 4, "words_per_topic": 2}
    groups = {"kind": "groups", "groups": 2, "rho": 0.5, "topics_per_document": 2, "length": 9}
    no_groups = groups | {"rho": 0.0}
    fixed = {"kind": "fixed", "weights": [1, 2, 3, 4], "topics_per_document": 2, "length": 9}
    normal = {"kind": "logistic-normal", "covariance": 1.0, "length": 9}
    for documents, why in (
        (groups, "8 words: without symmetry at most 5 are taken"),
        (fixed, "8 words: without symmetry at most 5 are taken"),
        (normal, "4 topics: the moments of a logistic normal take seconds above 3"),
        (no_groups, ""),  # by its moments the world is symmetric, whatever the prior is called
        ({"length": 9}, ""),
    ):
        matrix, _, said = training_optimum(config(UNIFORM, {"topic_model": equal, "documents": documents}))
        assert said.startswith(why)
        assert (matrix is None) == bool(said) == bool(why)
