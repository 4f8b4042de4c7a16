from __future__ import annotations

import numpy as np
import pytest

from topicscope import InputError, RunConfig, train
from topicscope.theory import Setting, fit_embedding, theorem1
from topicscope.theory.theorem1 import embedding_of, member, random_member


@pytest.mark.parametrize("seed", range(5))
def test_members_are_realised_by_embeddings(seed: int) -> None:
    s = Setting.of(4, 3, 2)
    for gram in (theorem1(s).matrix(), random_member(s, np.random.default_rng(seed))):
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


def test_the_inner_part_is_free() -> None:
    """A member may have anything inside its topics that sums to zero there; without it, only blocks and u are left."""
    s = Setting.of(4, 3, 2)
    c, theorem = s.constants, theorem1(s)
    plain, full = member(s, u=0.05), member(s, u=0.05, inner=np.eye(12))
    assert theorem.contains(embedding_of(plain), tolerance=1e-10)
    assert theorem.contains(embedding_of(full), tolerance=1e-10)
    assert plain[1, 1] == pytest.approx(0.05 + c.c3 / 3)
    assert full[1, 1] - plain[1, 1] == pytest.approx(1 - 1 / 3)
    assert full[1, 2] - plain[1, 2] == pytest.approx(-1 / 3)
    assert full[1, 4] == plain[1, 4] == pytest.approx(0.05)


def test_u_below_zero_is_no_gram_matrix() -> None:
    s = Setting.of(4, 3, 2)
    with pytest.raises(InputError, match="u >= 0"):
        member(s, u=-0.1)


def test_an_embedding_of_other_words_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(5, 12\); expected \(dim, 13\): one column per word"):
        theorem1(Setting.of(4, 3, 2)).contains(np.zeros((5, 12)))


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
