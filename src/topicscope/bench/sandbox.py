"""The speed of training: documents, one step, an ensemble, a whole run; each against the plain way and its floor.

Ours and the plain way take turns, and medians of CPU time are compared, so that a machine that slows down slows both.
A floor is work that cannot be left out, at the rate that this machine shows in this run: random numbers for documents,
multiply-adds of matrix products for steps.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from topicscope.bench.rows import Row, Say, Work, matrix_rate, measured, medians, peak_gigabytes, seconds
from topicscope.model import dense_loss
from topicscope.training import BLOCK, TOGETHER, Ensemble, RunConfig
from topicscope.world import Dirichlet


def bench_sandbox(device: str = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    """All rows. `quick` takes few repetitions: to see that it works, not to quote."""
    rounds = 3 if quick else 21
    config = RunConfig().changed({"steps": 10**6, "evaluate_every": None, "device": device, "data.dev_documents": 100})
    trained = config.changed({"model.embedding": "trained"})
    return measured(
        {
            "documents": lambda: [documents_row(rounds)],
            "one training step, dense pass, BertForMaskedLM": lambda: [
                step_row("joint step, one-hot embedding, batch 40", config, rounds, against_bert=True)
            ],
            "one training step, trained embedding": lambda: [
                step_row("joint step, trained embedding, batch 40", trained, rounds, against_bert=False)
            ],
            "ensemble of 32": lambda: [ensemble_row(config, max(2, rounds // 3))],
            "a whole run of 5,000 steps": lambda: whole_run_rows(device, 200 if quick else 5000),
        },
        say,
    )


def documents_row(rounds: int) -> Row:
    topic_model, prior, count = RunConfig().topic_model, Dirichlet(), 10_000

    def plain() -> int:
        """One token at a time, as the definition reads."""
        rng = np.random.default_rng(0)
        words = []
        for _ in range(20):
            theta = rng.dirichlet(np.full(topic_model.topics, prior.alpha))
            for _ in range(rng.integers(100, 151)):
                topic = rng.choice(topic_model.topics, p=theta)
                words.append(1 + topic * topic_model.words_per_topic + rng.integers(topic_model.words_per_topic))
        return len(words)

    def randoms() -> None:
        rng = np.random.default_rng(0)
        rng.random(count * 125)
        rng.integers(1, 11, size=count * 125, dtype=np.int16)

    works: dict[str, Work] = {
        "ours": lambda: prior.sample(topic_model, count, np.random.default_rng(0)),
        "token loop": plain,
        "randoms": randoms,
    }
    times = medians(works, rounds)
    loop = times["token loop"] / plain() * count * 125  # every round makes the same tokens
    return Row(
        "10,000 documents",
        "s",
        times["ours"],
        {"token loop": loop},
        floor=times["randoms"],
        floor_is="two random numbers per token",
        aim="500 times the loop",
        met=loop / times["ours"] >= 500,
    )


def step_floor(config: RunConfig, ensemble: Ensemble) -> tuple[float, str]:
    """Seconds for the matrix products that one joint step needs: forward, and twice that backward."""
    rows = statistics.mean(len(batch.document) for batch in ensemble.data[0].block(0))
    v = config.topic_model.vocabulary
    d = config.model.width(v)
    products = d * v * v + rows * v * v
    if config.model.embedding == "trained":
        products += 2 * d * v * v + d * d * v + v * d * v  # W_K Z, W_Q Z have d_a = d; then the value's
    flops, rate = 3 * 2 * products, matrix_rate(config.device)
    return flops / rate, f"{flops / 1e6:.0f} MFLOP at {rate / 1e9:.0f} GFLOP/s"


def step_row(name: str, config: RunConfig, rounds: int, *, against_bert: bool) -> Row:
    ensemble = Ensemble([config])
    works: dict[str, Work] = {
        "ours": partial(ensemble.block, BLOCK, None),
        "dense pass": dense_trainer(config, ensemble),
    }
    if against_bert and find_spec("transformers") is not None:
        works["BertForMaskedLM"] = bert_trainer(config, ensemble)
    for work in works.values():
        work()
    plain = medians(works, rounds, config.device)
    ours = plain.pop("ours") / BLOCK
    aims = {"dense pass": (15, "15 times the dense pass"), "BertForMaskedLM": (30, "30 times BertForMaskedLM")}
    return Row(
        name,
        "s per step",
        ours,
        plain,
        *step_floor(config, ensemble),
        aim=", ".join(aims[way][1] for way in plain),
        met=all(plain[way] / ours >= aims[way][0] for way in plain),
    )


def dense_trainer(config: RunConfig, ensemble: Ensemble) -> Work:
    """A step of the dense pass with autograd and torch.optim.Adam."""
    parts = {name: part.clone().requires_grad_() for name, part in ensemble.weights.member(0).items()}
    words, shown, selected = masked_positions(config, ensemble)
    vocabulary = config.topic_model.vocabulary
    loss = partial(dense_loss, config.model, parts, config.objective, words, shown, selected, vocabulary)
    return trainer(torch.optim.Adam(parts.values(), lr=config.optimizer.lr), loss)


def bert_trainer(config: RunConfig, ensemble: Ensemble) -> Work:
    """One layer, one head, the same width, trained as anyone would: labels -100 off the mask, AdamW."""
    from transformers import BertConfig, BertForMaskedLM

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
    words, shown, selected = masked_positions(config, ensemble)
    there, labels = words >= 0, words.masked_fill(~selected, -100)

    def loss() -> torch.Tensor:
        return model(input_ids=shown.clamp(min=0), attention_mask=there.long(), labels=labels).loss

    return trainer(torch.optim.AdamW(model.parameters(), lr=config.optimizer.lr), loss)


def trainer(optimiser: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> Work:
    def step() -> None:
        optimiser.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def masked_positions(config: RunConfig, ensemble: Ensemble) -> list[torch.Tensor]:
    """Words, what is shown of them, and which are selected."""
    documents = ensemble.data[0].train.finite().take(slice(config.batch_size))
    masked = config.masking.draw(documents, config.topic_model.words, np.random.default_rng(0))
    words = documents.words
    arrays = (words.astype(np.int64), masked.shown_words(words).astype(np.int64), masked.selected(words))
    return [torch.from_numpy(array).to(config.device) for array in arrays]


def ensemble_row(config: RunConfig, rounds: int) -> Row:
    """32 models against one: CPU groups of them that fit the cache, a GPU all at once."""
    single = Ensemble([config])
    group = 32 if config.device == "cuda" else TOGETHER
    ensembles = [Ensemble(config.with_seeds(32)[start : start + group]) for start in range(0, 32, group)]
    for ensemble in (single, *ensembles):
        ensemble.block(BLOCK, None)
    ours, alone = [], []
    for _ in range(rounds):
        single.block(BLOCK, None)  # so that the single model finds its numbers in the cache, as it does alone
        alone += [seconds(lambda: single.block(BLOCK, None), config.device) / BLOCK for _ in range(4)]
        spent = [seconds(partial(ensemble.block, BLOCK, None), config.device) for ensemble in ensembles]
        ours.append(sum(spent) / BLOCK / 32)
    mine, one = statistics.median(ours), statistics.median(alone)
    return Row(
        "ensemble of 32, joint step, one-hot",
        "s a model-step",
        mine,
        {"one model": one},
        *step_floor(config, single),
        aim="at most .6 of one model's cost",
        met=mine <= 0.6 * one,
    )


def whole_run_rows(device: str, steps: int) -> list[Row]:
    """`topicscope train` in a process of its own: CPU seconds from start to end, and peak memory.

    Imports and floors are included.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        options = ["--steps", str(steps), "--device", device, "--out", str(out), "--json"]
        command = [sys.executable, "-m", "topicscope", "train", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"'topicscope train' ended with {process.returncode}")
        loss = json.loads((out / "results.json").read_text())["dev_loss"]
    cpu, peak = usage.ru_utime + usage.ru_stime, peak_gigabytes(usage)
    return [
        Row(
            f"whole run of {steps:,} steps (dev loss {loss:.3f})",
            "CPU s",
            cpu,
            aim="at most 10 CPU s",
            met=cpu <= 10,
        ),
        Row("peak memory of that run", "GB", peak, aim="under 1 GB", met=peak < 1),
    ]
