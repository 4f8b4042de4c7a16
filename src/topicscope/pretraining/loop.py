"""The steps of a run. Every process draws the rows and masks of the whole step, and computes its share of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import (
    METRICS,
    InputError,
    Progress,
    Stream,
    append_lines,
    metric_lines,
    silent,
    torch_seed,
    truncate_metrics,
)
from topicscope.pretraining import checkpoint
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.data import Masker, Rows
from topicscope.pretraining.layers import Metrics, stages_by_layer
from topicscope.pretraining.model import MaskedLoss, attention_layers, build_model
from topicscope.pretraining.results import CHECKPOINT, MODEL, SNAPSHOTS, PretrainResults, PretrainRun, stored_metrics
from topicscope.pretraining.track import BLOCK, Tracker

DIGITS = 9
"""Digits of the figures in metrics.jsonl: as many as bring a float32 back exactly."""

PHASE = "pretraining"


class Loop:
    """One run: model, optimiser, rows, tracker, and the step at which they are."""

    def __init__(
        self, config: PretrainConfig, corpus: Iterable[str], tokenizer: Any, folder: Path | None, accelerator: Any
    ) -> None:
        self.config, self.tokenizer, self.folder, self.accelerator = config, tokenizer, folder, accelerator
        self.rows = Rows(corpus, tokenizer, config.length, config.seed)
        self.masker = Masker(tokenizer, config.masking, config.seed)
        self.model = build_model(config, tokenizer).to(accelerator.device).train()
        self.optimizer = build_optimizer(config, self.model)
        self.tracker = Tracker(attention_layers(self.model))
        self.step = self.first_step = 0
        self.tables: list[Float[np.ndarray, "S M"]] = []
        self.micro = micro_batch(config, accelerator.device.type, accelerator.num_processes)
        self.numbers = range(config.batch_size // self.micro)
        share = len(self.numbers) // accelerator.num_processes
        self.mine = range(accelerator.process_index * share, (accelerator.process_index + 1) * share)
        self.loss_of: Any = MaskedLoss(self.model)
        self._ahead = ThreadPoolExecutor(1)
        self._coming: Future[tuple[list[list[Tensor]], int]] | None = None

    def run(self, progress: Progress = silent) -> PretrainRun:
        """From the step of the last checkpoint to the end. Of several processes the main one writes."""
        config, began = self.config, time.perf_counter()
        progress("reading text")
        if self.folder is not None:
            self._resume(self.folder)
        self.loss_of = self.accelerator.prepare(self.loss_of)
        self.accelerator.wait_for_everyone()
        snapshots, status = set(config.snapshot_steps), "done"
        while True:
            if self.writes is not None and self.step in snapshots:
                (self.writes / SNAPSHOTS).mkdir(exist_ok=True)
                checkpoint.write_model(self.writes / SNAPSHOTS / f"step-{self.step:06d}", self.model, self.tokenizer)
            if self.step == config.steps:
                self.tracker.record(self.step, config.optimizer.lr_at(config.steps - 1, config.steps))
                self._flush()
                break
            loss = self.advance()
            if self.tracker.row == BLOCK or self._at_checkpoint(self.step) or self.step == config.steps:
                if not self._flush():
                    status = "diverged"
                    break
                if self.writes is not None and self._at_checkpoint(self.step):
                    checkpoint.save(self.writes / CHECKPOINT, self)
            if self.step % 5 == 0 or self.step == config.steps:
                progress(PHASE, self.step, config.steps, self._note(float(loss), time.perf_counter() - began))
        self.accelerator.wait_for_everyone()
        progress("writing the model")
        return self._end(status)

    @property
    def writes(self) -> Path | None:
        """The folder that this process writes to."""
        return self.folder if self.accelerator.is_main_process else None

    def tokens_per_second(self, seconds: float) -> float:
        return (self.step - self.first_step) * self.config.batch_size * self.config.length / max(seconds, 1e-9)

    def _note(self, loss: float, seconds: float) -> str:
        rate = f"{self.tokens_per_second(seconds):,.0f} tokens/s"
        return f"loss {loss:.3f}, {rate}" if np.isfinite(loss) else rate

    def _at_checkpoint(self, step: int) -> bool:
        return self.config.checkpoint_every is not None and step % self.config.checkpoint_every == 0

    def advance(self) -> Float[Tensor, ""]:
        """One step; returns its loss (of this process's share, in the scale of the whole)."""
        config, step = self.config, self.step
        lr = config.optimizer.lr_at(step, config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.tracker.record(step, lr)
        batches, total = self._coming.result() if self._coming is not None else self._prepare(step)
        # the next step's batches are made while this one runs, except where a checkpoint has to show the state between
        alone = self._at_checkpoint(step + 1) or step + 1 == config.steps
        self._coming = None if alone else self._ahead.submit(self._prepare, step + 1)
        self.optimizer.zero_grad()
        loss = torch.zeros((), device=self.accelerator.device)
        for number, prepared in zip(self.mine, batches, strict=True):
            torch.manual_seed(torch_seed(config.seed, Stream.DROPOUT, step, number))
            batch = [tensor.to(self.accelerator.device, non_blocking=True) for tensor in prepared]
            last = number == self.mine[-1]
            with nullcontext() if last else self.accelerator.no_sync(self.loss_of):
                with torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=config.bf16):
                    part = self.loss_of(*batch)
                # processes are averaged: times their number this is the mean over all masked places of the step
                self.accelerator.backward(part * (self.accelerator.num_processes / total))
            loss += part.detach()
        if config.optimizer.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.optimizer.clip)
        self.optimizer.step()
        self.tracker.loss(loss / total)
        self.step += 1
        return loss / total * self.accelerator.num_processes

    def _prepare(self, step: int) -> tuple[list[list[Tensor]], int]:
        """Masked rows of this process's micro-batches, and the number of masked places of the whole step."""
        rows = self.rows.take(step, self.config.batch_size).reshape(len(self.numbers), self.micro, -1)
        masked = [self.masker(rows[number], step, number) for number in self.numbers]
        pinned = self.accelerator.device.type == "cuda"  # so that a copy to the device does not wait for it
        batches = [[tensor.pin_memory() if pinned else tensor for tensor in masked[number]] for number in self.mine]
        return batches, max(1, sum(len(targets) for _, _, targets in masked))

    def _resume(self, folder: Path) -> None:
        if (folder / CHECKPOINT).exists():
            self.step = self.first_step = checkpoint.load(folder / CHECKPOINT, self)
        if self.accelerator.is_main_process:
            if self.step:
                truncate_metrics(folder / METRICS, self.step)
            else:
                (folder / METRICS).unlink(missing_ok=True)

    def _flush(self) -> bool:
        """Write the figures of the last steps. False once the loss is not a number; nothing after it is written."""
        first, final = self.tracker.start, self.tracker.start == self.config.steps  # the final weights have no loss
        if self.accelerator.num_processes > 1:
            self.tracker.table[:, 0] = self.accelerator.reduce(self.tracker.table[:, 0].contiguous(), "sum")
        table = self.tracker.rows()
        bad = np.flatnonzero(~np.isfinite(table[:, 0])) if not final else np.empty(0, dtype=int)
        table = table[: bad[0]] if len(bad) else table
        self.tables.append(table)
        if self.writes is not None:
            append_lines(self.writes / METRICS, metric_lines(self.tracker.names, table, first, {}, DIGITS))
        return not len(bad)

    def _end(self, status: str) -> PretrainRun:
        if self._coming is not None:  # of a run that diverged: what it has read is then the same every time
            self._coming.result()
        metrics = stored_metrics(self.folder) if self.folder is not None else self._metrics()
        model = self.model.eval()
        if self.writes is not None and status == "done":
            checkpoint.write_model(self.writes / MODEL, model, self.tokenizer)
        results = results_of(self.config, status, metrics, model, self.tokenizer, self.rows)
        return PretrainRun(self.config, results, metrics, self.folder, (model, self.tokenizer))

    def _metrics(self) -> Metrics:
        """As metrics.jsonl would have them."""
        table = np.concatenate(self.tables)
        written = np.array([float(f"{x:.{DIGITS}g}") for x in table.ravel()]).reshape(table.shape)
        columns = {name: written[:, i] for i, name in enumerate(self.tracker.names)}
        return {"step": np.arange(len(table), dtype=float)} | columns


def micro_batch(config: PretrainConfig, device: str, processes: int) -> int:
    """Rows per forward pass. Each draws dropout and masks by itself, so that it does not matter which process runs it.

    Where the config does not say: half a batch, so that one or two processes see the same. A GPU runs one pass at a
    time, so there it is a process's share.
    """
    rows = config.micro_batch
    if rows is None:
        parts = processes if device != "cpu" else max(2, processes) if config.batch_size % 2 == 0 else 1
        rows = config.batch_size // parts if config.batch_size % parts == 0 else config.batch_size
    if config.batch_size // rows % processes:
        raise InputError(
            f"{processes} processes cannot share the {config.batch_size // rows} micro-batches of a step evenly; "
            f"choose batch_size and micro_batch so that batch_size / micro_batch is a multiple of {processes}"
        )
    return rows


def build_optimizer(config: PretrainConfig, model: Any) -> torch.optim.Optimizer:
    """Biases and norms do not decay, as is usual."""
    settings = config.optimizer
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


def results_of(
    config: PretrainConfig, status: str, metrics: Metrics, model: Any, tokenizer: Any, rows: Rows
) -> PretrainResults:
    losses = metrics["loss"][np.isfinite(metrics["loss"])]
    steps = len(losses)
    return PretrainResults(
        status=status,
        seed=config.seed,
        steps=steps,
        first_loss=float(losses[0]) if steps else None,
        loss=float(losses[-min(50, steps) :].mean()) if steps else None,
        tokens=steps * config.batch_size * config.length,
        epochs=rows.epoch,
        parameters=sum(p.numel() for p in model.parameters()),
        vocabulary=len(tokenizer),
        layers=stages_by_layer(metrics) if status == "done" else {},
    )
