"""The loop: E models that differ only in seed, learning rate or initial scale take their steps together.

Each model has the documents, masks and initial weights that it has alone. A model that diverges or stops early is retired: its
figures and weights are kept as they were, and the others do not notice.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.errors import InputError
from topicscope.model import Weights, collapsed_loss, loss_and_gradient
from topicscope.model.weights import initial
from topicscope.training.config import RunConfig
from topicscope.training.data import BLOCK, RunData
from topicscope.training.optimiser import EnsembleOptimiser
from topicscope.training.track import Tracker
from topicscope.world.batches import Batch, stack


@dataclass
class Member:
    """Where one model of the ensemble stands."""

    config: RunConfig
    dev: dict[int, float] = field(default_factory=dict)  # dev loss by step
    status: str = "running"  # then 'done', 'stopped' (dev stopped improving) or 'diverged'
    end: int | None = None  # the step at which it ended
    weights: dict[str, np.ndarray] | None = None  # as they were at the end

    @property
    def best(self) -> tuple[float, int]:
        """Lowest dev loss so far, and its step."""
        return min((loss, step) for step, loss in self.dev.items())


Report = Callable[[int, Float[np.ndarray, "S M E"], int], None]
"""Called after every block with the first step, the figures of its steps, and the number of models still running."""


class Ensemble:
    """Build with configs that differ only in seed, learning rate and initial scale; then `run`."""

    def __init__(self, configs: Sequence[RunConfig]) -> None:
        check_alike(configs)
        # equal hyperparameters side by side, so that the optimiser handles them in one go
        self.order = sorted(range(len(configs)), key=lambda i: (configs[i].optimizer.lr, i))
        self.members = [Member(configs[i]) for i in self.order]
        self.config = config = self.members[0].config
        self.device = resolve_device(config.device, len(configs))
        self.dtype = getattr(torch, config.dtype)
        self.data = [RunData(member.config) for member in self.members]
        vocabulary = config.topic_model.vocabulary
        trained = tuple(config.model.trained_shapes(vocabulary))
        self.weights = Weights(
            [initial(member.config.model, vocabulary, member.config.seed) for member in self.members],
            config.model.frozen(config.topic_model, config.masking),
            config.schedule.groups(trained),
            self.dtype,
            self.device,
        )
        self.optimiser = EnsembleOptimiser(self.weights, [member.config.optimizer for member in self.members])
        self.penalties = config.objective.penalties(self.weights.trained)
        self.tracker = Tracker(self.weights, config.model, config.topic_model, self.penalties)
        self.step = 0
        self._dev: list[Batch] | None = None

    @property
    def dev_batches(self) -> list[Batch]:
        if self._dev is None:
            rows = [data.dev_rows() for data in self.data]
            self._dev = [stack(batch, self.dtype).to(self.device) for batch in zip(*rows, strict=True)]
        return self._dev

    def dev_loss(self) -> Float[np.ndarray, " E"]:
        """Loss on the whole development set: mean over documents, so batches weigh by their documents."""
        config = self.config
        total, documents = torch.zeros(len(self.members), dtype=torch.float64), 0
        for batch in self.dev_batches:
            size = batch.context.shape[1]
            total += size * collapsed_loss(config.model, self.weights, config.objective, batch).double().cpu()
            documents += size
        return (total / documents).numpy()

    def evaluate(self) -> None:
        """Record the dev loss of every running member; retire those that have stopped improving."""
        for e, loss in enumerate(self.dev_loss()):
            member = self.members[e]
            if member.status == "running" and math.isfinite(loss):
                member.dev[self.step] = float(loss)
                patience, every = self.config.patience, self.config.evaluate_every
                if patience is not None and every is not None and self.step - member.best[1] >= patience * every:
                    self.retire(e, "stopped", self.step)

    def retire(self, e: int, status: str, step: int, weights: dict[str, np.ndarray] | None = None) -> None:
        member = self.members[e]
        member.status, member.end = status, step
        member.weights = self.snapshot(e) if weights is None else weights

    def snapshot(self, e: int) -> dict[str, np.ndarray]:
        return {name: part.detach().cpu().numpy().copy() for name, part in self.weights.member(e).items()}

    def running(self) -> list[int]:
        return [e for e, member in enumerate(self.members) if member.status == "running"]

    def run(self, report: Report | None = None, after_block: Callable[[], None] | None = None) -> None:
        """Go on from the present step to the end, block by block; `after_block` may save a checkpoint."""
        total = self.config.total_steps
        while self.step < total and self.running():
            self.block(min(total - self.step, BLOCK), report)
            if after_block is not None and self.step < total and self.running():
                after_block()
        if self.running():
            self.finish(report)

    def block(self, count: int, report: Report | None) -> None:
        """The next `count` steps; `self.step` is a multiple of BLOCK."""
        config, start = self.config, self.step
        batches = zip(*(data.block(start // BLOCK) for data in self.data), strict=True)
        before = [block.clone() for block in self.weights.blocks]
        for rows in list(batches)[:count]:
            if config.evaluate_every is not None and self.step % config.evaluate_every == 0:
                self.evaluate()
            self.one_step(stack(rows, self.dtype).to(self.device))
        table = self.tracker.rows()
        self.retire_diverged(start, table, before)
        if report is not None:
            report(start, table, len(self.running()))

    def one_step(self, batch: Batch) -> None:
        config = self.config
        active = config.schedule.active(self.step, self.weights.trained)
        loss = loss_and_gradient(config.model, self.weights, config.objective, batch, active)
        self.tracker.record(self.step, loss, active)
        self.optimiser.step(active)
        self.step += 1

    def retire_diverged(self, start: int, table: Float[np.ndarray, "S M E"], before: list[Tensor]) -> None:
        """A loss, norm or gradient that is not finite ends a model; it keeps the weights of the last sound block."""
        columns = [i for name, i in self.tracker.index.items() if name == "loss" or name.startswith("norm_")]
        sound = np.isfinite(table[:, columns]).all(1)
        for e in self.running():
            if not sound[:, e].all():
                first = int(np.argmin(sound[:, e]))
                after = [block.clone() for block in self.weights.blocks]
                for block, old in zip(self.weights.blocks, before, strict=True):
                    block.copy_(old)
                weights = self.snapshot(e)
                for block, new in zip(self.weights.blocks, after, strict=True):
                    block.copy_(new)
                self.retire(e, "diverged", start + first, weights)

    def finish(self, report: Report | None) -> None:
        """The weights after the last step: one more row of figures, and the final dev loss."""
        self.tracker.record(self.step, None, ())
        self.evaluate()
        for e in self.running():
            finite = all(bool(torch.isfinite(block[e]).all()) for block in self.weights.blocks) and self.step in self.members[e].dev
            self.retire(e, "done" if finite else "diverged", self.step)
        if report is not None:
            report(self.step, self.tracker.rows(), 0)


def check_alike(configs: Sequence[RunConfig]) -> None:
    """An ensemble shares its program: everything but seed, learning rate and initial scale has to be the same."""
    if not configs:
        raise InputError("an ensemble needs at least one config")
    first = _shared(configs[0])
    for config in configs[1:]:
        if _shared(config) != first:
            different = [f.name for f in dataclasses.fields(RunConfig) if getattr(_shared(config), f.name) != getattr(first, f.name)]
            raise InputError(f"members of an ensemble may differ in seed, optimizer.lr and model.init_scale only; these differ in {', '.join(different)}")


def _shared(config: RunConfig) -> RunConfig:
    return dataclasses.replace(config, seed=0, optimizer=dataclasses.replace(config.optimizer, lr=1.0), model=dataclasses.replace(config.model, init_scale=1.0))


GPU_FROM = 8
"""Models from which on 'auto' takes a GPU: a single one is launched faster by the CPU than a GPU can be told about it."""


def resolve_device(name: str, models: int = 1) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device = 'cuda', but PyTorch finds no usable GPU here; choose --device cpu or auto")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() and models >= GPU_FROM else "cpu"
    if name == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order every time
    return torch.device(name)
