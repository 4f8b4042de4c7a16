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
from topicscope.pretraining.loop import build_optimizer
from topicscope.pretraining.model import Masker, build_model


class OneOf:
    """Process `process_index` of several, without the others: what the library's Accelerator gives a loop."""

    device = torch.device("cpu")

    def __init__(self, process_index: int, num_processes: int) -> None:
        self.process_index, self.num_processes = process_index, num_processes
        self.is_main_process = process_index == 0
        self.asked: list[tuple[torch.Tensor, str]] = []
        self.alone = 0  # backward passes after which the processes do not add up their gradients

    @contextmanager
    def no_sync(self, model: Any) -> Iterator[None]:
        self.alone += 1
        yield

    def reduce(self, tensor: torch.Tensor, how: str) -> torch.Tensor:
        self.asked.append((tensor.clone(), how))
        return 2 * tensor


def loop_of(config: PretrainConfig, folder: Path | None = None, accelerator: Any = None) -> Loop:
    loop = Loop(config, small.texts(), small.tokenizer(), folder, accelerator or accelerated(config))
    loop.rows.rank, loop.rows.processes = 0, 1  # the others are not there to exchange tokens with
    return loop


def advanced(loop: Loop) -> float:
    """The loss of one more step: of this process's share, in the scale of the whole."""
    loop.advance()
    return loop.tracker.last_loss() * loop.processes


def plain_steps(config: PretrainConfig, steps: int) -> tuple[list[float], list[float], list[int], Any]:
    """Losses, gradient norms, numbers of masked places, and the model after so many steps of a batch in two halves."""
    tokenizer, half = small.tokenizer(), config.batch_size // 2
    rows = Rows(small.texts(), tokenizer, config.length, config.seed, held_out=config.held_out.share)
    masker = Masker(tokenizer, config.masking, 0)
    model = build_model(config, tokenizer).train()
    optimizer = build_optimizer(config, model)
    losses, norms, counts = [], [], []
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
        gradients = [p.grad.double() for p in model.parameters() if p.grad is not None]
        norms.append(float(torch.sqrt(sum((gradient**2).sum() for gradient in gradients))))
        if config.optimizer.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.clip)
        for group in optimizer.param_groups:
            group["lr"] = config.optimizer.lr_at(step, config.steps)
        optimizer.step()
        losses.append(loss.item())
        counts.append(count)
    return losses, norms, counts, model


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
    losses, norms, counts, expected = plain_steps(config, 5)
    if "masking" in settings:
        assert {0, 1} <= set(counts)  # a step without a masked place, and one with a single one
    run = loop_of(config).run()
    np.testing.assert_allclose(run.metrics["loss"][:5], losses, rtol=1e-5)
    np.testing.assert_allclose(run.metrics["gradient_norm"][:5], norms, rtol=1e-5)  # before clipping
    if config.optimizer.clip == 0.2:
        assert min(norms) > 0.3  # they were clipped
    assert run.results.gradient_norm == pytest.approx(np.mean(norms), rel=1e-5)
    for ours, theirs in zip(run.model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    rates = [config.optimizer.lr_at(step, 5) for step in range(5)]
    assert run.metrics["lr"].tolist() == pytest.approx([*rates, rates[-1]])  # the final weights: the last rate


def test_two_processes_share_a_step() -> None:
    """The mean of what they change is what one process changes; their losses add up to its loss."""
    config = small.config(optimizer={"name": "sgd", "lr": 0.5, "clip": None})
    loops = [loop_of(config), *(loop_of(config, accelerator=OneOf(index, 2)) for index in range(2))]
    assert [list(loop.batches.mine) for loop in loops] == [[0, 1], [0], [1]]
    before = [p.detach().clone() for p in loops[0].model.parameters()]
    loss, first, second = map(advanced, loops)
    assert (first + second) / 2 == pytest.approx(loss, rel=1e-5)
    assert first != second
    tracked = [loop.tracker.rows()[0, 0] for loop in loops]
    assert tracked == pytest.approx([loss, first / 2, second / 2], rel=1e-6)
    for start, one, *two in zip(before, *(loop.model.parameters() for loop in loops), strict=True):
        torch.testing.assert_close((two[0] + two[1]) / 2 - start, one - start, rtol=1e-3, atol=1e-6)
    parts = loop_of(small.config(micro_batch=1), accelerator=OneOf(1, 2))
    assert parts.batches.mine == range(4, 8)
    parts.advance()
    assert parts.accelerator.alone == 3  # of four passes: gradients are added up once per step


def test_of_several_processes_the_main_one_writes_and_losses_are_added(tmp_path: Path) -> None:
    main, other = (loop_of(small.config(), tmp_path, OneOf(index, 2)) for index in range(2))
    assert (main.writes, other.writes) == (tmp_path, None)
    for loop in (other, main):
        shares = [advanced(loop) / 2 for _ in range(2)]
        places = list(loop.tracker.places)
        loop.tracker.held_out[1] = torch.tensor(1.5)
        assert loop._flush()
        [(column, how)] = loop.accelerator.asked
        assert how == "sum"
        assert column[:2].tolist() == pytest.approx(
            [share * count for share, count in zip(shares, places, strict=True)]
        )
        assert loop.tables[0][:, 0].tolist() == pytest.approx([2 * share for share in shares])
        assert loop.tables[0][:, 3].tolist() == pytest.approx([np.nan, 3.0], nan_ok=True)  # of held-out text
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
        assert advanced(fresh) == advanced(trained)
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


@pytest.mark.parametrize("clip", [1.0, None])
def test_figures_stay_on_the_device_until_a_block_is_written(clip: float | None) -> None:
    loop = loop_of(small.config(optimizer={"clip": clip}))
    for _ in range(3):
        loop.advance()
    held = [*loop.tracker.losses, *loop.tracker.gradient_norms]
    assert len(held) == 6
    assert all(isinstance(figure, torch.Tensor) and not figure.requires_grad for figure in held)
    assert np.isfinite(loop.tracker.rows()[:, :3]).all()
    assert (loop.tracker.row, loop.tracker.losses, loop.tracker.places) == (0, [], [])
