"""The speed of training: documents, one step, an ensemble, a whole run; each against the plain way and its floor.

Ours and the plain way take turns, and medians of CPU time are compared, so that a machine that slows down slows both.
A floor is work that cannot be left out, at the rate that this machine shows in this run: random numbers for documents,
multiply-adds of matrix products for steps.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from topicscope.bench.rows import Row, Say, matrix_rate, seconds
from topicscope.ground import one_thread
from topicscope.model import dense_loss
from topicscope.training import BLOCK, TOGETHER, Ensemble, RunConfig
from topicscope.world import Dirichlet

Device = Literal["cpu", "cuda"]


def bench_sandbox(device: Device = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    """All rows. `quick` takes few repetitions: to see that it works, not to quote."""
    rounds = 3 if quick else 21
    with one_thread():
        say("documents")
        rows = [documents_row(rounds)]
        rate = matrix_rate(device)
        config = dataclasses.replace(
            RunConfig(),
            steps=10**6,
            evaluate_every=None,
            device=device,
            data=dataclasses.replace(RunConfig().data, dev_documents=100),
        )
        say("one training step, dense pass, BertForMaskedLM")
        joint = step_row("joint step, one-hot embedding, batch 40", config, rate, rounds, against_bert=True)
        say("one training step, trained embedding")
        trained = dataclasses.replace(config, model=dataclasses.replace(config.model, embedding="trained"))
        rows += [joint, step_row("joint step, trained embedding, batch 40", trained, rate, rounds, against_bert=False)]
        say("ensemble of 32")
        rows.append(ensemble_row(config, rate, max(2, rounds // 3)))
        say("a whole run of 5,000 steps")
        rows += whole_run_rows(device, 200 if quick else 5000)
    return rows


def documents_row(rounds: int) -> Row:
    topic_model, prior, count = RunConfig().topic_model, Dirichlet(), 10_000
    loop_documents = 20
    tokens = 0

    def plain() -> None:
        """One token at a time, as the definition reads."""
        nonlocal tokens
        rng = np.random.default_rng(0)
        for _ in range(loop_documents):
            theta = rng.dirichlet(np.full(topic_model.topics, prior.alpha))
            words = []
            for _ in range(rng.integers(100, 151)):
                topic = rng.choice(topic_model.topics, p=theta)
                words.append(1 + topic * topic_model.words_per_topic + rng.integers(topic_model.words_per_topic))
            tokens += len(words)

    def randoms() -> None:
        rng = np.random.default_rng(0)
        rng.random(count * 125)
        rng.integers(1, 11, size=count * 125, dtype=np.int16)

    ours, loop, floor = [], [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: prior.sample(topic_model, count, np.random.default_rng(0))))
        tokens = 0
        spent = seconds(plain)
        loop.append(spent / tokens * count * 125)
        floor.append(seconds(randoms))
    median = statistics.median
    row = Row(
        "10,000 documents",
        "s",
        median(ours),
        {"token loop": median(loop)},
        floor=median(floor),
        floor_is="two random numbers per token",
        aim="500 times the loop",
    )
    row.met = row.times_faster["token loop"] >= 500
    return row


def step_flops(config: RunConfig, rows: float) -> float:
    """Operations of the matrix products that one joint step needs: forward, and twice that backward."""
    v = config.topic_model.vocabulary
    d = config.model.width(v)
    word_tables = 2 * d * v * v if config.model.embedding == "trained" else 0  # W_K Z, W_Q Z have d_a = d
    value = (d * d * v + v * d * v) if config.model.embedding == "trained" else 0
    return 3 * 2 * (word_tables + value + d * v * v + rows * v * v)


def step_row(name: str, config: RunConfig, rate: float, rounds: int, *, against_bert: bool) -> Row:
    ensemble = Ensemble([config])
    dense = dense_trainer(config, ensemble)
    bert = bert_trainer(config, ensemble) if against_bert else None
    ensemble.block(BLOCK, None)
    dense()
    times: dict[str, list[float]] = {"ours": [], "dense pass": [], "BertForMaskedLM": []}
    for _ in range(rounds):
        times["ours"].append(seconds(lambda: ensemble.block(BLOCK, None), config.device) / BLOCK)
        times["dense pass"].append(seconds(dense, config.device))
        if bert is not None:
            times["BertForMaskedLM"].append(seconds(bert, config.device))
    median = {key: statistics.median(value) for key, value in times.items() if value}
    rows = statistics.mean(len(batch.document) for batch in ensemble.data[0].block(0))
    flops = step_flops(config, rows)
    row = Row(
        name,
        "s per step",
        median.pop("ours"),
        median,
        floor=flops / rate,
        floor_is=f"{flops / 1e6:.0f} MFLOP at {rate / 1e9:.0f} GFLOP/s",
    )
    row.aim = "15 times the dense pass" + (", 30 times BertForMaskedLM" if bert is not None else "")
    row.met = row.times_faster["dense pass"] >= 15 and (bert is None or row.times_faster["BertForMaskedLM"] >= 30)
    return row


def dense_trainer(config: RunConfig, ensemble: Ensemble) -> Callable[[], None]:
    """A step of the dense pass with autograd and torch.optim.Adam."""
    parts = {name: part.clone().requires_grad_() for name, part in ensemble.weights.member(0).items()}
    optimiser = torch.optim.Adam(parts.values(), lr=config.optimizer.lr)
    words, shown, selected = masked_positions(config, ensemble)

    def step() -> None:
        optimiser.zero_grad()
        dense_loss(
            config.model, parts, config.objective, words, shown, selected, config.topic_model.vocabulary
        ).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def masked_positions(config: RunConfig, ensemble: Ensemble) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    data = ensemble.data[0]
    documents = data.train.finite().take(slice(config.batch_size))
    masked = config.masking.draw(documents, config.topic_model.words, np.random.default_rng(0))
    words = documents.words
    arrays = (words.astype(np.int64), masked.shown_words(words).astype(np.int64), masked.selected(words))
    words_, shown, selected = (torch.from_numpy(array).to(config.device) for array in arrays)
    return words_, shown, selected


def bert_trainer(config: RunConfig, ensemble: Ensemble) -> Callable[[], None] | None:
    """One layer, one head, the same width, trained as anyone would: labels -100 off the mask, AdamW."""
    try:
        from transformers import BertConfig, BertForMaskedLM
    except ImportError:
        return None
    v = config.topic_model.vocabulary
    shape = BertConfig(
        vocab_size=v,
        hidden_size=v,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=v,
        max_position_embeddings=150,
    )
    model = BertForMaskedLM(shape).to(config.device)  # type: ignore[no-untyped-call, arg-type]
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.optimizer.lr)
    words, shown, selected = masked_positions(config, ensemble)
    there = words >= 0
    labels = words.masked_fill(~selected, -100)

    def step() -> None:
        optimiser.zero_grad()
        model(input_ids=shown.clamp(min=0), attention_mask=there.long(), labels=labels).loss.backward()
        optimiser.step()

    step()
    return step


def ensemble_row(config: RunConfig, rate: float, rounds: int) -> Row:
    """32 models against one: CPU groups of them that fit the cache, a GPU all at once."""
    single = Ensemble([config])
    group = 32 if config.device == "cuda" else TOGETHER
    ensembles = [
        Ensemble([dataclasses.replace(config, seed=start + i) for i in range(group)]) for start in range(0, 32, group)
    ]
    for ensemble in (single, *ensembles):
        ensemble.block(BLOCK, None)
    ours, alone = [], []
    for _ in range(rounds):
        single.block(BLOCK, None)  # so that the single model finds its numbers in the cache, as it does alone
        alone += [seconds(lambda: single.block(BLOCK, None), config.device) / BLOCK for _ in range(4)]
        spent = [seconds(partial(ensemble.block, BLOCK, None), config.device) for ensemble in ensembles]
        ours.append(sum(spent) / BLOCK / 32)
    rows = statistics.mean(len(batch.document) for batch in single.data[0].block(0))
    flops = step_flops(config, rows)
    row = Row(
        "ensemble of 32, joint step, one-hot",
        "s a model-step",
        statistics.median(ours),
        {"one model": statistics.median(alone)},
        floor=flops / rate,
    )
    row.floor_is = f"{flops / 1e6:.0f} MFLOP at {rate / 1e9:.0f} GFLOP/s"
    row.aim = "at most .6 of one model's cost"
    row.met = row.ours <= 0.6 * row.plain["one model"]
    return row


def whole_run_rows(device: str, steps: int) -> list[Row]:
    """`topicscope train` in a process of its own: CPU seconds from start to end, and peak memory.

    Imports and floors are included.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "topicscope",
            "train",
            "--steps",
            str(steps),
            "--device",
            device,
            "--out",
            str(Path(folder) / "run"),
            "--json",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"'topicscope train' ended with {process.returncode}")
    result = json.loads(output)
    cpu = usage.ru_utime + usage.ru_stime
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    run = Row(
        f"whole run of {steps:,} steps (dev loss {result['dev_loss']:.3f})",
        "CPU s",
        cpu,
        aim="at most 10 CPU s",
        met=cpu <= 10,
    )
    memory = Row("peak memory of that run", "GB", peak, aim="under 1 GB", met=peak < 1)
    return [run, memory]
