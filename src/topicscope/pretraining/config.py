"""A pretraining run as data: a small transformer, a corpus, masked language modelling; and what it will cost.

Every setting can be given in a YAML file, by `--set` or as a keyword:

>>> PretrainConfig.of({"text": {"corpus": ["articles.txt"]}}, steps=100).snapshot_steps[-1]
100
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from topicscope.ground import (
    FLOPS,
    LONGEST_LIST,
    WIDEST,
    Config,
    Cost,
    Count,
    Decay,
    Device,
    Natural,
    PositiveRate,
    Probability,
    Rate,
    Seed,
    SomeProbability,
    Steps,
    Text as Name,
    Width,
    driving,
    log_steps,
    number_only,
    only_for,
    refuse,
    refuse_if,
    section,
)
from topicscope.measure import ROTATION_SPAN

LIBRARIES = ("accelerate", "tokenizers", "transformers")  # pretraining needs these optional libraries

Heads = Annotated[int, Field(ge=1, le=1024), number_only]
Inner = Annotated[int, Field(ge=1, le=4 * WIDEST), number_only]
Layers = Annotated[int, Field(ge=1, le=1000), number_only]
Part = Literal["key", "query", "value"]
Scale = Literal["usual"] | Rate  # standard deviation of the initial weights; 'usual': the library's own
Scales = Annotated[list[Scale], Field(max_length=1000)]  # one per layer
Rows = Annotated[int, Field(ge=1, le=10**6), number_only]


@section
class Text:
    corpus: Annotated[list[Name], Field(min_length=1, max_length=LONGEST_LIST)]
    text_field: Name = "text"
    split: Literal["auto", "line", "paragraph", "file"] = "auto"


@section
class TokenizerSettings:
    """`existing` (folder or hub id), or one of a kind trained on the first `documents` of the corpus."""

    existing: Name | None = None
    train: Literal["wordpiece", "bpe", "unigram"] = "wordpiece"
    vocab_size: Annotated[int, Field(ge=1, le=10**7), number_only] = 8000
    documents: Count = 10_000


@section
class Shape:
    architecture: Literal["bert", "roberta", "albert", "electra", "bart"] = "bert"
    layers: Layers = 4
    heads: Heads = 4
    dim: Width = 128
    feedforward: Inner | None = None
    init_scale: Scale | Scales | dict[Part, Scale | Scales] = 0.0001
    dropout: Literal["usual"] | Probability = "usual"

    @model_validator(mode="after")
    def _check(self) -> Shape:
        scales = self.init_scale.values() if isinstance(self.init_scale, dict) else [self.init_scale]
        wrong = [len(scale) for scale in scales if isinstance(scale, list) and len(scale) != self.layers]
        refuse(
            (
                self.dim % self.heads,
                f"model.dim {self.dim} is not divisible by {self.heads} heads; "
                f"choose {self.heads * max(1, round(self.dim / self.heads))}, or another number of heads",
            ),
            (
                wrong,
                f"model.init_scale has {next(iter(wrong), 0)} scales for {self.layers} layers; "
                "give one per layer, or one for all",
            ),
        )
        return self

    def init_scale_of(self, part: Part, layer: int) -> Scale:
        scale = self.init_scale.get(part, "usual") if isinstance(self.init_scale, dict) else self.init_scale
        return scale[layer] if isinstance(scale, list) else scale


@section
class Masking:
    """`p_mask` of the tokens are predicted.

    Of these, `p_correct` stay as they are and `p_random` show a random token; the others show the mask token.
    """

    p_mask: SomeProbability = 0.15
    p_correct: Probability = 0.1
    p_random: Probability = 0.1

    @model_validator(mode="after")
    def _check(self) -> Masking:
        more = f"masking: p_correct {self.p_correct:g} and p_random {self.p_random:g} add up to more than 1"
        refuse_if(self.p_correct + self.p_random > 1, more)
        return self


@section
class Optimizer:
    """AdamW or SGD of torch.optim; warm-up and decay of the rate; clipping of the gradient's norm (None: none)."""

    name: Literal["adamw", "sgd"] = "adamw"
    lr: PositiveRate = 0.001
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    eps: Rate = 1e-8
    weight_decay: Rate = 0.01
    momentum: Decay = 0.0
    warmup: Natural = 0  # steps from 0 to lr
    decay: Literal["constant", "linear"] = "constant"
    clip: PositiveRate | None = 1.0

    @model_validator(mode="after")
    def _check(self) -> Optimizer:
        only_for(self, "optimizer", "sgd", "momentum")
        only_for(self, "optimizer", "adamw", "betas", "eps")
        return self

    def lr_at(self, step: int, steps: int) -> float:
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        return self.lr * (steps - step) / (steps - self.warmup) if self.decay == "linear" else self.lr


@section
class HeldOut:
    """Documents that are never trained on, and how often the loss on them is taken. A share of 0: none, never.

    The loss is that of their first `rows` rows, with the same masks every time and without dropout.
    """

    share: Annotated[float, Field(ge=0, le=0.5), number_only] = 0.02  # of the documents; their text decides which
    every: Count = 50  # steps; the final weights are always measured
    rows: Rows = 64


@section
class PretrainConfig(Config):
    """Everything that a pretraining run depends on. The same config and tokenizer give the same bytes on a CPU.

    Attributes:
        text: The corpus.
        version: Version of the format.
        seed: Seed of rows, masks, dropout and initial weights.
        steps: Number of steps.
        batch_size: Rows per step.
        micro_batch: Rows per forward pass; None: half a batch (on GPUs: a process's share).
        length: Tokens per row, special ones included.
        snapshots: Steps at which the model is kept: 'log', 'none', or a list.
        checkpoint_every: Steps between states to resume from; None: never.
        device: 'cpu', 'cuda' or 'auto'.
        bf16: Train in bfloat16 (GPUs only).
        tokenizer: An existing tokenizer, or one that is trained.
        model: The transformer.
        masking: Which tokens are predicted, and what they show.
        held_out: Share of the documents that is held out.
        optimizer: AdamW or SGD.

    Raises:
        InputError: A setting is unknown, out of range, or contradicts another; in one line.

    Example:
        >>> from topicscope import PretrainConfig
        >>> config = PretrainConfig.of({"text": {"corpus": ["articles.txt"]}, "model": {"layers": 2}}, steps=100)
        >>> config.model.layers, config.snapshot_steps[:4]
        (2, [0, 1, 2, 3])
    """

    FILES: ClassVar[tuple[str, ...]] = ("text.corpus", "tokenizer.existing")

    text: Text
    version: Literal[1] = 1
    seed: Seed = 0
    steps: Count = 400
    batch_size: Rows = 32
    micro_batch: Rows | None = None
    length: Annotated[int, Field(ge=8, le=WIDEST), number_only] = 64
    snapshots: Literal["log", "none"] | Steps = "log"
    checkpoint_every: Count | None = 100
    device: Device = "auto"
    bf16: bool = False
    tokenizer: TokenizerSettings = TokenizerSettings()
    model: Shape = Shape()
    masking: Masking = Masking()
    held_out: HeldOut = HeldOut()
    optimizer: Optimizer = Optimizer()

    @classmethod
    def require(cls, settings: Mapping[str, object]) -> None:
        text = settings.get("text")
        given = text.get("corpus") if isinstance(text, Mapping) else text
        refuse_if(not given, "no text is given; corpus (text.corpus in a file) takes files, folders or hf:NAME")

    @model_validator(mode="after")
    def _check(self) -> PretrainConfig:
        batch, micro, warmup = self.batch_size, self.micro_batch, self.optimizer.warmup
        last = max(self.snapshots, default=0) if isinstance(self.snapshots, list) else 0
        refuse(
            (batch % (micro or 1), f"batch_size {batch} is not a multiple of micro_batch {micro}; choose one that is"),
            (last > self.steps, f"snapshots: step {last} is after the last of {self.steps} steps"),
            (warmup > self.steps, f"optimizer.warmup {warmup} is longer than the run of {self.steps} steps"),
            (self.bf16 and self.device == "cpu", "bf16 is for GPUs only; leave it out, or choose device cuda"),
        )
        return self

    @property
    def snapshot_steps(self) -> list[int]:
        usual = log_steps(self.steps) if self.snapshots == "log" else []
        return sorted(set(self.snapshots)) if isinstance(self.snapshots, list) else usual


VOCABULARY = 50_000  # tokens of a tokenizer that is not read yet
ROWS = 4096  # rows that batches are drawn from
DOCUMENT = 10_000  # bytes of a document that a tokenizer is trained on
PASS_SECONDS = 2e-3  # seconds per layer and step, beside its arithmetic


def cost_of(configs: Sequence[PretrainConfig]) -> Cost:
    return sum(map(cost_of_one, configs), Cost())


def settings_that_cost(configs: Sequence[PretrainConfig]) -> str:
    return driving(configs[0], PretrainConfig(text=configs[0].text), cost_of_one)


def cost_of_one(config: PretrainConfig) -> Cost:
    """A bound for one run on one process: copies of the weights, what the backward pass needs, text, and metrics."""
    shape, length, batch, steps = config.model, config.length, config.batch_size, config.steps
    rows, inner = config.micro_batch or max(1, -(-batch // 2)), shape.feedforward or 4 * shape.dim
    layers = shape.layers * (2 if shape.architecture == "bart" else 1)
    vocabulary = config.tokenizer.vocab_size if config.tokenizer.existing is None else VOCABULARY
    in_layers = layers * (6 * shape.dim + 2 * inner)
    numbers = shape.dim * (vocabulary + length + in_layers)
    history = 4 * ROTATION_SPAN * layers * shape.dim**2
    # the backward pass needs about 18 vectors per token, four of the inner width, and three maps per head
    token = layers * (18 * shape.dim + 4 * inner + 3 * shape.heads * length) + 4 * config.masking.p_mask * vocabulary
    text = 8 * length * (ROWS + 2 * batch + 3 * config.held_out.rows)
    text += 2 * DOCUMENT * min(config.tokenizer.documents, 100_000)
    figures = (steps + 1) * (4 + 4 * layers)
    memory = 4 * 4 * numbers + 4 * max(rows * length * token, numbers) + history + text + 16 * figures
    checkpoints = 0 if config.checkpoint_every is None else 2 * (4 * 3 * numbers + history)
    disk = 4 * numbers * (len(config.snapshot_steps) + 1) + checkpoints + 20 * figures
    arithmetic = 6 * batch * length * shape.dim * (in_layers + config.masking.p_mask * vocabulary + layers * length)
    step = arithmetic / FLOPS + PASS_SECONDS * layers * max(1, batch // rows)
    held_out = config.held_out.rows / batch / 3 * (steps / config.held_out.every + 2) if config.held_out.share else 0
    return Cost(memory, disk, (steps + held_out) * step)
