"""What a config names (models, snapshots, corpora, topics, stop words), and what it will take: memory, disk, seconds.

Both are checked before PyTorch and transformers are loaded and before an engine is started.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open

from topicscope.ground import (
    FLOPS,
    Cost,
    InputError,
    checked_file,
    driving,
    file_digest,
    one_line,
    parse_json,
    read_bytes,
    read_text,
    refuse,
    refuse_if,
    require,
    shown,
)
from topicscope.language.assignment import read_topics
from topicscope.language.configs import QUICK_FIT, THRESHOLDS, ProbeConfig, TimelineConfig, TopicsConfig, WordsConfig
from topicscope.language.corpora import Corpus
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
from topicscope.language.vocabulary import TOKENS, read_stop_words

# NAME, OWNER/NAME, or either with @REVISION: a branch, a tag or a commit
HUB_ID = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(/[\w.-]+)?)(@(?P<revision>[\w.-]+))?")
STEP = re.compile(r"(?:step|checkpoint|global_step|iter)[-_]?(\d+)", re.IGNORECASE)  # snapshots are named by it
SEAL = "digests.json"  # digests of the other files of a folder that `topicscope pretrain` wrote
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER = ("tokenizer*.json", "vocab.*", "*.model", "*.spm")  # one of these is in every folder with whole words
PUBLISHED = (
    *("config.json", "generation_config.json", "model*.safetensors", INDEX, SEAL, "README.md"),
    *(*TOKENIZER, "special_tokens_map.json", "added_tokens.json", "merges.txt", "*.jinja"),
)
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5")
WEIGHTS_ENDING = ".safetensors"
READ = (".json", ".txt", ".model", ".spm", ".jinja", WEIGHTS_ENDING)  # endings of files that the library may open
MOST = 2**28  # bytes of a file that the library reads whole; the tokenizer of a large model has 2**25
OBJECTS = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json"),
    *(CONFIG, INDEX),
)
COUNTED = re.compile(r"^(num|n)_.*(layer|head|group|expert|block)s?$|layers$|heads$|depth$")  # built one by one
POSITIONS = re.compile(r"position|n_ctx|seq_?len|max_.*length")


@contextmanager
def readable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{shown(str(error.filename)):.200} cannot be read: {one_line(error)}") from None


@readable()
def check_plain_files(folder: Path) -> None:
    """Refuse what a library would wait for, read without end, or build without end."""
    for entry in sorted(folder.iterdir()):
        ending = entry.suffix.lower()
        if ending in READ or not entry.is_dir():
            checked_file(entry, "the file", MOST if ending in READ and ending != WEIGHTS_ENDING else 2**62)
        if entry.name in OBJECTS:
            content = parse_json(read_bytes(entry), shown(entry), finite=False, narrow=False)
            refuse_if(
                not isinstance(content, dict),
                f"{shown(entry)} holds a {type(content).__name__}; expected keys and values",
            )
    sealed = parse_json(read_bytes(folder / SEAL), shown(folder / SEAL)) if (folder / SEAL).exists() else {}
    for name, digest in sealed.items() if isinstance(sealed, dict) else [(SEAL, "")]:
        if file_digest(checked_file(folder / Path(name).name, "the file", 2**62)) != digest:
            raise InputError(
                f"{shown(folder / name)} is damaged: it is not what topicscope wrote; train again, or remove {SEAL} to "
                "use it as it is"
            )


def read_model_files(folder: Path) -> tuple[Mapping[str, object], int]:
    names = [name for name in (WEIGHTS, INDEX) if (folder / name).exists()]
    pickles = [path.name for pattern in PICKLES for path in folder.glob(pattern)]
    refuse(
        (not (folder / CONFIG).exists(), f"{shown(folder)} is not a model folder: it has no {CONFIG}"),
        (
            not names and pickles,
            f"{shown(folder)} has its weights only as {pickles[0] if pickles else ''}, a format that can run code when "
            "opened; convert it to safetensors first",
        ),
        (not names, f"{shown(folder)} has no weights ({WEIGHTS})"),
    )
    check_plain_files(folder)
    config = parse_json(read_bytes(folder / CONFIG), shown(folder / CONFIG), finite=False, narrow=False)
    refuse_if(
        config.get("transformers_weights") is not None,  # which would not be checked here
        f"{shown(folder / CONFIG)} names its own weights file; name it {WEIGHTS}",
    )
    numbers = sum(_numbers(folder / part) for part in ([WEIGHTS] if names[0] == WEIGHTS else _parts(folder)))
    # by these the library would build far more than the weights fill; published models have at most a thousand layers
    refuse(
        *(
            (
                pattern.search(name) and value > most,
                f"{shown(folder / CONFIG)}: {name} = {value}; a model with these weights has at most {most}",
            )
            for name, value in _whole_numbers(config)
            for pattern, most in ((COUNTED, 1000), (POSITIONS, 100_000 + numbers))
        )
    )
    return config, numbers


def published_files(folder: Path) -> list[Path]:
    return sorted({file for pattern in PUBLISHED for file in folder.glob(pattern) if file.is_file()})


def _parts(folder: Path) -> list[str]:
    """The files that an index names. They lie in the folder: an index may not reach for others."""
    weights = parse_json(read_bytes(folder / INDEX), shown(folder / INDEX), finite=False).get("weight_map")
    if not isinstance(weights, dict) or not weights or not all(isinstance(part, str) for part in weights.values()):
        raise InputError(f"{shown(folder / INDEX)} is damaged: it does not say which file holds which tensor")
    parts = sorted(set(weights.values()))
    for part in parts:
        refuse_if(
            Path(part).name != part or not part.endswith(WEIGHTS_ENDING),
            f"{shown(folder / INDEX)} names {part!r}; expected {WEIGHTS_ENDING} files of the same folder",
        )
        checked_file(folder / part, f"the file that {INDEX} names,", 2**62)
    return parts


def _numbers(path: Path) -> int:
    try:
        with safe_open(path, "np") as opened:
            return sum(prod(opened.get_slice(name).get_shape()) for name in opened.keys())  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{shown(path)}: the weights file is damaged or cut off ({one_line(error)})") from None


def _whole_numbers(config: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _whole_numbers(value)
        yield from ((name, one) for one in (value if isinstance(value, list) else [value]) if type(one) is int)


def check_libraries(config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig) -> None:
    require(["transformers"], "a language model")
    if isinstance(config, TopicsConfig):
        require([config.backend], f"the backend {config.backend}")
    elif not (isinstance(config, WordsConfig) or config.label_field or config.topics_from):
        require(["tomotopy"], "the backend tomotopy")


@readable()
def check_inputs(config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig) -> None:
    check_libraries(config)
    if not isinstance(config, WordsConfig):
        refuse_if(not config.corpus, "no text is given; name files, folders or hf:NAME (corpus)")
        corpus_of(config).check()
        read_stop_words(config.stop_words)
    if isinstance(config, ProbeConfig | TimelineConfig):
        refuse_unused(config)
        if config.topics_from is not None:
            read_topics(config.topics_from)
    if isinstance(config, TopicsConfig):
        check_tokenizer(config.tokenizer)
    else:
        for name in models_of(config):
            check_model(name)


def corpus_of(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Corpus:
    return Corpus(
        config.corpus,
        config.text_field,
        config.split_text,
        label_field=None if isinstance(config, TopicsConfig) else config.label_field,
    )


def models_of(config: ProbeConfig | TimelineConfig | WordsConfig) -> Sequence[str]:
    if isinstance(config, TimelineConfig):
        return [name for _, name in find_snapshots(config.snapshots)]
    return config.models if isinstance(config, ProbeConfig) else [config.model]


def refuse_unused(config: ProbeConfig | TimelineConfig) -> None:
    """Usual values pass, also those of --quick and of sweeps: the config of a folder names all settings."""
    labels = config.label_field is not None
    if not labels and config.topics_from is None:
        return
    name = "thresholds" if isinstance(config, ProbeConfig) else "threshold"
    thresholds = config.thresholds if isinstance(config, ProbeConfig) else [config.threshold]
    listed = config.topics_from is not None and Path(config.topics_from).is_file()  # words without probabilities
    settings = {
        f"topics = {config.topics}": config.topics not in (type(config).topics, QUICK_FIT["topics"]),
        f"{name} = {', '.join(f'{one:g}' for one in thresholds)}": listed
        and tuple(thresholds) not in (THRESHOLDS, THRESHOLDS[-1:]),
    }
    unused = ", ".join(setting for setting, idle in settings.items() if idle)
    source = "the labels of a corpus (label_field)" if labels else "topics that are given (topics_from)"
    refuse_if(unused, f"{unused}: no effect with {source}; leave one out")


@dataclass(frozen=True)
class Place:
    name: str
    local: bool
    revision: str = "main"


def model_place(name: str | Path) -> Place:
    """Where a model is: a folder (of a pretraining run: the model in it), or the hub if the name can be one there."""
    path = Path(name)
    with readable():
        exists, folder = path.exists(), path.is_dir()
    if folder:
        nested = not (path / "config.json").exists() and (path / "model" / "config.json").exists()
        return Place(str(path / "model" if nested else path), local=True)
    match = HUB_ID.fullmatch(str(name))
    if exists or match is None:
        raise InputError(
            f"{name} is a file; expected a hub id, or a folder with config.json, model.safetensors, tokenizer.json"
            if exists
            else f"no such model: {name} (expected a folder with config.json and model.safetensors, or a hub id such "
            "as bert-base-uncased)"
        )
    return Place(match["name"], local=False, revision=match["revision"] or "main")


def check_model(name: str | Path) -> Place:
    place = model_place(name)
    if place.local:
        read_model_files(Path(place.name))
    return place


def check_tokenizer(name: str | Path) -> Place:
    place = model_place(name)
    if place.local:
        check_plain_files(Path(place.name))
        refuse_if(
            not any(file for pattern in TOKENIZER for file in Path(place.name).glob(pattern)),
            f"{shown(name)} has no tokenizer: expected tokenizer.json, or vocab.txt, or a .model file; give a "
            "folder with the files of a tokenizer, or a hub id",
        )
    return place


def find_snapshots(names: Sequence[str]) -> list[tuple[int, str]]:
    snapshots = [(_step(model), model) for name in names for model in _models(name)]
    [(step, times)] = Counter(step for step, _ in snapshots).most_common(1)
    refuse(
        (times > 1, f"step {step} is given more than once; name the snapshots of one run"),
        (len(snapshots) < 2, f"a timeline needs at least two snapshots; there is {len(snapshots)}"),
    )
    return sorted(snapshots)


def _models(name: str) -> list[str]:
    path = Path(name)
    refuse_if(
        not path.exists() and not HUB_ID.fullmatch(name),
        f"no such folder: {name} (expected snapshots of 'topicscope pretrain', model folders, or hub ids such as "
        "OWNER/NAME@step1000)",
    )
    for place in (path, path / "snapshots", path / "checkpoints"):  # the last is what others call it
        inside = sorted(place.iterdir()) if place.is_dir() else []
        models = [str(p) for p in inside if STEP.search(p.name) and (p / "config.json").is_file()]
        if models:
            return models
    without = path.is_dir() and not (path / "config.json").is_file()
    refuse(
        (
            without and (path / "run-000").is_dir(),
            f"{name} holds several runs; name one of them, for example {path / 'run-000'}",
        ),
        (
            without,
            f"{name} holds no snapshots (folders such as step-000100 or checkpoint-500, each with config.json and "
            "model.safetensors)",
        ),
    )
    return [name]


def _step(model: str) -> int:
    matches = STEP.findall(model.rsplit("/", 1)[-1])
    refuse_if(
        not matches,
        f"{model}: {'' if Path(model).exists() else 'no such folder, and '}no step in its name; expected one such "
        "as step-100, checkpoint-500 or NAME@step1000",
    )
    return int(matches[-1])


TEXT = 8  # bytes in memory of a byte of text that topics are fitted to: the text, its tokens, its words
COUNTING = 8e-7  # seconds for each byte of text whose words are counted
WORDS = 30_000  # different words, at most as many as the usual vocabularies have
CHUNK = 128  # windows whose sums are kept one by one; two chunks are in memory
RELATIONS = 3  # same word, same topic, different
RESAMPLED = 5e-5  # seconds for each resample of the embeddings' intervals
LOGITS = 2**26  # predictions of a batch
ROW = 2000  # bytes of the row of a document: in memory, or in JSON, CSV and Parquet together


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
    settings = config if isinstance(config, dict) else {}
    known = {key: value for key, value in settings.items() if type(value) is int and 0 < value <= 10**6}
    sizes = {part: [known[key] for key in keys if key in known] for part, keys in NAMES.items()}
    return ModelSize(weights or ModelSize.bytes, **{part: found[0] for part, found in sizes.items() if found})


def text_bytes(config: TopicsConfig | ProbeConfig | TimelineConfig, documents: int | None) -> float:
    total = sum(
        path.stat().st_size * (4 if path.suffix in (".gz", ".bz2", ".xz", ".zst", ".zip", ".parquet") else 1.0)
        if path.is_file()
        else 1e10  # unknown: of the hub
        for path in map(Path, corpus_of(config).files)
    )
    return total if documents is None else min(total, documents * 20_000)  # bytes of a document at most, on average


def fit_cost(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Cost:
    counts, times = [config.topics] if isinstance(config.topics, int) else list(config.topics), 1.0
    if isinstance(config, TopicsConfig):
        times = (2.0 if config.stability else 1.0) * (1.0 if config.backend == "tomotopy" else 2.5)
    text, topics = text_bytes(config, config.max_documents), sum(counts)
    table = 8 * topics * (WORDS + min(config.max_documents or 10**9, max(1, int(text / 100))))
    sweep = (5e-8 * len(counts) + 1.5e-9 * topics) * text / 15  # 15 bytes of text per word without stop words
    return Cost(TEXT * text + 4 * table, 2 * table, COUNTING * text + times * config.iterations * sweep)


def pass_cost(config: ProbeConfig | TimelineConfig, model: ModelSize) -> Cost:
    probed = config if isinstance(config, ProbeConfig) else None
    thresholds = config.thresholds if isinstance(config, ProbeConfig) else [config.threshold]
    assignments = len(thresholds) * (len(probed.topics_per_word) if probed else 1)
    documents, heads, numbers = config.documents, model.layers * model.heads, (model.layers + 1) * model.dim
    words = min(float(model.vocabulary), config.topics * max(1.0, max(thresholds) * model.vocabulary))
    text = text_bytes(config, documents)
    pieces = max(1.0, text / 4)  # tokens of four bytes
    windows = min(pieces / model.window + documents, float(documents * (config.windows or 10**9)))
    longest = min(float(model.window), pieces)
    tokens = windows * model.window
    memory = (
        3 * text  # the text, and its words where they are counted; windows are a stream
        + min(max(longest, TOKENS), pieces) * (8 * heads * longest + 32 * model.dim)
        # the two sums of pairs are kept for 25 bins of word frequencies
        + 8 * (assignments + 1) * (config.bootstrap + CHUNK) * RELATIONS * (heads + 2 * 25)
        + 16 * config.bootstrap * min(1e6, (max(thresholds) * model.vocabulary) ** 2 / 2)
    )
    work = assignments * config.bootstrap * windows * heads * RELATIONS * 4
    seconds = RESAMPLED * assignments * config.bootstrap
    if probed:
        shuffles = assignments * probed.attention_shuffles
        memory += shuffles * (10 * words + 32 * heads) + ROW * documents
        shown_words = 0.2 * model.window  # positions of a window that show a word of some topic
        work += 16 * assignments * probed.shuffles * words * model.dim + shuffles * windows * shown_words**2 * (
            4 + 2 * heads
        )
        tokens += LOSS_TOKENS * min(documents, MOST_LOSSES)
        if probed.ablation and probed.shuffles:  # without shuffles no head is topical
            tokens += PASSES * LENGTH * ablated_documents(documents)
        if probed.states:
            some = min(documents, MOST_DOCUMENTS)
            memory += (
                2 * min(float(WORD_BYTES), 48 * min(words, float(MOST_WORDS)) * numbers)
                + 2 * min(float(DOCUMENT_BYTES), (8 + 4 * SPOTS) * some * numbers)
                + 16 * config.bootstrap * some
            )
            # 30 regressions per layer: five folds, from the mean state, four single ones and for labels
            work += 30 * (model.layers + 1) * (10 * some**3 + 100 * some**2 * config.topics)
            seconds += RESAMPLED * assignments * config.bootstrap * (model.layers + 1)
        # losses come after the pass, by the model once more with its output head
        memory = max(memory, model.bytes + 12 * min(float(LOGITS), pieces * model.vocabulary))
    seconds += (work + tokens * (model.bytes / 2 + 4 * model.layers * model.window * model.dim)) / FLOPS
    if probed and probed.random:  # read again with random weights, of which several are in memory
        memory, seconds = memory + 6 * model.bytes, 2 * seconds
    return Cost(memory, ROW * documents if probed else 0.0, seconds)


def cost_of(config: TopicsConfig | ProbeConfig | TimelineConfig) -> Cost:
    if isinstance(config, TopicsConfig):
        return fit_cost(config)
    text = text_bytes(config, config.max_documents)
    counted = Cost(TEXT * text, 0.0, COUNTING * text)  # of words
    fit = counted if config.label_field is not None else Cost() if config.topics_from is not None else fit_cost(config)
    models = [size_of(name) for name in models_of(config)]
    # a probe loads all models before it measures the first
    held = sum(model.bytes for model in models) if isinstance(config, ProbeConfig) else max(m.bytes for m in models)
    documents = len(models) if isinstance(config, ProbeConfig) and config.show_documents else 0
    # of the libraries; the documents that are shown are a file of their own, and on the page
    loading = Cost(disk=5e6 + 8e6 * documents, seconds=5.0)
    whole = sum((pass_cost(config, model) for model in models), loading + fit)
    return Cost(whole.memory + held, whole.disk, whole.seconds)


def settings_that_cost(config: TopicsConfig | ProbeConfig | TimelineConfig) -> str:
    names = ("corpus", "models", "tokenizer", "snapshots", "topics_from")  # what is measured stays
    given = {name: getattr(config, name) for name in names if getattr(config, name, None) is not None}
    text = driving(config, type(config).of(given), cost_of)
    return "corpus, models" if text == "sizes" else text
