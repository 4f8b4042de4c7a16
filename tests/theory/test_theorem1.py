from __future__ import annotations

import numpy as np
import pytest

from topicscope import InputError, Masking, RunConfig, TopicModel, train
from topicscope.theory import Setting, fit_embedding, theorem1
from topicscope.theory.theorem2 import embedding_of, prediction_bias, random_gram


@pytest.mark.parametrize("seed", range(5))
def test_members_are_realised_by_embeddings(seed: int) -> None:
    s = Setting.of(4, 3, 2)
    for gram in (theorem1(s).matrix(), random_gram(s, np.random.default_rng(seed))):
        embedding = embedding_of(gram)
        assert embedding.T @ embedding == pytest.approx(gram, abs=1e-12)
        assert fit_embedding(embedding, s.topic_model, s.masking).violation < 1e-11
        assert theorem1(s).contains(embedding, tolerance=1e-11)
    off = embedding_of(theorem1(s).matrix()) * 1.001
    assert fit_embedding(off, s.topic_model, s.masking).violation > 1e-3
    assert not theorem1(s).contains(off, tolerance=1e-3)
    assert theorem1(s).contains(off, tolerance=0.1)


def test_the_numbers_at_the_papers_size() -> None:
    theorem = theorem1(Setting.of(10, 10))
    k = 1 - 0.9 * 0.15
    assert theorem.bias == pytest.approx(-0.15 * 0.1 / (k * 100), rel=1e-12)
    assert theorem.c3 == pytest.approx(1 / k, rel=1e-12)
    assert theorem.c2 == pytest.approx(1 / (0.8 * 0.15) - 1, rel=1e-12)
    assert np.array_equal(theorem.matrix(), np.diag([0.0] + [1 / k] * 100))


@pytest.mark.parametrize("seed", range(3))
def test_the_inner_part_of_a_member_is_free(seed: int) -> None:
    """Topic by topic a member sums to u and c3; its entries inside the topics are whatever leaves these sums alone."""
    s = Setting.of(4, 3, 2)
    c, gram = s.constants, random_gram(s, np.random.default_rng(seed))
    u = gram[0, 0] / c.c2**2
    assert 0 <= u <= 0.1
    assert gram == pytest.approx(gram.T, abs=1e-14)
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    assert gram[1:, 0] == pytest.approx(-c.c2 * u)
    blocks = gram[1:, 1:].reshape(4, 3, 4, 3)
    assert blocks.mean((1, 3)) == pytest.approx(u + c.c3 / 3 * np.eye(4), abs=1e-12)
    inner = blocks - blocks.mean((1, 3), keepdims=True)
    assert np.abs(inner.sum(3)).max() < 1e-12
    assert np.abs(inner).max() > 0.1


def test_an_embedding_of_other_words_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(5, 12\); expected \(dim, 13\): one column per word"):
        theorem1(Setting.of(4, 3, 2)).contains(np.zeros((5, 12)))
    with pytest.raises(InputError, match=r"shape \(13,\); expected \(dim, 13\)"):
        theorem1(Setting.of(4, 3, 2)).contains(np.zeros(13))


def test_by_default_a_member_violates_no_condition_by_more_than_a_millionth() -> None:
    theorem = theorem1(Setting.of(4, 3, 2))
    exact = embedding_of(theorem.matrix())
    assert theorem.contains((1 + 1e-7) * exact)
    assert not theorem.contains((1 + 1e-5) * exact)
    off = 1.01 * exact
    examined = theorem.examine(off)
    violation = examined.numbers["violation"]
    assert theorem.contains(off, tolerance=violation)
    assert not theorem.contains(off, tolerance=np.nextafter(violation, 0))
    assert f"the largest violation of the conditions is {violation:.4g}" in examined.sentence


def test_the_smallest_world_has_a_theorem_too() -> None:
    theorem = theorem1(Setting.of(1, 1, 1))
    bias = prediction_bias(TopicModel(1, 1), Masking())
    assert bias.tolist() == [0, theorem.bias]
    assert theorem.bias == pytest.approx(-0.015 / 0.865)
    assert theorem.contains(embedding_of(theorem.matrix()), tolerance=1e-12)
    assert theorem.numbers() == {
        "bias": theorem.bias,
        "c2": theorem.c2,
        "c3": theorem.c3,
        "mask_bias": 0,
        "identity_diagonal": theorem.c3,
    }


def test_training_the_embedding_alone_ends_in_the_family() -> None:
    """Theorem 1's setting, trained: gradient descent on infinite documents finds a member."""
    config = RunConfig.of(
        {
            "steps": 4000,
            "dtype": "float64",
            "device": "cpu",
            "batch_size": 10,
            "evaluate_every": None,
            "topic_model": {"topics": 5, "words_per_topic": 3},
            "documents": {"kind": "infinite", "topics_per_document": 2},
            "data": {"documents": 10, "dev_documents": 10},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 2.0},
            "model": {
                "embedding": "trained",
                "key": "zero",
                "query": "zero",
                "value": "identity",
                "prediction_bias": "theorem1",
                "init_scale": 0.3,
            },
        }
    )
    run = train(config, with_floors=False)
    assert run.results["dev_loss"] == pytest.approx(1 - 1 / 6, abs=1e-6)
    theorem = theorem1(Setting(config.topic_model, 2, config.masking))
    assert theorem.contains(run.weights["embedding"], tolerance=1e-3)
