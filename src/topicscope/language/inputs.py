"""What a config names: models in folders or on the hub, the snapshots of a run, corpora, topics and stop words.

Whether they are there is checked before PyTorch and transformers are loaded and before an engine is started.
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
    InputError,
    checked_file,
    file_digest,
    one_line,
    parse_json,
    read_bytes,
    refuse,
    require,
    shown,
)
from topicscope.language.assignment import read_topics
from topicscope.language.configs import (
    QUICK_FIT,
    THRESHOLDS,
    ProbeConfig,
    TimelineConfig,
    TopicsConfig,
    WordsConfig,
)
from topicscope.language.corpora import Corpus
from topicscope.language.vocabulary import read_stop_words

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
            refuse(
                (
                    not isinstance(content, dict),
                    f"{shown(entry)} holds a {type(content).__name__}; expected keys and values",
                )
            )
    sealed = parse_json(read_bytes(folder / SEAL), shown(folder / SEAL)) if (folder / SEAL).exists() else {}
    for name, digest in sealed.items() if isinstance(sealed, dict) else [(SEAL, "")]:
        if file_digest(checked_file(folder / Path(name).name, "the file", 2**62)) != digest:
            raise InputError(
                f"{shown(folder / name)} is damaged: it is not what topicscope wrote; train again, or remove {SEAL} to "
                "use it as it is"
            )


def read_model_files(folder: Path) -> tuple[Mapping[str, object], int]:
    """The config of a model folder, and how many numbers its weights hold; InputError where it is none, or damaged."""
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
    refuse(
        (
            config.get("transformers_weights") is not None,  # which would not be checked here
            f"{shown(folder / CONFIG)} names its own weights file; name it {WEIGHTS}",
        )
    )
    numbers = sum(_numbers(folder / part) for part in ([WEIGHTS] if names[0] == WEIGHTS else _parts(folder)))
    # by these the library would build far more than the weights fill; published models have at most a thousand layers
    for name, value in _whole_numbers(config):
        for pattern, most in ((COUNTED, 1000), (POSITIONS, 100_000 + numbers)):
            refuse(
                (
                    pattern.search(name) and value > most,
                    f"{shown(folder / CONFIG)}: {name} = {value}; a model with these weights has at most {most}",
                )
            )
    return config, numbers


def published_files(folder: Path) -> list[Path]:
    """The files of a model folder that belong to the model and its tokenizer: no code, no pickles, nothing else."""
    return sorted({file for pattern in PUBLISHED for file in folder.glob(pattern) if file.is_file()})


def _parts(folder: Path) -> list[str]:
    """The files that an index names. They lie in the folder: an index may not reach for others."""
    weights = parse_json(read_bytes(folder / INDEX), shown(folder / INDEX), finite=False).get("weight_map")
    if not isinstance(weights, dict) or not weights or not all(isinstance(part, str) for part in weights.values()):
        raise InputError(f"{shown(folder / INDEX)} is damaged: it does not say which file holds which tensor")
    parts = sorted(set(weights.values()))
    for part in parts:
        refuse(
            (
                Path(part).name != part or not part.endswith(WEIGHTS_ENDING),
                f"{shown(folder / INDEX)} names {part!r}; expected {WEIGHTS_ENDING} files of the same folder",
            )
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
    """Names and values, of the sections too; of a list of whole numbers each."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _whole_numbers(value)
        yield from ((name, one) for one in (value if isinstance(value, list) else [value]) if type(one) is int)


def check_libraries(config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig) -> None:
    require(["transformers"], "a language model")
    given = isinstance(config, ProbeConfig | TimelineConfig) and (config.label_field or config.topics_from)
    if not isinstance(config, WordsConfig) and not given:
        backend = config.backend if isinstance(config, TopicsConfig) else "tomotopy"
        require([backend], f"the backend {backend}")


@readable()
def check_inputs(config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig) -> None:
    check_libraries(config)
    if not isinstance(config, WordsConfig):
        refuse((not config.corpus, "no text is given; name files, folders or hf:NAME (corpus)"))
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
    label_field = None if isinstance(config, TopicsConfig) else config.label_field
    return Corpus(config.corpus, config.text_field, config.split_text, label_field=label_field)


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
    unused = ", ".join(said for said, idle in settings.items() if idle)
    source = "the labels of a corpus (label_field)" if labels else "topics that are given (topics_from)"
    refuse((unused, f"{unused}: no effect with {source}; leave one out"))


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
        refuse(
            (
                not any(file for pattern in TOKENIZER for file in Path(place.name).glob(pattern)),
                f"{shown(name)} has no tokenizer: expected tokenizer.json, or vocab.txt, or a .model file; give a "
                "folder with the files of a tokenizer, or a hub id",
            )
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
    """The models inside a folder; or the name itself where it is a model."""
    path = Path(name)
    refuse(
        (
            not path.exists() and not HUB_ID.fullmatch(name),
            f"no such folder: {name} (expected snapshots of 'topicscope pretrain', model folders, or hub ids such as "
            "OWNER/NAME@step1000)",
        )
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
    refuse(
        (
            not matches,
            f"{model}: {'' if Path(model).exists() else 'no such folder, and '}no step in its name; expected one such "
            "as step-100, checkpoint-500 or NAME@step1000",
        )
    )
    return int(matches[-1])
