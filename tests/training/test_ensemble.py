"""The loop: members as if alone, figures of every step, divergence; captured and compiled steps."""

import dataclasses
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.settings import SMALL as SMALL_RUN
from topicscope import InputError, RunConfig, train
from topicscope.model import dense_loss
from topicscope.model.passes import CompiledPass
from topicscope.training import BLOCK, Ensemble, Feed, ensemble as ensemble_module, resolve_device
from topicscope.training.ensemble import Capture, CapturedProgram, CompiledTracker, Member, Program, Tracker
from topicscope.training.feed import Place
from topicscope.world import Batch, MaskedDocuments

SMALL: dict[str, Any] = {
    "steps": 200,
    "dtype": "float64",
    "evaluate_every": 50,
    "device": "cpu",
    "batch_size": 8,
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "data": {"documents": 90, "dev_documents": 30},
}


TURNS = [{"parts": ["value"], "steps": 7}, {"parts": ["key", "query"], "steps": 5}]
ENDLESS = {"kind": "infinite", "topics_per_document": 2}


def small(**more: Any) -> RunConfig:
    return RunConfig.of(SMALL | more)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model": {"embedding": "trained", "dim": 6}, "objective": {"loss": "squared-mean"}},
        {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}, "masking": {"fresh": False}},
        {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared", "l2": 0.01}},
        {"documents": ENDLESS, "batch_size": 3, "data": {"documents": 6, "dev_documents": 4}},
        {"schedule": {"phases": TURNS, "repeat": True}},
    ],
)
def test_each_member_follows_the_run_that_it_is_alone(more: dict[str, Any]) -> None:
    base = small(**more)
    scaled = base.changed({"model.init_scale": 0.3})
    members = [base.changed({"optimizer.lr": 0.03}), *base.with_seeds(2), scaled]
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


def test_a_loss_beyond_all_measure_is_divergence() -> None:
    config = small(optimizer={"name": "sgd", "lr": 3.0}, objective={"loss": "squared"}, documents=ENDLESS)
    run = train(config, with_floors=False)
    assert run.status == "diverged"
    assert run.metrics["loss"].max() < 1e7
    assert np.abs(run.weights["value"]).max() < 1e7


def test_frozen_parts_do_not_move() -> None:
    config = small(model={"value": "blocks"}, steps=60)
    frozen = config.model.frozen(config.topic_model, config.masking)["value"]
    assert np.array_equal(train(config, with_floors=False).weights["value"], frozen)


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
    members = [base, base.changed({"model.init_scale": 2e3})]
    large, small_one = train(members[::-1], with_floors=False)
    assert large.metrics["loss"][0] > 1e6 * small_one.metrics["loss"][0]
    assert (large.status, small_one.status) == ("done", "done")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_two_members_that_diverge_at_different_steps_keep_their_own_weights() -> None:
    base = small(optimizer={"name": "sgd"}, objective={"loss": "squared"}, steps=120)
    members = [base.changed({"optimizer.lr": lr}) for lr in (20.0, 60.0, 0.1)]
    runs = train(members, with_floors=False)
    assert [run.status for run in runs] == ["diverged", "diverged", "done"]
    ends = [run.results["steps"] for run in runs]
    assert 120 > ends[0] > ends[1] > 0
    for config, run, end in zip(members[:2], runs, ends, strict=False):
        assert train(config, with_floors=False).results["steps"] == end
        assert len(run.metrics["loss"]) == end
        assert np.isfinite(run.metrics["loss"]).all()
        last_sound = train(dataclasses.replace(config, steps=end - 1), with_floors=False)
        assert run.weights["value"] == pytest.approx(last_sound.weights["value"], rel=1e-9)
    tame = train(members[2], with_floors=False)
    assert runs[2].weights["value"] == pytest.approx(tame.weights["value"], rel=1e-9)
    assert runs[2].metrics["loss"] == pytest.approx(tame.metrics["loss"], rel=1e-9, nan_ok=True)


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


def test_a_full_gpu_is_a_lack_of_memory_and_no_fault_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a sweep does not store as the error of a point."""

    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(Ensemble, "run", full)
    with pytest.raises(MemoryError, match="CUDA out of memory"):
        train(RunConfig.of(steps=1, device="cpu", data={"documents": 40, "dev_documents": 4}))


def test_members_may_differ_in_seed_rate_and_scale_only() -> None:
    own = small(seed=3, optimizer={"lr": 0.5}, model={"init_scale": 1.0})
    for other, names in (
        ({"batch_size": 4}, "batch_size"),
        ({"optimizer": {"eps": 0.5}}, "optimizer"),
        ({"model": {"dim": 13}, "steps": 5}, "steps, model"),
    ):
        with pytest.raises(InputError, match=f"these differ in {names}$"):
            train([small(), own, small(**other)])
    no_configs: list[Any] = [[], {"steps": 10}]
    for none in no_configs:
        with pytest.raises(InputError, match=r"at least one RunConfig; RunConfig\.of\(settings\) makes one"):
            train(none)
    with pytest.raises(InputError, match="seeds: 0; expected at least one"):
        small().with_seeds(0)


STEPPED = SMALL_RUN | {"steps": BLOCK + 15, "dtype": "float64", "snapshots": list(range(BLOCK + 16))}


def means(weights: dict[str, np.ndarray], matrix: str, same: Any) -> dict[str, Any]:
    """Of the entries of W_V or W_E'W_E, by a double loop over words."""
    table = weights["value"] if matrix == "value" else weights["embedding"].T @ weights["embedding"]
    pairs: dict[str, list[float]] = {"same": [], "different": [], "diagonal": []}
    for i, j in itertools.product(range(len(same)), repeat=2):
        pairs["diagonal" if i == j else "same" if same[i, j] else "different"].append(table[i + 1, j + 1])
    return {name: pytest.approx(np.mean(entries), rel=1e-9, abs=1e-12) for name, entries in pairs.items()}


@pytest.mark.parametrize(
    ("more", "matrices"),
    [
        ({}, {"value"}),
        ({"model": {"head": "identity"}}, {"value"}),
        ({"model": {"head": "untied"}}, set()),
        ({"model": {"embedding": "trained", "dim": 5}}, {"gram"}),
        ({"model": {"value": "diagonal"}}, set()),
        ({"model": {"embedding": "trained", "value": "identity"}}, {"gram"}),
    ],
)
def test_figures_of_every_step(more: dict[str, Any], matrices: set[str]) -> None:
    """Norms, the rotation over ten steps and the means over topics, from the weights kept at every step."""
    run = train(RunConfig.of(STEPPED | more), with_floors=False)
    found, kept, topic = run.metrics, run.snapshots, run.config.topic_model.topic_of_word
    trained = [name.removeprefix("norm_") for name in found if name.startswith("norm_")]
    assert trained == list(run.config.model.trained_shapes(7))
    for name in trained:
        assert found[f"norm_{name}"] == pytest.approx([np.linalg.norm(kept[s][name]) for s in kept], rel=1e-12)
        assert np.isfinite(found[f"grad_{name}"][:-1]).all()
    assert {name.removesuffix("_same") for name in found if name.endswith("_same")} == matrices
    assert np.isnan(found["loss"][-1])
    assert "objective" not in found
    for step, weights in kept.items():
        for matrix in matrices:
            exact = means(weights, matrix, topic[1:, None] == topic[1:])
            assert {name: found[f"{matrix}_{name}"][step] for name in exact} == exact
    assert ("rotation" in found) == ("value" in trained)
    if "value" in trained:
        flat = {step: weights["value"].ravel() / np.linalg.norm(weights["value"]) for step, weights in kept.items()}
        assert np.isnan(found["rotation"][:10]).all()
        turned = [(1 - flat[step] @ flat[step - 10]) / 2 for step in range(10, BLOCK + 16)]
        assert found["rotation"][10:] == pytest.approx(turned, abs=1e-13)


def test_the_objective_is_the_loss_and_every_penalty() -> None:
    more = {"objective": {"l2": {"value": 0.1, "key": 0.3}}}
    found = train(RunConfig.of(STEPPED | more), with_floors=False).metrics
    exact = found["loss"] + 0.1 * found["norm_value"] ** 2 + 0.3 * found["norm_key"] ** 2
    assert found["objective"] == pytest.approx(exact, rel=1e-13, nan_ok=True)


def test_gradients_are_those_that_gradient_descent_follows() -> None:
    """|W(s + 1) - W(s)| = lr |gradient|; a part that pauses has no gradient at that step."""
    phases = [{"parts": ["value"], "steps": 2}, {"parts": ["key", "query"], "steps": 1}]
    config = RunConfig.of(
        STEPPED | {"optimizer": {"name": "sgd", "lr": 0.5}, "schedule": {"phases": phases, "repeat": True}}
    )
    run = train(config, with_floors=False)
    for step in range(BLOCK + 15):
        for name in ("value", "key", "query", "prediction_bias"):
            moved = np.linalg.norm(run.snapshots[step + 1][name] - run.snapshots[step][name])
            gradient = run.metrics[f"grad_{name}"][step]
            if name in phases[step % 3 == 2]["parts"]:  # type: ignore[operator]
                assert moved == pytest.approx(0.5 * gradient, rel=1e-9, abs=1e-15)
            else:
                assert moved == 0
                assert np.isnan(gradient)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model": {"key_bias": "trained", "head": "identity"}, "schedule": "alternating"},
        {"model": {"embedding": "trained", "dim": 5}},
        {"model": {"value": "diagonal"}},
        {"topic_model": {"topics": 6, "words_per_topic": 1}},
        {"topic_model": {"topics": 1, "words_per_topic": 6}},
    ],
    ids=str,
)
def test_compiled_figures_are_those_of_the_calls(more: dict[str, Any]) -> None:
    """Three models; a relation that no pair is in has no mean in either."""
    config = RunConfig.of(STEPPED | {"snapshots": "none"} | more)
    tables = []
    for kind in (Tracker, CompiledTracker):
        ensemble = Ensemble(config.with_seeds(3))
        tracker = kind(ensemble.weights, config)
        for place in ensemble.feed.steps(0, 15):
            active = config.schedule.active(ensemble.step, ensemble.weights.trained)
            tracker.record(ensemble.step, ensemble.program.gradient(place.batch(), active), active)
            ensemble.optimiser.step(active)
            ensemble.step += 1
        tables.append(tracker.rows())
    assert np.array_equal(np.isnan(tables[0]), np.isnan(tables[1]))
    assert np.allclose(tables[0], tables[1], rtol=1e-12, atol=1e-14, equal_nan=True)


WORLDS: dict[str, dict[str, Any]] = {
    "unequal sizes": {"words_per_topic": [2, 1, 4]},
    "overlap": {"topics": 3, "words_per_topic": 4, "overlap": 0.25},
    "common words": {"topics": 3, "words_per_topic": 2, "common_words": 2, "common_share": 0.3},
    "a matrix": {"matrix": [[0.5, 0.0, 0.0], [0.5, 0.2, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.7]]},
}


@pytest.mark.parametrize("embedding", ["one-hot", "trained"])
@pytest.mark.parametrize("world", WORLDS)
def test_means_by_relation_in_other_worlds(world: str, embedding: str) -> None:
    """'Same' means that two words share a topic; whether figures are made by compiled loops or by PyTorch's calls."""
    settings = STEPPED | {"topic_model": WORLDS[world], "model": {"embedding": embedding, "dim": None}, "steps": 12}
    config = RunConfig.of(settings | {"snapshots": list(range(13)), "objective": {"loss": "squared"}})
    run, topics_of_word = train(config, with_floors=False), config.topic_model.word_topics > 0
    matrix = "value" if embedding == "one-hot" else "gram"
    for step, weights in run.snapshots.items():
        exact = means(weights, matrix, (topics_of_word[:, None] & topics_of_word).any(2))
        assert {name: run.metrics[f"{matrix}_{name}"][step] for name in exact} == exact
    assert {name: pytest.approx(mean, rel=1e-6) for name, mean in run.results[matrix].items()} == {
        name: run.metrics[f"{matrix}_{name}"][-1] for name in exact
    }
    assert {"value", "gram"} & set(run.results) == {matrix}  # a W_V over dimensions is no matrix over words
    ensemble = Ensemble([config])
    plain = Tracker(ensemble.weights, config)
    quick = CompiledTracker(ensemble.weights, config)
    for tracker in (plain, quick):
        tracker.record(0, 0.0, ())
    for name in exact:
        place = plain.index[f"{matrix}_{name}"]
        assert plain.table[0, place].numpy() == pytest.approx(quick.table[0, place].numpy(), rel=1e-12)


SETTINGS: dict[str, Any] = {
    "steps": 100,
    "evaluate_every": None,
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "data": {"documents": 400, "dev_documents": 40},
}
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Clocked(Program):
    """Records by the clock, as a captured program does, without being captured."""

    def step(self, place: Place, active: tuple[str, ...], number: int | None) -> None:
        assert number is not None
        self.tracker.expect(number, active)
        self.tracker.record_next(self.gradient(place.batch(), active))
        self.optimiser.step(active)


class Replayed(CapturedProgram):
    """Captured calls that a CPU can replay."""

    def captured(self, together: Batch, active: tuple[str, ...]) -> Capture:
        own, number = together.map(torch.clone), torch.zeros(1, dtype=torch.int64)

        def replay() -> None:
            self.tracker.record_next(self.gradient(own.map(lambda part: part.index_select(0, number)[0]), active))
            self.optimiser.step(active)
            number.add_(1)

        return Capture(SimpleNamespace(replay=replay), own, number)  # type: ignore[arg-type]


def together(self: Feed, first: int, count: int) -> Iterator[Place]:
    """The batches of a CPU as a GPU has them: those made together in one piece."""
    for start, number in self.pieces(first, count):
        parts = self.made(start, number).for_models(self.of)
        yield from (Place(parts, step) for step in range(number))


def curves(configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch | None = None, kind: Any = None) -> Any:
    """Figures of 100 steps, and the weights after them."""
    if monkeypatch is not None:
        monkeypatch.setattr(ensemble_module, "Program", kind)
        monkeypatch.setattr(ensemble_module, "CapturedProgram", kind)
    ensemble, tables = Ensemble(configs), list[np.ndarray]()
    for _ in range(2):
        ensemble.block(50, lambda _start, table: tables.append(table))
    return np.concatenate(tables), ensemble.weights.blocks[0].cpu().numpy()


@pytest.mark.parametrize("more", [{}, {"model": {"embedding": "trained"}, "schedule": "alternating"}])
def test_figures_by_the_clock_are_those_by_number(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    configs = RunConfig.of(SETTINGS | {"device": "cpu"} | more).with_seeds(2)
    plain = curves(configs, monkeypatch, Program)
    clocked = curves(configs, monkeypatch, Clocked)
    for mine, other in zip(plain, clocked, strict=True):
        assert np.array_equal(mine, other, equal_nan=True)
    assert np.isfinite(plain[0][:, 0]).all()


@pytest.mark.parametrize("turns", [50, 10, 3])
@pytest.mark.parametrize("most", [1, 8])
def test_parts_that_take_turns_see_every_batch_once(turns: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two captures read the same batches in turns: each goes on with the step's own, not where it stopped."""
    phases = [{"parts": ["value", "prediction_bias"], "steps": turns}, {"parts": ["key", "query"], "steps": turns}]
    more = {"device": "cpu", "dtype": "float64", "schedule": {"phases": phases, "repeat": True}}
    configs = RunConfig.of(SETTINGS | more).with_seeds(2)
    plain = curves(configs)
    monkeypatch.setattr(Feed, "steps", together)
    monkeypatch.setattr(ensemble_module, "MOST_CAPTURES", most)
    captured = curves(configs, monkeypatch, Replayed)
    for mine, other in zip(plain, captured, strict=True):
        assert np.allclose(mine, other, rtol=1e-9, atol=1e-12, equal_nan=True)


@needs_gpu
@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-4), ("float64", 1e-9)])
@pytest.mark.parametrize("more", [{}, {"model": {"embedding": "trained"}}, {"schedule": "alternating"}])
def test_a_gpu_follows_the_cpu_and_repeats_itself(dtype: str, close: float, more: dict[str, Any]) -> None:
    """The same draws; curves within the promise over 100 steps; the same bytes every time."""
    gpu, cpu = (
        RunConfig.of(SETTINGS | {"device": device, "dtype": dtype} | more).with_seeds(3) for device in ("cuda", "cpu")
    )
    for here, there in zip(Ensemble(cpu).feed.steps(95, 10), Ensemble(gpu).feed.steps(95, 10), strict=True):
        mine, other = here.batch(), there.batch()
        assert torch.equal(mine.context, other.context.cpu())
        rows = mine.row_weight.shape[1]
        assert torch.equal(mine.row_weight, other.row_weight[:, :rows].cpu())
    (table, weights), (again, same), (plain, _) = curves(gpu), curves(gpu), curves(cpu)
    assert np.array_equal(table, again, equal_nan=True)
    assert np.array_equal(weights, same)
    there = np.isfinite(plain)
    assert np.array_equal(there, np.isfinite(table))
    assert np.abs(table - plain)[there].max() <= close * max(1.0, np.abs(plain[there]).max())


@needs_gpu
def test_a_captured_step_is_the_step_as_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to rounding: libraries may choose other ways to multiply while calls are captured."""
    configs = RunConfig.of(SETTINGS | {"device": "cuda", "dtype": "float64"}).with_seeds(3)
    captured = curves(configs)
    read = curves(configs, monkeypatch, Program)
    for mine, other in zip(captured, read, strict=True):
        assert np.allclose(mine, other, rtol=1e-9, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model": {"key": "zero"}, "objective": {"loss": "squared", "l2": 0.01}},
        {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}, "schedule": "alternating"},
        {"documents": {"kind": "infinite", "topics_per_document": 2}, "objective": {"loss": "squared-mean"}},
        {"model": {"embedding": "trained"}},
    ],
    ids=str,
)
def test_a_compiled_step_is_the_step_as_it_reads(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 100 steps of three models; and the same bytes every time. Trained embeddings have the plain gradient."""
    configs = RunConfig.of(SETTINGS | {"device": "cpu", "dtype": "float64"} | more).with_seeds(3)
    fast = isinstance(Ensemble(configs).program.gradient, CompiledPass)
    assert fast == (more.get("model") != {"embedding": "trained"})
    compiled, again = curves(configs), curves(configs)
    for mine, same in zip(compiled, again, strict=True):
        assert np.array_equal(mine, same, equal_nan=True)
    monkeypatch.setattr(ensemble_module, "can_compile", lambda: False)
    for mine, read in zip(compiled, curves(configs, monkeypatch, Program), strict=True):
        assert np.allclose(mine, read, rtol=1e-8, atol=1e-10, equal_nan=True)


def test_models_are_the_same_alone_and_together() -> None:
    """To the byte, by the compiled step."""
    configs = RunConfig.of(SETTINGS | {"device": "cpu"}).with_seeds(3)
    table, weights = curves(configs)
    for e in range(3):
        own, alone = curves(configs[e : e + 1])
        assert np.array_equal(own[..., 0], table[..., e], equal_nan=True)
        assert np.array_equal(alone[0], weights[e])
