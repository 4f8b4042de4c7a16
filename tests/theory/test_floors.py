"""The Bayes-optimal loss against the plain way: enumerate everything that is hidden. Least squares against a model."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from tests.world.samples import keys, one_batch
from topicscope import Dirichlet, Fixed, Masking, ModelConfig, Objective, TopicModel, Weights
from topicscope.theory import NoFloor, bayes_loss, uniform_optimum
from topicscope.world import InfiniteDocuments, LogisticNormal, MaskedDocuments, Own
from topicscope.world.exact import from_dirichlet


def full_bayes(
    model: TopicModel, masking: Masking, shown: list[int], position: int, hidden: tuple[int, ...] | None = None
) -> np.ndarray:
    """P(true word at `position` | shown words, position is masked), over all pairs of topics, true words and masks.

    `hidden`: the masked positions, where they are known; the others then show their own words.
    """
    joint = np.zeros(model.words)
    for subset in itertools.combinations(range(model.topics), 2):
        chances = model.word_topics[:, subset].mean(1)
        for truth in itertools.product(np.flatnonzero(chances) + 1, repeat=len(shown)):
            p = float(np.prod([chances[word - 1] for word in truth]))
            for n, (true, seen) in enumerate(zip(truth, shown, strict=True)):
                masked = masking.p_correct * (seen == true)
                masked += masking.p_random / model.words if seen else masking.p_mask_word
                if n == position:
                    p *= masked
                elif hidden is None:
                    p *= (seen == true) * (1 - masking.p_mask) + masking.p_mask * masked
                elif n not in hidden:
                    p *= seen == true
            joint[truth[position] - 1] += p
    return joint / joint.sum()


@pytest.mark.parametrize("world", ["disjoint", "masks hidden", "overlapping"])
@pytest.mark.parametrize("loss", ["cross-entropy", "squared", "squared-mean"])
def test_loss_equals_brute_force_over_everything_hidden(loss: str, world: str) -> None:
    overlap: dict[str, Any] = {"overlap": 0.5, "common_words": 1, "common_share": 0.3} if world == "overlapping" else {}
    model, masking, hide_masked = TopicModel(3, 2, **overlap), Masking(0.3, 0.2, 0.3), world == "masks hidden"
    prior, rng = Fixed(topics_per_document=2, length=3), np.random.default_rng(4)
    documents = prior.sample(model, 12, rng).finite()
    masked = masking.draw(documents, model.words, keys(int(rng.integers(1000))))
    words = documents.words
    shown = masked.shown_words(words)
    costs: list[list[float]] = [[] for _ in range(12)]
    for document, flat, true in zip(masked.document, masked.flat, masked.true, strict=True):
        hidden = tuple((masked.flat[masked.document == document] % 3).tolist()) if hide_masked else None
        p = full_bayes(model, masking, shown[document].tolist(), flat % 3, hidden)
        squared = ((p**2).sum() - 2 * p[true - 1] + 1) / (model.vocabulary if loss == "squared-mean" else 1)
        costs[document].append(-np.log(p[true - 1]) if loss == "cross-entropy" else squared)
    means = [np.mean(cost) for cost in costs]
    both = MaskedDocuments(documents, masked)
    found = bayes_loss(loss, model, prior, masking, both, hide_masked=hide_masked)  # type: ignore[arg-type]
    assert found.loss == pytest.approx(np.mean(means), rel=1e-10)
    assert found.standard_error == pytest.approx(np.std(means) / np.sqrt(12), rel=1e-9)
    assert (found.documents, found.numerical_error) == (12, None)


@pytest.mark.parametrize("hide_masked", [False, True])
def test_without_the_own_word_only_the_topics_are_known(hide_masked: bool) -> None:
    """The posterior of the subset of topics, word by word; all of its words are then equally probable."""
    model, masking, prior = TopicModel(3, 2), Masking(0.3, 0.2, 0.3), Fixed(topics_per_document=2, length=4)
    rng = np.random.default_rng(5)
    both = prior.sample(model, 12, rng).finite().masked(masking, model, keys(int(rng.integers(1000))))
    shown, masks = both.masks.shown_words(both.documents.words), both.masks
    costs = []
    for number, words in enumerate(shown):
        here = masks.document == number
        known = np.delete(words, masks.flat[here] % 4) if hide_masked else words
        share = np.zeros(7)
        for subset in itertools.combinations((1, 2, 3), 2):
            inside = np.isin(model.topic_of_word, subset)
            noise = 0.0 if hide_masked else masking.p_mask * masking.p_random / 6
            k = 1.0 if hide_masked else masking.k
            likelihood = np.prod([k * inside[word] / 4 + noise for word in known if word])
            share += likelihood * inside / 4
        share /= share.sum()
        costs.append(np.mean(-np.log(share[masks.true[here]])))
    found = bayes_loss("cross-entropy", model, prior, masking, both, hide_masked=hide_masked, own_word=False)
    assert found.loss == pytest.approx(np.mean(costs), rel=1e-10)


def test_infinite_documents_by_a_double_loop() -> None:
    model, masking = TopicModel(3, 2), Masking(0.3, 0.2, 0.3)
    proportions = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    entropy, each = 0.0, []
    for topics in proportions:
        squares = 0.0
        p = np.repeat(topics, 2) / 2
        for shown in range(7):
            share = np.zeros(6)
            for true in range(6):
                other = masking.p_random / 6 if shown else masking.p_mask_word
                share[true] = p[true] * (other + masking.p_correct * (shown == true + 1))
            there = share[share > 0]
            entropy -= (there * np.log(there / there.sum())).sum() / 2
            squares += (there - there**2 / there.sum()).sum()
        each.append(squares)
    infinite, prior = InfiniteDocuments(proportions), Fixed(topics_per_document=2)
    losses = ("cross-entropy", "squared", "squared-mean")
    found = {loss: bayes_loss(loss, model, prior, masking, infinite) for loss in losses}  # type: ignore[arg-type]
    assert found["cross-entropy"].loss == pytest.approx(entropy, rel=1e-12)
    assert found["squared"].loss == pytest.approx(np.mean(each), rel=1e-12)
    assert found["squared-mean"].loss == pytest.approx(np.mean(each) / 7, rel=1e-12)
    assert found["squared"].costs == pytest.approx(each, rel=1e-12)
    assert found["squared"].standard_error == pytest.approx(abs(each[0] - each[1]) / 2 / np.sqrt(2), rel=1e-9)
    assert found["squared"].documents == 2
    blind = bayes_loss("cross-entropy", model, prior, masking, InfiniteDocuments(proportions[:1]), own_word=False)
    assert blind.loss == pytest.approx(np.log(4), rel=1e-12)


def test_infinite_documents_are_the_limit_of_long_ones() -> None:
    model, masking = TopicModel(4, 3), Masking()
    long = Fixed(topics_per_document=2, length=20_000)
    rng = np.random.default_rng(0)
    documents = long.sample(model, 60, rng).finite()
    assert documents.proportions is not None
    for own_word in (True, False):
        masked = documents.masked(masking, model, keys(int(rng.integers(1000))))
        near = bayes_loss("squared", model, long, masking, masked, own_word=own_word)
        infinite = InfiniteDocuments(documents.proportions)
        exact = bayes_loss("squared", model, long, masking, infinite, own_word=own_word)
        assert near.loss == pytest.approx(exact.loss, abs=max(1e-9, 5 * near.standard_error))
        assert near.standard_error < 0.002


@pytest.mark.parametrize("bias", ["none", "trained", 0.01])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_gradient_of_the_model_vanishes_there_and_the_loss_agrees(bias: float | str, ridge: float) -> None:
    """Put the optimum into the model: its loss is the one reported, and no direction is downhill."""
    topic_model, masking, rng = TopicModel(3, 2), Masking(0.3), np.random.default_rng(0)
    documents = Dirichlet(length=(5, 30)).sample(topic_model, 400, rng).finite()
    masked = MaskedDocuments(documents, masking.draw(documents, topic_model.words, keys(int(rng.integers(1000)))))
    rows = masked.batches(topic_model, masking, np.dtype("float64"), uniform=True, size=100)
    fixed = np.full(7, bias) if isinstance(bias, float) else None
    found = uniform_optimum(rows, ridge=ridge, bias=fixed, free_bias=bias == "trained")
    config = ModelConfig(key="zero", query="zero", prediction_bias=bias)  # type: ignore[arg-type]
    weights = Weights.from_config(config, topic_model, masking, dtype=torch.float64)
    weights.parts["value"].copy_(torch.from_numpy(found.matrix))
    if bias == "trained":
        weights.parts["prediction_bias"].copy_(torch.from_numpy(found.bias))
    batch = one_batch(masked, topic_model, masking, uniform=True)
    loss = config.loss_and_gradient(weights, Objective("squared", {"value": ridge}), batch).item()
    assert loss == pytest.approx(found.loss, rel=1e-12)
    assert found.objective == pytest.approx(found.loss + ridge * (found.matrix**2).sum(), rel=1e-12)
    for gradient in weights.gradients.values():
        assert gradient.abs().max().item() < 1e-12


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_an_estimated_floor_lies_within_its_error_of_the_exact_one(
    loss: str, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The posterior of disjoint topics is known exactly; here it is estimated all the same."""
    model, masking, prior = TopicModel(6, 3), Masking(), Dirichlet(alpha=alpha, length=80)
    documents = prior.sample(model, 150, np.random.default_rng(0)).finite().masked(masking, model, keys(2))
    exact = bayes_loss(loss, model, prior, masking, documents)  # type: ignore[arg-type]
    alphas = prior.weights(6)
    monkeypatch.setattr(Dirichlet, "posterior", lambda self, t, seen, a, e: from_dirichlet(t, seen, a, e, alphas))
    found = bayes_loss(loss, model, prior, masking, documents)  # type: ignore[arg-type]
    assert exact.numerical_error is None
    assert found.numerical_error is not None
    assert 0 < abs(found.loss - exact.loss) < 3 * found.numerical_error
    assert found.numerical_error < 0.002 * exact.loss


def test_no_floor_where_draws_are_worth_too_little() -> None:
    class Law:
        def sample(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
            return rng.dirichlet(np.ones(topics), size=count)

        def moments(self, topics: int) -> Any:
            return Dirichlet(alpha=1).moments(topics)

    model, masking, prior = TopicModel(8, 3), Masking(), Own(Law(), length=400)
    documents = prior.sample(model, 20, np.random.default_rng(0)).finite().masked(masking, model, keys(2))
    with pytest.raises(NoFloor, match=r"its draws are worth .*, fewer than 100"):
        bayes_loss("squared", model, prior, masking, documents)


def test_infinite_documents_are_exact_in_any_world() -> None:
    model, masking = TopicModel(3, 4, overlap=0.25), Masking(0.3, 0.2, 0.3)
    theta = LogisticNormal(covariance=1.0).sample_proportions(3, 4, np.random.default_rng(0))
    p = theta @ model.word_topics.T
    prior = LogisticNormal(covariance=1.0)
    found = bayes_loss("squared", model, prior, masking, InfiniteDocuments(theta), own_word=False)
    assert found.loss == pytest.approx(1 - (p**2).sum(1).mean(), rel=1e-12)
    assert found.standard_error == pytest.approx((p**2).sum(1).std() / 2, rel=1e-9)  # of four documents
    assert found.numerical_error is None
