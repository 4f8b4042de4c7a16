"""The speed of probing: attention against a bare forward pass, embedding statistics, topic fitting; made-up text."""

import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tools.bench.rows import Row, Say, matrix_rate, measured, medians, peak_gigabytes, seconds
from topicscope.ground import repeatable, silent
from topicscope.language import (
    CHUNK,
    PAIRS,
    THRESHOLDS,
    Assignment,
    LoadedModel,
    TopicRelation,
    Window,
    attention_of,
    batches,
    best,
    chunks,
    fit_tomotopy,
    padded,
    tally_attention,
    top_pairs,
    unit,
)
from topicscope.measure import Membership, coherence, embedding_effect, frequency_bins, pair_sums, shuffled_means

TOPICS = 100


def bench_language(device: str = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    return measured(
        {
            "attention pass": lambda: attention_rows(device, quick=quick),
            "embedding statistics": lambda: [embedding_row(50 if quick else 1000)],
            "topic fitting": lambda: [topics_row(100 if quick else 2500, 10 if quick else 120)],
        },
        say,
    )


def assignment(token: np.ndarray, frequency: np.ndarray, threshold: float | None) -> Assignment:
    """The words in topics of equal size, no word in two."""
    count, topic = len(token), np.repeat(np.arange(TOPICS), len(token) // TOPICS)
    return Assignment(
        token=token,
        words=("",) * count,
        frequency=frequency,
        membership=Membership(np.arange(count), topic, count, TOPICS),
        threshold=threshold,
        topics_per_word="one",
        names=("",) * TOPICS,
    )


def drawn_assignment(vocabulary: int, threshold: float, rng: np.random.Generator) -> Assignment:
    """`threshold * V` words for each topic."""
    token = rng.permutation(vocabulary)[: TOPICS * int(threshold * vocabulary)]
    return assignment(token, rng.pareto(1, len(token)), threshold)


@dataclass(frozen=True)
class Shape:
    """A BERT and its windows. `aims`: how long the attention pass may take on a device, in forward passes."""

    vocabulary: int
    layers: int
    heads: int
    dim: int
    length: int
    aims: dict[str, float]


SMALL = Shape(16_000, 4, 4, 256, 256, {"cpu": 1.1, "cuda": 3.0})
BASE = Shape(30_522, 12, 12, 768, 512, {"cpu": 1.1, "cuda": 1.5})


class AttentionBench:
    """A model with random weights, topics at three thresholds, 100 shuffles.

    A quarter of the positions of a window are whole words.
    """

    def __init__(self, shape: Shape, device: str) -> None:
        import transformers

        self.shape, self.device, self.rng = shape, device, np.random.default_rng(0)
        config = transformers.BertConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.dim,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.dim,
        )
        build: Any = transformers.AutoModel.from_config
        model = build(config, attn_implementation="eager").to(device).eval()
        self.loaded = LoadedModel("bench", model, SimpleNamespace(pad_token_id=0), shape.length)
        self.nested = nested = drawn_assignment(shape.vocabulary, THRESHOLDS[-1], self.rng)
        self.relations = []
        for t in THRESHOLDS:  # the words of a smaller threshold are among those of a larger one
            first = np.arange(len(nested.token)).reshape(TOPICS, -1)[:, : int(t * shape.vocabulary)].ravel()
            words = assignment(nested.token[first], nested.frequency[first], None)
            self.relations.append(TopicRelation(words, shape.vocabulary, 100, device=torch.device(device)))

    def windows(self, count: int) -> Iterator[Window]:
        rng, length, whole = self.rng, self.shape.length, self.shape.length // 4
        for number in range(count):
            tokens, places = rng.integers(0, self.shape.vocabulary, length), np.sort(rng.permutation(length)[:whole])
            in_topics = rng.random(whole) < 0.6
            tokens[places] = np.where(in_topics, rng.choice(self.nested.token, whole), tokens[places])
            yield Window(number // 2, tokens, places)

    def forward(self, pieces: Iterable[Window]) -> None:
        for chunk in chunks(pieces, CHUNK):
            for batch in batches(chunk):
                attention_of(self.loaded.model, *padded(batch, self.loaded))

    def tally(self, pieces: Iterable[Window]) -> None:
        tally_attention(self.loaded, pieces, self.relations)

    def row(self, count: int, rounds: int) -> Row:
        shape, pieces = self.shape, list(self.windows(count))
        works = {"plain": lambda: self.forward(pieces), "ours": lambda: self.tally(pieces)}
        with repeatable():  # as a probe runs
            self.tally(pieces)
            plain, mine = (time / count for time in medians(works, rounds, self.device).values())
        read, most = shape.layers * shape.heads * shape.length**2 * 4, shape.aims[self.device]
        return Row(
            f"attention pass, {shape.layers} layers of width {shape.dim}, windows of {shape.length} tokens",
            "s per window",
            mine,
            {"bare forward pass": plain},
            floor=plain,
            floor_is=f"the forward pass; {read / 1e6:.0f} MB of attention per window are read once",
            aim=f"at most {most} times the forward pass",
            met=mine <= most * plain,
        )


def attention_rows(device: str, *, quick: bool) -> list[Row]:
    rows = [AttentionBench(SMALL, device).row(24 if quick else 96, 1 if quick else 5)]
    peaks, short = [], AttentionBench(replace(SMALL, length=64), device)
    for count in (2 * CHUNK, 8 * CHUNK):
        short.tally(short.windows(count))
        peaks.append(peak_gigabytes(resource.getrusage(resource.RUSAGE_SELF)))
    name, grown = "additional memory for four times the documents", peaks[1] - peaks[0]
    base = AttentionBench(BASE, device)
    rows.append(base.row(1 if quick else 256 if device == "cuda" else 4, 1 if quick else 3))
    return [*rows, Row(name, "GB", max(grown, 0.0), aim="none (under .05 GB)", met=grown < 0.05)]


def embedding_row(shuffles: int) -> Row:
    """Cosine and dot product of 30,522 x 768 at three thresholds.

    Exact means, bootstrap, matched frequencies, shuffled topics.
    """
    rng = np.random.default_rng(1)
    table = rng.normal(size=(30_522, 768)).astype(np.float32)
    assignments = [drawn_assignment(len(table), threshold, rng) for threshold in THRESHOLDS]

    def ours() -> None:
        for a in assignments:
            raw = table[a.token].astype(float)
            for u in (unit(raw), raw):
                null = shuffled_means(u, a.membership, shuffles, 0)
                sums = pair_sums(u, a.membership, frequency_bins(a.frequency))
                embedding_effect([sums], resamples=1000, seed=0, null=null, matched=True)

    def plain() -> None:
        """One evaluation for the largest threshold with a matrix of words by words."""
        a = assignments[-1]
        u = torch.from_numpy(unit(table[a.token].astype(float))).float()
        same = torch.from_numpy(a.membership.topic[:, None] == a.membership.topic)
        gram = u @ u.T
        (gram[same].sum(), gram[~same].sum())

    each = sum(len(a.token) ** 2 for a in assignments) / len(assignments[-1].token) ** 2
    mine, matrix = seconds(ours), seconds(plain) * each * 2 * (1 + shuffles)
    flops = 2 * 2 * shuffles * sum(len(a.token) for a in assignments) * table.shape[1] / 2
    return Row(
        f"embedding statistics, 30,522 words of width 768, three thresholds, {shuffles:,} shuffles",
        "CPU s",
        mine,
        {"word-by-word matrices (one measured, the rest estimated)": matrix},
        floor=flops / matrix_rate("cpu"),
        floor_is=f"{flops / 1e9:.0f} billion additions at the rate of matrix products",
        aim="under 10 CPU s",
        met=mine < 10,
    )


def topics_row(documents: int, iterations: int) -> Row:
    """100 topics on as many words as 2,500 articles have, drawn from 100 topics; tokenising (some 25 s) not counted."""
    rng, words = np.random.default_rng(2), 9000
    law = 1 / np.arange(1, words + 1)
    shares = rng.dirichlet(np.full(TOPICS, 0.05), documents)
    orders = np.stack([rng.permutation(words) for _ in range(TOPICS)])
    texts = [orders[rng.choice(TOPICS, 960, p=share), rng.choice(words, 960, p=law / law.sum())] for share in shares]

    def ours() -> None:
        probability, _, _ = fit_tomotopy(texts, words, TOPICS, iterations, 0, silent)
        coherence(texts, [best(row, 10) for row in probability])
        top_pairs(texts, words, PAIRS)

    mine, name = seconds(ours), f"fitting 100 topics to {documents:,} articles, {iterations} sweeps"
    return Row(name, "CPU s", mine, aim="under 90 CPU s", met=mine < 90)
