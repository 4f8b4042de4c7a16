"""The steps of a run against plain ones written out, its shares of several processes, its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.pretraining import small
from topicscope import InputError
from topicscope.ground import Stream, read_metrics, torch_seed, write_tensors
from topicscope.pretraining import Loop, PretrainConfig, accelerated, loop as loops, model as models
from topicscope.pretraining.data import Rows
from topicscope.pretraining.loop import build_optimizer, micro_batch
from topicscope.pretraining.model import Masker, build_model


class OneOf:
    """Process `process_index` of several, without the others: what the library's Accelerator gives a loop."""

    device = torch.device("cpu")

    def __init__(self, process_index: int, num_processes: int) -> None:
        self.process_index, self.num_processes = process_index, num_processes
        self.is_main_process = process_index == 0
        self.asked: list[tuple[torch.Tensor, str]] = []
        self.together: list[bool] = []  # of every backward pass: whether the processes add up their gradients
        self.alone = False

    @contextmanager
    def no_sync(self, model: Any) -> Iterator[None]:
        self.alone = True
        yield
        self.alone = False

    def backward(self, loss: torch.Tensor) -> None:
        self.together.append(not self.alone)
        loss.backward()  # type: ignore[no-untyped-call]

    def reduce(self, tensor: torch.Tensor, how: str) -> torch.Tensor:
        self.asked.append((tensor.clone(), how))
        return 2 * tensor


def loop_of(config: PretrainConfig, folder: Path | None = None, accelerator: Any = None) -> Loop:
    return Loop(config, small.texts(), small.tokenizer(), folder, accelerator or accelerated(config))


def plain_steps(config: PretrainConfig, steps: int) -> tuple[list[float], list[int], Any]:
    """The losses, the numbers of masked places and the model after so many steps of a batch in two halves."""
    tokenizer, half = small.tokenizer(), config.batch_size // 2
    rows, masker = Rows(small.texts(), tokenizer, config.length, config.seed), Masker(tokenizer, config.masking, 0)
    model = build_model(config, tokenizer).train()
    optimizer = build_optimizer(config, model)
    losses, counts = [], []
    for step in range(steps):
        batch = rows.take(step, config.batch_size)
        parts = [masker(part, step, number) for number, part in enumerate((batch[:half], batch[half:]))]
        count = sum(len(targets) for _, _, targets in parts)
        total = torch.zeros(())
        for number, (shown, places, targets) in enumerate(parts):
            torch.manual_seed(torch_seed(config.seed, Stream.DROPOUT, step, number))
            logits = model(input_ids=shown).logits.flatten(0, 1)[places]
            total = total + torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
        loss = total / max(1, count)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if config.optimizer.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.clip)
        for group in optimizer.param_groups:
            group["lr"] = config.optimizer.lr_at(step, config.steps)
        optimizer.step()
        losses.append(loss.item())
        counts.append(count)
    return losses, counts, model


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": {"lr": 0.01, "warmup": 2, "decay": "linear", "clip": 0.2}},
        {"optimizer": {"name": "sgd", "lr": 0.3, "momentum": 0.5, "clip": None}},
        {"masking": {"p_mask": 0.002}, "checkpoint_every": None},
    ],
)
def test_steps_are_those_of_a_plain_loop(settings: dict[str, Any]) -> None:
    """Rows, masks, dropout, mean over masked places, clipping and rate, with micro-batches prepared ahead."""
    config = small.config(steps=5, **settings)
    losses, counts, expected = plain_steps(config, 5)
    if "masking" in settings:
        assert {0, 1} <= set(counts)  # a step without a masked place, and one with a single one
    run = loop_of(config).run()
    np.testing.assert_allclose(run.metrics["loss"][:5], losses, rtol=1e-5)
    for ours, theirs in zip(run.model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    rates = [config.optimizer.lr_at(step, 5) for step in range(5)]
    assert run.metrics["lr"].tolist() == pytest.approx([*rates, rates[-1]])  # the final weights: the last rate


def test_two_processes_share_a_step() -> None:
    """The mean of what they change is what one process changes; their losses add up to its loss."""
    config = small.config(optimizer={"name": "sgd", "lr": 0.5, "clip": None})
    loops = [loop_of(config), *(loop_of(config, accelerator=OneOf(index, 2)) for index in range(2))]
    assert [list(loop.mine) for loop in loops] == [[0, 1], [0], [1]]
    before = [p.detach().clone() for p in loops[0].model.parameters()]
    loss, first, second = (float(loop.advance()) for loop in loops)
    assert (first + second) / 2 == pytest.approx(loss, rel=1e-5)
    assert first != second
    tracked = [float(loop.tracker.table[0, 0]) for loop in loops]
    assert tracked == pytest.approx([loss, first / 2, second / 2], rel=1e-6)
    for start, one, *two in zip(before, *(loop.model.parameters() for loop in loops), strict=True):
        torch.testing.assert_close((two[0] + two[1]) / 2 - start, one - start, rtol=1e-3, atol=1e-6)
    parts = loop_of(small.config(micro_batch=1), accelerator=OneOf(1, 2))
    assert parts.mine == range(4, 8)
    parts.advance()
    assert parts.accelerator.together == [False, False, False, True]  # once per step


def test_of_several_processes_the_main_one_writes_and_losses_are_added(tmp_path: Path) -> None:
    main, other = (loop_of(small.config(), tmp_path, OneOf(index, 2)) for index in range(2))
    assert (main.writes, other.writes) == (tmp_path, None)
    for loop in (other, main):
        shares = [float(loop.advance()) / 2 for _ in range(2)]
        assert loop._flush()
        [(column, how)] = loop.accelerator.asked
        assert how == "sum"
        assert column[:2].tolist() == pytest.approx(shares)
        assert loop.tables[0][:, 0].tolist() == pytest.approx([2 * share for share in shares])
        assert (tmp_path / "metrics.jsonl").exists() == (loop is main)
    assert read_metrics(tmp_path)["step"].tolist() == [0, 1]


def test_figures_are_written_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without checkpoints too; with as many digits as bring a float32 back. Lines of an earlier start are dropped."""
    monkeypatch.setattr(models, "BLOCK", 3)
    monkeypatch.setattr(loops, "BLOCK", 3)
    taken: list[int] = []
    config = small.config(steps=7, checkpoint_every=None, snapshots="none")
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "loss": 5.0}\n')
    loop = loop_of(config, tmp_path)
    take = loop.rows.take

    def counted(step: int, count: int) -> np.ndarray:
        taken.append(step)
        return take(step, count)

    loop.rows.take = counted  # type: ignore[method-assign]
    run = loop.run()
    assert taken == list(range(7))  # the rows of every step, none beyond the last
    assert [len(table) for table in loop.tables] == [3, 3, 1, 1]
    stored = read_metrics(tmp_path)
    assert stored["step"].tolist() == list(range(8))
    for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
        assert all(float(f"{x:.9g}") == x for x in json.loads(line).values())
    assert stored["norm_key_0"].astype(np.float32) == pytest.approx(stored["norm_key_0"], rel=1e-8)
    assert not (tmp_path / "checkpoint.safetensors").exists()
    assert run.results.tokens == 7 * 8 * 24
    assert run.results.parameters == sum(p.numel() for p in run.model.parameters())
    assert not run.model.training


def test_the_next_batches_are_prepared_while_a_step_runs() -> None:
    """Except before a checkpoint, which has to show the state between two steps, and after the last step."""
    loop = loop_of(small.config(steps=5, checkpoint_every=3))
    ahead = []
    for _ in range(5):
        loop.advance()
        ahead.append(loop._coming is not None)
    assert ahead == [True, True, False, True, False]


def test_tokens_per_second() -> None:
    loop = loop_of(small.config(batch_size=4))
    loop.first_step, loop.step = 10, 25
    assert loop.tokens_per_second(3.0) == pytest.approx(15 * 4 * 24 / 3)


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path: Path) -> None:
    """The figures before it are kept; from the first step on there are none."""
    config = small.config(steps=8, optimizer={"name": "sgd", "lr": 1e6, "clip": None, "warmup": 0})
    for first, start in ((0, 1e38), (2, None)):
        home = tmp_path / str(first)
        home.mkdir()
        for folder in (None, home):
            loop = loop_of(config, folder)
            for parameter in loop.model.parameters() if start is not None else ():
                parameter.data.fill_(start)
            run = loop.run()
            assert (run.status, run.results.steps, run.results.layers) == ("diverged", first, {})
            assert len(run.metrics["loss"]) == first
            assert (run.results.loss is None, run.results.first_loss is None) == (first == 0, first == 0)
            assert run.summary()[0].startswith(f"Seed 0: diverged after {first} steps (")
        assert not (home / "model").exists()


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


def test_biases_and_norms_do_not_decay() -> None:
    model = build_model(small.config(), small.tokenizer())
    adam = build_optimizer(small.config(optimizer={"betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.3}), model)
    decaying, others = adam.param_groups
    matrices = {
        p.data_ptr() for name, p in model.named_parameters() if not name.endswith("bias") and "Norm" not in name
    }
    assert {p.data_ptr() for p in decaying["params"]} == matrices
    assert len(decaying["params"]) + len(others["params"]) == len(list(model.parameters()))
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    assert all((group["betas"], group["eps"]) == ((0.8, 0.9), 1e-6) for group in adam.param_groups)
    sgd = build_optimizer(small.config(optimizer={"name": "sgd", "momentum": 0.7, "lr": 0.2}), model)
    assert [(group["momentum"], group["lr"]) for group in sgd.param_groups] == [(0.7, 0.2)] * 2
    assert [len(group["params"]) for group in sgd.param_groups] == [len(decaying["params"]), len(others["params"])]


@pytest.mark.parametrize("optimizer", [{}, {"name": "sgd", "momentum": 0.0}, {"name": "sgd", "momentum": 0.9}])
def test_a_checkpoint_has_the_whole_state(optimizer: dict[str, Any], tmp_path: Path) -> None:
    config = small.config(steps=8, checkpoint_every=2, optimizer=optimizer)
    trained, fresh, path = loop_of(config), loop_of(config), tmp_path / "checkpoint.safetensors"
    for _ in range(2):
        trained.advance()
    trained.tracker.rows()
    trained.save(path)
    fresh.load(path)
    assert (fresh.step, fresh.first_step) == (2, 2)
    assert torch.equal(fresh.tracker.history, trained.tracker.history)
    for _ in range(4):
        assert fresh.advance().item() == trained.advance().item()
    np.testing.assert_array_equal(fresh.tracker.rows(), trained.tracker.rows())


def test_a_checkpoint_that_lacks_something_is_one_line(tmp_path: Path) -> None:
    loop, path = loop_of(small.config()), tmp_path / "checkpoint.safetensors"
    note = {"step": "3", "fingerprint": loop.fingerprint, "text": loop.rows.fingerprint}
    for given, said in (
        ({}, "belongs to a run with another config"),
        (note | {"text": "another"}, "the text has changed"),
        (note, r"is damaged or of another version \('rows.place'\)"),
    ):
        write_tensors(path, {"history": np.zeros(1)}, given)
        with pytest.raises(InputError, match=said):
            loop.load(path)
    assert loop.step == 0
