"""The loop: E models that differ only in seed, learning rate or initial scale take their steps together.

Each model has the documents, masks and initial weights that it has alone. A model that diverges or stops early is
retired: its figures and weights are kept as they were, and the others do not notice.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import InputError, can_compile, interruptible, usable_device
from topicscope.model import Gradient, Weights
from topicscope.training.config import BLOCK, RunConfig
from topicscope.training.cost import quicker_on_gpu
from topicscope.training.data import RunData
from topicscope.training.feed import Feed, Place
from topicscope.training.optimiser import EnsembleOptimiser
from topicscope.training.track import Tracker
from topicscope.world import Batch, stack


@dataclass
class Member:
    """Where one model of the ensemble stands."""

    config: RunConfig
    dev: dict[int, float] = field(default_factory=dict)  # dev loss by step
    status: str = "running"  # then 'done', 'stopped' (dev stopped improving, or asked to) or 'diverged'
    end: int | None = None  # the step at which it ended
    weights: dict[str, np.ndarray] = field(default_factory=dict)  # as they were at the end; none before

    @property
    def best(self) -> tuple[float, int]:
        """Lowest dev loss so far, and its step."""
        return min((loss, step) for step, loss in self.dev.items())

    @property
    def rows(self) -> int | None:
        """Rows of figures that count, once it has ended: none for a step that diverged, one for the last weights."""
        return self.end if self.end is None or self.status == "diverged" else self.end + 1


BEYOND = 1e6  # a loss so many times the first one counts as diverged, though it is still a number

MOST_CAPTURES = 8  # that are kept; each holds memory of its own

State = tuple[list[Tensor], dict[str, Tensor]]  # weights, and what the optimiser remembers

Report = Callable[[int, Float[np.ndarray, "S M E"]], None]
"""Called after every block with the first step and the figures of its steps."""


@dataclass
class Program:
    """One step of an ensemble: gradient, figures, optimiser."""

    gradient: Gradient
    optimiser: EnsembleOptimiser
    tracker: Tracker

    def step(self, place: Place, active: tuple[str, ...], number: int | None) -> None:
        """Train the active parts on a batch; `number` is that of the step, None where nothing is to be recorded."""
        loss = self.gradient(place.batch(), active)
        if number is not None:
            self.tracker.record(number, loss, active)
        self.optimiser.step(active)


@dataclass
class Capture:
    """The calls of a step as a graph, the batches that it reads, and which of them is next."""

    graph: torch.cuda.CUDAGraph
    together: Batch
    number: torch.Tensor
    loaded: Batch | None = None  # what was copied to `together`
    following: int = -1  # what `number` shows on the device


class CapturedProgram(Program):
    """The same calls as CUDA graphs, one for every size of a batch and set of active parts.

    A step is some 190 small calls of PyTorch, which cost as much as the arithmetic.
    """

    def __init__(self, gradient: Gradient, optimiser: EnsembleOptimiser, tracker: Tracker) -> None:
        super().__init__(gradient, optimiser, tracker)
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
        self.gradient(own.map(lambda part: part[0]), active)  # loads libraries, and changes no weight
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.gradient(own.map(lambda part: part.index_select(0, number)[0]), active)
            self.tracker.record_next(loss)
            self.optimiser.step(active)
            number.add_(1)
        return Capture(graph, own, number)


class Ensemble:
    """Models that take their steps together. `train` is the usual way to run one.

    >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
    >>> ensemble = Ensemble([RunConfig.of(small, steps=30, seed=seed) for seed in (0, 1)])
    >>> ensemble.run()
    >>> [member.status for member in ensemble.members], ensemble.dev_loss().shape
    (['done', 'done'], (2,))
    """

    def __init__(self, configs: Sequence[RunConfig], data: RunData | None = None) -> None:
        """`data`: the documents of one of the seeds, if they are there already."""
        check_alike(configs)
        # equal hyperparameters side by side, so that the optimiser handles them in one go
        self.order = sorted(range(len(configs)), key=lambda i: (configs[i].optimizer.lr, i))
        self.members = [Member(configs[i]) for i in self.order]
        self.config = config = self.members[0].config
        self.device = resolve_device(configs)
        self.dtype = getattr(torch, config.dtype)
        by_seed = {member.config.seed: member.config for member in self.members}
        drawn = {seed: RunData(one) for seed, one in by_seed.items()}  # lr and initial scale have no part in it
        if data is not None and data.config.seed in drawn:
            drawn[data.config.seed] = data
        self.data = [drawn[member.config.seed] for member in self.members]
        seeds = list(drawn)
        of = [seeds.index(member.config.seed) for member in self.members]
        compiled = self.device.type == "cpu" and can_compile()
        self.feed = Feed(list(drawn.values()), of, self.device, self.dtype, compiled=compiled)
        vocabulary = config.topic_model.vocabulary
        self.weights = Weights(
            [member.config.model.initial(vocabulary, member.config.seed) for member in self.members],
            config.model.frozen(config.topic_model, config.masking),
            config.schedule.groups(tuple(config.model.trained_shapes(vocabulary))),
            self.dtype,
            self.device,
        )
        self.optimiser = EnsembleOptimiser(self.weights, [m.config.optimizer for m in self.members], compiled=compiled)
        self.tracker = Tracker(self.weights, config, compiled=compiled)
        gradient = config.model.fast_pass(self.weights, config.objective) if compiled else None
        if gradient is None:
            gradient = partial(config.model.loss_and_gradient, self.weights, config.objective)
        kind = CapturedProgram if self.device.type == "cuda" else Program
        self.program = kind(gradient, self.optimiser, self.tracker)
        self.step = 0
        self.stopping = False  # set by who follows the run: it ends at this block, as it would at its last step
        self.first_loss = np.full(len(configs), np.inf)  # of each model: what a loss beyond all measure is measured by
        self.last: list[Tensor] | None = None  # the weights before the last step of the last block
        # told of a member's number, the step and its weights at the steps of a snapshot
        self.keep: Callable[[int, int, dict[str, np.ndarray]], None] | None = None
        self._kept_steps = frozenset(config.snapshot_steps)

    @cached_property
    def dev_batches(self) -> list[Batch]:
        batches = zip(*(data.task.rows(data.task.dev, self.config.dtype) for data in self.feed.data), strict=True)
        return [stack(rows, self.dtype, self.feed.of).to(self.device) for rows in batches]

    def dev_loss(self) -> Float[np.ndarray, " E"]:
        """Loss on the whole development set: mean over documents, so batches weigh by their documents."""
        config, total = self.config, torch.zeros(len(self.members), dtype=torch.float64)
        sizes = [batch.context.shape[1] for batch in self.dev_batches]
        for batch, size in zip(self.dev_batches, sizes, strict=True):
            total += size * config.model.loss(self.weights, config.objective, batch).double().cpu()
        return (total / sum(sizes)).numpy()

    def evaluate(self) -> None:
        """Record the dev loss of every running member; retire those that have stopped improving."""
        waits = (self.config.patience or math.inf) * (self.config.evaluate_every or math.inf)
        losses = self.dev_loss()
        for e in self.running():
            if math.isfinite(losses[e]):
                member = self.members[e]
                member.dev[self.step] = float(losses[e])
                if self.step - member.best[1] >= waits:
                    self.retire(e, "stopped", self.step)

    def retire(self, e: int, status: str, step: int) -> None:
        member = self.members[e]
        member.status, member.end, member.weights = status, step, self.snapshot(e)

    def snapshot(self, e: int) -> dict[str, np.ndarray]:
        return {name: part.detach().cpu().numpy().copy() for name, part in self.weights.member(e).items()}

    def running(self) -> list[int]:
        return [e for e, member in enumerate(self.members) if member.status == "running"]

    def run(self, report: Report | None = None) -> None:
        """Go on from the present step to the end, block by block; `report` may save a checkpoint."""
        while self.step < self.config.total_steps and self.running() and not self.stopping:
            self.block(min(self.config.total_steps - self.step, BLOCK), report)
        if self.running():
            self.finish(report)

    def block(self, count: int, report: Report | None) -> None:
        """The next `count` steps; `self.step` is a multiple of BLOCK."""
        every, start = self.config.evaluate_every, self.step
        before, earlier = self.state(), self.last
        with interruptible():
            for place in self.feed.steps(start, count):
                if self.step == start + count - 1:
                    self.last = [block.clone() for block in self.weights.blocks]
                if every is not None and self.step % every == 0:
                    self.evaluate()
                self._keep()
                self.one_step(place)
        table = self.tracker.rows()
        self.retire_diverged(start, table, before, earlier)
        if report is not None:
            report(start, table)

    def _keep(self) -> None:
        if self.keep is not None and self.step in self._kept_steps:
            for e in self.running():
                self.keep(e, self.step, self.snapshot(e))

    def state(self) -> State:
        """Copies of the weights and of what the optimiser remembers."""
        return (
            [block.clone() for block in self.weights.blocks],
            {name: value.clone() for name, value in self.optimiser.state().items()},
        )

    def restore(self, state: State) -> None:
        for block, old in zip(self.weights.blocks, state[0], strict=True):
            block.copy_(old)
        self.optimiser.load(state[1])

    def one_step(self, place: Place, *, record: bool = True) -> None:
        active = self.config.schedule.active(self.step, self.weights.trained)
        self.program.step(place, active, self.step if record else None)
        self.step += 1

    def retire_diverged(
        self,
        start: int,
        table: Float[np.ndarray, "S M E"],
        before: State,
        earlier: list[Tensor] | None,
    ) -> None:
        """End models whose loss or norm is no longer finite, or far too large. They keep their last sound weights.

        They are found by taking the block's steps again: all that is random in them is named by the step.
        """
        columns = [i for name, i in self.tracker.index.items() if name == "loss" or name.startswith("norm_")]
        sound = np.isfinite(table[:, columns]).all(1)
        if start == 0:
            self.first_loss = table[0, 0].copy()
        with np.errstate(invalid="ignore"):
            sound &= ~(table[:, 0] > BEYOND * np.abs(self.first_loss))
        lost = {e: start + int(np.argmin(sound[:, e])) for e in self.running() if not sound[:, e].all()}
        if not lost:
            return
        after, end = self.state(), self.step
        for e, failed in lost.items():
            self.restore(before if failed > start or earlier is None else (earlier, before[1]))
            self.step = start
            for place in self.feed.steps(start, max(0, failed - 1 - start)):
                self.one_step(place, record=False)
            if not all(block[e].isfinite().all() for block in self.weights.blocks):  # taken again, it may end earlier
                self.restore(before)
            self.retire(e, "diverged", failed)
            member = self.members[e]  # dev losses of the same block, but of steps behind its end, are none of its own
            member.dev = {step: loss for step, loss in member.dev.items() if step < failed}
        self.restore(after)
        self.step = end

    def finish(self, report: Report | None) -> None:
        """The weights after the last step: one more row of figures, and the final dev loss."""
        self.tracker.record(self.step, math.nan, ())
        self._keep()
        self.evaluate()
        ended = "stopped" if self.stopping and self.step < self.config.total_steps else "done"
        for e in self.running():
            sound = self.step in self.members[e].dev and all(block[e].isfinite().all() for block in self.weights.blocks)
            if not sound and self.last is not None:  # the last step was one too far: it keeps the weights before
                for block, old in zip(self.weights.blocks, self.last, strict=True):
                    block[e] = old[e]
            self.retire(e, ended if sound else "diverged", self.step)
        if report is not None:
            report(self.step, self.tracker.rows())


def check_alike(configs: Sequence[RunConfig]) -> None:
    """An ensemble shares its program: everything but seed, learning rate and initial scale has to be the same."""
    if not configs or not all(isinstance(config, RunConfig) for config in configs):
        raise InputError("training takes at least one RunConfig; RunConfig.of(settings) makes one")
    alike = [replace(c, seed=0, optimizer=replace(c.optimizer, lr=1.0), model=c.model.same_start()) for c in configs]
    for one in alike:
        different = [f.name for f in fields(one) if getattr(one, f.name) != getattr(alike[0], f.name)]
        if different:
            raise InputError(
                "members of an ensemble may differ in seed, optimizer.lr and model.init_scale only; "
                f"these differ in {', '.join(different)}"
            )


def resolve_device(configs: Sequence[RunConfig]) -> torch.device:
    """Where runs are trained: 'auto' takes a GPU if there is one and it is quicker."""
    name = configs[0].device
    return torch.device(usable_device(name, worth_it=name != "auto" or quicker_on_gpu(configs)))
