"""One step of an ensemble: gradient, figures, optimiser.

A step is some 190 small calls of PyTorch, which cost as much as the arithmetic. So on a GPU they are captured once and
replayed as one, and on a CPU compiled kernels take their place.
"""

from dataclasses import dataclass

import torch

from topicscope.ground import can_compile
from topicscope.model import CompiledPass, Weights, loss_and_gradient
from topicscope.training.config import RunConfig
from topicscope.training.feed import Place
from topicscope.training.optimiser import EnsembleOptimiser
from topicscope.training.track import Tracker
from topicscope.world import Batch

MOST_CAPTURES = 8  # that are kept; each holds memory of its own


@dataclass
class Program:
    """The step as it reads."""

    config: RunConfig
    weights: Weights
    optimiser: EnsembleOptimiser
    tracker: Tracker

    def step(self, place: Place, active: tuple[str, ...], number: int | None) -> None:
        """Train the active parts on a batch; `number` is that of the step, None where nothing is to be recorded."""
        loss = self.loss(place.batch(), active)
        if number is not None:
            self.tracker.record(number, loss, active)
        self.optimiser.step(active)

    def loss(self, batch: Batch, active: tuple[str, ...]) -> torch.Tensor:
        return loss_and_gradient(self.config.model, self.weights, self.config.objective, batch, active)


@dataclass
class Capture:
    """The calls of a step as a graph, the batches that it reads, and which of them is next."""

    graph: torch.cuda.CUDAGraph
    together: Batch
    number: torch.Tensor
    loaded: Batch | None = None  # what was copied to `together`
    following: int = -1  # what `number` shows on the device


class CapturedProgram(Program):
    """The same calls as CUDA graphs, one for every size of a batch and set of active parts."""

    def __init__(self, config: RunConfig, weights: Weights, optimiser: EnsembleOptimiser, tracker: Tracker) -> None:
        super().__init__(config, weights, optimiser, tracker)
        self.captures: dict[tuple[object, ...], Capture] = {}

    def step(self, place: Place, active: tuple[str, ...], number: int | None) -> None:
        if number is None or place.number is None:  # a batch made by itself has a size of its own
            super().step(place, active, number)
            return
        key = (active, *(part.shape for part in place.together.parts()))
        capture = self.captures.pop(key, None) or self.captured(place.together, active)
        self.captures[key] = capture  # the last one used comes last
        if len(self.captures) > MOST_CAPTURES:
            del self.captures[next(iter(self.captures))]
        if capture.loaded is not place.together:
            for own, part in zip(capture.together.parts(), place.together.parts(), strict=True):
                own.copy_(part)
            capture.loaded, capture.following = place.together, -1
        if capture.following != place.number:  # others may have taken the steps in between
            capture.number.fill_(place.number)
        capture.following = place.number + 1
        self.tracker.expect(number, active)
        capture.graph.replay()

    def captured(self, together: Batch, active: tuple[str, ...]) -> Capture:
        own, number = together.map(torch.clone), torch.zeros(1, dtype=torch.int64, device=together.context.device)
        self.loss(own.map(lambda part: part[0]), active)  # loads libraries, and changes no weight
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.loss(own.map(lambda part: part.index_select(0, number)[0]), active)
            self.tracker.record_next(loss)
            self.optimiser.step(active)
            number.add_(1)
        return Capture(graph, own, number)


class CompiledProgram(Program):
    """The same with the gradient by a compiled kernel, on a CPU; figures and optimiser have kernels of their own."""

    def __init__(self, config: RunConfig, weights: Weights, optimiser: EnsembleOptimiser, tracker: Tracker) -> None:
        super().__init__(config, weights, optimiser, tracker)
        self.compiled = CompiledPass(weights, config.objective)

    def loss(self, batch: Batch, active: tuple[str, ...]) -> torch.Tensor:
        if batch.queries is not None:  # few of many words: products take the time
            return super().loss(batch, active)
        return self.compiled(batch, active)


def program_for(config: RunConfig, weights: Weights, optimiser: EnsembleOptimiser, tracker: Tracker) -> Program:
    kind: type[Program] = Program
    if weights.blocks[0].device.type == "cuda":
        kind = CapturedProgram
    elif can_compile() and CompiledPass.covers(config.model):
        kind = CompiledProgram
    return kind(config, weights, optimiser, tracker)
