"""A small pretraining run: made-up text of four topics, two layers."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from tests.language import tiny
from topicscope.ground import Progress
from topicscope.pretraining import PretrainConfig, PretrainResults, PretrainRun, stages_by_layer, train_tokenizer
from topicscope.pretraining.run import FIGURES

LENGTH = 24
FLAGS = [
    *("--layers", "2", "--heads", "2", "--dim", "16", "--length", "24"),
    *("--batch-size", "8", "--vocab-size", "120", "--device", "cpu"),
]
"""The options of a small run on the command line."""


@functools.cache
def texts(documents: int = 300) -> tuple[str, ...]:
    """Each of words of one topic, with some that all have."""
    rng = np.random.default_rng(0)
    groups = [tiny.WORDS[i : i + 6] for i in range(0, 24, 6)]
    common = ["the", "and", "of", "are", "un", "ly"]
    return tuple(
        " ".join(
            rng.choice(groups[int(rng.integers(4))]) if rng.random() < 0.7 else rng.choice(common)
            for _ in range(rng.integers(10, 60))
        )
        for _ in range(documents)
    )


@functools.cache
def tokenizer(kind: str = "wordpiece") -> Any:
    return train_tokenizer(list(texts()), kind, {"wordpiece": 120, "bpe": 330, "unigram": 60}[kind], LENGTH)


def config(corpus: str = "made-up", **settings: Any) -> PretrainConfig:
    model = {"layers": 2, "heads": 2, "dim": 16, "init_scale": 1e-3} | settings.pop("model", {})
    base: dict[str, Any] = {
        "steps": 60, "batch_size": 8, "length": LENGTH, "device": "cpu", "tokenizer": {"vocab_size": 120},
        "checkpoint_every": 20,
    }  # fmt: skip
    return PretrainConfig.of({"text": {"corpus": [corpus]}, "model": model}, **{**base, **settings})


def run_of(metrics: dict[str, np.ndarray], seed: int = 0) -> PretrainRun:
    """A finished run with these metrics; NaN for other figures of a step."""
    metrics = {name: np.full(len(metrics["loss"]), np.nan) for name in FIGURES if name not in metrics} | metrics
    losses = metrics["loss"][np.isfinite(metrics["loss"])]
    results = PretrainResults(
        status="done",
        seed=seed,
        steps=len(losses),
        first_loss=float(losses[0]),
        loss=float(losses[-50:].mean()),
        held_out_loss=None,
        gradient_norm=None,
        tokens=1000,
        epochs=0,
        parameters=100,
        vocabulary=120,
        layers=stages_by_layer(metrics),
    )
    return PretrainRun(config(seed=seed, held_out={"share": 0.0}), results, metrics)


def stop_at(step: int, error: BaseException) -> Progress:
    """Progress that raises the error once so many steps are done."""

    def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if phase == "pretraining" and done >= step:
            raise error

    return progress


def files(folder: Path) -> dict[str, bytes]:
    """Everything that a run is, but for when, where and by which command it ran."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in ("environment.json", "about.json")
    }
