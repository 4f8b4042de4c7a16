"""What a training run will take: a bound on memory and disk and a guess of seconds, from its settings alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from topicscope.ground import FLOPS, STREAMED, Cost, driving
from topicscope.laws import optimum_bytes, optimum_seconds
from topicscope.model import Architecture
from topicscope.training.config import TOGETHER, RunConfig, steps_at_once
from topicscope.training.data import floor_documents
from topicscope.training.optimiser import OPTIMISERS
from topicscope.world import Fixed

DEV_BATCH, DEV_BATCH_INFINITE = 500, 50  # documents of a batch of the dev set
STEP_SECONDS = 2e-4  # of a step beside its arithmetic
DRAFTED = 5e8  # bytes of batches that are made in a second
GPU_START, GPU_STEP = 5.0, 1.5e-4  # seconds until the first step of a GPU (one H200), and of each step
GPU_FLOPS = 5e12  # arithmetic operations per second there, of many models side by side
MARGIN = 1.1  # for what is not counted
MOST_DRAWS = 10_000  # proportions whose words are looked at together, for a floor with overlapping topics
LINE = 22  # bytes of one figure in metrics.jsonl
PACKED = 16e9  # bytes that a pack of models may take on any GPU, so that packs are the same on every machine
MOST_TOGETHER = 1024  # models of a pack on a GPU; larger packs are no quicker per model


def cost_of(configs: Sequence[RunConfig], *, floors: bool = True, gpu: bool = False) -> Cost:
    """What runs will take that differ in seed, learning rate and initial scale: all at once on a GPU.

    >>> short, long = cost_of([RunConfig(steps=100)]), cost_of([RunConfig(steps=100_000)])
    >>> short.memory < 1e9, long.seconds > 10 * short.seconds
    (True, True)
    """
    config, count = configs[0], len(configs)
    model: Architecture = config.model
    topics, words, v = config.topic_model.topics, config.topic_model.words, config.topic_model.vocabulary
    real, length, steps = 4 if config.dtype == "float32" else 8, config.documents.length, config.total_steps
    train, dev, batch = config.data.documents, config.data.dev_documents, config.documents_per_step
    at_once = count if gpu else min(TOGETHER, count)
    seeds = len({one.seed for one in configs[:at_once]})

    # a document: its masked positions, its rows of attention and the words that are wanted in them
    infinite = isinstance(length, str)
    longest = 0 if isinstance(length, str) else length[1] if isinstance(length, tuple) else length
    masked = max(1.0, config.masking.p_mask * longest)
    shown = 1 + masked * (1 - config.masking.p_mask_word)
    rows = 1.0 if model.layout.uniform else float(v) if infinite else min(float(v), shown)
    prior = config.documents
    share = min(1.0, prior.topics_per_document / topics) if isinstance(prior, Fixed) else 1.0
    targets = rows * words * share if infinite else masked
    made = 8 if infinite else real  # float64 until models are put side by side
    ready = made * v + (16 + made) * rows + (8 + made) * targets  # bytes of a document in a batch
    draft = 8 * rows * words + 24 * targets if infinite else (13 + real) * v + 100 * masked + 8 * longest

    shapes = model.trained_shapes(v)
    parameters, followed = (
        sum(map(math.prod, shapes.values())),
        math.prod(shapes.get(model.followed().rotating or "", (0,))),
    )
    remembered = OPTIMISERS[config.optimizer.name].remembered(config.optimizer)
    weights = max(8 + 2 * remembered, 24 / real) * real * parameters + (8 * real + 32) * v**2 + 10 * real * followed
    documents = 24 * topics * (train + dev) + dev * ready + (0 if config.topic_model.blocks else 24 * topics * v)
    if infinite:
        documents += DEV_BATCH_INFINITE * draft
    else:
        text = longest * (2 if v < 2**15 else 4)
        documents += text * (2 * train + dev) + 8 * v * train + 24 * masked * dev
    drafts = batch * (ready + draft)
    if not infinite:
        drafts *= steps_at_once(config, seeds, "cuda" if gpu else "cpu")
    together = max(min(dev, DEV_BATCH_INFINITE if infinite else DEV_BATCH), batch)
    floor_bytes = floor_memory(config, shown, targets) if floors and config.floors else 0.0
    peak = max(
        seeds * drafts,
        at_once * 7 * real * together * rows * v,  # a pass
        0.0 if infinite else dev * (25 * masked + 4 * longest),  # the masks of dev, drawn together
        optimum_bytes(config) + floor_bytes,
    )
    figures, snapshots = steps * (8 + 2 * len(shapes)), len(config.snapshot_steps)
    beside = (dev + batch) * ready if at_once > 1 else 0.0  # dev batches put side by side
    memory = MARGIN * (seeds * documents + at_once * (weights + beside) + peak)
    memory += count * 8 * (2 * figures + snapshots * parameters)
    disk = count * ((1 + snapshots) * parameters * real + LINE * figures)
    if config.checkpoint_every is not None:
        disk += at_once * real * (5 * parameters + 10 * followed)

    operations = model.operations(v, batch * rows)
    if gpu:
        making = batch * draft / DRAFTED if infinite else 0.0
        seconds = GPU_START + steps * (GPU_STEP + count * (making + operations / GPU_FLOPS))
    else:
        each = STEP_SECONDS + operations / FLOPS + weights / STREAMED + batch * draft / DRAFTED
        seconds = count * steps * each
    evaluation = 2 * dev * rows * v**2 / FLOPS
    once = ((train + dev) * 8 * topics + dev * draft) / DRAFTED
    once += 1e-6 * dev * masked * topics + evaluation if config.floors else 0.0
    seconds += count * ((1 + steps / (config.evaluate_every or math.inf)) * evaluation + once)
    seconds += math.ceil(count / at_once) * optimum_seconds(config)
    return Cost(memory, disk, seconds)


def floor_memory(config: RunConfig, rows: float, targets: float) -> float:
    """Bytes of the posteriors of the dev set."""
    topic_model, dev = config.topic_model, config.data.dev_documents
    v, words = topic_model.vocabulary, topic_model.words
    if config.data.dev_file is not None:
        return 0.0
    if config.documents.length == "infinite":
        return DEV_BATCH_INFINITE * v * 32.0 * words
    rows, draws = min(float(v), rows), 0 if topic_model.disjoint else 32 * MOST_DRAWS * v
    each = 12 * v + 24 * rows + 16 * targets + rows * (4 * v + 16 * topic_model.topics)
    squares = 0.0 if config.objective.loss == "cross-entropy" else 60.0 * dev * v
    return max(draws + min(dev, floor_documents(config)) * each, squares)


def together(config: RunConfig) -> int:
    """How many runs like this one share a program: a few on the CPU, on a GPU as many as fit."""
    if config.device != "cuda":
        return TOGETHER
    each = cost_of([replace(config, seed=seed) for seed in range(2)], floors=False, gpu=True).memory / 2
    return max(1, min(MOST_TOGETHER, int(PACKED / each)))


def quicker_on_gpu(configs: Sequence[RunConfig]) -> bool:
    """Whether a GPU would take less time than one core."""
    return cost_of(configs, gpu=True).seconds < cost_of(configs).seconds


def settings_that_cost(configs: Sequence[RunConfig], *, gpu: bool = False) -> str:
    """The settings that drive the estimate, with their values, for error messages.

    >>> settings_that_cost([RunConfig.of({"topic_model": {"words_per_topic": 1000}}, steps=100)])
    'topic_model.words_per_topic 1000'
    """
    count = len(configs) if gpu else min(len(configs), TOGETHER)
    text = driving(configs[0], RunConfig(), lambda one: cost_of([one] * count, gpu=gpu))
    return text if len(configs) <= TOGETHER else f"{text}, number of runs {len(configs)}"
