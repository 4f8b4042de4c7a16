"""The speed of pretraining, on made-up text.

Our loop reads, masks, tracks and can be resumed; a bare PyTorch loop runs over batches that are prepared beforehand.
"""

from typing import Any

import numpy as np
import torch

from tools.bench.rows import Row, Say, Work, matrix_rate, measured, medians
from topicscope.pretraining import (
    BLOCK,
    Loop,
    MaskedLoss,
    Masker,
    PretrainConfig,
    Shape,
    Text,
    accelerated,
    build_model,
    build_optimizer,
    train_tokenizer,
)

STEPS = 10  # timed together


def bench_pretraining(device: str = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    rounds, shape = (1, Shape(layers=2, dim=32)) if quick else (7, Shape())
    with torch.random.fork_rng():
        return measured({"pretraining": lambda: step_rows(device, rounds, shape)}, say)


def made_up_texts(words: int, documents: int) -> list[str]:
    """Words of random letters, as frequent as words are."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    known = ["".join(rng.choice(letters, rng.integers(2, 9))) for _ in range(words)]
    law = 1 / np.arange(1, words + 1)
    return [" ".join(known[i] for i in rng.choice(words, 400, p=law / law.sum())) for _ in range(documents)]


def step_rows(device: str, rounds: int, shape: Shape) -> list[Row]:
    """A step against the bare loop and its arithmetic, then its parts, each measured by itself."""
    config = PretrainConfig(text=Text(["-"]), steps=10**6, device="cuda" if device == "cuda" else "cpu", model=shape)
    texts = made_up_texts(20_000, 800)
    tokenizer = train_tokenizer(texts, "wordpiece", 8000, config.length)
    loop = Loop(config, texts, tokenizer, None, accelerated(config))

    def ours() -> None:
        for _ in range(STEPS):
            loop.advance()
            if loop.tracker.row == BLOCK:
                loop.tracker.rows()

    works = {
        "ours": ours,
        "bare loop": bare_loop(config, tokenizer, loop, library=False),
        "library's loss, all logits": bare_loop(config, tokenizer, loop, library=True),
    }
    for run in works.values():
        run()
    plain = {name: time / STEPS for name, time in medians(works, rounds, device).items()}
    mine = plain.pop("ours")
    loop.batches.close()
    loop.tracker.rows()
    ratio, tokens = mine / plain["bare loop"], config.batch_size * config.length
    size = f"{shape.layers} layers, {shape.heads} heads, width {shape.dim}"
    whole = Row(
        f"pretraining step, {size}, {config.batch_size} rows of {config.length} tokens",
        "s per step",
        mine,
        plain,
        *step_floor(config, device),
        aim=f"at most 1.1 times the bare loop (here {ratio:.3f}; {tokens / mine:,.0f} tokens per second)",
        met=ratio <= 1.1,
    )
    return [whole, *part_rows(loop, mine, max(3, rounds), device)]


def part_rows(loop: Loop, step: float, rounds: int, device: str) -> list[Row]:
    """What the step consists of. The thread's part costs a GPU's steps nothing as long as it is shorter than they."""
    batch = loop.batches.take(loop.step)
    first = loop.step + 1

    def tracked() -> None:
        for number in range(STEPS):
            loop.tracker.record(number, 0.0)
            loop.tracker.measured.append((batch.scale, 1, batch.scale))
        loop.tracker.rows()

    def made() -> None:
        nonlocal first
        for number in range(STEPS):
            loop.batches.make(first + number)
        first += STEPS

    def passed() -> None:
        for _ in range(STEPS):
            loop.optimizer.zero_grad()
            for part in batch.parts:
                loop.own_loss(*part).backward(batch.scale)

    parts: dict[str, Work] = {
        "forward and backward": passed,
        "clipping": lambda: [loop.clip() for _ in range(STEPS)],
        "optimiser": lambda: [loop.optimizer.step() for _ in range(STEPS)],
        "tracking norms and rotation": tracked,
        "reading, masking and copying a batch, by a thread": made,
    }
    times = {name: time / STEPS for name, time in medians(parts, rounds, device).items()}
    aims = {
        "tracking norms and rotation": (0.05, "at most 5% of the step"),
        "reading, masking and copying a batch, by a thread": (1.0, "shorter than the step"),
    }
    return [
        Row(
            f"  of which {name}" if "thread" not in name else f"  at the same time {name}",
            "s per step",
            time,
            floor=step,
            floor_is="the step",
            aim=aims[name][1] if name in aims else "",
            met=time <= aims[name][0] * step if name in aims else None,
        )
        for name, time in times.items()
    ]


def step_floor(config: PretrainConfig, device: str) -> tuple[float, str]:
    """Seconds for the matrix products of one step: forward, and twice that backward."""
    shape, tokens = config.model, config.batch_size * config.length
    inner = shape.feedforward or 4 * shape.dim
    layers = shape.layers * (4 * shape.dim**2 + 2 * shape.dim * inner + 2 * config.length * shape.dim)
    head = config.masking.p_mask * (shape.dim**2 + shape.dim * config.tokenizer.vocab_size)  # at masked places alone
    flops, rate = 6 * tokens * (layers + head), matrix_rate(device)
    share = f"{layers / (layers + head):.0%} in the layers, the rest in the head"
    return flops / rate, f"{flops / 1e9:.3g} GFLOP, {share}, at {rate / 1e9:,.0f} GFLOP/s"


def bare_loop(config: PretrainConfig, tokenizer: Any, loop: Loop, *, library: bool) -> Work:
    """What a script would do: batches masked beforehand, forward, backward, clip, step.

    It reads, tracks and writes nothing.
    """
    device = loop.accelerator.device
    model = build_model(config, tokenizer).to(device).train()
    optimizer, loss_of = build_optimizer(config, model), MaskedLoss(model)
    masker = Masker(tokenizer, config.masking, config.seed)
    batches = [
        [tensor.to(device) for tensor in masker(loop.rows.take(step, config.batch_size), step, 0)]
        for step in range(STEPS)
    ]

    def run() -> None:
        for shown, places, targets in batches:
            optimizer.zero_grad()
            if library:
                labels = torch.full_like(shown, -100).view(-1).index_copy(0, places, targets).view_as(shown)
                loss = model(input_ids=shown, labels=labels).loss
            else:
                loss = loss_of(shown, places, targets) / len(targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return run
