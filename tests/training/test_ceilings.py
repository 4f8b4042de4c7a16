"""Topic mixtures from the sandbox's attention output, against the exact posterior; both against plain computations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from topicscope import RunConfig, train
from topicscope.measure import direct_scores
from topicscope.model import dense_forward
from topicscope.training import RunData, topic_ceiling
from topicscope.world import MASK, MaskedDocuments

SETTINGS: dict[str, Any] = {
    "steps": 200,
    "data": {"documents": 2000, "dev_documents": 600},
    "topic_model": {"topics": 5, "words_per_topic": 4},
    "documents": {"kind": "dirichlet", "alpha": 0.3, "length": 12},
    "optimizer": {"lr": 0.02},
    "evaluate_every": None,
    "floors": False,
    "checkpoint_every": None,
    "device": "cpu",
}


def masked(config: RunConfig) -> MaskedDocuments:
    dev = RunData(config).task.dev
    assert isinstance(dev, MaskedDocuments)
    return dev


@pytest.mark.parametrize(
    "model",
    [
        {"init_scale": 0.8, "prediction_bias": "none"},
        {"key": "zero", "value": "diagonal", "prediction_bias": "none"},
        {"embedding": "trained", "dim": 7, "init_scale": 0.8, "key_bias": "trained", "value_bias": 0.3},
        {"query": "zero", "query_bias": 0.7, "init_scale": 0.8},
    ],
)
def test_mean_outputs_are_those_of_the_dense_pass(model: dict[str, Any]) -> None:
    """The dense pass with an identity for a head: the mean of its output over positions."""
    config = RunConfig.of(SETTINGS, model=model, data={"documents": 5, "dev_documents": 20}, dtype="float64")
    dev, vocabulary = masked(config), config.topic_model.vocabulary
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape) for name, shape in config.model.trained_shapes(vocabulary).items()}
    parts = {**config.model.frozen(config.topic_model, config.masking), **weights}
    shown = torch.from_numpy(dev.masks.shown_words(dev.documents.words).astype(np.int64))
    tensors = {name: torch.from_numpy(part) for name, part in parts.items() if name != "prediction_bias"}
    tensors["head"] = torch.eye(config.model.width(vocabulary), dtype=torch.float64)
    bare = RunConfig.of(SETTINGS, model={**model, "head": "untied", "prediction_bias": "none"}).model
    output = dense_forward(bare, tensors, shown, shown >= 0, vocabulary).mean(2).numpy()
    np.testing.assert_allclose(
        config.model.mean_outputs(parts, dev.shown_counts(vocabulary)), output, atol=1e-10, rtol=1e-10
    )


def test_the_ceiling_is_that_of_all_hypotheses_enumerated() -> None:
    """Two of four topics with equal shares: six hypotheses, and the likelihood of every position under each."""
    settings = SETTINGS | {
        "topic_model": {"topics": 4, "words_per_topic": 2},
        "documents": {"kind": "fixed", "topics_per_document": 2, "length": [3, 6]},
        "data": {"documents": 10, "dev_documents": 40},
    }
    config = RunConfig.of(settings)
    dev, masking, words = masked(config), config.masking, config.topic_model.words
    hypotheses = [np.isin(np.arange(4), pair) / 2 for pair in itertools.combinations(range(4), 2)]
    posterior = []
    for row in dev.masks.shown_words(dev.documents.words):
        likelihoods = []
        for theta in hypotheses:
            likelihood = 1.0
            for word in row[row >= 0]:
                if word == MASK:
                    likelihood *= masking.p_mask * masking.p_mask_word
                else:
                    own = theta[(word - 1) // 2] / 2
                    kept = (1 - masking.p_mask) * own + masking.p_mask * masking.p_correct * own
                    likelihood *= kept + masking.p_mask * masking.p_random / words
            likelihoods.append(likelihood)
        posterior.append(sum(p * theta for p, theta in zip(likelihoods, hypotheses, strict=True)) / sum(likelihoods))
    shares = dev.documents.proportions
    assert shares is not None
    weights = {"value": np.eye(config.topic_model.vocabulary)}
    found = topic_ceiling(RunConfig.of(settings, model={"key": "zero", "query": "zero"}), weights)
    assert found is not None
    assert found.posterior.r2 == pytest.approx(direct_scores(np.array(posterior), shares, seed=0).r2, abs=1e-10)


def test_no_probe_does_better_than_the_posterior() -> None:
    """Of short documents much cannot be known."""
    config = RunConfig.of(SETTINGS)
    run = train(config)
    trained = topic_ceiling(config, run.weights)
    assert trained is not None
    assert trained.model.r2 is not None
    assert trained.bag_of_words.r2 is not None
    assert trained.posterior.r2 is not None
    assert trained.posterior.interval is not None
    assert trained.documents == 600
    assert 0.5 < trained.model.r2 < trained.posterior.r2 < 0.97
    assert trained.bag_of_words.r2 < trained.posterior.r2
    assert trained.posterior.interval[0] < trained.posterior.r2 < trained.posterior.interval[1]
    assert f"at best {trained.posterior.r2:.3f} [" in trained.sentence


@pytest.mark.parametrize("hide_masked", [False, True])
def test_random_weights_and_words_stay_below_the_posterior(hide_masked: bool) -> None:
    for seed in range(5):
        config = RunConfig.of(SETTINGS, seed=seed, model={"hide_masked": hide_masked})
        rng, vocabulary = np.random.default_rng(seed), config.topic_model.vocabulary
        shapes = config.model.trained_shapes(vocabulary)
        found = topic_ceiling(config, {name: rng.normal(size=shape) for name, shape in shapes.items()})
        assert found is not None
        assert found.model.r2 is not None
        assert found.bag_of_words.r2 is not None
        assert found.posterior.r2 is not None
        assert max(found.model.r2, found.bag_of_words.r2) < found.posterior.r2


def test_where_mixtures_are_not_known_nothing_is_said(tmp_path: Any) -> None:
    infinite = RunConfig.of(SETTINGS, documents={"length": "infinite"})
    assert topic_ceiling(infinite, {}) is None
    few = RunConfig.of(SETTINGS, data={"dev_documents": 9})
    assert topic_ceiling(few, {}) is None
    (tmp_path / "dev.txt").write_text("1 2 3 END\n" * 20)
    assert topic_ceiling(RunConfig.of(SETTINGS, data={"dev_file": str(tmp_path / "dev.txt")}), {}) is None
