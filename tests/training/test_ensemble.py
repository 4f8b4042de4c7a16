from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from topicscope import InputError, RunConfig, train

SMALL: dict[str, Any] = {
    "steps": 200,
    "dtype": "float64",
    "evaluate_every": 50,
    "device": "cpu",
    "batch_size": 8,
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "data": {"documents": 90, "dev_documents": 30},
}


def small(**more: Any) -> RunConfig:
    return RunConfig.of(SMALL | more)


def with_lr(config: RunConfig, lr: float) -> RunConfig:
    return dataclasses.replace(config, optimizer=dataclasses.replace(config.optimizer, lr=lr))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model": {"embedding": "trained", "dim": 6}, "objective": {"loss": "squared-mean"}},
        {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}, "masking": {"fresh": False}},
        {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared", "l2": 0.01}},
        {
            "documents": {"kind": "infinite", "topics_per_document": 2},
            "batch_size": 3,
            "data": {"documents": 6, "dev_documents": 4},
        },
        {
            "schedule": {
                "phases": [{"parts": ["value"], "steps": 7}, {"parts": ["key", "query"], "steps": 5}],
                "repeat": True,
            }
        },
    ],
)
def test_each_member_follows_the_run_that_it_is_alone(more: dict[str, Any]) -> None:
    base = small(**more)
    scaled = dataclasses.replace(base, model=dataclasses.replace(base.model, init_scale=0.3))
    members = [with_lr(base, 0.03), *base.with_seeds(2), scaled]
    together = train(members, with_floors=False)
    for config, run in zip(members, together, strict=True):
        alone = train(config, with_floors=False)
        assert run.config == alone.config
        assert set(run.metrics) == set(alone.metrics)
        for name, values in alone.metrics.items():
            if name == "rotation":  # 1 - cos of all but parallel matrices keeps only the digits of an absolute error
                assert run.metrics[name] == pytest.approx(values, abs=1e-12, nan_ok=True)
            else:
                assert run.metrics[name] == pytest.approx(values, rel=1e-9, abs=1e-13, nan_ok=True), name
        assert len(run.metrics["loss"]) == 201


def test_one_member_diverging_leaves_the_others_untouched() -> None:
    base = small(optimizer={"name": "sgd", "lr": 0.1}, objective={"loss": "squared"})
    wild, tame = with_lr(base, 30.0), base
    runs = train([wild, tame], with_floors=False)
    assert [run.status for run in runs] == ["diverged", "done"]
    alone = train(tame, with_floors=False)
    assert runs[1].metrics["loss"] == pytest.approx(alone.metrics["loss"], rel=1e-9, nan_ok=True)
    end = runs[0].results["steps"]
    assert 0 < end < 200
    assert len(runs[0].metrics["loss"]) == end
    assert np.isfinite(runs[0].metrics["loss"]).all()
    kept = train(
        dataclasses.replace(wild, steps=end - 1), with_floors=False
    )  # the weights are those of the last sound step
    assert runs[0].weights["value"] == pytest.approx(kept.weights["value"], rel=1e-9)


def test_a_loss_beyond_all_measure_is_divergence() -> None:
    run = train(
        small(
            optimizer={"name": "sgd", "lr": 3.0},
            objective={"loss": "squared"},
            documents={"kind": "infinite", "topics_per_document": 2},
        ),
        with_floors=False,
    )
    assert run.status == "diverged"
    assert run.metrics["loss"].max() < 1e7
    assert np.abs(run.weights["value"]).max() < 1e7


def test_members_may_differ_in_seed_rate_and_scale_only() -> None:
    with pytest.raises(InputError, match="at least one config"):
        train([])
    with pytest.raises(InputError, match="these differ in batch_size"):
        train([small(), small(batch_size=4)])


def test_stops_when_dev_stops_improving() -> None:
    run = train(small(patience=2, evaluate_every=10, optimizer={"lr": 0.5}, steps=2000), with_floors=False)
    assert run.status == "stopped"
    assert run.results["steps"] == run.results["best_step"] + 20
    assert run.metrics["step"][-1] == run.results["steps"]


def test_frozen_parts_and_pausing_parts_do_not_move() -> None:
    config = small(model={"value": "blocks"}, steps=60)
    run = train(config, with_floors=False)
    assert np.array_equal(run.weights["value"], config.model.frozen(config.topic_model, config.masking)["value"])
    two = train(RunConfig.of(SMALL | {"steps": 60}, schedule="two-stage"), with_floors=False)
    assert np.ptp(two.metrics["norm_key"][:31]) == 0
    assert np.ptp(two.metrics["norm_value"][30:]) == 0
    assert np.isnan(two.metrics["grad_key"][:30]).all()
    assert two.metrics["norm_key"][40] != two.metrics["norm_key"][30]


def test_figures_are_what_they_are_called() -> None:
    """The last row against the weights themselves; the rotation against its definition, ten steps apart."""
    runs = [
        train(small(steps=steps, objective={"loss": "squared", "l2": {"value": 0.1}}), with_floors=False)
        for steps in (50, 60)
    ]
    (early, late), last = (run.weights["value"] for run in runs), runs[1].metrics
    assert last["norm_value"][-1] == pytest.approx(np.linalg.norm(late), rel=1e-12)
    cosine = (early * late).sum() / np.linalg.norm(early) / np.linalg.norm(late)
    assert last["rotation"][-1] == pytest.approx((1 - cosine) / 2, abs=1e-14)
    assert np.isnan(last["rotation"][:10]).all()
    assert np.isfinite(last["rotation"][10:]).all()
    assert last["objective"][5] == pytest.approx(last["loss"][5] + 0.1 * last["norm_value"][5] ** 2, rel=1e-12)
    topic = runs[1].config.topic_model.topic_of_word
    same = [late[i, j] for i in range(1, 13) for j in range(1, 13) if topic[i] == topic[j] and i != j]
    assert last["value_same"][-1] == pytest.approx(np.mean(same), rel=1e-10)
    assert runs[1].results["value"]["same"] == pytest.approx(np.mean(same), rel=1e-10)
