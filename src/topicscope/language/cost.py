"""What topics, probes and timelines will take: memory, disk and seconds, from settings and the sizes of files.

No text is read and no weight is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from topicscope.ground import FLOPS, Cost, InputError, driving, parse_json, read_text
from topicscope.language.configs import ProbeConfig, TextConfig, TimelineConfig, TopicsConfig
from topicscope.language.corpora import Corpus
from topicscope.language.inputs import find_snapshots, model_place
from topicscope.language.probe_rows import (
    DOCUMENT_BYTES,
    DRAWS,
    HALVES,
    LENGTH,
    LOSS_TOKENS,
    MOST_DOCUMENTS,
    MOST_LOSSES,
    MOST_WORDS,
    PASSES,
    SPOTS,
    TREATMENTS,
    WORD_BYTES,
    ablated_documents,
)

PACKED = 4  # how much larger text is than its packed file
TEXT = 8  # bytes in memory of a byte of text that topics are fitted to: the text, its tokens, its words
SAMPLED = 3  # the same for text that is probed: the text, and its words where they are counted; windows are a stream
DOCUMENT = 20_000  # bytes of a document at most, on average
WORD = 15  # bytes of text per word that is counted, stop words left out
READ = 8e-7  # seconds for each byte of text whose words are counted
PIECE = 4  # bytes of text per token
SWEPT, SWEPT_TOPIC = 5e-8, 1.5e-9  # seconds for each token and sweep of a fit, and more for each topic
OTHER_BACKENDS = 2.5  # times as long as tomotopy
WORDS = 30_000  # different words, at most as many as the usual vocabularies have
TOKENS = 8192  # positions that go through a model together
CHUNK = 128  # windows whose sums are kept one by one; two chunks are in memory
SLAB = 2**14  # pairs of positions whose weights are summed together
FEW = 200  # resamples of single heads by pairs of word frequencies
RELATIONS, STRATA = 3, 25  # same word, same topic, different; pairs of word frequencies
RESAMPLED = 5e-5  # seconds for each resample of the embeddings' intervals
LOGITS = 2**26  # predictions of a batch
SHOWN = 8e6  # bytes on the disk of the documents that are shown: a file of their own, and the page
RIDGES, LABEL_RIDGES = 25, 5  # regressions of a layer: five folds, from the mean state and four single ones; of labels
ROW = 2000  # bytes of the row of a document: in memory, or in JSON, CSV and Parquet together
TOPIC_SHARE = 0.2  # of the positions of a window that show a word of some topic


@dataclass(frozen=True)
class ModelSize:
    """What its folder says of a model; of one on the hub, the sizes of bert-base."""

    bytes: float = 4.4e8
    layers: int = 12
    heads: int = 12
    window: int = 512
    dim: int = 768
    vocabulary: int = WORDS


def size_of(name: str) -> ModelSize:
    """From the sizes of the weight files and from config.json."""
    try:
        place = model_place(name)
        folder = Path(place.name)
        if not place.local:
            return ModelSize()
        config: Any = parse_json(read_text(folder / "config.json", "the config", 2**24), "config.json")
        weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    except (InputError, OSError):
        return ModelSize()
    usual = ModelSize(bytes=weights or ModelSize.bytes)
    if not isinstance(config, dict):
        return usual
    named = {
        "layers": ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers"),
        "heads": ("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads"),
        "window": ("max_position_embeddings", "n_positions"),
        "vocabulary": ("vocab_size",),
        "dim": ("hidden_size", "d_model", "n_embd", "dim"),
    }
    found = {part: next((config[n] for n in names if _counts(config.get(n))), None) for part, names in named.items()}
    return replace(usual, **{part: value for part, value in found.items() if value is not None})


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10**6


def text_bytes(config: TextConfig, documents: int | None) -> float:
    """Of the documents that are held in memory: a sample of the corpus, or all of it."""
    total = 0.0
    for file in Corpus(config.corpus, config.text_field, config.split_text).files:  # type: ignore[attr-defined]
        path = Path(file)
        packed = path.suffix in (".gz", ".bz2", ".xz", ".zst", ".zip", ".parquet")
        total += path.stat().st_size * (PACKED if packed else 1) if path.is_file() else 1e10  # unknown: of the hub
    return total if documents is None else min(total, documents * DOCUMENT)


def fit_cost(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Cost:
    """Fits of topics: words by topics, documents by topics, and a step for every word and sweep.

    A command fits every number of topics, and each of them twice where stability is asked for.
    """
    if isinstance(config, TopicsConfig):
        counts = list(config.topics)
        times = (2.0 if config.stability else 1.0) * (1.0 if config.backend == "tomotopy" else OTHER_BACKENDS)
    else:
        counts, times = [config.topics], 1.0
    text = text_bytes(config, config.max_documents)
    documents = min(config.max_documents or 10**9, max(1, int(text / 100)))
    tables = 8 * max(counts) * (4 * WORDS + 4 * documents)
    kept = 8 * (sum(counts) + (max(counts) if len(counts) > 1 else 0)) * (WORDS + documents)
    sweep = sum(SWEPT + SWEPT_TOPIC * topics for topics in counts) * text / WORD
    in_memory = tables + (kept if len(counts) > 1 else 0)
    return Cost(TEXT * text + in_memory, kept, READ * text + times * config.iterations * sweep)


def pass_cost(
    config: ProbeConfig | TimelineConfig, model: ModelSize, *, assignments: int, shuffles: int, share: float
) -> Cost:
    """One model over the sampled documents. `share`: of the vocabulary, the words of a topic."""
    text = text_bytes(config, config.documents)
    per_document = config.windows or 10**9
    windows = min(text / PIECE / model.window + config.documents, float(config.documents * per_document))
    longest = min(float(model.window), max(1.0, text / PIECE))  # no window is longer than all of the text
    together = min(max(longest, TOKENS), max(1.0, text / PIECE))
    heads = model.layers * model.heads
    of_attention = config.attention_shuffles if isinstance(config, ProbeConfig) else 0
    maps = 2 * 4 * heads * together * longest
    hidden = 4 * 8 * model.dim * together
    resampled = 8 * config.bootstrap * (RELATIONS * heads + 2 * RELATIONS * STRATA + 128) * (assignments + 1)
    pairs = (TOPIC_SHARE * model.window) ** 2
    tallied = 8 * CHUNK * RELATIONS * STRATA * heads * (assignments + 1) + 4 * SLAB * (2 * heads + RELATIONS * STRATA)
    in_flight = 2 * CHUNK * 16 * model.window
    words = min(float(model.vocabulary), config.topics * max(1.0, share * model.vocabulary))
    shuffled = of_attention * (assignments * (10 * words + 32 * heads) + 5 * SLAB)
    if of_attention:  # by pair of frequencies, for every head
        resampled += 2 * 8 * min(FEW, config.bootstrap) * RELATIONS * STRATA * heads * assignments
    cooccurring = 16 * config.bootstrap * min(1e6, (share * model.vocabulary) ** 2 / 2)
    memory = maps + hidden + resampled + tallied + in_flight + shuffled + cooccurring + SAMPLED * text
    tokens = windows * model.window
    arithmetic = tokens * (model.bytes / 2 + 4 * model.layers * model.window * model.dim)
    drawn = assignments * (4 * shuffles * words * model.dim * 4 + windows * of_attention * pairs * (4 + 2 * heads))
    bootstrap = assignments * config.bootstrap * windows * heads * RELATIONS * 4
    resamples = RESAMPLED * assignments * config.bootstrap
    return Cost(memory, 0.0, (arithmetic + drawn + bootstrap) / FLOPS + resamples)


def state_cost(config: ProbeConfig, model: ModelSize, *, assignments: int, share: float) -> Cost:
    """What hidden states add to a pass: sums by word, states by document, ridge regressions, shuffles."""
    numbers = (model.layers + 1) * model.dim
    words = min(float(MOST_WORDS), config.topics * max(1.0, share * model.vocabulary))
    documents = float(min(config.documents, MOST_DOCUMENTS))
    # float64 of all windows, and float32 of a chunk that is summed and of one that is added
    by_word = 2 * min(float(WORD_BYTES), 8 * HALVES * len(TREATMENTS) * words * numbers)
    by_document = 2 * min(float(DOCUMENT_BYTES), (8 + 4 * SPOTS) * documents * numbers)
    memory = by_word + by_document + 4 * numbers * TOKENS + 16 * config.bootstrap * documents
    products = HALVES * len(TREATMENTS) * assignments * config.attention_shuffles * words * numbers
    ridges = RIDGES + (LABEL_RIDGES if config.label_field is not None else 0)
    regressions = ridges * (model.layers + 1) * (10 * documents**3 + 100 * documents**2 * config.topics)
    resampled = RESAMPLED * assignments * config.bootstrap * (model.layers + 1)
    return Cost(memory, 0.0, (4 * products + regressions) / FLOPS + resampled)


def ablation_cost(config: ProbeConfig, model: ModelSize) -> Cost:
    """Passes over the start of some documents, by the model once more, with its output head."""
    tokens = float(PASSES * ablated_documents(config.documents) * min(LENGTH, model.window))
    together = min(float(LOGITS), tokens / PASSES * model.vocabulary)
    resampled = 3 * 8 * config.bootstrap * (ablated_documents(config.documents) + DRAWS)
    return Cost(model.bytes + 3 * 4 * together + resampled, 0.0, tokens * model.bytes / 2 / FLOPS)


def document_cost(config: ProbeConfig, model: ModelSize) -> Cost:
    """Losses of the first documents, by the model once more with its output head; and a row for every document."""
    tokens = float(min(config.documents, MOST_LOSSES) * min(LOSS_TOKENS, model.window))
    text = text_bytes(config, config.documents)
    together = min(float(LOGITS), min(tokens, text / PIECE) * model.vocabulary)
    rows = float(ROW * config.documents)
    return Cost(model.bytes + 3 * 4 * together + rows, rows, tokens * model.bytes / 2 / FLOPS)


def cost_of(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Cost:
    """What a fit, a probe or a timeline will take, from settings and sizes of files alone."""
    if isinstance(config, TopicsConfig):
        return fit_cost(config)
    fit = Cost() if config.topics_from is not None else fit_cost(config)
    if config.label_field is not None:  # words are counted, and nothing is fitted
        text = text_bytes(config, config.max_documents)
        fit = Cost(TEXT * text, 0.0, READ * text)
    if isinstance(config, TimelineConfig):
        models = [size_of(name) for _, name in find_snapshots(config.snapshots)]
        passes = [pass_cost(config, m, assignments=1, shuffles=0, share=config.threshold) for m in models]
        held = max(model.bytes for model in models)
    else:
        models = [size_of(name) for name in config.models]
        count, share = len(config.thresholds) * len(config.topics_per_word), max(config.thresholds)
        one = [pass_cost(config, m, assignments=count, shuffles=config.shuffles, share=share) for m in models]
        if config.states:  # in memory beside what the pass takes
            more = [state_cost(config, m, assignments=count, share=share) for m in models]
            one = [Cost(a.memory + b.memory, a.disk, a.seconds + b.seconds) for a, b in zip(one, more, strict=True)]
        passes = one * (2 if config.random else 1)
        if config.ablation and config.shuffles:  # without shuffles no head is topical
            passes += [ablation_cost(config, model) for model in models]
        passes += [document_cost(config, model) for model in models]
        # all are loaded before the first is probed; the random ones of a model come beside it
        held = sum(model.bytes for model in models) + (6 if config.random else 0) * max(m.bytes for m in models)
        passes.append(Cost(disk=SHOWN * len(models) if config.show_documents else 0.0))
    return added(fit, passes, held)


def added(fit: Cost, passes: Sequence[Cost], held: float) -> Cost:
    whole = Cost(seconds=5.0)  # the libraries
    for one in (fit, *passes):
        whole += one
    return Cost(whole.memory + held, whole.disk + 5e6, whole.seconds)


def settings_that_cost(config: TopicsConfig | ProbeConfig | TimelineConfig) -> str:
    """The settings that drive the estimate, as a text for error messages."""
    names = ("corpus", "models", "tokenizer", "snapshots", "topics_from")  # what is measured stays
    given = {name: getattr(config, name) for name in names if getattr(config, name, None) is not None}
    text = driving(config, type(config).of(given), cost_of)
    return "corpus, models" if text == "sizes" else text
