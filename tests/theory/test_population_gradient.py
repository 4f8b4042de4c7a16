"""The population gradient, against the dense model on documents that are their own population, and against loops."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from topicscope import InputError
from topicscope.model import ModelConfig, Objective, dense_loss
from topicscope.theory import Loss, Population, Weights, grouped_subsets, score_force, subset_world
from topicscope.world import Dirichlet, Fixed, Given, Masking, TopicModel

LOSSES: tuple[Loss, ...] = ("squared", "cross-entropy")
EXACT = Masking(0.5, 0.25, 0.5)


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
    world = Population.of(TopicModel(3, 2), Fixed(topics_per_document=2, length="infinite"), EXACT, loss)
    weights = Weights.gaussian(7, width, 1.0, seed=3)
    documents = [exact_document(pair) for pair in itertools.combinations(range(3), 2)]
    words, shown, selected = (torch.tensor([d[i] for d in documents]) for i in range(3))
    parts = {name: torch.tensor(part, requires_grad=True) for name, part in weights._asdict().items()}
    config = ModelConfig(attention_dim=width, prediction_bias="none")
    dense = dense_loss(config, parts, Objective(loss), words, shown, selected.bool(), 7)
    wanted = torch.autograd.grad(dense, list(parts.values()))
    found, gradient = world.gradient(weights)
    assert found == pytest.approx(dense.item(), rel=1e-13)
    for one, other in zip(gradient, wanted, strict=True):
        assert np.abs(one - other.numpy()).max() < 1e-12 * np.abs(one).max()


def loss_of(world: Population, weights: Weights, words: int) -> float:
    """Documents, words shown and true words one by one."""
    scores, total = weights.key.T @ weights.query / math.sqrt(len(weights.key)), 0.0
    for true, shown, probability in zip(world.true, world.shown, world.probability, strict=True):
        for query in range(words + 1):
            weight = [shown[key] * math.exp(scores[key, query]) for key in range(words + 1)]
            predicted = weights.value @ np.array(weight) / sum(weight)
            for word in range(1, words + 1):
                chance = true[word] * (world.instead[query] + world.p_correct * (word == query))
                if world.objective == "squared":
                    cost = float(((predicted - np.eye(words + 1)[word]) ** 2).sum())
                else:
                    cost = math.log(np.exp(predicted).sum()) - predicted[word]
                total += probability * chance * cost
    return total


@pytest.mark.parametrize(("loss", "by_pairs"), [("squared", True), ("squared", False), ("cross-entropy", False)])
def test_any_topics_and_any_proportions(loss: Loss, by_pairs: bool) -> None:
    """Words with probabilities of their own: every word is a group. Central differences along a random direction."""
    topics = TopicModel(matrix=[[0.5, 0.1], [0.2, 0.2], [0.3, 0.7]])
    prior = Given(proportions=[[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]], length="infinite")
    world = Population.of(topics, prior, Masking(0.3, 0.2, 0.3), loss)
    assert len(world.groups.words) == 4
    vars(world)["by_pairs"] = by_pairs
    weights, along = Weights.gaussian(4, 3, 0.7, seed=0), Weights.gaussian(4, 3, 1.0, seed=1)
    found, gradient = world.gradient(weights)
    assert found == pytest.approx(loss_of(world, weights, 3), rel=1e-12)
    ends = [
        loss_of(world, Weights(*(w + step * a for w, a in zip(weights, along, strict=True))), 3)
        for step in (-2e-3, -1e-3, 1e-3, 2e-3)
    ]
    slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / 12e-3
    assert sum(np.vdot(g, a) for g, a in zip(gradient, along, strict=True)) == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize(("topics", "words", "tau"), [(4, 3, 2), (3, 2, 1), (6, 3, 3), (3, 4, 3)])
def test_sums_over_pairs_are_those_over_documents(topics: int, words: int, tau: int) -> None:
    world = Population.of(TopicModel(topics, words), Fixed(topics_per_document=tau, length="infinite"), Masking())
    weights = Weights.gaussian(topics * words + 1, 5, 1.0, seed=2)
    results = []
    for by_pairs in (True, False):
        vars(world)["by_pairs"] = by_pairs
        results.append(world.gradient(weights))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-13)
    for one, other in zip(results[0][1], results[1][1], strict=True):
        assert np.abs(one - other).max() < 1e-13 * np.abs(other).max()


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_by_scores_is_the_force_on_attention(loss: Loss) -> None:
    """With W_Q = I the gradient of W_K is that of the scores, which `score_force` computes on its own."""
    world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking(), loss)
    value, key, _ = Weights.gaussian(13, 13, 0.8, seed=6)
    gradient = world.gradient(Weights(value, key, np.eye(13)))[1]
    force = score_force(subset_world(4, 3, grouped_subsets(4, 2)), Masking(), value, key.T / math.sqrt(13), loss)
    assert np.abs(math.sqrt(13) * gradient.key.T + force).max() < 1e-13 * np.abs(force).max()


def test_words_of_one_topic_are_one_group() -> None:
    world = Population.of(TopicModel(10, 10), Fixed(topics_per_document=3, length="infinite"), Masking())
    words, _, shares, _ = world.groups
    assert sorted(map(len, words)) == [1] + [10] * 10
    assert world.by_pairs
    assert not replace(world, objective="cross-entropy").by_pairs
    assert sum(share * len(group) for share, group in zip(shares[0], words, strict=True)) == pytest.approx(1)
    assert world.shown.sum(1) == pytest.approx(np.ones(120))
    assert world.queries.sum(1) == pytest.approx(np.ones(120))


def test_it_starts_where_train_does() -> None:
    config = ModelConfig(attention_dim=5, init_scale=0.02, prediction_bias="none")
    wanted, found = config.initial(7, seed=4), Weights.gaussian(7, 5, 0.02, seed=4)
    assert all((wanted[name] == part).all() for name, part in found._asdict().items())
    assert (Weights.gaussian(7, 5, 0.04, seed=4).key == 2 * found.key).all()


def test_a_law_without_a_list_of_documents_is_refused() -> None:
    with pytest.raises(InputError, match="this law of topic proportions has too many"):
        Population.of(TopicModel(3, 2), Dirichlet(length="infinite"), Masking())
