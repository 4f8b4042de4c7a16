"""A process's share of a step, what is made ahead, and what a step launches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.pretraining import small
from tests.pretraining.test_loop import OneOf, loop_of
from topicscope import InputError
from topicscope.ground import Stream, torch_seed
from topicscope.pretraining import MaskedLoss, build_model, build_optimizer
from topicscope.pretraining.loop import micro_batch


def test_two_processes_have_the_micro_batches_of_one() -> None:
    one, first, second = (
        loop_of(small.config(), accelerator=accelerator).batches.take(3)
        for accelerator in (OneOf(0, 1), OneOf(0, 2), OneOf(1, 2))
    )
    assert [len(batch.parts) for batch in (one, first, second)] == [2, 1, 1]
    for alone, shared in zip(one.parts, (first.parts[0], second.parts[0]), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(alone, shared, strict=True))
    assert one.dropout_seeds == [torch_seed(0, Stream.DROPOUT, 3, number) for number in range(2)]
    assert [*first.dropout_seeds, *second.dropout_seeds] == one.dropout_seeds
    assert one.places == first.places == second.places == sum(len(targets) for _, _, targets in one.parts)
    assert float(one.scale) == pytest.approx(1 / one.places)
    assert float(first.scale) == float(second.scale) == pytest.approx(2 / one.places)


@pytest.mark.parametrize(
    ("every", "ahead"), [(4, [3, 2, 1, 0, 3, 2, 1, 0, 1, 0]), (1, [0] * 10), (None, [3] * 7 + [2, 1, 0])]
)
def test_the_next_batches_are_made_while_a_step_runs(every: int | None, ahead: list[int]) -> None:
    """But none beyond a checkpoint, which has to show what was read by then, nor beyond the last step."""
    loop = loop_of(small.config(steps=10, checkpoint_every=every))
    found, taken, take = [], [], loop.rows.take

    def noted(step: int, count: int) -> np.ndarray:
        taken.append(step)
        return take(step, count)

    loop.rows.take = noted  # type: ignore[method-assign]
    for _ in range(10):
        loop.advance()
        found.append(len(loop.batches._coming))
    assert found == ahead
    assert taken == list(range(10))


@pytest.mark.parametrize(
    ("batch", "micro", "device", "processes", "rows"),
    [
        (8, None, "cpu", 1, 4),  # half a batch, so that one or two processes see the same
        (8, None, "cpu", 2, 4),
        (8, None, "cpu", 4, 2),
        (7, None, "cpu", 1, 7),
        (9, None, "cpu", 1, 9),
        (2, None, "cpu", 1, 1),
        (8, None, "cuda", 1, 8),  # a process's share
        (8, None, "cuda", 2, 4),
        (9, None, "cuda", 3, 3),
        (8, 2, "cpu", 1, 2),
        (8, 2, "cuda", 4, 2),
        (8, 8, "cpu", 1, 8),
    ],
)
def test_rows_of_a_forward_pass(batch: int, micro: int | None, device: str, processes: int, rows: int) -> None:
    assert micro_batch(small.config(batch_size=batch, micro_batch=micro), device, processes) == rows


@pytest.mark.parametrize(
    ("batch", "micro", "device", "processes", "said"),
    [
        (8, 8, "cpu", 2, "2 processes cannot share the 1 micro-batches of a step evenly"),
        (8, None, "cpu", 3, "3 processes cannot share the 1 micro-batches"),
        (9, None, "cpu", 3, "3 processes cannot share the 1 micro-batches"),
        (8, None, "cuda", 3, "3 processes cannot share the 1 micro-batches"),
        (8, 2, "cuda", 3, "batch_size / micro_batch is a multiple of 3"),
    ],
)
def test_a_batch_that_cannot_be_shared_is_one_line(
    batch: int, micro: int | None, device: str, processes: int, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        micro_batch(small.config(batch_size=batch, micro_batch=micro), device, processes)


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The operations that reach a device, but for what only renames memory."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names[func.name().split(".")[0].removeprefix("aten::")] += not func.is_view
        return func(*args, **(kwargs or {}))


def test_a_step_launches_little_beside_a_bare_loop_and_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: what tracking and scaling add is a dozen operations, however many layers there are."""
    beside = []
    for layers in (2, 3):
        config = small.config(micro_batch=8, model={"layers": layers})
        loop = loop_of(config)
        batch = loop.batches.take(0)
        model = build_model(config, small.tokenizer()).train()
        optimizer, loss_of, bare, ours = build_optimizer(config, model), MaskedLoss(model), Counted(), Counted()
        with bare:
            optimizer.zero_grad()
            (loss_of(*batch.parts[0]) / batch.places).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        monkeypatch.setattr(loop.batches, "take", lambda step, batch=batch: batch)
        loop.config = config.changed({"steps": 1})  # none is made ahead
        with ours:
            loop.advance()
        assert not {"_local_scalar_dense", "item", "_to_copy"} & set(ours.names)  # the host looks at nothing
        beside.append((ours.names - bare.names).total())
    assert beside[0] == beside[1] <= 8
