"""What topics, probes and timelines will take: memory, disk and seconds, from settings and the sizes of files.

No text is read and no weight is loaded.
"""

from dataclasses import dataclass
from pathlib import Path

from topicscope.ground import FLOPS, Cost, InputError, driving, parse_json, read_text
from topicscope.language.configs import ProbeConfig, TimelineConfig, TopicsConfig
from topicscope.language.inputs import corpus_of, model_place, models_of
from topicscope.language.probe_rows import (
    DOCUMENT_BYTES,
    LENGTH,
    LOSS_TOKENS,
    MOST_DOCUMENTS,
    MOST_LOSSES,
    MOST_WORDS,
    PASSES,
    SPOTS,
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
RELATIONS, STRATA = 3, 25  # same word, same topic, different; pairs of word frequencies
RESAMPLED = 5e-5  # seconds for each resample of the embeddings' intervals
LOGITS = 2**26  # predictions of a batch
SHOWN = 8e6  # bytes on the disk of the documents that are shown: a file of their own, and the page
RIDGES = 30  # regressions of a layer: five folds, from the mean state, four single ones and for labels
ROW = 2000  # bytes of the row of a document: in memory, or in JSON, CSV and Parquet together
TOPIC_SHARE = 0.2  # of the positions of a window that show a word of some topic


@dataclass(frozen=True)
class ModelSize:
    """The sizes of a model; those of bert-base if it is on the hub."""

    bytes: float = 4.4e8
    layers: int = 12
    heads: int = 12
    window: int = 512
    dim: int = 768
    vocabulary: int = WORDS


NAMES = {  # of the sizes, in the configs of libraries
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads"),
    "window": ("max_position_embeddings", "n_positions"),
    "vocabulary": ("vocab_size",),
    "dim": ("hidden_size", "d_model", "n_embd", "dim"),
}


def size_of(name: str) -> ModelSize:
    try:
        place = model_place(name)
        file = Path(place.name, "config.json")
        config = parse_json(read_text(file, "the config", 2**24), "config.json") if place.local else {}
        weights = sum(part.stat().st_size for part in file.parent.glob("*.safetensors")) if place.local else 0
    except (InputError, OSError):
        return ModelSize()
    settings = config.items() if isinstance(config, dict) else ()
    known = {key: value for key, value in settings if type(value) is int and 0 < value <= 10**6}
    sizes = {part: [known[key] for key in keys if key in known] for part, keys in NAMES.items()}
    return ModelSize(weights or ModelSize.bytes, **{part: found[0] for part, found in sizes.items() if found})


def text_bytes(config: TopicsConfig | ProbeConfig | TimelineConfig, documents: int | None) -> float:
    total = sum(
        path.stat().st_size * (PACKED if path.suffix in (".gz", ".bz2", ".xz", ".zst", ".zip", ".parquet") else 1.0)
        if path.is_file()
        else 1e10  # unknown: of the hub
        for path in map(Path, corpus_of(config).files)
    )
    return total if documents is None else min(total, documents * DOCUMENT)


def fit_cost(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Cost:
    counts, times = [config.topics] if isinstance(config.topics, int) else list(config.topics), 1.0
    if isinstance(config, TopicsConfig):
        times = (2.0 if config.stability else 1.0) * (1.0 if config.backend == "tomotopy" else OTHER_BACKENDS)
    text, topics = text_bytes(config, config.max_documents), sum(counts)
    table = 8 * topics * (WORDS + min(config.max_documents or 10**9, max(1, int(text / 100))))
    sweep = (SWEPT * len(counts) + SWEPT_TOPIC * topics) * text / WORD
    return Cost(TEXT * text + 4 * table, 2 * table, READ * text + times * config.iterations * sweep)


def pass_cost(config: ProbeConfig | TimelineConfig, model: ModelSize) -> Cost:
    probed = config if isinstance(config, ProbeConfig) else None
    thresholds = config.thresholds if isinstance(config, ProbeConfig) else [config.threshold]
    assignments = len(thresholds) * (len(probed.topics_per_word) if probed else 1)
    documents, heads, numbers = config.documents, model.layers * model.heads, (model.layers + 1) * model.dim
    words = min(float(model.vocabulary), config.topics * max(1.0, max(thresholds) * model.vocabulary))
    text = text_bytes(config, documents)
    pieces = max(1.0, text / PIECE)
    windows = min(pieces / model.window + documents, float(documents * (config.windows or 10**9)))
    longest = min(float(model.window), pieces)
    tokens = windows * model.window
    memory = (
        SAMPLED * text
        + min(max(longest, TOKENS), pieces) * (8 * heads * longest + 32 * model.dim)
        + 8 * (assignments + 1) * (config.bootstrap + CHUNK) * (RELATIONS * heads + 2 * RELATIONS * STRATA)
        + 16 * config.bootstrap * min(1e6, (max(thresholds) * model.vocabulary) ** 2 / 2)
    )
    work = assignments * config.bootstrap * windows * heads * RELATIONS * 4
    seconds = RESAMPLED * assignments * config.bootstrap
    if probed:
        shuffles = assignments * probed.attention_shuffles
        memory += shuffles * (10 * words + 32 * heads) + ROW * documents
        work += 16 * assignments * probed.shuffles * words * model.dim + shuffles * windows * (
            TOPIC_SHARE * model.window
        ) ** 2 * (4 + 2 * heads)
        tokens += LOSS_TOKENS * min(documents, MOST_LOSSES)
    if probed and probed.ablation and probed.shuffles:  # without shuffles no head is topical
        tokens += PASSES * LENGTH * ablated_documents(documents)
    if probed and probed.states:
        some = min(documents, MOST_DOCUMENTS)
        memory += (
            2 * min(float(WORD_BYTES), 48 * min(words, float(MOST_WORDS)) * numbers)
            + 2 * min(float(DOCUMENT_BYTES), (8 + 4 * SPOTS) * some * numbers)
            + 16 * config.bootstrap * some
        )
        work += RIDGES * (model.layers + 1) * (10 * some**3 + 100 * some**2 * config.topics)
        seconds += RESAMPLED * assignments * config.bootstrap * (model.layers + 1)
    if probed:  # losses come after the pass, by the model once more with its output head
        memory = max(memory, model.bytes + 12 * min(float(LOGITS), pieces * model.vocabulary))
    seconds += (work + tokens * (model.bytes / 2 + 4 * model.layers * model.window * model.dim)) / FLOPS
    if probed and probed.random:  # read again with random weights, of which several are in memory
        memory, seconds = memory + 6 * model.bytes, 2 * seconds
    return Cost(memory, ROW * documents if probed else 0.0, seconds)


def cost_of(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Cost:
    if isinstance(config, TopicsConfig):
        return fit_cost(config)
    fit = Cost() if config.topics_from is not None else fit_cost(config)
    if config.label_field is not None:  # words are counted, and nothing is fitted
        text = text_bytes(config, config.max_documents)
        fit = Cost(TEXT * text, 0.0, READ * text)
    models = [size_of(name) for name in models_of(config)]
    # a probe loads all models before it measures the first
    held = sum(model.bytes for model in models) if isinstance(config, ProbeConfig) else max(m.bytes for m in models)
    documents = len(models) if isinstance(config, ProbeConfig) and config.show_documents else 0
    libraries = Cost(disk=5e6 + SHOWN * documents, seconds=5.0)  # which take some seconds
    whole = sum((pass_cost(config, model) for model in models), libraries + fit)
    return Cost(whole.memory + held, whole.disk, whole.seconds)


def settings_that_cost(config: TopicsConfig | ProbeConfig | TimelineConfig) -> str:
    names = ("corpus", "models", "tokenizer", "snapshots", "topics_from")  # what is measured stays
    given = {name: getattr(config, name) for name in names if getattr(config, name, None) is not None}
    text = driving(config, type(config).of(given), cost_of)
    return "corpus, models" if text == "sizes" else text
