"""Lemma 1, Theorem 1 and Theorem 2 against least squares, realised embeddings and training."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.theory.settings import settings_of_the_theory
from topicscope import InputError, Masking, RunConfig, TopicModel, train
from topicscope.theory import (
    Setting,
    diagonal_value_matrix,
    fit_embedding,
    fit_family,
    random_member,
    theorem1,
    theorem2,
)
from topicscope.theory.theorem2 import embedding_of, prediction_bias, random_gram


@settings(max_examples=30)
@given(s=settings_of_the_theory(), seed=st.integers(0, 999))
def test_members_are_recognised_and_their_u_found(s: Setting, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(s.topic_model.vocabulary)
    found = fit_family(random_member(s, rng, u=u), s)
    assert found.u == pytest.approx(u, abs=1e-10)
    assert found.violation < 1e-9


@settings(max_examples=30)
@given(s=settings_of_the_theory(least_words=2), seed=st.integers(0, 999))
def test_strangers_are_recognised_too(s: Setting, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_member(s, rng)
    i, j = rng.integers(0, s.topic_model.vocabulary, 2)
    matrix[i, j] += 0.01  # u can take up only a part of one condition
    assert fit_family(matrix, s).violation > 1e-5


def test_the_named_optima_are_members() -> None:
    s = Setting.of(10, 10, 3)
    optimum = theorem2(s)
    blocks = fit_family(optimum.matrix(), s)
    assert blocks.violation < 1e-14
    assert blocks.u[1:] == pytest.approx(optimum.different_topic)
    diagonal = fit_family(diagonal_value_matrix(s.topic_model, s.masking), s)
    assert diagonal.violation < 1e-14
    assert diagonal.u == pytest.approx(0)
    with pytest.raises(InputError, match="shape"):
        fit_family(np.eye(3), s)


def test_members_are_realised_by_embeddings() -> None:
    s = Setting.of(4, 3, 2)
    for gram in (theorem1(s).matrix(), *(random_gram(s, np.random.default_rng(seed)) for seed in range(5))):
        embedding = embedding_of(gram)
        assert embedding.T @ embedding == pytest.approx(gram, abs=1e-12)
        assert fit_embedding(embedding, s.topic_model, s.masking).violation < 1e-11
        assert theorem1(s).contains(embedding, tolerance=1e-11)
    off = embedding_of(theorem1(s).matrix()) * 1.001
    assert fit_embedding(off, s.topic_model, s.masking).violation > 1e-3
    assert not theorem1(s).contains(off, tolerance=1e-3)
    assert theorem1(s).contains(off, tolerance=0.1)
    for shape in ((5, 12), (13,)):
        with pytest.raises(InputError, match=r"expected \(dim, 13\): one column per word"):
            theorem1(s).contains(np.zeros(shape))


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
    own = {"bias": theorem.bias, "c2": theorem.c2, "c3": theorem.c3}
    assert theorem.numbers() == own | {"mask_bias": 0, "identity_diagonal": theorem.c3}


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
            "model": {"embedding": "trained", "key": "zero", "query": "zero", "value": "identity"}
            | {"prediction_bias": "theorem1", "init_scale": 0.3},
        }
    )
    run = train(config, with_floors=False)
    assert run.results["dev_loss"] == pytest.approx(1 - 1 / 6, abs=1e-6)
    theorem = theorem1(Setting(config.topic_model, 2, config.masking))
    assert theorem.contains(run.weights["embedding"], tolerance=1e-3)


def test_the_entries_at_the_papers_size() -> None:
    optimum = theorem2(Setting.of(10, 10))
    assert optimum.different_topic == pytest.approx(-0.0075867, abs=5e-8)
    assert optimum.same_topic == pytest.approx(0.108020, abs=5e-7)
    assert optimum.mask_column == pytest.approx(0.054191, abs=5e-7)
    assert optimum.mask_row == 0


@pytest.mark.parametrize(("topics", "v", "tau"), [(10, 10, 3), (20, 7, 4), (6, 3, 1), (3, 1, 2)])
@pytest.mark.parametrize("masking", [Masking(), Masking(0.4, 0.2, 0.3), Masking(0.15, 0.1, 0.0)])
def test_times_a_masked_document_is_the_documents_word_distribution(
    topics: int, v: int, tau: int, masking: Masking
) -> None:
    """What the summary says of infinite documents, and of the part that the negative rest and [MASK] have in it."""
    setting = Setting(TopicModel(topics, v), tau, masking)
    optimum = theorem2(setting)
    inside = np.repeat(np.arange(topics) < tau, v)
    before = np.append(0.0, inside / (v * tau))
    masked = np.append(setting.p0, np.where(inside, setting.p1, setting.p2))
    assert masked.sum() == pytest.approx(1, abs=1e-14)
    assert np.abs(optimum.matrix() @ masked - before).max() < 1e-14
    rest = optimum.different_topic * (1 - setting.p0) + optimum.mask_column * setting.p0
    of_random_words = setting.constants.c3 / v * v * setting.p2  # votes of the random words of a topic
    assert rest == pytest.approx(-of_random_words, abs=1e-15)
    assert "cancel what random words add" in optimum.summary()[1]


def test_contains_its_own_matrix_and_no_other_optimum() -> None:
    s = Setting.of(4, 3, 2)
    optimum = theorem2(s)
    assert optimum.contains(optimum.matrix(), tolerance=0)
    assert not optimum.contains(optimum.matrix() + 1e-5)
    assert optimum.contains(optimum.matrix() + 1e-5, tolerance=2e-5)
    assert not optimum.contains(np.zeros((3, 3)))
    other = random_member(s, np.random.default_rng(0))
    assert not optimum.contains(other)
    examined = optimum.examine(other).numbers
    assert examined["family_violation"] < 1e-12  # as good, but not of least norm
    assert examined["largest_difference"] > 0.01
    with pytest.raises(InputError, match="shape"):
        optimum.examine(np.zeros((3, 3)))
