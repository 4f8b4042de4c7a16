from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from topicscope import InputError, RunConfig, train
from topicscope.model import dense_loss
from topicscope.training import Ensemble, ensemble as ensemble_module, resolve_device
from topicscope.training.ensemble import Member
from topicscope.world import MaskedDocuments

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
    with pytest.raises(InputError, match="at least one RunConfig"):
        train([])
    with pytest.raises(InputError, match=r"RunConfig\.of\(settings\) makes one"):
        train({"steps": 10})  # type: ignore[call-overload]
    with pytest.raises(InputError, match="seeds: 0; expected at least one"):
        small().with_seeds(0)
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


def test_the_dev_loss_is_the_mean_over_all_dev_documents() -> None:
    """Of each member, against the dense pass; dev batches hold 500 documents, so the second has 7."""
    configs = small(steps=1, data={"documents": 9, "dev_documents": 507}, documents={"length": [1, 5]}).with_seeds(2)
    ensemble = Ensemble(configs)
    losses = ensemble.dev_loss()
    for e, config in enumerate(configs):
        dev = ensemble.data[e].task.dev
        assert isinstance(dev, MaskedDocuments)
        words = dev.documents.words
        positions, shown, selected = map(
            torch.from_numpy,
            (words.astype(np.int64), dev.masks.shown_words(words).astype(np.int64), dev.masks.selected(words)),
        )
        exact = dense_loss(config.model, ensemble.weights.member(e), config.objective, positions, shown, selected, 13)
        assert losses[e] == pytest.approx(exact.item(), rel=1e-12)


def test_a_penalised_query_without_a_key_decays() -> None:
    """It has no influence, so that gradient descent multiplies it by 1 - 2 lr lambda at every step."""
    config = small(
        steps=60,
        model={"key": "zero", "init_scale": 1.0},
        objective={"loss": "squared", "l2": {"query": 0.1}},
        optimizer={"name": "sgd", "lr": 0.5},
    )
    run = train(config, with_floors=False)
    start = run.metrics["norm_query"][0]
    assert run.metrics["norm_query"] == pytest.approx(start * 0.9 ** np.arange(61), rel=1e-12)
    assert run.metrics["grad_query"][:60] == pytest.approx(0.2 * start * 0.9 ** np.arange(60), rel=1e-12)


def test_evaluations_fall_on_their_steps() -> None:
    for every, steps in ((7, [0, 7, 14, 20]), (10, [0, 10, 20]), (100, [0, 20]), (None, [20])):
        dev = train(small(steps=20, evaluate_every=every), with_floors=False).metrics["dev_loss"]
        assert np.flatnonzero(np.isfinite(dev)).tolist() == steps


def test_patience_alone_ends_a_run_early() -> None:
    """The best evaluation is the first; the run ends after so many more, and keeps the weights of that step."""
    more: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": 1.0}, "objective": {"loss": "squared"}}
    more |= {"model": {"key": "zero", "query": "zero", "init_scale": 0.0}, "evaluate_every": 5}
    patient = train(small(**more, patience=3, steps=60), with_floors=False)
    assert (patient.status, patient.results["best_step"], patient.results["steps"]) == ("stopped", 0, 15)
    assert len(patient.metrics["loss"]) == 16
    until = train(small(**more, steps=15), with_floors=False)
    assert np.array_equal(patient.weights["value"], until.weights["value"])
    assert until.status == "done"


def test_a_member_knows_its_best_step_and_how_many_rows_count() -> None:
    member = Member(small(), dev={0: 3.0, 5: 1.0, 10: 2.0, 15: 1.0})
    assert member.best == (1.0, 5)
    assert Member(small()).rows > 10**9  # all of a run that goes on
    member.end = 15
    assert member.rows == 16  # also that of the weights after the last step
    member.status = "diverged"
    assert member.rows == 15


def test_each_member_has_the_measure_of_its_own_first_loss() -> None:
    """A first loss of a million is no divergence: beyond all measure is a million times the first one."""
    base = small(steps=3, objective={"loss": "squared"}, optimizer={"name": "sgd", "lr": 1e-9})
    members = [base, dataclasses.replace(base, model=dataclasses.replace(base.model, init_scale=2e3))]
    large, small_one = train(members[::-1], with_floors=False)
    assert large.metrics["loss"][0] > 1e6 * small_one.metrics["loss"][0]
    assert (large.status, small_one.status) == ("done", "done")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_two_members_that_diverge_at_different_steps_keep_their_own_weights() -> None:
    base = small(optimizer={"name": "sgd"}, objective={"loss": "squared"}, steps=120)
    members = [with_lr(base, 20.0), with_lr(base, 60.0), with_lr(base, 0.1)]
    runs = train(members, with_floors=False)
    assert [run.status for run in runs] == ["diverged", "diverged", "done"]
    ends = [run.results["steps"] for run in runs]
    assert ends[0] > ends[1] > 0
    for config, run in zip(members[:2], runs, strict=False):
        alone = train(config, with_floors=False)
        assert alone.results["steps"] == run.results["steps"]
        assert run.weights["value"] == pytest.approx(alone.weights["value"], rel=1e-9)
    kept = train(members[2], with_floors=False)
    assert runs[2].weights["value"] == pytest.approx(kept.weights["value"], rel=1e-9)


def test_auto_takes_a_gpu_where_it_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many steps or many models pay for its start; a short run of one small model does not."""
    asked = []

    def usable(name: str, *, worth_it: bool) -> str:
        asked.append((name, worth_it))
        return "cpu"

    monkeypatch.setattr(ensemble_module, "usable_device", usable)
    for steps, models in ((1000, 1), (100_000, 1), (1000, 32), (20, 32), (50, 512)):
        configs = RunConfig(steps=steps).with_seeds(models)
        assert resolve_device(configs) == torch.device("cpu")
    assert [worth_it for _, worth_it in asked] == [False, True, True, False, True]
    resolve_device([RunConfig(steps=1, device="cuda")])
    assert asked[-1] == ("cuda", True)


def test_members_that_differ_elsewhere_are_named() -> None:
    for other, names in (
        ({"optimizer": {"eps": 0.5}}, "optimizer"),
        ({"model": {"dim": 13}, "steps": 5}, "steps, model"),
    ):
        with pytest.raises(InputError, match=f"these differ in {names}$"):
            train([small(), small(seed=3, optimizer={"lr": 0.5}, model={"init_scale": 1.0}), small(**other)])


def test_a_full_gpu_is_a_lack_of_memory_and_no_fault_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a sweep does not store as the error of a point."""

    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(Ensemble, "run", full)
    with pytest.raises(MemoryError, match="CUDA out of memory"):
        train(RunConfig.of(steps=1, device="cpu", data={"documents": 40, "dev_documents": 4}))
