"""A step that is captured on a GPU is the step as it reads; and a GPU sees what the CPU sees."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from topicscope import RunConfig
from topicscope.model.passes import CompiledPass
from topicscope.training import Ensemble, Feed, ensemble as ensemble_module
from topicscope.training.ensemble import Capture, CapturedProgram, Program
from topicscope.training.feed import Place
from topicscope.world import Batch

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
