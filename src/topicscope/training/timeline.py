"""When topic structure appears in the sandbox, against the true topics: in the embedding (or, with one-hot words, the value matrix) and in the attention."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError, files, load_settings, old_folders as folders
from topicscope.measure import Effect, PairSums, attention_pair_sums, embedding_effect, matrix_pair_sums
from topicscope.training.config import RunConfig, build_config
from topicscope.training.data import RunData
from topicscope.world import word_counts

DOCUMENTS = 1000
"""Dev documents whose attention is averaged."""


def word_scores(weights: Mapping[str, np.ndarray]) -> Float[np.ndarray, "V V"]:
    """Attention scores between words, query word in rows (eq 5)."""
    key, query = weights["key"].astype(float), weights["query"].astype(float)
    if "embedding" in weights:
        key, query = key @ weights["embedding"], query @ weights["embedding"]
    if "key_bias" in weights:
        key = key + weights["key_bias"][:, None]
    if "query_bias" in weights:
        query = query + weights["query_bias"][:, None]
    return query.T @ key / np.sqrt(len(key))


def sandbox_effects(
    config: RunConfig, snapshots: Mapping[int, Mapping[str, np.ndarray]], resamples: int = 1000, seed: int = 0
) -> dict[str, dict[int, Effect | None]]:
    """By measure and step: same topic against different topic, with intervals from a bootstrap over topics.

    'embedding' is the cosine of two words' embeddings; 'value' the entry of W_V, where words are one-hot; 'attention' the weight of a pair of positions.
    """
    topic = config.topic_model.topic_of_word
    counts = None
    first = next(iter(snapshots.values()))
    if "key" in first and "query" in first:
        words = RunData(config).dev.words
        if words is not None:
            counts = word_counts(words[:DOCUMENTS], config.topic_model.vocabulary).astype(float)
    found: dict[str, dict[int, Effect | None]] = {}
    for step, weights in sorted(snapshots.items()):
        sums: dict[str, PairSums] = {}
        if "embedding" in weights:
            vectors = weights["embedding"].astype(float)
            unit = vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)
            sums["embedding"] = matrix_pair_sums(unit.T @ unit, np.ones((len(topic), len(topic))), topic)
        elif "value" in weights and weights["value"].shape == (len(topic), len(topic)):
            sums["value"] = matrix_pair_sums(weights["value"].astype(float), np.ones((len(topic), len(topic))), topic)
        if counts is not None:
            sums["attention"] = attention_pair_sums(word_scores(weights), topic, counts)
        for name, table in sums.items():
            found.setdefault(name, {})[step] = embedding_effect([table], resamples, seed, None, matched=False)
    if not found:
        raise InputError("this run trains neither embedding, value matrix nor attention: there is nothing to follow")
    return found


def read_snapshots(folder: Path) -> tuple[RunConfig, dict[int, dict[str, np.ndarray]]]:
    """The weights that `train --snapshots` kept."""
    kept = sorted((folder / folders.SNAPSHOTS).glob("step-[0-9]*.safetensors"))
    if not (folder / folders.CONFIG).is_file() or not kept:
        raise InputError(f"{folder} has no snapshots; train with --snapshots log")
    config = build_config(load_settings(folder / folders.CONFIG))
    return config, {
        int(path.stem.removeprefix("step-")): files.read_tensors(path, "train again with --force") for path in kept
    }
