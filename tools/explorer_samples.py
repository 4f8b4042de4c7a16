"""Folders as the explorer shows them, large ones, made in a hurry: for `explorer_speed.py`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.language import tiny
from tests.language.samples import THETA
from transformers import BertConfig, BertForMaskedLM

from tools.explorer_memory import write_metrics
from topicscope.ground import METRICS
from topicscope.language import ProbeConfig, probe
from topicscope.sweeps import build_grid, sweep
from topicscope.training import RunConfig, train

LIVE: dict[str, Any] = {
    "topic_model": {"topics": 10, "words_per_topic": 10},
    "documents": {"kind": "fixed", "topics_per_document": 3},
    "data": {"documents": 500, "dev_documents": 100},
    "floors": False,
    "steps": 6000,
    "snapshots": list(range(0, 6001, 100)),
    "device": "cpu",
}
"""A run that is watched: half a minute or so."""

TINY: dict[str, Any] = {
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "data": {"documents": 40, "dev_documents": 20},
    "batch_size": 5,
    "floors": False,
    "device": "cpu",
}


def long_run(folder: Path, steps: int = 100_000) -> int:
    """A small run whose metrics go on as those of a long one do: norms rise, the loss falls and jitters."""
    train(RunConfig.of({**TINY, "steps": 50}), folder)
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("steps: 50", f"steps: {steps}"))
    write_metrics(folder / METRICS, 0, steps + 1)
    return steps


def sweep_of_many_points(folder: Path) -> int:
    """1,000 points of a few steps each."""
    scales, rates = np.geomspace(1e-4, 1e-1, 20), np.geomspace(1e-3, 1e-1, 10)
    axes = {
        "model.init_scale": [float(f"{scale:.3g}") for scale in scales],
        "optimizer.lr": [float(f"{rate:.3g}") for rate in rates],
        "seed": {"seeds": 5},
    }
    grid = build_grid({"base": {**TINY, "steps": 60, "evaluate_every": None}, "axes": axes})
    return len(sweep(grid, folder, "serial").rows)


def probe_of_many_heads(home: Path, runs: Path) -> str:
    """A probe of a random model of 12 layers of 12 heads, with one document of 512 tokens to look at."""
    tokenizer = tiny.tokenizer("wordpiece", 512)
    shape = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=144,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=144,
        max_position_embeddings=512,
    )
    build: Any = BertForMaskedLM
    build(shape).save_pretrained(home / "model")
    tokenizer.save_pretrained(home / "model")
    rng, words = np.random.default_rng(0), np.array(tiny.WORDS).reshape(4, 6)
    texts = [" ".join(rng.choice(words[rng.choice(4, 2)].ravel(), 510)) for _ in range(40)]
    corpus = home / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    small: dict[str, Any] = {"topics": 4, "iterations": 40, "documents": 6, "windows": 1}
    small |= {"bootstrap": 20, "shuffles": 20}
    probe(
        ProbeConfig(str(home / "model"), str(corpus), **small, thresholds=[THETA], show_documents=1, device="cpu"),
        runs / "probe",
    )
    return "probe"
