"""The documents of a run, its floors, and how far a model is above them: the same documents for both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.training import settings
from topicscope import RunConfig, train
from topicscope.model import Weights
from topicscope.theory import bayes_loss
from topicscope.training import RunData, data
from topicscope.world import InfiniteDocuments, MaskedDocuments, stack

SMALL: dict[str, Any] = {
    "steps": 100,
    "dtype": "float64",
    "device": "cpu",
    "batch_size": 4,
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "documents": {"length": [4, 9]},
    "data": {"documents": 90, "dev_documents": 30},
}


def run_data(**more: Any) -> RunData:
    return RunData(RunConfig.of(SMALL | more))


def test_dev_batches_follow_the_model() -> None:
    """Uniform attention needs one row a document; hidden masks are not in the counts."""
    for more, uniform, hidden in (
        ({}, False, False),
        ({"model": {"key": "zero"}}, True, False),
        ({"model": {"hide_masked": True}}, False, True),
    ):
        found = run_data(**more)
        (rows,) = found.task.rows(found.task.dev, found.config.dtype)
        assert rows.context.dtype == np.float64
        assert (len(rows.document) == 30) == uniform
        shown = rows.context if uniform else np.exp(rows.context)
        assert (shown[:, 0].sum() == 0) == hidden
    single_data = run_data(dtype="float32")
    (single,) = single_data.task.rows(single_data.task.dev, "float32")
    assert single.context.dtype == np.float32


def test_documents_of_a_file(tmp_path: Path) -> None:
    """As many as are asked for, or all where there are fewer; and no floors, since their prior is not known."""
    path = tmp_path / "documents.txt"
    path.write_text("0 1 2 END\n3 4 5 0 END\n5 5 END\n")
    found = run_data(data={"train_file": str(path), "dev_file": str(path), "documents": 2, "dev_documents": 9})
    assert found.train.finite().words.tolist() == [[1, 2, 3, -1], [4, 5, 6, 1]]
    assert found.dev.finite().lengths.tolist() == [3, 4, 2]
    assert found.task.floors() == {}
    drawn = run_data(data={"train_file": str(path), "dev_documents": 9})
    assert len(drawn.train) == 3
    assert len(drawn.dev) == 9
    assert set(drawn.task.floors()) == {"bayes", "bayes_topics"}


def test_train_and_dev_documents_are_draws_of_their_own() -> None:
    found = run_data(data={"documents": 30, "dev_documents": 30})
    assert not np.array_equal(found.train.finite().words, found.dev.finite().words)
    assert np.array_equal(run_data(data={"documents": 30}).train.finite().words, found.train.finite().words)


@pytest.mark.parametrize("hide_masked", [False, True])
def test_bayes_floors_are_those_of_the_dev_set(hide_masked: bool) -> None:
    found = run_data(masking={"p_correct": 0.3}, model={"hide_masked": hide_masked})
    config, floors = found.config, found.task.floors()
    of = ("cross-entropy", config.topic_model, config.documents, config.masking, found.task.dev)
    for name, own_word in (("bayes", True), ("bayes_topics", False)):
        exact = bayes_loss(*of, hide_masked=hide_masked, own_word=own_word)  # type: ignore[arg-type]
        assert floors[name] == {name: getattr(exact, name) for name in ("loss", "standard_error", "documents")}
    assert floors["bayes"]["loss"] < floors["bayes_topics"]["loss"]
    assert floors["bayes"]["documents"] == 30


def test_floors_of_unequal_words_and_of_long_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few documents where the posterior takes long, none where it would take too long."""
    monkeypatch.setattr("topicscope.training.config.UNEQUAL_DOCUMENTS", 5)
    unequal = run_data(topic_model={"topics": 3, "words_per_topic": 2, "word_probabilities": [0.3, 0.7]})
    config, dev = unequal.config, unequal.task.dev
    assert isinstance(dev, MaskedDocuments)
    exact = bayes_loss("cross-entropy", config.topic_model, config.documents, config.masking, dev.first(5))
    assert unequal.task.floors()["bayes"]["loss"] == exact.loss
    assert unequal.task.floors()["bayes"]["documents"] == 5
    assert run_data().task.floors()["bayes"]["documents"] == 30
    monkeypatch.setattr(data, "LONGEST", 9)
    assert run_data(documents={"length": 9}).task.floors() != {}
    assert run_data(documents={"length": 10}).task.floors() == {}
    infinite = run_data(documents={"kind": "infinite", "topics_per_document": 2}).task.floors()
    assert infinite["bayes_topics"]["loss"] > infinite["bayes"]["loss"] > 0


@pytest.mark.parametrize("loss", ["squared", "squared-mean"])
@pytest.mark.parametrize(
    ("more", "ridge", "bias"),
    [
        ({"objective": {"l2": {"value": 0.02}}}, 0.02, "trained"),
        ({"objective": {"l2": 0.02}, "model": {"prediction_bias": "none"}}, 0.02, "none"),
        ({"objective": {"l2": 0.02}, "model": {"prediction_bias": 0.1, "hide_masked": True}}, 0.02, 0.1),
        ({"model": {"key": "zero", "query": "zero"}}, 0.0, "trained"),
        ({"objective": {"l2": 0.02}, "model": {"embedding": "trained"}}, 0.0, "trained"),
        ({"objective": {"l2": 0.02}, "model": {"head": "untied"}}, 0.0, "trained"),
        ({"objective": {"l2": 0.02}, "model": {"value": "identity"}}, 0.0, "trained"),
    ],
)
def test_the_least_squares_floor_is_the_best_of_all_value_matrices(
    loss: str, more: dict[str, Any], ridge: float, bias: Any
) -> None:
    """Normal equations, document by document and position by position; lambda counts where W_V itself is fitted."""
    found = run_data(**more | {"objective": {"loss": loss, **more.get("objective", {})}})
    floor, dev, vocabulary = found.task.floors()["least_squares"], found.task.dev, 7
    assert isinstance(dev, MaskedDocuments)
    words, masks = dev.documents.words, dev.masks
    shown, selected, xs, ys, weights = masks.shown_words(words), masks.selected(words), [], [], []
    for b in range(30):
        there = words[b] >= 0
        seen = there & ~selected[b] if found.config.model.hide_masked else there
        share = np.bincount(shown[b][seen if seen.any() else there], minlength=vocabulary) / (seen.sum() or there.sum())
        for word in words[b][selected[b]]:
            xs.append(share)
            ys.append(np.eye(vocabulary)[word])
            weights.append(1 / (30 * selected[b].sum()))
    x, y, w = np.array(xs), np.array(ys), np.array(weights)[:, None]
    scale = 1 / vocabulary if loss == "squared-mean" else 1.0
    if bias == "trained":
        x = np.hstack([x, np.ones((len(x), 1))])
    else:
        y = y - (0.0 if bias == "none" else bias)
    penalty = ridge * np.eye(x.shape[1])
    penalty[vocabulary:] = 0
    solution = np.linalg.pinv(scale * x.T @ (w * x) + penalty) @ (scale * x.T @ (w * y))
    lost = scale * float((w * (x @ solution - y) ** 2).sum())
    assert floor["loss"] == pytest.approx(lost, rel=1e-9)
    assert floor["objective"] == pytest.approx(lost + ridge * (solution[:vocabulary] ** 2).sum(), rel=1e-9)
    assert (floor["ridge"], floor["documents"]) == (ridge, 30)


def test_an_estimated_floor_says_its_error_and_one_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicscope.training.config.ESTIMATED_DOCUMENTS", 8)
    overlap = {"topics": 3, "words_per_topic": 4, "overlap": 0.25}
    found = run_data(topic_model=overlap)
    floors = found.task.floors()
    assert floors["bayes"]["documents"] == 8
    assert 0 < floors["bayes"]["numerical_error"] < 0.1
    assert found.task.no_floor == ""
    pairs = {"kind": "fixed", "topics_per_document": 2, "length": 9}
    exact = run_data(topic_model=overlap, documents=pairs).task.floors()
    assert set(exact["bayes"]) == {"loss", "standard_error", "documents"}
    assert exact["bayes"]["documents"] == 30
    monkeypatch.setattr("topicscope.theory.floors.FEWEST_EFFECTIVE", 10**6)
    assert found.task.floors() == {}
    assert "fewer than 1000000" in found.task.no_floor


ZIPF = {"topics": 3, "words_per_topic": 4, "zipf": 1.0}
OVERLAP = {"topics": 3, "words_per_topic": 4, "overlap": 0.25}


def losses_one_by_one(run: Any, count: int) -> list[float]:
    """The model on dev sets of one document each."""
    config, of = run.config, RunData(run.config)
    dev, trained = of.task.dev, config.model.trained_shapes(config.topic_model.vocabulary)
    assert isinstance(dev, MaskedDocuments)
    frozen = {name: part for name, part in run.weights.items() if name not in trained}
    weights = Weights([{name: run.weights[name] for name in trained}], frozen, dtype=torch.float64)
    losses = []
    for i in range(count):
        single = MaskedDocuments(dev.documents.take(slice(i, i + 1)), dev.masks.take(np.array([i])))
        (rows,) = of.task.rows(single, "float64")
        losses.append(config.model.loss(weights, config.objective, stack([rows], torch.float64)).item())
    return losses


@pytest.mark.parametrize("loss", ["cross-entropy", "squared", "squared-mean"])
@pytest.mark.parametrize(
    "model", [{}, {"key": "zero", "query": "zero"}, {"embedding": "trained", "dim": 3, "prediction_bias": 0.2}]
)
def test_losses_of_documents_are_those_of_dev_sets_of_one(loss: str, model: dict[str, Any]) -> None:
    more = {"model": model, "objective": {"loss": loss}, "dtype": "float64"}
    run = train(RunConfig.of(settings.SMALL | more), with_floors=False)
    found = RunData(run.config).task.dev_losses(run.weights, 10)
    assert found == pytest.approx(losses_one_by_one(run, 10), rel=1e-12)
    assert found.mean() == pytest.approx(run.results["dev_loss"], rel=1e-12)
    assert found.std() > 0


@pytest.mark.parametrize(("topic_model", "few"), [(ZIPF, "UNEQUAL_DOCUMENTS"), (OVERLAP, "ESTIMATED_DOCUMENTS")])
def test_a_floor_of_few_documents_is_compared_with_the_loss_on_them(
    monkeypatch: pytest.MonkeyPatch, topic_model: dict[str, Any], few: str
) -> None:
    monkeypatch.setattr(f"topicscope.training.config.{few}", 4)
    run = train(RunConfig.of(settings.SMALL | {"topic_model": topic_model}, dtype="float64"))
    config, dev, found = run.config, RunData(run.config).task.dev, run.results
    assert isinstance(dev, MaskedDocuments)
    own = np.array(losses_one_by_one(run, 4))
    for name, own_word in (("bayes", True), ("bayes_topics", False)):
        floor = bayes_loss(
            "cross-entropy", config.topic_model, config.documents, config.masking, dev.first(4), own_word=own_word
        )
        assert floor.costs is not None
        assert floor.costs.mean() == pytest.approx(floor.loss, rel=1e-12)
        assert found["above_floor"][name] == pytest.approx((own - floor.costs).mean(), rel=1e-9)
        assert found["above_floor_error"][name] == pytest.approx(np.std(own - floor.costs) / 2, rel=1e-9)
    assert found["floor_dev_loss"] == pytest.approx(own.mean(), rel=1e-12)
    # the whole dev set would have given another difference
    assert abs(found["dev_loss"] - found["floors"]["bayes"]["loss"] - found["above_floor"]["bayes"]) > 1e-3
    (sentence, *_) = run.summary()
    assert "on the first 4 dev documents; standard error " in sentence
    assert ("numerical error of the estimated floor" in sentence) == (few == "ESTIMATED_DOCUMENTS")


@pytest.mark.parametrize("model", [{}, {"key": "zero", "query": "zero"}])
def test_infinite_documents_differ_too(monkeypatch: pytest.MonkeyPatch, model: dict[str, Any]) -> None:
    """Their loss is known exactly, but they are drawn: another dev set would have given another mean."""
    run = train(RunConfig.of(settings.SMALL | {"model": model, "documents": {"length": "infinite"}}, dtype="float64"))
    of, found = RunData(run.config), run.results
    config, dev = run.config, of.task.dev
    assert isinstance(dev, InfiniteDocuments)
    own = of.task.dev_losses(run.weights, len(dev))
    assert own.mean() == pytest.approx(found["dev_loss"], rel=1e-12)
    for name, own_word in (("bayes", True), ("bayes_topics", False)):
        world = ("cross-entropy", config.topic_model, config.documents, config.masking)
        singles = [dev.take(slice(i, i + 1)) for i in range(len(dev))]
        each = np.array([bayes_loss(*world, one, own_word=own_word).loss for one in singles])  # type: ignore[arg-type]
        floor = found["floors"][name]
        assert floor["loss"] == pytest.approx(each.mean(), rel=1e-12)
        assert floor["standard_error"] == pytest.approx(each.std() / len(each) ** 0.5, rel=1e-9)
        assert found["above_floor_error"][name] == pytest.approx((own - each).std() / len(each) ** 0.5, rel=1e-9)
    assert "; standard error " in run.summary()[0]
    # of many, the first few show the spread
    monkeypatch.setattr(data, "ENDLESS_DOCUMENTS", 5)
    of.task.floors()
    few = of.task.above_floors(run.weights, found["dev_loss"], found["floors"])
    spread = (own[:5] - of.task.floor_costs["bayes"][:5]).std()
    assert few["above_floor_error"]["bayes"] == pytest.approx(spread / len(dev) ** 0.5, rel=1e-9)
    assert few["above_floor"] == found["above_floor"]
