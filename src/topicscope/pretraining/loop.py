"""The steps of a run: the transformer, its masks and its loss, batches, and the checkpoint to resume from.

Every process draws the rows and masks of the whole step, and computes its share of them. No step waits for a number
of the step before it: losses and norms stay on the device until a block of them is written.
"""

import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from topicscope.ground import (
    MetricsFile,
    Progress,
    Stream,
    check_tensors,
    fingerprint,
    metric_lines,
    needed,
    read_checkpoint,
    refuse_if,
    silent,
    torch_seed,
    write_tensors,
)
from topicscope.language import LibraryModel, Tokenizer, shifted_right
from topicscope.measure import ROTATION_SPAN, rotations
from topicscope.pretraining.config import Masking, PretrainConfig, Shape
from topicscope.pretraining.data import Rows, token_group
from topicscope.pretraining.run import (
    ADVICE,
    CHECKPOINT,
    FIGURES,
    MODEL,
    PARTS,
    SNAPSHOTS,
    PretrainResults,
    PretrainRun,
    stages_by_layer,
    stored_metrics,
    write_pretrained,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig


BLOCK = 50  # so many steps are read out together, so that a GPU does not wait at every step
# the library's names of our sizes
ENCODER = {
    "dim": ["hidden_size"],
    "layers": ["num_hidden_layers"],
    "heads": ["num_attention_heads"],
    "feedforward": ["intermediate_size"],
    "dropout": ["hidden_dropout_prob", "attention_probs_dropout_prob"],
}
BART = {
    "dim": ["d_model"],
    "layers": ["encoder_layers", "decoder_layers"],
    "heads": ["encoder_attention_heads", "decoder_attention_heads"],
    "feedforward": ["encoder_ffn_dim", "decoder_ffn_dim"],
    "dropout": ["dropout", "attention_dropout", "activation_dropout"],
}
# names of the modules between the last hidden states and the logits; other models have `lm_head`
HEADS = {"bert": ["cls"], "albert": ["predictions"], "electra": ["generator_predictions", "generator_lm_head"]}


def build_model(config: PretrainConfig, tokenizer: Tokenizer) -> LibraryModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(config.seed, Stream.PRETRAINED_WEIGHTS))
        model = needed("transformers", "pretraining").AutoModelForMaskedLM.from_config(
            library_config(config.model, tokenizer, config.length)
        )
    with torch.no_grad():  # everything else stays as the library made it
        for number, layer in enumerate(attention_layers(model)):
            for which, part in enumerate(PARTS):
                scale, matrix = config.model.init_scale_of(part, layer.layer), getattr(layer, part)
                if scale != "usual":
                    seed = torch_seed(config.seed, Stream.PRETRAINED_WEIGHTS, 1 + number, which)
                    matrix.copy_(scale * torch.randn(matrix.shape, generator=torch.Generator().manual_seed(seed)))
    return model


def library_config(shape: Shape, tokenizer: Tokenizer, length: int) -> "PretrainedConfig":
    sizes = {**vars(shape), "feedforward": shape.feedforward or 4 * shape.dim}
    names = BART if shape.architecture == "bart" else ENCODER
    settings = {name: sizes[part] for part in names for name in names[part] if sizes[part] != "usual"}
    ids = {"pad": tokenizer.pad_token_id, "bos": tokenizer.cls_token_id, "eos": tokenizer.sep_token_id}
    settings |= {f"{name}_token_id": number for name, number in ids.items() if number is not None}
    ends = {"decoder_start_token_id": ids["eos"] or 0, "forced_eos_token_id": ids["eos"]}
    narrow = {"embedding_size": min(128, shape.dim)}
    settings |= {"bart": ends, "albert": narrow, "electra": narrow}.get(shape.architecture, {})
    if shape.architecture == "roberta":  # its positions start after its padding token's number
        length += settings.get("pad_token_id", 1) + 1
    return needed("transformers", "pretraining").AutoConfig.for_model(
        shape.architecture, vocab_size=len(tokenizer), max_position_embeddings=length, **settings
    )


STACKS = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class AttentionLayer:
    """The matrices of one attention layer, heads side by side."""

    name: str  # '0', '1', ...; 'encoder_0', 'decoder_0', 'cross_0' in models of several parts
    layer: int
    key: Float[Tensor, "d d"]
    query: Float[Tensor, "d d"]
    value: Float[Tensor, "d d"]


def attention_layers(model: LibraryModel) -> list[AttentionLayer]:
    """In the order of the layers; a model that uses one layer again and again (ALBERT) has one."""
    found = [
        (
            2 if "encoder_attn" in path else 1 if ".decoder." in path else 0,
            int(re.findall(r"\.(\d+)\.", path)[-1]),
            [getattr(module, name).weight for name in names],
        )
        for path, module in model.named_modules()
        for names in (PARTS, ("k_proj", "q_proj", "v_proj"))
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in names)
    ]
    several = any(stack > 0 for stack, _, _ in found)
    return [
        AttentionLayer(f"{STACKS[stack]}_{layer}" if several else str(layer), layer, *weights)
        for stack, layer, weights in sorted(found, key=lambda entry: entry[:2])
    ]


class Masker:
    """Draws masks. Each micro-batch has a random stream of its own: every process can draw the masks of all."""

    def __init__(self, tokenizer: Tokenizer, masking: Masking, seed: int) -> None:
        self.seed, self.special = seed, torch.tensor(tokenizer.all_special_ids)
        self.collator = needed("transformers", "pretraining").DataCollatorForLanguageModeling(
            tokenizer,
            mlm=True,
            mlm_probability=masking.p_mask,
            mask_replace_prob=1 - masking.p_correct - masking.p_random,
            random_replace_prob=masking.p_random,
        )

    def __call__(
        self, rows: Int[np.ndarray, "B N"], step: int, number: int, stream: Stream = Stream.MASKED_TOKENS
    ) -> tuple[Int[Tensor, "B N"], Int[Tensor, " M"], Int[Tensor, " M"]]:
        """What the model sees, the places (in the flattened rows) whose token it predicts, and these tokens."""
        tokens = torch.from_numpy(rows.astype(np.int64))
        self.collator.generator = torch.Generator().manual_seed(torch_seed(self.seed, stream, step, number))
        shown, labels = self.collator.torch_mask_tokens(tokens, special_tokens_mask=torch.isin(tokens, self.special))
        places = torch.nonzero(labels.flatten() != -100)[:, 0]
        return shown, places, labels.flatten()[places]


class MaskedLoss(nn.Module):
    """The sum over masked places, which alone go through the output head, of -log p(token), in nats."""

    def __init__(self, model: LibraryModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, shown: Int[Tensor, "B N"], places: Int[Tensor, " M"], targets: Int[Tensor, " M"]
    ) -> Float[Tensor, ""]:
        """A decoder reads the whole text, one place later, and predicts the masked tokens: denoising."""
        config = self.model.config
        inputs: dict[str, Tensor | bool] = {"input_ids": shown}
        if config.is_encoder_decoder:
            text = shown.flatten().index_copy(0, places, targets).view_as(shown)
            inputs["decoder_input_ids"], _ = shifted_right(text, torch.ones_like(text), config)
            inputs["use_cache"] = False
        rows = self.model.base_model(**inputs).last_hidden_state.flatten(0, 1)[places]
        for name in HEADS.get(config.model_type, ["lm_head"]):
            rows = getattr(self.model, name)(rows)
        logits = rows + self.model.final_logits_bias if config.model_type == "bart" else rows
        return nn.functional.cross_entropy(
            logits.float() if logits.dtype == torch.bfloat16 else logits, targets, reduction="sum"
        )


class Tracker:
    """Row s describes the weights before step s, and their loss on batch s.

    Figures stay on the device until a block of them is read: a look at each would make the host wait at every step.
    """

    def __init__(self, layers: list[AttentionLayer]) -> None:
        self.layers = layers
        self.matrices = [getattr(layer, part) for part in PARTS for layer in layers]
        count, value = len(layers), layers[0].value
        self.names = (
            *FIGURES,
            *(f"norm_{part}_{layer.name}" for part in PARTS for layer in layers),
            *(f"rotation_{layer.name}" for layer in layers),
        )
        self.table = torch.zeros((BLOCK, 4 * count), device=value.device)  # norms, and products with W_V ten steps ago
        # W_V at the last steps, as a ring
        self.history = torch.zeros((ROTATION_SPAN, count, value.numel()), device=value.device)
        self.past_norms = np.full((ROTATION_SPAN, count), math.nan)  # oldest first
        self.start = 0  # step of the first row held
        # of each row held; the final weights make no step, and have a rate alone
        self.rates: list[float] = []
        # the loss summed over this process's share of the masked places, those of the whole step, the gradient's norm
        self.measured: list[tuple[Float[Tensor, ""], int, Float[Tensor, ""]]] = []
        self.held_out: dict[int, Float[Tensor, ""]] = {}  # by row: this process's share

    @property
    def row(self) -> int:
        return len(self.rates)

    @torch.no_grad()
    def record(self, step: int, lr: float) -> None:
        row, norms = self.table[self.row], 3 * len(self.layers)
        self.start = step if self.row == 0 else self.start
        torch.stack(torch._foreach_norm(self.matrices), out=row[:norms])
        ring, now = self.history[step % ROTATION_SPAN], torch.stack([layer.value.flatten() for layer in self.layers])
        torch.sum(ring.mul_(now), 1, out=row[norms:])  # |before| |now| cos; `rows` turns it into a rotation
        ring.copy_(now)
        self.rates.append(lr)

    def rows(self, added: Callable[[Tensor], Tensor] = lambda shares: shares) -> Float[np.ndarray, "S M"]:
        """The figures of all steps since the last call; `added` adds up the shares of all processes."""
        missing = torch.full((), math.nan, device=self.table.device)
        measured = self.measured + [(missing, 1, missing)] * (self.row - len(self.measured))
        losses, places, norms = zip(*measured, strict=True)
        held_out = [self.held_out.get(row, missing) for row in range(self.row)]
        shares = added(torch.stack([*losses, *held_out])).reshape(2, self.row).cpu()
        shares[0] /= torch.tensor(places, dtype=shares.dtype)
        gradient_norms = torch.stack(norms).cpu()
        figures = np.column_stack([shares[0], self.rates, gradient_norms, shares[1]])  # in the order of FIGURES
        table = np.concatenate([figures, self.table[: self.row].cpu().numpy()], 1)
        turning = len(self.names) - len(self.layers)  # the first column of rotations; norms of W_V are before it
        lengths = np.concatenate([self.past_norms, table[:, turning - len(self.layers) : turning]])
        table[:, turning:] = rotations(table[:, turning:], lengths)
        self.past_norms = lengths[-ROTATION_SPAN:]
        for held in (self.rates, self.measured, self.held_out):
            held.clear()
        return table


def build_optimizer(config: PretrainConfig, model: LibraryModel) -> torch.optim.Optimizer:
    settings = config.optimizer
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


AHEAD = 3  # batches are made so many steps ahead, so that a long document delays no step


@dataclass(frozen=True)
class Batch:
    """A process's share of a step, on its device."""

    parts: list[list[Tensor]]  # for each micro-batch what is shown, the masked places, and their tokens
    dropout_seeds: list[int]
    places: int  # masked places of the whole step
    scale: Float[Tensor, ""]  # factor of this process's loss: the mean over processes is then that over all places


class Batches:
    def __init__(self, config: PretrainConfig, rows: Rows, tokenizer: Tokenizer, accelerator: Any) -> None:
        self.config, self.rows, self.device = config, rows, accelerator.device
        self.masker = Masker(tokenizer, config.masking, config.seed)
        self.processes = accelerator.num_processes
        self.micro = micro_batch(config, self.device.type, self.processes)
        share = config.batch_size // self.micro // self.processes
        self.mine = range(accelerator.process_index * share, (accelerator.process_index + 1) * share)
        # a thread begins on the first GPU, whichever its process uses
        own = partial(torch.cuda.set_device, self.device.index or 0) if self.device.type == "cuda" else None
        self._thread = ThreadPoolExecutor(1, initializer=own)
        self.coming: deque[Future[Batch]] = deque()

    def take(self, step: int) -> Batch:
        """The batch of a step, made by now or made here. Steps are taken in their order."""
        return self.coming.popleft().result() if self.coming else self.make(step)

    def prepare(self, step: int, end: int) -> None:
        """Let the thread make the batches from `step`, which is taken next: some of them, none from `end` on."""
        for later in range(step + len(self.coming), min(step + AHEAD, end)):
            self.coming.append(self._thread.submit(self.make, later))

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
    uneven = (
        f"{processes} processes cannot share the {config.batch_size // rows} micro-batches of a step evenly; "
        f"choose batch_size and micro_batch so that batch_size / micro_batch is a multiple of {processes}"
    )
    refuse_if(config.batch_size // rows % processes, uneven)
    return rows


class HeldOutLoss:
    """Rows are masked one by one: masks do not depend on how many go through the model together."""

    def __init__(self, batches: Batches, tokenizer: Tokenizer, rank: int) -> None:
        config = batches.config
        self.every, self.last = config.held_out.every, config.steps
        rows = batches.rows.held_out_rows(config.held_out.rows)
        masker = Masker(tokenizer, config.masking, 0)
        masked = [masker(rows[number : number + 1], 0, number, Stream.HELD_OUT_TOKENS) for number in range(len(rows))]
        self.places = sum(len(targets) for _, _, targets in masked)
        parts = [masked[start : start + batches.micro] for start in range(0, len(masked), batches.micro)]
        self.mine = [batches.on_device(together(part)) for part in parts[rank :: batches.processes]]
        self.zero = torch.zeros((), device=batches.device)

    def due(self, step: int) -> bool:
        return self.places > 0 and (step % self.every == 0 or step == self.last)

    @torch.no_grad()
    def __call__(self, loss_of: MaskedLoss, precision: AbstractContextManager[Any]) -> Float[Tensor, ""]:
        loss_of.eval()
        with precision:
            loss = sum((loss_of(*part) for part in self.mine), self.zero) / self.places
        loss_of.train()
        return loss


def together(rows: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    shown, places, targets = zip(*rows, strict=True)
    length = shown[0].shape[1]
    return torch.cat(shown), torch.cat([at + i * length for i, at in enumerate(places)]), torch.cat(targets)


DIGITS = 9  # digits of numbers in metrics.jsonl: enough to bring a float32 back exactly


class Loop:
    def __init__(
        self, config: PretrainConfig, corpus: Iterable[str], tokenizer: Tokenizer, folder: Path | None, accelerator: Any
    ) -> None:
        self.config, self.tokenizer, self.folder, self.accelerator = config, tokenizer, folder, accelerator
        self.writes = folder if accelerator.is_main_process else None  # the folder that this process writes to
        self.metrics = None if self.writes is None else MetricsFile(self.writes)
        self.fingerprint = fingerprint(config.as_dict())
        self.device, self.processes = accelerator.device, accelerator.num_processes
        self.rows = Rows(
            corpus,
            tokenizer,
            config.length,
            config.seed,
            held_out=config.held_out.share,
            rank=accelerator.process_index,
            processes=self.processes,
        )
        self.batches = Batches(config, self.rows, tokenizer, accelerator)
        self.model = build_model(config, tokenizer).to(self.device).train()
        self.parameters = list(self.model.parameters())
        self.optimizer = build_optimizer(config, self.model)
        self.tracker = Tracker(attention_layers(self.model))
        self.step = self.first_step = 0
        self.tables: list[Float[np.ndarray, "S M"]] = []
        self.own_loss = MaskedLoss(self.model)
        self.loss_of: Any = self.own_loss  # with several processes: a wrapper that also adds up their gradients

    def run(self, progress: Progress = silent) -> PretrainRun:
        with closing(self.batches):
            status = "done" if self._train(progress) else "diverged"
            self.accelerator.wait_for_everyone()
            progress("writing the model")
        return self._end(status)

    def _train(self, progress: Progress) -> bool:
        """All steps; False if the loss is no longer a number."""
        config, began = self.config, time.perf_counter()
        progress("reading text")
        stored = None if self.folder is None else self.folder / CHECKPOINT
        written = self.load(stored) if stored is not None and stored.exists() else ""
        if self.metrics is not None and self.step:
            self.metrics.cut(self.step, written)
        elif self.metrics is not None:
            self.metrics.start()
        self.loss_of = self.accelerator.prepare(self.own_loss)
        if self.processes > 1:
            token_group()  # all processes make it together, before a thread needs it
        held_out = HeldOutLoss(self.batches, self.tokenizer, self.accelerator.process_index)
        self.accelerator.wait_for_everyone()
        snapshots, finite = set(config.snapshot_steps), True
        while finite:
            if self.writes is not None and self.step in snapshots:
                write_pretrained(self.writes / SNAPSHOTS / f"step-{self.step:06d}", self.model, self.tokenizer)
            if held_out.due(self.step):
                self.tracker.held_out[self.tracker.row] = held_out(self.own_loss, self._precision())
            if self.step == config.steps:
                self.tracker.record(self.step, config.optimizer.lr_at(config.steps - 1, config.steps))
                self._flush()
                break
            self.advance()
            if self.tracker.row == BLOCK or self.at_checkpoint or self.step == config.steps:
                finite = self._flush()
                if finite and self.writes is not None and self.at_checkpoint:
                    self.save(self.writes / CHECKPOINT)
            if finite and (self.step % 5 == 0 or self.step == config.steps):
                rate, loss = self.tokens_per_second(time.perf_counter() - began), self._recent_loss()
                note = f"loss {loss:.3f}, {rate:,.0f} tokens/s" if np.isfinite(loss) else f"{rate:,.0f} tokens/s"
                progress("pretraining", self.step, config.steps, note)
        return finite

    def tokens_per_second(self, seconds: float) -> float:
        return (self.step - self.first_step) * self.config.batch_size * self.config.length / seconds

    @property
    def at_checkpoint(self) -> bool:
        return self.config.checkpoint_every is not None and self.step % self.config.checkpoint_every == 0

    def advance(self) -> None:
        """One step. It launches work and waits for none of it."""
        config, step = self.config, self.step
        lr = config.optimizer.lr_at(step, config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.tracker.record(step, lr)
        batch, last = self.batches.take(step), len(self.batches.mine) - 1
        self.optimizer.zero_grad()
        losses = []
        for number, part in enumerate(batch.parts):
            dropout_generator(self.device).manual_seed(batch.dropout_seeds[number])
            with nullcontext() if number == last else self.accelerator.no_sync(self.loss_of):
                with self._precision():
                    loss = self.loss_of(*part)
                if number == last:  # the thread needs the interpreter, which the backward pass does not
                    every = config.checkpoint_every or config.steps  # a checkpoint shows what was read by then
                    self.batches.prepare(step + 1, min(step // every * every + every, config.steps))
                loss.backward(batch.scale)
            losses.append(loss.detach())
        self.tracker.measured.append((sum(losses[1:], losses[0]), batch.places, self.clip()))
        self.optimizer.step()
        self.step += 1

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.config.bf16 else nullcontext()

    def clip(self) -> Float[Tensor, ""]:
        if self.config.optimizer.clip is not None:
            return torch.nn.utils.clip_grad_norm_(self.parameters, self.config.optimizer.clip)
        return torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])

    def _recent_loss(self) -> float:
        """On a GPU that of the last block written: to look at the last step would be to wait for it."""
        if self.device.type == "cpu" and self.tracker.measured:
            loss, places, _ = self.tracker.measured[-1]
            return float(loss) / places * self.processes
        return float(self.tables[-1][-1, 0]) if self.tables else np.nan

    def _flush(self) -> bool:
        """Write the figures of the last steps. False once the loss is not a number; nothing after it is written."""
        first = self.tracker.start
        table = self.tracker.rows(
            lambda shares: self.accelerator.reduce(shares, "sum") if self.processes > 1 else shares
        )
        # the final weights have no loss
        bad = np.flatnonzero(~np.isfinite(table[:, 0]) & (first < self.config.steps))
        self.tables.append(table[: bad[0]] if len(bad) else table)
        if self.metrics is not None:
            self.metrics.append(metric_lines(self.tracker.names, self.tables[-1], first, {}, DIGITS))
        return not len(bad)

    def _end(self, status: str) -> PretrainRun:
        if self.folder is not None:
            metrics = stored_metrics(self.folder)
        else:  # rounded as in metrics.jsonl
            table = np.concatenate(self.tables)
            written = np.array([float(f"{x:.{DIGITS}g}") for x in table.ravel()]).reshape(table.shape)
            metrics = dict(
                zip(("step", *self.tracker.names), [np.arange(len(table), dtype=float), *written.T], strict=True)
            )
        config, model = self.config, self.model.eval()
        if self.writes is not None and status == "done":
            write_pretrained(self.writes / MODEL, model, self.tokenizer)
        losses, norms, held_out = (
            metrics[name][np.isfinite(metrics[name])] for name in ("loss", "gradient_norm", "held_out_loss")
        )
        results = PretrainResults(
            status=status,
            seed=config.seed,
            steps=len(losses),
            first_loss=float(losses[0]) if len(losses) else None,
            loss=float(losses[-50:].mean()) if len(losses) else None,
            held_out_loss=float(held_out[-1]) if len(held_out) and status == "done" else None,
            gradient_norm=float(norms[-50:].mean()) if len(norms) else None,
            tokens=len(losses) * config.batch_size * config.length,
            epochs=self.rows.epoch,
            parameters=sum(p.numel() for p in model.parameters()),
            vocabulary=len(self.tokenizer),
            layers=stages_by_layer(metrics) if status == "done" else {},
        )
        return PretrainRun(config, results, metrics, self.folder, (model, self.tokenizer))

    def state(self) -> dict[str, np.ndarray]:
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
        """A checkpoint, whole or not there. Only at a step of `checkpoint_every`: no batch is read beyond those."""
        assert not self.batches.coming, "batches of later steps are being read: they do not belong to this checkpoint"
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
        with read_checkpoint(path, self.fingerprint, ADVICE) as (tensors, note):
            changed = f"the text has changed since {path.parent} was stopped; bring back the text that it began with"
            refuse_if(note.get("text") != self.rows.fingerprint, f"{changed}, or {ADVICE}")
            parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
            moments: dict[int, dict[str, Tensor]] = {}
            for name in [name for name in tensors if name.startswith("optimizer.")]:
                _, number, key = name.split(".")  # moments have the shapes of weights, except Adam's count of steps
                if tensors[name].shape != (() if key == "step" else parameters[int(number)].shape):
                    raise ValueError(f"{name} has shape {tensors[name].shape}")
                moments.setdefault(int(number), {})[key] = torch.from_numpy(np.array(tensors[name]))
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


def dropout_generator(device: torch.device) -> torch.Generator:
    """The generator that dropout draws from: `torch.manual_seed` would seed those of all devices."""
    return (
        torch.default_generator
        if device.type == "cpu"
        else torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    )
