"""What a pretraining run will take: memory, disk and seconds, from its settings alone. Nothing is built or read.

>>> round(parameters(Shape(layers=12, heads=12, dim=768), 30_522, 512) / 1e6)  # of bert-base-uncased: 110 million
110
"""

from __future__ import annotations

from collections.abc import Sequence

from topicscope.ground import FLOPS, Cost, driving
from topicscope.pretraining.config import PretrainConfig, Shape

HISTORY = 10  # value matrices of each layer that the tracker holds
VOCABULARY = 50_000  # tokens of a tokenizer that is not read yet
NARROW = 128  # width of the embeddings of albert and electra
HELD_ROWS = 4096  # rows that batches are drawn from
DOCUMENT = 10_000  # bytes of a document that a tokenizer is trained on
LINE = 20  # bytes of one figure in metrics.jsonl
PASS_SECONDS = 2e-3  # of a layer of a step, beside its arithmetic


def cost_of(configs: Sequence[PretrainConfig]) -> Cost:
    """What pretraining runs will take, one after another, from their settings alone.

    Args:
        configs: The runs.

    Returns:
        Memory and disk in bytes, and seconds.

    Example:
        >>> one = PretrainConfig.of({"text": {"corpus": ["articles.txt"]}})
        >>> cost_of([one, one]).seconds / cost_of([one]).seconds, cost_of([one]).memory < 8e9
        (2.0, True)
    """
    whole = Cost()
    for config in configs:
        whole += cost_of_one(config)
    return whole


def settings_that_cost(configs: Sequence[PretrainConfig]) -> str:
    """The settings that drive the estimate, as a text for error messages.

    Args:
        configs: The runs.

    Returns:
        Settings with their values.

    Example:
        >>> settings_that_cost([PretrainConfig.of({"text": {"corpus": ["articles.txt"]}, "model": {"layers": 100}})])
        'model.layers 100'
    """
    return driving(configs[0], PretrainConfig(text=configs[0].text), cost_of_one)


def parameters(shape: Shape, vocabulary: int, length: int) -> int:
    """Numbers of the model: embeddings, layers and head."""
    dim, inner, small = shape.dim, shape.feedforward or 4 * shape.dim, shape.architecture in ("albert", "electra")
    width = min(NARROW, dim) if small else dim
    layer = 4 * dim * (dim + 1) + 2 * dim * inner + inner + 5 * dim
    count = {"albert": 1, "bart": 2 * shape.layers}.get(shape.architecture, shape.layers)
    cross = shape.layers * 4 * dim * dim if shape.architecture == "bart" else 0
    embeddings = width * (vocabulary + (2 if shape.architecture == "bart" else 1) * length + 4)
    return embeddings + vocabulary + (width * dim if small else 0) + count * layer + cross + dim * dim


def passes(shape: Shape) -> int:
    """Layers that a row goes through: albert's one layer as often as it has layers, bart's encoder and decoder."""
    return shape.layers * (2 if shape.architecture == "bart" else 1)


def cost_of_one(config: PretrainConfig) -> Cost:
    """Of one run on one process."""
    shape, length, batch = config.model, config.length, config.batch_size
    vocabulary = config.tokenizer.vocab_size if config.tokenizer.existing is None else VOCABULARY
    numbers, layers = parameters(shape, vocabulary, length), passes(shape)
    inner, rows = shape.feedforward or 4 * shape.dim, config.micro_batch or max(1, -(-batch // 2))
    remembered = 2 if config.optimizer.name == "adamw" else 1 if config.optimizer.momentum else 0
    history = 4 * HISTORY * layers * shape.dim**2
    # what the backward pass needs of a token: some eighteen vectors, four of the inner width, and three maps per head
    activations = 4 * rows * length * layers * (18 * shape.dim + 4 * inner + 3 * shape.heads * length)
    masked = rows * length * config.masking.p_mask
    logits = 4 * 4 * masked * vocabulary
    text = 8 * length * (HELD_ROWS + 2 * batch) + 2 * DOCUMENT * min(config.tokenizer.documents, 100_000)
    held_out = config.held_out.rows if config.held_out.share else 0
    measured = -(-config.steps // config.held_out.every) + 1  # times that they go through the model
    text += 3 * 8 * length * held_out
    figures = (config.steps + 1) * (4 + 4 * layers)
    memory = 4 * (2 + remembered) * numbers + max(activations + logits, 4 * numbers) + history + text + 16 * figures
    snapshots = len(config.snapshot_steps) + 1
    checkpoint = 0 if config.checkpoint_every is None else 2 * (4 * (1 + remembered) * numbers + history)
    tokens = batch * length
    in_layers = layers * (4 * shape.dim**2 + 2 * shape.dim * inner + 2 * length * shape.dim)
    arithmetic = 6 * tokens * (in_layers + config.masking.p_mask * vocabulary * shape.dim) + 20 * numbers
    step = arithmetic / FLOPS + PASS_SECONDS * layers * max(1, batch // rows)
    seconds = (config.steps + measured * held_out / batch / 3) * step  # forward alone: a third of a step
    return Cost(memory, 4 * numbers * snapshots + checkpoint + LINE * figures, seconds)
