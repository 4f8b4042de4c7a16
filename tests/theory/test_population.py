"""`Population`: its fast gradient against its definition, and the definition against the model, loops and symmetry."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from tests.theory.settings import full_batches, loss_by_loop, settings_of_the_theory
from topicscope import InputError, ModelConfig, Objective
from topicscope.model import dense_loss
from topicscope.theory import (
    Loss,
    Population,
    Setting,
    enumerated_loss,
    gaussian_start,
    population_loss,
    word_tables,
)
from topicscope.training import train
from topicscope.world import Dirichlet, Fixed, Given, Masking, TopicModel

LOSSES: tuple[Loss, ...] = ("squared", "cross-entropy")
EXACT = Masking(0.5, 0.25, 0.5)
WORLD = TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking()
SMALL = TopicModel(3, 2), Fixed(topics_per_document=2, length="infinite"), Masking()
ANY_TOPICS = TopicModel(matrix=[[0.5, 0.1], [0.2, 0.2], [0.3, 0.7]])
GIVEN = Given(proportions=[[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]], length="infinite")


def relative(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def exact_document(topics: tuple[int, ...]) -> tuple[list[int], list[int], list[bool]]:
    """96 positions of 3 topics of 2 words in which every share of masking is exact: true words, shown words, masks."""
    positions = []
    for true in (word for topic in topics for word in (2 * topic + 1, 2 * topic + 2)):
        shown = [true] * 3 + [0] * 3 + list(range(1, 7))  # p_c, p_mask_word, p_r of 12
        positions += [(true, true, False)] * 12 + [(true, word, True) for word in shown]
    words, shown_words, selected = (list(part) for part in zip(*positions, strict=True))
    return words, shown_words, selected


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("width", [4, 7])
def test_gradient_is_that_of_the_dense_model(loss: Loss, width: int) -> None:
    world, weights = Population.of(*SMALL[:2], EXACT, loss), gaussian_start(7, width, 1.0, seed=3)
    documents = [exact_document(pair) for pair in itertools.combinations(range(3), 2)]
    words, shown, selected = (torch.tensor([d[i] for d in documents]) for i in range(3))
    parts = {name: torch.tensor(part, requires_grad=True) for name, part in weights.items()}
    config = ModelConfig(attention_dim=width, prediction_bias="none")
    dense = dense_loss(config, parts, Objective(loss), words, shown, selected.bool(), 7)
    wanted = torch.autograd.grad(dense, list(parts.values()))
    found, gradient = world.gradient(weights)
    assert found == pytest.approx(dense.item(), rel=1e-13)
    for one, other in zip(gradient.values(), wanted, strict=True):
        assert relative(one, other.numpy()) < 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_definition_is_a_sum_over_documents_and_words(loss: Loss) -> None:
    """Any topics and any proportions."""
    world, weights = Population.of(ANY_TOPICS, GIVEN, Masking(0.3, 0.2, 0.3), loss), gaussian_start(4, 3, 0.7, seed=0)
    assert len(world.groups.words) == 4
    tables = word_tables(weights)
    assert world.loss_of_tables(*map(torch.from_numpy, tables)).item() == pytest.approx(loss_by_loop(world, *tables))


ONE, THREE = (Fixed(topics_per_document=tau, length="infinite") for tau in (1, 3))
POPULATIONS: dict[str, Any] = {
    "topics (4, 3, 2)": lambda loss: Population.of(*WORLD, loss),
    "one topic per document": lambda loss: Population.of(TopicModel(3, 2), ONE, Masking(), loss),
    "(6, 3, 3)": lambda loss: Population.of(TopicModel(6, 3), THREE, Masking(), loss),
    "any topics": lambda loss: Population.of(ANY_TOPICS, GIVEN, Masking(0.3, 0.2, 0.3), loss),
    "alike words": lambda loss: Population.of_topics(*WORLD, loss),
    "alike words, drawn documents": lambda loss: Population.of_topics(TopicModel(5, 2), Dirichlet(), Masking(), loss),
    "drawn documents": lambda loss: Population.of_topics(TopicModel(5, 2), Dirichlet(), Masking(), loss, alike=False),
}


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", POPULATIONS)
def test_gradient_is_that_of_the_definition(name: str, loss: Loss, biased: bool, embedded: bool) -> None:
    """Sums over pairs of groups, and predictions of each document."""
    world = POPULATIONS[name](loss)
    size = len(world.sizes)
    weights = gaussian_start(size, 5, 1.0, seed=2, width=size + 2 if embedded else None)
    if biased:
        weights["bias"] = np.random.default_rng(0).standard_normal(size)
    assert world.fits(weights)
    parts = {part: torch.from_numpy(matrix).requires_grad_() for part, matrix in weights.items()}
    exact = world.loss_of_tables(*word_tables(parts, None if world.root is None else torch.from_numpy(world.root)))
    wanted = torch.autograd.grad(exact, list(parts.values()))
    for by_pairs in {False, loss == "squared"}:
        vars(world)["by_pairs"] = by_pairs
        found, gradient = world.gradient(weights)
        assert found == pytest.approx(exact.item(), rel=1e-13)
        for one, other in zip(gradient.values(), wanted, strict=True):
            assert relative(one, other.numpy()) < 1e-12


def test_words_of_one_topic_are_one_group() -> None:
    world = Population.of(TopicModel(10, 10), Fixed(topics_per_document=3, length="infinite"), Masking())
    words, _, shares, _ = world.groups
    counts = (words < 101).sum(1)
    assert sorted(counts) == [1] + [10] * 10
    assert world.by_pairs
    assert not Population.of(*WORLD, "cross-entropy").by_pairs
    assert shares[0] @ counts == pytest.approx(1)
    assert world.shown.sum(1) == pytest.approx(np.ones(120))
    assert world.queries.sum(1) == pytest.approx(np.ones(120))


def test_worlds_without_such_a_flow_are_refused() -> None:
    with pytest.raises(InputError, match="this law of topic proportions has too many"):
        Population.of(TopicModel(3, 2), Dirichlet(length="infinite"), Masking())
    with pytest.raises(InputError, match="equally many"):
        Population.of_topics(TopicModel(3, 3, zipf=1.0), Dirichlet(), Masking())


def test_an_embedding_predicts_what_its_word_tables_do() -> None:
    world, at = Population.of(*SMALL), gaussian_start(7, 4, 0.5, seed=1, width=5)
    votes, scores = word_tables(at)
    assert votes == pytest.approx(at["embedding"].T @ at["value"] @ at["embedding"], rel=1e-13)
    assert world.gradient(at)[0] == pytest.approx(world.slopes(votes, scores)[0], rel=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_with_an_embedding_are_those_of_train(loss: Loss) -> None:
    """Ten explicit steps from the same start: SGD over all documents at once."""
    rate, steps, world = 0.5, 10, Population.of(*SMALL, loss)
    at = gaussian_start(7, 4, 0.3, seed=2, width=5)
    for _ in range(steps):
        gradient = world.gradient(at)[1]
        at = {name: part - rate * gradient[name] for name, part in at.items()}
    config = full_batches(loss, rate, steps, seed=2, model={"embedding": "trained", "dim": 5})
    (run,) = train([config], with_floors=False)
    start = gaussian_start(7, 4, 0.3, seed=2, width=5)
    assert all((config.model.initial(7, seed=2)[name] == part).all() for name, part in start.items())
    for name, part in at.items():
        assert np.asarray(run.weights[name]) == pytest.approx(part, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_words_of_a_topic_that_start_alike_stay_alike(loss: Any) -> None:
    """Loss and gradient are those of all words, and the gradient of all words has nothing else."""
    topics, words, rng = Population.of_topics(*WORLD, loss), Population.of(*WORLD, loss), np.random.default_rng(2)
    basis = np.repeat(np.diag(1 / np.sqrt(topics.sizes)), topics.sizes.astype(int), axis=0)
    few = {"value": rng.standard_normal((5, 5)), "key": rng.standard_normal((6, 5)), "query": np.ones((6, 5))}
    few["bias"] = rng.standard_normal(5)
    whole = {name: part @ basis.T for name, part in few.items()} | {"value": basis @ few["value"] @ basis.T}
    for name, part in topics.alike(whole).items():
        assert part == pytest.approx(few[name], abs=1e-12)
    (loss_few, slope), (loss_all, slope_all) = topics.gradient(few), words.gradient(whole)
    assert loss_few == pytest.approx(loss_all, abs=1e-12)
    for name in ("key", "query", "bias"):
        assert slope[name] @ basis.T == pytest.approx(slope_all[name], abs=1e-12)
    assert basis @ slope["value"] @ basis.T == pytest.approx(slope_all["value"], abs=1e-12)


def test_a_law_with_many_documents_is_drawn_with_equal_topics() -> None:
    world = Population.of_topics(TopicModel(5, 2), Dirichlet(alpha=0.1), Masking())
    assert world.true.shape == (100, 6)
    assert world.probability @ world.true == pytest.approx([0, *[0.2] * 5])
    assert world.shown.sum(1) == pytest.approx(1)
    assert world.queries.sum(1) == pytest.approx(1)
    assert world.probability @ world.true[:, 1] ** 2 == pytest.approx(1.1 / (5 * 1.5), rel=1e-6)  # of Dirichlet's law


@settings(max_examples=40)
@given(
    s=settings_of_the_theory(),
    alpha=st.floats(0.01, 100),
    beta=st.floats(0.01, 100),
    seed=st.integers(0, 999),
    biased=st.booleans(),
)
def test_symmetry_equals_enumeration_for_any_matrix(
    s: Setting, alpha: float, beta: float, seed: int, biased: bool
) -> None:
    rng = np.random.default_rng(seed)
    size = s.topic_model.vocabulary
    matrix = torch.from_numpy(rng.standard_normal((size, size)))
    bias = torch.from_numpy(rng.standard_normal(size)) if biased else None
    found = population_loss(s, matrix if bias is None else matrix + bias[:, None], alpha, beta).item()
    exact = enumerated_loss(s, matrix, alpha, beta, bias).item()
    added_up = matrix.square().sum() + (0 if bias is None else size * bias.square().sum())
    assert abs(found - exact) < 1e-12 * (1 + added_up.item())


def test_it_starts_where_train_does() -> None:
    config = ModelConfig(attention_dim=5, init_scale=0.02, prediction_bias="none", embedding="trained", dim=8)
    wanted, found = config.initial(7, seed=4), gaussian_start(7, 5, 0.02, seed=4, width=8)
    assert sorted(wanted) == sorted(found)
    assert all(np.array_equal(wanted[name], part) for name, part in found.items())
