"""The training loop: every process draws the rows and masks of the whole step, and runs its share of the micro-batches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import InputError, files, old_folders as folders
from topicscope.language import Corpus
from topicscope.pretraining import checkpoint
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.data import DROPOUT, Masker, Rows, stream
from topicscope.pretraining.model import MaskedLoss, attention_layers, build_model
from topicscope.pretraining.track import BLOCK, Tracker, layer_names, stages_by_layer

DIGITS = 9
"""Digits of the figures in metrics.jsonl: as many as bring a float32 back exactly."""


@dataclass(frozen=True)
class PretrainRun:
    """A finished run."""

    config: PretrainConfig
    status: str  # 'done' or 'diverged'
    results: dict[str, Any]
    metrics: dict[str, np.ndarray]  # a column a figure, a row a step
    model: Any
    tokenizer: Any
    folder: Path | None = None


class Loop:
    """The steps. Every process draws the rows and masks of the whole step, and runs its share of the micro-batches."""

    def __init__(
        self, config: PretrainConfig, corpus: Iterable[str], tokenizer: Any, folder: Path | None, accelerator: Any
    ) -> None:
        self.config, self.tokenizer, self.folder, self.accelerator = config, tokenizer, folder, accelerator
        self.rows = Rows(corpus, tokenizer, config.length, config.seed)
        self.masker = Masker(tokenizer, config.masking, config.seed)
        self.model = build_model(config, tokenizer).to(accelerator.device).train()
        self.optimizer = build_optimizer(config, self.model)
        self.tracker = Tracker(attention_layers(self.model))
        self.step = 0
        self.tables: list[Float[np.ndarray, "S M"]] = []
        self.micro = micro_batch(config, accelerator.device.type, accelerator.num_processes)
        self.numbers = range(config.batch_size // self.micro)
        share = len(self.numbers) // accelerator.num_processes
        self.mine = range(accelerator.process_index * share, (accelerator.process_index + 1) * share)
        self.loss_of: Any = MaskedLoss(self.model)
        self._ahead = ThreadPoolExecutor(1)
        self._coming: Future[tuple[list[list[Tensor]], int]] | None = None

    def run(self, progress: Callable[[int, float, float], None] | None) -> PretrainRun:
        config, main, began = self.config, self.accelerator.is_main_process, time.perf_counter()
        if self.folder is not None:
            self._start(self.folder)
        first = self.step
        self.loss_of = self.accelerator.prepare(self.loss_of)
        self.accelerator.wait_for_everyone()
        keep, status, seen = set(config.checkpoint_steps), "done", (self.step, time.perf_counter())
        while True:
            if self.folder is not None and main and self.step in keep:
                (self.folder / checkpoint.CHECKPOINTS).mkdir(exist_ok=True)
                checkpoint.keep_model(
                    self.folder / checkpoint.CHECKPOINTS / f"step-{self.step:06d}", self.model, self.tokenizer
                )
            if self.step == config.steps:
                self.tracker.record(self.step, config.optimizer.lr_at(config.steps - 1, config.steps))
                self._flush()
                break
            loss = self.advance()
            save = config.save_every is not None and self.step % config.save_every == 0
            if self.tracker.row == BLOCK or save or self.step == config.steps:
                if not self._flush():
                    status = "diverged"
                    break
                if self.folder is not None and main and save:
                    checkpoint.save(
                        self.folder / checkpoint.STATE,
                        self.step,
                        config,
                        self.model,
                        self.optimizer,
                        self.tracker,
                        self.rows,
                    )
            if progress is not None and (self.step % 5 == 0 or self.step == config.steps):
                elapsed = max(1e-9, time.perf_counter() - seen[1])
                progress(self.step, float(loss), (self.step - seen[0]) * config.batch_size * config.length / elapsed)
        self.accelerator.wait_for_everyone()
        return self._end(status, first, time.perf_counter() - began)

    def advance(self) -> Float[Tensor, ""]:
        """One step; its loss (of this process's share, in the scale of the whole)."""
        config, step = self.config, self.step
        lr = config.optimizer.lr_at(step, config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.tracker.record(step, lr)
        batches, total = self._coming.result() if self._coming is not None else self._prepare(step)
        # what the next step needs is made while this one runs, unless the state is to be saved as it is between the two
        saved = config.save_every is not None and (step + 1) % config.save_every == 0
        self._coming = None if saved or step + 1 == config.steps else self._ahead.submit(self._prepare, step + 1)
        self.optimizer.zero_grad()
        loss = torch.zeros((), device=self.accelerator.device)
        for number, prepared in zip(self.mine, batches, strict=True):
            torch.manual_seed(stream(config.seed, DROPOUT, step, number))
            batch = [tensor.to(self.accelerator.device, non_blocking=True) for tensor in prepared]
            last = number == self.mine[-1]
            with nullcontext() if last else self.accelerator.no_sync(self.loss_of):
                with torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=config.bf16):
                    part = self.loss_of(*batch)
                # processes are averaged: with their number this is the mean over all masked places of the step
                self.accelerator.backward(part * (self.accelerator.num_processes / total))
            loss += part.detach()
        if config.optimizer.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.optimizer.clip)
        self.optimizer.step()
        self.tracker.loss(loss / total)
        self.step += 1
        return loss / total * self.accelerator.num_processes

    def _prepare(self, step: int) -> tuple[list[list[Tensor]], int]:
        """Masked rows of a step, micro-batch by micro-batch (those of other processes are only counted), and the number of masked places."""
        rows = self.rows.take(step, self.config.batch_size).reshape(len(self.numbers), self.micro, -1)
        masked = [self.masker(rows[number], step, number) for number in self.numbers]
        pinned = self.accelerator.device.type == "cuda"  # so that a copy to the device does not wait for it
        batches = [[tensor.pin_memory() if pinned else tensor for tensor in masked[number]] for number in self.mine]
        return batches, max(1, sum(len(targets) for _, _, targets in masked))

    def _start(self, folder: Path) -> None:
        state = folder / checkpoint.STATE
        if state.exists():
            self.step = checkpoint.load(state, self.config, self.model, self.optimizer, self.tracker, self.rows)
        if self.accelerator.is_main_process:
            if self.step:
                folders.truncate_metrics(folder / folders.METRICS, self.step)
            else:
                (folder / folders.METRICS).unlink(missing_ok=True)
                files.write_json(folder / folders.ENVIRONMENT, folders.environment())

    def _flush(self) -> bool:
        """Writes the figures of the last steps; False once the loss is no number any more, and nothing from there on is written."""
        first, final = self.tracker.start, self.tracker.start == self.config.steps  # the final weights have no loss
        if self.accelerator.num_processes > 1:
            self.tracker.table[:, 0] = self.accelerator.reduce(self.tracker.table[:, 0].contiguous(), "sum")
        table = self.tracker.rows()
        bad = np.flatnonzero(~np.isfinite(table[:, 0])) if not final else np.empty(0, dtype=int)
        table = table[: bad[0]] if len(bad) else table
        self.tables.append(table)
        if self.folder is not None and self.accelerator.is_main_process:
            files.append_lines(
                self.folder / folders.METRICS, folders.metric_lines(self.tracker.names, table, first, {}, DIGITS)
            )
        return not len(bad)

    def _end(self, status: str, first: int, seconds: float) -> PretrainRun:
        config, folder = self.config, self.folder
        if self._coming is not None:  # of a run that diverged: what it has read is then the same every time
            self._coming.result()
        metrics = stored_metrics(folder) if folder is not None else self._metrics()
        model = self.model.eval()
        results = summary(config, status, metrics, model, self.tokenizer, self.rows)
        if folder is not None and self.accelerator.is_main_process:
            if status == "done":
                checkpoint.keep_model(folder / checkpoint.MODEL, model, self.tokenizer)
            speed = (self.step - first) * config.batch_size * config.length / max(seconds, 1e-9)
            about: dict[str, Any] = {
                "device": str(self.accelerator.device),
                "processes": self.accelerator.num_processes,
                "wall_seconds": seconds,
                "tokens_per_second": speed,
            }
            if isinstance(self.rows.corpus, Corpus):
                about["text"] = self.rows.corpus.summary()  # of the last pass
            started = (
                json.loads((folder / folders.ENVIRONMENT).read_text(encoding="utf-8"))["command"] if first else None
            )
            files.write_json(
                folder / folders.ENVIRONMENT, folders.environment(**about, resumed_at=first or None, started_by=started)
            )
            files.write_json(folder / folders.RESULTS, results)
            (folder / checkpoint.STATE).unlink(missing_ok=True)
        self.accelerator.wait_for_everyone()
        return PretrainRun(config, status, results, metrics, model, self.tokenizer, folder)

    def _metrics(self) -> dict[str, np.ndarray]:
        table = np.concatenate(self.tables)
        written = np.array([float(f"{x:.{DIGITS}g}") for x in table.ravel()]).reshape(
            table.shape
        )  # as metrics.jsonl would have it
        return {"step": np.arange(len(table), dtype=float)} | {
            name: written[:, i] for i, name in enumerate(self.tracker.names)
        }


def stored_metrics(folder: Path) -> dict[str, np.ndarray]:
    """What was written; figures that no step had (the rotation of a run of fewer than ten steps) are there as NaN."""
    metrics = folders.read_metrics(folder) if (folder / folders.METRICS).exists() else {}
    length = len(metrics.get("step", ()))
    missing = ["loss", *(f"rotation_{name}" for name in layer_names(metrics))]
    return metrics | {name: np.full(length, np.nan) for name in missing if name not in metrics}


def micro_batch(config: PretrainConfig, device: str, processes: int) -> int:
    """Rows of a forward pass. Dropout and masks are drawn for each by itself, so that it does not matter which process runs it.

    Half a batch where the config does not say: one or two processes see the same. A GPU is told one thing at a time, so there it is a process's share.
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
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    matrices = [p for _, p in named if p.ndim > 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": [p for _, p in named if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


def summary(
    config: PretrainConfig, status: str, metrics: dict[str, np.ndarray], model: Any, tokenizer: Any, rows: Rows
) -> dict[str, Any]:
    """results.json: where the run ended, and the stages of every layer. Nothing in it depends on the machine's speed."""
    losses = metrics["loss"][np.isfinite(metrics["loss"])]
    steps = len(losses)
    layers = {name: found.as_dict() for name, found in stages_by_layer(metrics).items()} if status == "done" else {}
    return {
        "status": status,
        "seed": config.seed,
        "steps": steps,
        "first_loss": float(losses[0]) if steps else None,
        "loss": float(losses[-min(50, steps) :].mean()) if steps else None,
        "tokens": steps * config.batch_size * config.length,
        "epochs": rows.epoch,
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": len(tokenizer),
        "layers": layers,
    }
