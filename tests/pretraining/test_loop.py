"""The steps of a run against plain ones: batches, shares of several processes, held-out loss, and checkpoints."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.pretraining import small
from tests.refusals import refused
from topicscope.ground import Stream, read_metrics, torch_seed, write_tensors
from topicscope.language import Corpus
from topicscope.pretraining import (
    Loop,
    MaskedLoss,
    PretrainConfig,
    accelerated,
    build_model,
    build_optimizer,
    cost_of,
    loop as loops,
    pretrain,
)
from topicscope.pretraining.config import Masking
from topicscope.pretraining.data import Rows, is_held_out
from topicscope.pretraining.loop import HeldOutLoss, Masker, micro_batch


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
    loss, places, _ = loop.tracker.measured[-1]
    return float(loss) / places * loop.processes


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
        places = [places for _, places, _ in loop.tracker.measured]
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
    assert all(torch.equal(a, b) for a, b in zip(fresh.model.parameters(), trained.model.parameters(), strict=True))
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
        refused(said, loop.load, path)
    path.write_bytes(path.read_bytes()[:-9])
    refused("damaged or cut off", loop.load, path)
    assert loop.step == 0


@pytest.mark.parametrize("clip", [1.0, None])
def test_figures_stay_on_the_device_until_a_block_is_written(clip: float | None) -> None:
    loop = loop_of(small.config(optimizer={"clip": clip}))
    for _ in range(3):
        loop.advance()
    held = [number for loss, _, norm in loop.tracker.measured for number in (loss, norm)]
    assert len(held) == 6
    assert all(isinstance(figure, torch.Tensor) and not figure.requires_grad for figure in held)
    assert np.isfinite(loop.tracker.rows()[:, :3]).all()
    assert (loop.tracker.row, loop.tracker.measured) == (0, [])


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
        found.append(len(loop.batches.coming))
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
    refused(said, micro_batch, small.config(batch_size=batch, micro_batch=micro), device, processes)


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


SHARE = 0.05


def held_out_loss(rank: int = 0, processes: int = 1, **settings: Any) -> tuple[HeldOutLoss, MaskedLoss]:
    config = small.config(held_out={"share": SHARE}, **settings)
    loop = loop_of(config, accelerator=OneOf(rank, processes))
    return HeldOutLoss(loop.batches, small.tokenizer(), rank), loop.own_loss


def test_the_text_alone_decides_which_documents_are_held_out() -> None:
    texts = [f"document {i}" for i in range(4000)]
    share = np.mean([is_held_out(text, 0.1) for text in texts])
    assert abs(share - 0.1) < 4 * np.sqrt(0.1 * 0.9 / 4000)
    assert not any(is_held_out(text, 0.0) for text in texts)
    assert all(is_held_out(text, 0.2) for text in texts if is_held_out(text, 0.1))  # a larger share holds the smaller
    number = int.from_bytes(hashlib.blake2b(b"document 7", digest_size=8).digest()) / 2**64
    assert [is_held_out("document 7", number + change) for change in (-1e-9, 1e-9)] == [False, True]
    assert is_held_out("document 7\n", number + 1e-9)  # ends of lines do not count
    assert is_held_out("\udc80", 0.5) in (True, False)  # what is no text in UTF-8 has a side, too


def test_what_is_held_out_is_never_trained_on() -> None:
    out = [text for text in small.texts() if is_held_out(text, SHARE)]
    assert len(out) == 7
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0, held_out=SHARE)
    for epoch in range(2):
        rows.epoch = epoch
        assert sorted([*rows._shuffled(), *out]) == sorted(small.texts())
    held = rows.held_out_rows(64)
    alone = Rows(out, small.tokenizer(), small.LENGTH, 0)
    tokens = [token for text in out for token in [*small.tokenizer()(text, add_special_tokens=False)["input_ids"], 3]]
    assert small.tokenizer().sep_token_id == 3
    assert held[:, 1:-1].ravel().tolist() == tokens[: len(held) * alone.room]
    assert len(held) == len(tokens) // alone.room == 18
    assert np.array_equal(rows.held_out_rows(5), held[:5])
    none = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0).held_out_rows(64)
    assert none.shape == (0, small.LENGTH)


def test_reading_stops_once_there_are_rows_enough(corpus: str) -> None:
    """A corpus may be far longer than what is held out of it."""
    read = Corpus([corpus])
    rows = Rows(read, small.tokenizer(), small.LENGTH, 0, held_out=SHARE)
    assert len(rows.held_out_rows(2)) == 2
    assert 0 < read.counts["documents"] < 300
    assert len(rows.held_out_rows(64)) == 18
    assert read.counts["documents"] == 300


@pytest.mark.parametrize("micro", [8, 4, 1])
def test_the_loss_is_the_mean_over_masked_places_without_dropout(micro: int) -> None:
    """Of 18 rows, each with masks of its own that neither seed nor share nor micro-batch changes."""
    measure, loss_of = held_out_loss(micro_batch=micro, seed=3)
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 9, held_out=SHARE).held_out_rows(64)
    masker, total, places = Masker(small.tokenizer(), Masking(), 0), 0.0, 0
    model = loss_of.model.eval()
    for number, row in enumerate(rows):
        shown, at, targets = masker(row[None], 0, number, Stream.HELD_OUT_TOKENS)
        logits = model(input_ids=shown).logits.detach()[0, at]
        total += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum")) if len(at) else 0.0
        places += len(at)
    model.train()
    assert places == measure.places > 30
    found = float(measure(loss_of, nullcontext()))
    assert found == pytest.approx(total / places, rel=1e-5)
    assert float(measure(loss_of, nullcontext())) == found  # the same every time
    assert loss_of.model.training
    shares = [held_out_loss(rank, 2, micro_batch=min(4, micro), seed=3) for rank in range(2)]
    assert sum(float(one(of, nullcontext())) for one, of in shares) == pytest.approx(found, rel=1e-5)
    assert all(0.2 * found < float(one(of, nullcontext())) < 0.8 * found for one, of in shares)


def test_it_is_taken_every_so_many_steps_and_at_the_end(corpus: str, tmp_path: Path) -> None:
    config = small.config(corpus, steps=25, held_out={"share": SHARE, "every": 10}, snapshots="none")
    run = pretrain(config, tmp_path / "run")
    assert np.flatnonzero(np.isfinite(run.metrics["held_out_loss"])).tolist() == [0, 10, 20, 25]
    assert run.results.held_out_loss == run.metrics["held_out_loss"][-1] < run.metrics["held_out_loss"][0] - 0.2
    assert f", held-out loss {run.results.held_out_loss:.4f} after 25 steps" in run.summary()[0]
    without = pretrain(config.changed({"held_out.share": 0.0}))
    assert np.isnan(without.metrics["held_out_loss"]).all()
    assert without.results.held_out_loss is None
    often = pretrain(config.changed({"held_out.every": 1}))
    assert np.isfinite(often.metrics["held_out_loss"]).all()
    for name in ("loss", "norm_value_1", "gradient_norm"):  # to look on changes nothing
        np.testing.assert_array_equal(often.metrics[name], run.metrics[name])


def test_stopped_and_resumed_it_is_the_same(corpus: str, tmp_path: Path) -> None:
    """At a checkpoint that a measurement falls on, and one that none falls on."""
    config = small.config(corpus, steps=12, checkpoint_every=4, held_out={"share": SHARE, "every": 8}, snapshots="none")
    whole = pretrain(config, tmp_path / "whole")
    for stop in (5, 10):
        out = tmp_path / str(stop)
        with pytest.raises(KeyboardInterrupt):
            pretrain(config, out, progress=small.stop_at(stop, KeyboardInterrupt()))
        pretrain(config, out, resume=True)
        assert small.files(out) == small.files(tmp_path / "whole")
    assert np.flatnonzero(np.isfinite(whole.metrics["held_out_loss"])).tolist() == [0, 8, 12]


def test_it_is_in_the_estimate() -> None:
    every, off = ({"share": share, "every": 1, "rows": 320} for share in (0.1, 0.0))
    often, never = (cost_of([small.config(steps=1000, batch_size=8, held_out=held)]) for held in (every, off))
    assert often.seconds > 3 * never.seconds  # 320 rows forward: a dozen steps of 8 rows
    refused(r"held_out\.share", small.config, held_out={"share": 0.6})
