"""The loop: E models that differ only in seed, learning rate or initial scale take their steps together.

Each model has the documents, masks and initial weights that it has alone. A model that diverges or stops early is
retired: its figures and weights are kept as they were, and the others do not notice.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import can_compile, interruptible, refuse_if, usable_device
from topicscope.measure import (
    ROTATION_SPAN,
    WordKinds,
    gram_block_means,
    gram_relation_means,
    matrix_block_means,
    relation_masks,
    rotations,
)
from topicscope.model import Gradient, Weights
from topicscope.training.config import BLOCK, RunConfig, cost_of
from topicscope.training.data import RunData
from topicscope.training.feed import Feed, Place
from topicscope.training.optimiser import EnsembleOptimiser
from topicscope.world import Batch, stack

RELATIONS = ("same", "different", "diagonal")


class Tracker:
    """Row s describes the weights before step s: loss on batch s, norms, gradient norms, rotation, block means.

    Measured in few calls and without leaving the cache; the figures are read once per block.
    """

    def __init__(self, weights: Weights, config: RunConfig) -> None:
        topic_model, block = config.topic_model, weights.blocks[0]
        self.weights, self.topic_model = weights, topic_model
        self.penalties = config.objective.penalties(weights.trained)
        self.rotating, self.tables, self.grams = config.model.followed()
        self.matrices = [*self.tables, *self.grams]
        names = (
            "loss",
            *(["objective"] if self.penalties else []),
            *(f"{what}_{part}" for part in weights.trained for what in ("norm", "grad")),
            *(["rotation"] if self.rotating else []),
            *(f"{matrix}_{relation}" for matrix in self.matrices for relation in RELATIONS),
        )
        self.index = {name: i for i, name in enumerate(names)}
        self.masks = relation_masks(topic_model.same_topic, block.dtype, block.device) if self.tables else None
        self.gram_means = (
            partial(gram_block_means, topic_model.topics)
            if topic_model.blocks or not self.grams
            else partial(gram_relation_means, WordKinds.of(*topic_model.word_kinds, block))
        )
        # of a block of steps; and a row more, for the figures of a step whose number only the device knows
        self.table = block.new_full((BLOCK + 1, len(names), weights.models), math.nan)
        # where each step's figures go, sliced once instead of at every step
        self.norm_slots = [
            [(pair, row[self.index[f"norm_{part}"] :][:2]) for part, pair in weights.pairs.items()]
            for row in self.table
        ]
        self.slots = [
            {matrix: row[self.index[f"{matrix}_same"] :][:3] for matrix in self.matrices} for row in self.table
        ]
        self.active: list[tuple[str, ...]] = []  # the parts that trained, of each step since the last call of `rows`
        size = weights.parts[self.rotating][0].numel() if self.rotating else 0
        self.history = block.new_zeros((ROTATION_SPAN, weights.models, size))  # the last steps, as a ring
        self.past_norms = np.full((ROTATION_SPAN, weights.models), math.nan)  # their norms, oldest first
        self.clock = block.new_zeros(2, dtype=torch.int64)  # row of the table and step of the next `record_next`
        self.expected = (0, 0)  # what the clock shows then

    def record(self, step: int, loss: Float[Tensor, " E"] | float, active: tuple[str, ...]) -> None:
        self.measure(loss, len(self.active), self.history[step % ROTATION_SPAN])
        self.active.append(active)

    def expect(self, step: int, active: tuple[str, ...]) -> None:
        """The next call of `record_next`, which a captured program makes by itself, is that of this step."""
        now = (len(self.active), step)
        if now != self.expected:
            for place, number in zip(self.clock, now, strict=True):
                place.fill_(number)
        self.expected = (now[0] + 1, step + 1)
        self.active.append(active)

    @torch.inference_mode()
    def record_next(self, loss: Float[Tensor, " E"]) -> None:
        """As `record`, in calls that are the same at every step: the clock says which step it is."""
        place = self.clock[1:] % ROTATION_SPAN
        past = self.history.index_select(0, place)
        self.measure(loss, BLOCK, past[0])
        self.table[:BLOCK].index_copy_(0, self.clock[:1], self.table[BLOCK:])
        self.history.index_copy_(0, place, past)
        self.clock.add_(1)

    def measure(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        """Put the figures into a row of the table, and the rotating part in place of itself ten steps before."""
        self.measure_trained(loss, number, before)
        for name, part in self.grams.items():
            self.slots[number][name].copy_(self.gram_means(self.weights.parts[part]).mT)

    @torch.inference_mode()
    def measure_trained(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        row, pairs = self.table[number], self.weights.pairs
        row[0] = loss
        for pair, slot in self.norm_slots[number]:
            torch.linalg.vector_norm(pair, dim=2, out=slot)
        if self.rotating:
            now = pairs[self.rotating][0]
            # |before| |now| cos; made a rotation in `rows`
            torch.sum(before.mul_(now), 1, out=row[self.index["rotation"]])
            before.copy_(now)
        if self.masks is not None:
            for name, part in self.tables.items():
                self.slots[number][name].copy_(matrix_block_means(self.masks, pairs[part][0]).mT)

    def rows(self) -> Float[np.ndarray, "S M E"]:
        """The figures of all steps since the last call."""
        table, index = self.table[: len(self.active)].double().cpu().numpy().copy(), self.index
        if self.rotating:
            norms = np.concatenate([self.past_norms, table[:, index[f"norm_{self.rotating}"]]])
            table[:, index["rotation"]] = rotations(table[:, index["rotation"]], norms)
            self.past_norms = norms[-ROTATION_SPAN:]
        for part in self.weights.trained:
            table[[part not in active for active in self.active], index[f"grad_{part}"]] = math.nan
        if self.penalties:
            penalty = sum(rate * table[:, index[f"norm_{part}"]] ** 2 for part, rate in self.penalties.items())
            table[:, index["objective"]] = table[:, 0] + penalty
        self.active = []
        self.table.fill_(math.nan)
        return table


class CompiledTracker(Tracker):
    def __init__(self, weights: Weights, config: RunConfig) -> None:
        from topicscope.training import kernels

        super().__init__(weights, config)
        self.kernels, self.figures = kernels, self.table.numpy()
        self.same = None if self.topic_model.blocks else self.topic_model.same_topic.astype(float)
        self.blocks = []  # weights, gradients, and where the parts lie in them and in the table
        start_of: dict[str, tuple[np.ndarray, int]] = {}
        for group, *pair in zip(weights.groups, weights.blocks, weights.gradient_blocks, strict=True):
            block, gradients = (both.numpy() for both in pair)
            ends = list(itertools.accumulate((weights.pairs[part].shape[2] for part in group), initial=0))
            spans = list(zip(group, ends, ends[1:], strict=False))
            places = np.array([[start, end, self.index[f"norm_{part}"]] for part, start, end in spans])
            self.blocks.append((block, gradients, places))
            start_of |= {part: (block, start) for part, start, _ in spans}
        self.turning = None if self.rotating is None else start_of[self.rotating]
        self.starts = [(*start_of[part], self.index[f"{name}_same"]) for name, part in self.tables.items()]

    def measure_trained(self, loss: Float[Tensor, " E"] | float, number: int, before: Float[Tensor, "E n"]) -> None:
        row = self.figures[number]
        row[0] = loss.numpy() if isinstance(loss, Tensor) else loss
        for block, gradients, places in self.blocks:
            self.kernels.norms(block, gradients, places, row)
        if self.turning is not None:
            self.kernels.rotations(*self.turning, before.numpy(), row[self.index["rotation"]])
        for block, start, line in self.starts:
            if self.same is None:
                size = self.topic_model.topics, self.topic_model.vocabulary
                self.kernels.block_means(block, start, *size, row[line : line + 3])
            else:
                self.kernels.relation_means(block, start, self.same, row[line : line + 3])


@dataclass
class Member:
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
    def rows(self) -> int:
        """Rows of figures that count once it has ended: none for a step that diverged, one for the last weights."""
        return sys.maxsize if self.end is None else self.end + (self.status != "diverged")


BEYOND = 1e6  # a loss so many times the first one counts as diverged, though it is still a number

MOST_CAPTURES = 8  # that are kept; each holds memory of its own

Report = Callable[[int, Float[np.ndarray, "S M E"]], None]  # called after every block: its first step, its figures


@dataclass
class Program:
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


@dataclass
class CapturedProgram(Program):
    """The same calls as CUDA graphs, one for every size of a batch and set of active parts: 190 calls are slow."""

    captures: dict[tuple[object, ...], Capture] = field(default_factory=dict)

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
            self.tracker.record_next(self.gradient(own.map(lambda part: part.index_select(0, number)[0]), active))
            self.optimiser.step(active)
            number.add_(1)
        return Capture(graph, own, number)


class Ensemble:
    """Models that take their steps together. `train` is the usual way to run one."""

    def __init__(self, configs: Sequence[RunConfig], data: RunData | None = None) -> None:
        """`data`: the documents of one of the seeds, if they are there already."""
        check_alike(configs)
        # equal hyperparameters side by side, so that the optimiser handles them in one go
        self.order = sorted(range(len(configs)), key=lambda i: (configs[i].optimizer.lr, i))
        self.members = [Member(configs[i]) for i in self.order]
        self.config = config = self.members[0].config
        self.device = resolve_device(configs)
        self.dtype = getattr(torch, config.dtype)
        seeds = [member.config.seed for member in self.members]
        # learning rate and initial scale have no part in the data
        drawn = {member.config.seed: RunData(member.config) for member in self.members}
        if data is not None and data.config.seed in drawn:
            drawn[data.config.seed] = data
        self.data = [drawn[seed] for seed in seeds]
        compiled = self.device.type == "cpu" and can_compile()
        of = [list(drawn).index(seed) for seed in seeds]
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
        self.tracker = (CompiledTracker if compiled else Tracker)(self.weights, config)
        plain = partial(config.model.loss_and_gradient, self.weights, config.objective)
        gradient = config.model.fast_pass(self.weights, config.objective) if compiled else plain
        kind = CapturedProgram if self.device.type == "cuda" else Program
        self.program = kind(gradient, self.optimiser, self.tracker)
        self.step = 0
        self.stopping = False  # set by who follows the run: it ends at this block, as it would at its last step
        self.first_loss = np.full(len(configs), np.inf)  # of each model: what a loss beyond all measure is measured by
        self.last = [block.clone() for block in self.weights.blocks]  # before the last step of the last block
        # told of a member's number, the step and its weights at the steps of a snapshot
        self.keep: Callable[[int, int, dict[str, np.ndarray]], None] = lambda _e, _step, _weights: None
        self._kept_steps = frozenset(config.snapshot_steps)

    @cached_property
    def dev_batches(self) -> list[Batch]:
        rows = [data.task.rows(data.task.dev, self.config.dtype) for data in self.feed.data]
        return [stack(each, self.dtype, self.feed.of).to(self.device) for each in zip(*rows, strict=True)]

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
        losses = self.dev_loss().tolist()
        for e in self.running():
            if math.isfinite(losses[e]):
                self.members[e].dev[self.step] = losses[e]
                if self.step - self.members[e].best[1] >= waits:
                    self.retire(e, "stopped", self.step)

    def retire(self, e: int, status: str, step: int) -> None:
        member = self.members[e]
        member.status, member.end, member.weights = status, step, self.snapshot(e)

    def snapshot(self, e: int) -> dict[str, np.ndarray]:
        return {name: part.detach().cpu().numpy().copy() for name, part in self.weights.member(e).items()}

    def running(self) -> list[int]:
        return [e for e, member in enumerate(self.members) if member.status == "running"]

    def run(self, report: Report = lambda _start, _table: None) -> None:
        """Go on from the present step to the end, block by block; `report` may save a checkpoint."""
        while self.step < self.config.total_steps and self.running() and not self.stopping:
            self.block(min(self.config.total_steps - self.step, BLOCK), report)
        if self.running():
            self.finish(report)

    def block(self, count: int, report: Report = lambda _start, _table: None) -> None:
        """The next `count` steps; `self.step` is a multiple of BLOCK."""
        every, start = self.config.evaluate_every, self.step
        before, earlier = self.copies(), self.last
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
        report(start, table)

    def _keep(self) -> None:
        if self.step in self._kept_steps:
            for e in self.running():
                self.keep(e, self.step, self.snapshot(e))

    def state(self) -> dict[str, Tensor]:
        """What a step changes, by name: weights, and what the optimiser remembers of them."""
        blocks = {f"block.{i}": block for i, block in enumerate(self.weights.blocks)}
        return blocks | {f"optimiser.{name}": value for name, value in self.optimiser.state().items()}

    def copies(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.state().items()}

    def restore(self, copies: Mapping[str, Tensor]) -> None:
        """Values are copied: a captured program knows the tensors by their place."""
        for name, value in self.state().items():
            value.copy_(copies[name])

    def one_step(self, place: Place, *, record: bool = True) -> None:
        active = self.config.schedule.active(self.step, self.weights.trained)
        self.program.step(place, active, self.step if record else None)
        self.step += 1

    def sound(self, e: int) -> bool:
        return all(bool(block[e].isfinite().all()) for block in self.weights.blocks)

    def retire_diverged(
        self, start: int, table: Float[np.ndarray, "S M E"], before: Mapping[str, Tensor], earlier: Sequence[Tensor]
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
        after, end = self.copies(), self.step
        one_earlier = dict(before) | {f"block.{i}": block for i, block in enumerate(earlier)}
        for e, failed in lost.items():
            self.restore(before if failed > start else one_earlier)
            self.step = start
            for place in self.feed.steps(start, max(0, failed - 1 - start)):
                self.one_step(place, record=False)
            if not self.sound(e):  # taken again, it may end earlier
                self.restore(before)
            self.retire(e, "diverged", failed)
            member = self.members[e]  # dev losses of the same block, but of steps behind its end, are none of its own
            member.dev = {step: loss for step, loss in member.dev.items() if step < failed}
        self.restore(after)
        self.step = end

    def finish(self, report: Report) -> None:
        """The weights after the last step: one more row of figures, and the final dev loss."""
        self.tracker.record(self.step, math.nan, ())
        self._keep()
        self.evaluate()
        ended = "done" if self.step == self.config.total_steps else "stopped"
        for e in self.running():
            sound = self.step in self.members[e].dev and self.sound(e)
            if not sound:  # the last step was one too far: it keeps the weights before
                for block, old in zip(self.weights.blocks, self.last, strict=True):
                    block[e] = old[e]
            self.retire(e, ended if sound else "diverged", self.step)
        report(self.step, self.tracker.rows())


def check_alike(configs: Sequence[RunConfig]) -> None:
    """An ensemble shares its program: everything but seed, learning rate and initial scale has to be the same."""
    others = not configs or not all(isinstance(config, RunConfig) for config in configs)
    refuse_if(others, "training takes at least one RunConfig; RunConfig.of(settings) makes one")
    alike = [replace(c, seed=0, optimizer=replace(c.optimizer, lr=1.0), model=c.model.same_start()) for c in configs]
    for one in alike:
        different = ", ".join(f.name for f in fields(one) if getattr(one, f.name) != getattr(alike[0], f.name))
        limits = "members of an ensemble may differ in seed, optimizer.lr and model.init_scale only"
        refuse_if(different, f"{limits}; these differ in {different}")


def resolve_device(configs: Sequence[RunConfig]) -> torch.device:
    """Where runs are trained: 'auto' takes a GPU if there is one and it is quicker."""
    name = configs[0].device
    worth_it = name != "auto" or cost_of(configs, gpu=True).seconds < cost_of(configs).seconds
    return torch.device(usable_device(name, worth_it=worth_it))
