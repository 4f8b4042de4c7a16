"""A small pretraining run: made-up text of four topics, two layers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tests.language import tiny
from topicscope.pretraining import PretrainConfig, build_config, train_tokenizer

LENGTH = 24


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
        "steps": 60,
        "batch_size": 8,
        "length": LENGTH,
        "device": "cpu",
        "tokenizer": {"vocab_size": 120},
        "save_every": 20,
    }
    return build_config({"text": {"corpus": [corpus]}, "model": model, **base, **settings})
