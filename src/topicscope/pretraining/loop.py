"""The steps of a run, and the checkpoint to resume them from.

Every process draws the rows and masks of the whole step, and computes its share of them.
"""

import hashlib
import json
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
    InputError,
    MetricsFile,
    Progress,
    Stream,
    check_tensors,
    metric_lines,
    one_line,
    read_tensors,
    silent,
    torch_seed,
    write_tensors,
)
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.data import Rows
from topicscope.pretraining.model import BLOCK, MaskedLoss, Masker, Tracker, attention_layers, build_model
from topicscope.pretraining.results import (
    ADVICE,
    CHECKPOINT,
    MODEL,
    SNAPSHOTS,
    PretrainResults,
    PretrainRun,
    stages_by_layer,
    stored_metrics,
    write_pretrained,
)

DIGITS = 9  # of the figures in metrics.jsonl: as many as bring a float32 back exactly


class Loop:
    """One run: model, optimiser, rows, tracker, and the step at which they are."""

    def __init__(
        self, config: PretrainConfig, corpus: Iterable[str], tokenizer: Any, folder: Path | None, accelerator: Any
    ) -> None:
        self.config, self.tokenizer, self.folder, self.accelerator = config, tokenizer, folder, accelerator
        self.writes = folder if accelerator.is_main_process else None  # the folder that this process writes to
        self.metrics = None if self.writes is None else MetricsFile(self.writes)
        self.fingerprint = hashlib.sha256(json.dumps(config.as_dict(), sort_keys=True).encode()).hexdigest()
        self.rows = Rows(corpus, tokenizer, config.length, config.seed)
        self.masker = Masker(tokenizer, config.masking, config.seed)
        self.model = build_model(config, tokenizer).to(accelerator.device).train()
        self.optimizer = build_optimizer(config, self.model)
        self.tracker = Tracker(attention_layers(self.model))
        self.step = self.first_step = 0
        self.tables: list[Float[np.ndarray, "S M"]] = []
        self.micro = micro_batch(config, accelerator.device.type, accelerator.num_processes)
        share = config.batch_size // self.micro // accelerator.num_processes
        self.mine = range(accelerator.process_index * share, (accelerator.process_index + 1) * share)
        self.loss_of: Any = MaskedLoss(self.model)
        self._ahead = ThreadPoolExecutor(1)
        self._coming: Future[tuple[list[list[Tensor]], int]] | None = None

    def run(self, progress: Progress = silent) -> PretrainRun:
        """From the step of the last checkpoint to the end. Of several processes the main one writes."""
        config, began = self.config, time.perf_counter()
        progress("reading text")
        written = ""
        if self.folder is not None and (self.folder / CHECKPOINT).exists():
            written = self.load(self.folder / CHECKPOINT)
        if self.metrics is not None and self.step:
            self.metrics.cut(self.step, written)
        elif self.metrics is not None:
            self.metrics.start()
        self.loss_of = self.accelerator.prepare(self.loss_of)
        self.accelerator.wait_for_everyone()
        snapshots, finite = set(config.snapshot_steps), True
        while finite:
            if self.writes is not None and self.step in snapshots:
                write_pretrained(self.writes / SNAPSHOTS / f"step-{self.step:06d}", self.model, self.tokenizer)
            if self.step == config.steps:
                self.tracker.record(self.step, config.optimizer.lr_at(config.steps - 1, config.steps))
                self._flush()
                break
            loss = self.advance()
            if self.tracker.row == BLOCK or self._at_checkpoint(self.step) or self.step == config.steps:
                finite = self._flush()
                if finite and self.writes is not None and self._at_checkpoint(self.step):
                    self.save(self.writes / CHECKPOINT)
            if finite and (self.step % 5 == 0 or self.step == config.steps):
                rate = f"{self.tokens_per_second(time.perf_counter() - began):,.0f} tokens/s"
                note = f"loss {float(loss):.3f}, {rate}" if torch.isfinite(loss) else rate
                progress("pretraining", self.step, config.steps, note)
        self.accelerator.wait_for_everyone()
        progress("writing the model")
        return self._end("done" if finite else "diverged")

    def tokens_per_second(self, seconds: float) -> float:
        return (self.step - self.first_step) * self.config.batch_size * self.config.length / seconds

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
            with nullcontext() if number == self.mine[-1] else self.accelerator.no_sync(self.loss_of):
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
        rows = self.rows.take(step, self.config.batch_size).reshape(-1, self.micro, self.config.length)
        masked = [self.masker(part, step, number) for number, part in enumerate(rows)]
        pinned = self.accelerator.device.type == "cuda"  # so that a copy to the device does not wait for it
        batches = [[tensor.pin_memory() if pinned else tensor for tensor in masked[number]] for number in self.mine]
        return batches, max(1, sum(len(targets) for _, _, targets in masked))

    def _flush(self) -> bool:
        """Write the figures of the last steps. False once the loss is not a number; nothing after it is written."""
        first, final = self.tracker.start, self.tracker.start == self.config.steps  # the final weights have no loss
        if self.accelerator.num_processes > 1:
            self.tracker.table[:, 0] = self.accelerator.reduce(self.tracker.table[:, 0].contiguous(), "sum")
        table = self.tracker.rows()
        bad = np.flatnonzero(~np.isfinite(table[:, 0]) & (not final))
        self.tables.append(table[: bad[0]] if len(bad) else table)
        if self.metrics is not None:
            self.metrics.append(metric_lines(self.tracker.names, self.tables[-1], first, {}, DIGITS))
        return not len(bad)

    def _end(self, status: str) -> PretrainRun:
        self._ahead.shutdown()  # waits for a run that diverged: what it has read is then the same every time
        if self.folder is not None:
            metrics = stored_metrics(self.folder)
        else:  # as metrics.jsonl would have them
            table = np.concatenate(self.tables)
            written = np.array([float(f"{x:.{DIGITS}g}") for x in table.ravel()]).reshape(table.shape)
            metrics = dict(
                zip(("step", *self.tracker.names), [np.arange(len(table), dtype=float), *written.T], strict=True)
            )
        config, model = self.config, self.model.eval()
        if self.writes is not None and status == "done":
            write_pretrained(self.writes / MODEL, model, self.tokenizer)
        losses = metrics["loss"][np.isfinite(metrics["loss"])]
        results = PretrainResults(
            status=status,
            seed=config.seed,
            steps=len(losses),
            first_loss=float(losses[0]) if len(losses) else None,
            loss=float(losses[-50:].mean()) if len(losses) else None,
            tokens=len(losses) * config.batch_size * config.length,
            epochs=self.rows.epoch,
            parameters=sum(p.numel() for p in model.parameters()),
            vocabulary=len(self.tokenizer),
            layers=stages_by_layer(metrics) if status == "done" else {},
        )
        return PretrainRun(config, results, metrics, self.folder, (model, self.tokenizer))

    def state(self) -> dict[str, np.ndarray]:
        """Weights, moments and the tracker's memory, by name. Moments are there from the first step on."""
        moments = self.optimizer.state_dict()["state"]
        return {
            **{f"model.{name}": tensor.detach().cpu().numpy() for name, tensor in self.model.named_parameters()},
            **{
                f"optimizer.{number}.{name}": torch.as_tensor(value).cpu().numpy()
                for number, state in moments.items()
                for name, value in state.items()
                if value is not None
            },
            "history": self.tracker.history.cpu().numpy(),
            "past_norms": self.tracker.past_norms,
        }

    def save(self, path: Path) -> None:
        """A checkpoint, whole or not there."""
        if self.metrics is not None:
            self.metrics.sync()
        note = {
            "step": str(self.step),
            "fingerprint": self.fingerprint,
            "text": self.rows.fingerprint,
            "metrics": "" if self.metrics is None else self.metrics.digest,
        }
        rows = {f"rows.{name}": array for name, array in self.rows.state().items()}
        write_tensors(path, self.state() | rows, note)

    @torch.no_grad()
    def load(self, path: Path) -> str:
        """Put everything back, the step too. Returns the digest of the metrics that were written by then."""
        tensors, note = read_tensors(path, ADVICE)
        if note.get("fingerprint") != self.fingerprint:
            raise InputError(f"{path} belongs to a run with another config; resume with that config, or {ADVICE}")
        if note.get("text") != self.rows.fingerprint:
            raise InputError(
                f"the text has changed since {path.parent} was stopped; bring back the text that it began with, "
                f"or {ADVICE}"
            )
        try:
            moments: dict[int, dict[str, Tensor]] = {}
            for name, array in tensors.items():
                if name.startswith("optimizer."):
                    _, number, key = name.split(".")
                    moments.setdefault(int(number), {})[key] = torch.from_numpy(np.array(array))
            parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
            for place, state in moments.items():  # shaped as the weights, but for Adam's count of steps
                for key, value in state.items():
                    if value.shape != (() if key == "step" else parameters[place].shape):
                        raise ValueError(f"optimizer.{place}.{key} has shape {tuple(value.shape)}")
            rows = {name: tensors.pop(f"rows.{name}") for name in ("place", "rest", "store")}
            self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})
            check_tensors(tensors, self.state(), path, ADVICE)
            for name, parameter in self.model.named_parameters():
                parameter.copy_(torch.from_numpy(tensors[f"model.{name}"]))
            self.tracker.history.copy_(torch.from_numpy(tensors["history"]))
            self.tracker.past_norms = tensors["past_norms"]
            self.rows.load(rows)
            self.step = self.first_step = int(note["step"])
            return note["metrics"]
        except InputError:
            raise
        except (KeyError, ValueError, RuntimeError, IndexError, TypeError) as error:
            raise InputError(f"{path} is damaged or of another version ({one_line(error)}); {ADVICE}") from None


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
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)
