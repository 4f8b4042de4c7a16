"""What a training run will take: memory, disk and seconds, from its settings alone. Nothing is drawn or allocated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from topicscope.ground import FLOPS, STREAMED, Cost, driving
from topicscope.laws import optimum_bytes, optimum_seconds
from topicscope.training.config import BLOCK, TOGETHER, RunConfig, steps_at_once
from topicscope.training.data import floor_documents
from topicscope.world import Fixed

HISTORY = 10  # value matrices that the tracker holds
DEV_BATCH, DEV_BATCH_INFINITE = 500, 50  # documents of a batch of the dev set
STEP_SECONDS = 2e-4  # of a step beside its arithmetic, whatever its size
DRAFTED = 5e8  # bytes of batches that are made in a second
GPU_START = 5.0  # seconds until a GPU takes its first step: libraries, the program
GPU_STEP = 1.5e-4  # seconds of a step on a GPU (one H200), whatever its size
GPU_FLOPS = 5e12  # arithmetic operations per second there, of many models side by side
MARGIN = 1.1  # for what is not counted
MOST_DRAWS = 10_000  # proportions whose words are looked at together, for a floor with overlapping topics
LINE = 22  # bytes of one figure in metrics.jsonl


def cost_of(configs: Sequence[RunConfig], *, floors: bool = True, gpu: bool = False) -> Cost:
    """What training runs will take: memory, disk and seconds, from their settings alone.

    Args:
        configs: Runs that differ in seed, learning rate and initial scale.
        floors: Whether floors are computed.
        gpu: Whether they run on a GPU, all at once; what it holds is counted as this machine's memory.

    Returns:
        The estimate, in bytes and seconds.

    Example:
        >>> short, long = cost_of([RunConfig(steps=100)]), cost_of([RunConfig(steps=100_000)])
        >>> short.memory < 1e9, long.seconds > 10 * short.seconds
        (True, True)
    """
    count = len(configs)
    at_once = count if gpu else min(TOGETHER, count)
    size, seeds = Sizes(configs[0]), len({config.seed for config in configs[:at_once]})
    metrics, after_steps = size.steps * size.columns, optimum_bytes(configs[0]) + (size.floors if floors else 0)
    memory = (
        seeds * size.data
        + at_once * (size.model + (size.batches if at_once > 1 else 0))
        + max(size.drafts(seeds, gpu=gpu), at_once * size.pass_, size.dev_draft, after_steps)
        + count * 8 * (2 * metrics + size.snapshots * size.parameters)
    )
    stored = (1 + size.snapshots) * size.parameters * size.real + LINE * metrics
    checkpoint = size.real * (5 * size.parameters + HISTORY * size.value)
    disk = count * stored + (0 if configs[0].checkpoint_every is None else at_once * checkpoint)
    steps = gpu_seconds(configs) if gpu else count * size.steps * size.step_seconds
    seconds = steps + count * (size.evaluations * size.dev_seconds + size.once_seconds)
    seconds += math.ceil(count / at_once) * optimum_seconds(configs[0])
    return Cost(MARGIN * memory, disk, seconds)


PACKED = 16e9
"""Bytes that a pack of models may take on a GPU: not what this one has, so that packs are the same on every machine."""
MOST_TOGETHER = 1024  # models of a pack on a GPU; beyond that they do not get quicker


def together(config: RunConfig) -> int:
    """How many runs like this one share a program: a few on the CPU, on a GPU as many as fit.

    Args:
        config: Config of the runs.

    Returns:
        The number of runs.

    Example:
        >>> together(RunConfig(device="cpu"))
        8
    """
    if config.device != "cuda":
        return TOGETHER
    each = cost_of([replace(config, seed=seed) for seed in range(2)], floors=False, gpu=True).memory / 2
    return max(1, min(MOST_TOGETHER, int(PACKED / each)))


def gpu_seconds(configs: Sequence[RunConfig]) -> float:
    """Of all steps of these runs together on a GPU, its start included; from rates measured on one H200."""
    size = Sizes(configs[0])
    drafts = size.config.documents_per_step * size.draft_bytes / DRAFTED if size.infinite else 0.0
    return GPU_START + size.steps * (GPU_STEP + len(configs) * (drafts + size.step_flops / GPU_FLOPS))


def quicker_on_gpu(configs: Sequence[RunConfig]) -> bool:
    """Whether a GPU would take less time than one core."""
    size = Sizes(configs[0])
    return gpu_seconds(configs) < len(configs) * size.steps * size.step_seconds


def settings_that_cost(configs: Sequence[RunConfig], *, gpu: bool = False) -> str:
    """The settings that drive the estimate, as a text for error messages.

    Args:
        configs: The runs.
        gpu: Whether they run on a GPU.

    Returns:
        Settings with their values.

    Example:
        >>> settings_that_cost([RunConfig.of({"topic_model": {"words_per_topic": 1000}}, steps=100)])
        'topic_model.words_per_topic 1000'
    """
    count = len(configs) if gpu else min(len(configs), TOGETHER)
    text = driving(configs[0], RunConfig(), lambda one: cost_of([one] * count, gpu=gpu))
    return text if len(configs) <= TOGETHER else f"{text}, number of runs {len(configs)}"


@dataclass(frozen=True)
class Sizes:
    """The sizes of the arrays of one model, in bytes where nothing else is said."""

    config: RunConfig

    @cached_property
    def real(self) -> int:
        return 4 if self.config.dtype == "float32" else 8

    @cached_property
    def infinite(self) -> bool:
        return self.config.documents.length == "infinite"

    @cached_property
    def uniform(self) -> bool:
        return self.config.model.uniform_attention

    @cached_property
    def vocabulary(self) -> int:
        return self.config.topic_model.vocabulary

    @cached_property
    def longest(self) -> int:
        """Words of the longest document; 0 for infinite ones."""
        length = self.config.documents.length
        return 0 if isinstance(length, str) else length[1] if isinstance(length, tuple) else length

    @cached_property
    def masked(self) -> float:
        """Masked positions of a document."""
        return max(1.0, self.config.masking.p_mask * self.longest)

    @cached_property
    def rows(self) -> float:
        """Rows of a document: the distinct words that its masked positions show, [MASK] among them."""
        if self.uniform:
            return 1.0
        if self.infinite:
            return float(self.vocabulary)
        return min(float(self.vocabulary), 1 + self.masked * (1 - self.config.masking.p_mask_word))

    @cached_property
    def targets(self) -> float:
        """Words wanted of a document, over all its rows."""
        if not self.infinite:
            return self.masked
        prior, words = self.config.documents, self.config.topic_model.words
        share = prior.topics_per_document / self.config.topic_model.topics if isinstance(prior, Fixed) else 1.0
        return self.rows * words * min(1.0, share)

    @cached_property
    def steps(self) -> int:
        return self.config.total_steps

    @cached_property
    def snapshots(self) -> int:
        return len(self.config.snapshot_steps)

    @cached_property
    def evaluations(self) -> float:
        return 1 + self.steps / (self.config.evaluate_every or math.inf)

    @cached_property
    def columns(self) -> int:
        return 8 + 2 * len(self.config.model.trained_shapes(self.vocabulary))

    @cached_property
    def parameters(self) -> int:
        """Numbers that are trained."""
        return sum(map(math.prod, self.config.model.trained_shapes(self.vocabulary).values()))

    @cached_property
    def value(self) -> int:
        """Numbers of W_V, where it is trained."""
        return math.prod(self.config.model.trained_shapes(self.vocabulary).get("value", (0,)))

    @cached_property
    def data(self) -> float:
        """Documents of training and dev, their counts, the masks and the batches of dev."""
        data, topics, v = self.config.data, self.config.topic_model.topics, self.vocabulary
        both, dev = data.documents + data.dev_documents, data.dev_documents
        proportions = 8 * topics * (both + 2 * max(data.documents, dev)) + 16 * both  # drawn, then summed up
        proportions += 0 if self.config.topic_model.blocks else 24 * topics * v  # A, and which of it is not zero
        if self.infinite:
            return proportions + dev * self.batch_bytes + DEV_BATCH_INFINITE * self.draft_bytes
        words = self.longest * (2 if v < 2**15 else 4)
        per_dev = 24 * self.masked + self.batch_bytes
        counts = (4 + 4) * v * data.documents  # as they are counted, and as they are kept
        return proportions + words * (both + data.documents) + counts + dev * per_dev

    @cached_property
    def batch_bytes(self) -> float:
        """Of one document in a batch that is ready."""
        real = 8 if self.infinite else self.real  # float64 until models are put side by side
        return real * self.vocabulary + (16 + real) * self.rows + (8 + real) * self.targets

    @cached_property
    def draft_bytes(self) -> float:
        """Of one document while its batch is made, and no longer."""
        if self.infinite:
            return 8 * self.rows * self.config.topic_model.words + 24 * self.targets
        return (13 + self.real) * self.vocabulary + 100 * self.masked + 8 * self.longest

    def drafts(self, seeds: int, *, gpu: bool) -> float:
        """Batches that are made together, of all data sets, and what making them takes."""
        documents = seeds * self.config.documents_per_step
        if self.infinite:
            return documents * (self.batch_bytes + self.draft_bytes)
        steps = steps_at_once(self.config, seeds, "cuda" if gpu else "cpu")
        return steps * documents * (self.batch_bytes + self.draft_bytes)

    @cached_property
    def dev_draft(self) -> float:
        """Of the masks of dev, which are drawn in one go."""
        return 0.0 if self.infinite else self.config.data.dev_documents * (25 * self.masked + 4 * self.longest)

    @cached_property
    def batches(self) -> float:
        """Batches that every model has for itself: those of dev, put side by side."""
        real = self.real
        each = real * self.vocabulary + (16 + real) * self.rows + (8 + real) * self.targets
        return each * (self.config.data.dev_documents + self.config.documents_per_step)

    @cached_property
    def model(self) -> float:
        """Weights, gradients, what the optimiser remembers, copies to go back to; tables of words by words."""
        remembered = {"adam": 2, "sgd": 1 if self.config.optimizer.momentum else 0}[self.config.optimizer.name]
        copies = 2 + remembered + (1 + remembered) + 5  # and those of the start of a block, and of its last step
        drawn = 8 * 3 * self.parameters  # in float64, then side by side
        tables = self.real * (5 * self.vocabulary**2 + HISTORY * self.value)
        relations = 3 * self.real * self.vocabulary**2 + 16 * self.vocabulary**2
        sides = [math.prod(shape) for shape in self.config.model.shapes(self.vocabulary).values()]
        frozen = 0 if self.config.model.value in ("trained", "identity") else 16 * max(sides)
        return max(self.real * copies * self.parameters, drawn) + tables + relations + frozen

    @cached_property
    def pass_(self) -> float:
        """A forward pass over a batch of dev or of training, with its gradient."""
        dev = min(self.config.data.dev_documents, DEV_BATCH_INFINITE if self.infinite else DEV_BATCH)
        largest = max(dev, self.config.documents_per_step)
        return 7 * self.real * largest * self.rows * self.vocabulary + BLOCK * self.columns * self.real

    @cached_property
    def floors(self) -> float:
        """The posteriors of the dev set."""
        config, dev = self.config, self.config.data.dev_documents
        if not config.floors or config.data.dev_file is not None:
            return 0.0
        if self.infinite:
            return DEV_BATCH_INFINITE * self.vocabulary * (8 * config.topic_model.words + 24 * config.topic_model.words)
        used = min(dev, floor_documents(config))
        rows = min(float(self.vocabulary), 1 + self.masked * (1 - config.masking.p_mask_word))
        draws = 0 if config.topic_model.disjoint else 4 * 8 * MOST_DRAWS * self.vocabulary
        paired = used * (8 * self.vocabulary + 24 * self.rows + 16 * self.targets)  # the run's loss on each of them
        bayes = draws + used * (4 * self.vocabulary + rows * (4 * self.vocabulary + 16 * config.topic_model.topics))
        return max(bayes, paired, 0.0 if config.objective.loss == "cross-entropy" else 60 * dev * self.vocabulary)

    @cached_property
    def step_seconds(self) -> float:
        """Products of rows with tables, and of attention's weights with each other, three times each."""
        drafts = self.config.documents_per_step * self.draft_bytes / DRAFTED
        return STEP_SECONDS + self.step_flops / FLOPS + self.model / STREAMED + drafts

    @cached_property
    def step_flops(self) -> float:
        v, documents = self.vocabulary, self.config.documents_per_step
        return 6 * documents * self.rows * v * v + 6 * self.parameters * v

    @cached_property
    def dev_seconds(self) -> float:
        """Of one evaluation."""
        return 2 * self.config.data.dev_documents * self.rows * self.vocabulary**2 / FLOPS

    @cached_property
    def once_seconds(self) -> float:
        """What is done once for every model: its documents, and its floors."""
        data, topics = self.config.data, self.config.topic_model.topics
        made = ((data.documents + data.dev_documents) * 8 * topics + data.dev_documents * self.draft_bytes) / DRAFTED
        floors = 1e-6 * data.dev_documents * self.masked * topics + self.dev_seconds
        return made + (floors if self.config.floors else 0.0)
