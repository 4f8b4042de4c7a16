"""What a process computes of each step: rows of the whole step, masked, of which it gets its share.

The batches of the next steps are made by a thread while this one runs, and lie on the device when a step begins.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import InputError, Stream, torch_seed
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.data import Rows
from topicscope.pretraining.model import Masker

AHEAD = 3  # batches made ahead, so that a long document among them delays no step


@dataclass(frozen=True)
class Batch:
    """A process's share of a step, on its device."""

    parts: list[list[Tensor]]  # of each micro-batch: what is shown, masked places, their tokens
    dropout_seeds: list[int]
    places: int  # masked places of the whole step
    scale: Float[Tensor, ""]  # of this process's loss, so that the mean over processes is that over all places


class Batches:
    """The batches of a run, step by step."""

    def __init__(self, config: PretrainConfig, rows: Rows, tokenizer: Any, accelerator: Any) -> None:
        self.config, self.rows, self.device = config, rows, accelerator.device
        self.masker = Masker(tokenizer, config.masking, config.seed)
        self.processes = accelerator.num_processes
        self.micro = micro_batch(config, self.device.type, self.processes)
        share = config.batch_size // self.micro // self.processes
        self.mine = range(accelerator.process_index * share, (accelerator.process_index + 1) * share)
        self._thread = ThreadPoolExecutor(1, initializer=self._on_own_gpu)
        self._coming: deque[Future[Batch]] = deque()

    def _on_own_gpu(self) -> None:
        """A thread begins on the first GPU, whichever its process uses."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device.index or 0)

    def take(self, step: int) -> Batch:
        """The batch of a step, made by now or made here. Steps are taken in their order."""
        return self._coming.popleft().result() if self._coming else self.make(step)

    def prepare(self, step: int, end: int) -> None:
        """Let the thread make the batches from `step`, which is taken next: some of them, none from `end` on."""
        for later in range(step + len(self._coming), min(step + AHEAD, end)):
            self._coming.append(self._thread.submit(self.make, later))

    @property
    def ahead(self) -> int:
        """How many batches are made, or being made, that no step has taken."""
        return len(self._coming)

    def close(self) -> None:
        """Waits for what is being made: what was read is then the same every time. What waits is not begun."""
        self._thread.shutdown(cancel_futures=True)

    def make(self, step: int) -> Batch:
        """Read, mask and copy. The rows of a step are read once, in the order of the steps."""
        config = self.config
        rows = self.rows.take(step, config.batch_size).reshape(-1, self.micro, config.length)
        masked = [self.masker(part, step, number) for number, part in enumerate(rows)]
        places = max(1, sum(len(targets) for _, _, targets in masked))
        return Batch(
            [self.on_device(masked[number]) for number in self.mine],
            [torch_seed(config.seed, Stream.DROPOUT, step, number) for number in self.mine],
            places,
            torch.full((), self.processes / places, device=self.device),
        )

    def on_device(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """In one copy, which the host does not wait for."""
        if self.device.type == "cpu":
            return list(tensors)
        packed = torch.cat([tensor.flatten() for tensor in tensors]).pin_memory().to(self.device, non_blocking=True)
        parts = torch.split(packed, [tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


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
