"""The speed of probing: attention against a bare forward pass, embedding statistics, topic fitting; made-up text."""

import resource
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from topicscope.bench.rows import Row, Say, matrix_rate, measured, medians, peak_gigabytes, seconds
from topicscope.ground import silent
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
    coherence,
    fit_tomotopy,
    padded,
    tally_attention,
    top_pairs,
    unit,
)
from topicscope.measure import Membership, embedding_effect, frequency_bins, pair_sums, shuffled_means

TOPICS, LENGTH, WHOLE_WORDS = 100, 256, 65


def bench_language(device: str = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    return measured(
        {
            "attention pass": lambda: attention_rows(device, 24 if quick else 96, 1 if quick else 5),
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


def attention_rows(device: str, count: int, rounds: int) -> list[Row]:
    """A small BERT (4 layers, 4 heads, 256) on windows of 256 tokens, of which a quarter are whole words.

    Three thresholds, 100 shuffles.
    """
    import transformers

    vocabulary, rng = 16_000, np.random.default_rng(0)
    config = transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    build: Any = transformers.AutoModel.from_config
    model = build(config, attn_implementation="eager").to(device).eval()
    loaded = LoadedModel("bench", model, SimpleNamespace(pad_token_id=0), LENGTH)
    nested = drawn_assignment(vocabulary, THRESHOLDS[-1], rng)
    relations = []
    for t in THRESHOLDS:  # the words of a smaller threshold are among those of a larger one
        first = np.arange(len(nested.token)).reshape(TOPICS, -1)[:, : int(t * vocabulary)].ravel()
        words = assignment(nested.token[first], nested.frequency[first], None)
        relations.append(TopicRelation(words, vocabulary, 100, device=torch.device(device)))

    def window(document: int) -> Window:
        tokens, places = rng.integers(0, vocabulary, LENGTH), np.sort(rng.choice(LENGTH, WHOLE_WORDS, replace=False))
        tokens[places] = np.where(rng.random(WHOLE_WORDS) < 0.6, rng.choice(nested.token, WHOLE_WORDS), tokens[places])
        return Window(document, tokens, places)

    pieces = [window(i // 2) for i in range(count)]

    def bare() -> None:
        for chunk in chunks(pieces, CHUNK):
            for batch in batches(chunk):
                attention_of(loaded.model, *padded(batch, loaded))

    ours = partial(tally_attention, loaded, pieces, relations)
    ours()
    plain, mine = (time / count for time in medians({"plain": bare, "ours": ours}, rounds, device).values())
    row = Row(
        "attention pass, a window of 256 tokens",
        "s a window",
        mine,
        {"bare forward pass": plain},
        floor=plain,
        floor_is="the forward pass",
        aim="at most 1.15 of the forward pass",
        met=mine <= 1.15 * plain,
    )
    peaks = []
    for windows in (64, 256):  # two full batches, and four times as many
        tally_attention(loaded, (window(i // 2) for i in range(windows)), relations)
        peaks.append(peak_gigabytes(resource.getrusage(resource.RUSAGE_SELF)))
    name, grown = "more memory for four times the documents", peaks[1] - peaks[0]
    return [row, Row(name, "GB", max(grown, 0.0), aim="none (under .05)", met=grown < 0.05)]


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
        f"embedding statistics, 30,522 x 768, three thresholds, {shuffles:,} shuffles",
        "CPU s",
        mine,
        {"word-by-word matrices (one measured)": matrix},
        floor=flops / matrix_rate("cpu"),
        floor_is=f"{flops / 1e9:.0f} G additions at the matrix rate",
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
