"""The speed of pretraining, on made-up text.

Our loop reads, masks, tracks and can be resumed; a bare PyTorch loop runs over batches that are prepared beforehand.
"""

from typing import Any

import numpy as np
import torch

from topicscope.bench.rows import Row, Say, Work, measured, medians
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
    loop.tracker.rows()

    def tracked() -> None:
        for step in range(50):
            loop.tracker.record(step, 0.0)
        loop.tracker.rows()

    track = medians({"": tracked}, max(3, rounds), device)[""] / 50
    return [
        Row(
            "pretraining step, 4 layers, 4 heads, 128, 32 rows of 64 tokens",
            "s per step",
            mine,
            plain,
            floor=plain["bare loop"],
            floor_is=f"the bare loop; ours makes {config.batch_size * config.length / mine:,.0f} tokens per second",
            aim="within 10% of the bare loop",
            met=mine <= 1.1 * plain["bare loop"],
        ),
        Row(
            "  of which tracking norms and rotation",
            "s per step",
            track,
            floor=mine,
            floor_is="the step",
            aim="at most 5% of the step",
            met=track <= 0.05 * mine,
        ),
    ]


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
