"""The settings of `topicscope topics`, `probe`, `timeline` and `words`, as data. Nothing is opened or loaded here.

probe(ProbeConfig("bert-base-uncased", corpus="articles.jsonl.gz", thresholds=0.001))
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, fields
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from topicscope.ground import (
    LONGEST_LIST,
    MOST_RESAMPLES,
    Config,
    Count,
    Device,
    Resamples,
    Seed,
    Text,
    number_only,
    refuse,
    refuse_if,
    section,
)
from topicscope.language.corpora import Split

Embedding = Literal["matrix", "layer"]
TopicsPerWord = Literal["one", "many"]


def _plain(value: object) -> object:
    return str(value) if isinstance(value, PurePath) else value


def _several(value: object) -> tuple[object, ...]:
    return tuple(map(_plain, value if isinstance(value, list | tuple) else [value]))


def _groups(value: object) -> object:
    return tuple(tuple(x) if isinstance(x, list) else x for x in value) if isinstance(value, list | tuple) else value


def _each_once(counts: Sequence[int]) -> Sequence[int]:
    for count in counts:
        if counts.count(count) > 1:
            raise ValueError(f"topics = {count} is given more than once; give every number of topics once")
    return counts


Name = Annotated[Text, BeforeValidator(_plain)]
Names = Annotated[Sequence[Text], BeforeValidator(_several), Field(max_length=LONGEST_LIST)]
SomeNames = Annotated[Names, Field(min_length=1)]
Threshold = Annotated[float, Field(gt=0, lt=1), number_only]
TopicCount = Annotated[int, Field(ge=2, le=100_000), number_only]
TopicCounts = Annotated[
    Sequence[TopicCount],
    BeforeValidator(_several),
    Field(min_length=1, max_length=100),
    AfterValidator(_each_once),
    PlainSerializer(lambda counts: counts[0] if len(counts) == 1 else list(counts)),  # one is written as one
]


@section
class TextConfig(Config):
    _: KW_ONLY
    text_field: Text = "text"  # of JSON lines, CSV and Parquet
    split_text: Split = "auto"
    stop_words: Name = "english"
    iterations: Annotated[int, Field(ge=1, le=10**6), number_only] = 120
    max_documents: Count | None = 2500  # that topics are fitted to, sampled; None: all
    seed: Seed = 0


THRESHOLDS = (0.0005, 0.001, 0.002)
SIGNIFICANT = 0.05  # p of what is more than chance
FEWEST_SHUFFLES = 19  # of which p can be as small as that


@section
class ModelPass(Config):
    _: KW_ONLY
    windows: Count | None = 2
    embedding: Embedding = "matrix"
    bootstrap: Annotated[int, Field(ge=2, le=MOST_RESAMPLES), number_only] = 1000
    matched: bool = True
    seed: Seed = 0


@section
class Measurement(ModelPass):
    _: KW_ONLY
    # theta: the words of a topic as a share of the vocabulary
    thresholds: Annotated[Sequence[Threshold], BeforeValidator(_several), Field(min_length=1, max_length=1000)] = (
        THRESHOLDS
    )
    topics_per_word: Annotated[
        Sequence[TopicsPerWord], BeforeValidator(_several), Field(min_length=1, max_length=2)
    ] = ("one",)
    shuffles: Resamples = 1000
    random: bool = True
    cooccurrence: bool = True
    states: bool = True
    ablation: bool = True
    show_documents: Annotated[int, Field(ge=0, le=50), number_only] = 5

    @property
    def attention_shuffles(self) -> int:
        """A tenth of them, since each costs more; but enough for a verdict, where there are as many."""
        return max(self.shuffles // 10, min(self.shuffles, FEWEST_SHUFFLES))


# --quick: other settings where none are given. 25 topics of 500 articles take some 10 s, most of it for reading words.
QUICK_FIT: Mapping[str, int] = {"topics": 25, "iterations": 60, "max_documents": 500}


@section
class TopicsConfig(TextConfig):
    FILES: ClassVar[tuple[str, ...]] = ("corpus", "tokenizer", "stop_words")
    QUICK: ClassVar[Mapping[str, int]] = QUICK_FIT

    corpus: SomeNames
    tokenizer: Name
    _: KW_ONLY
    topics: TopicCounts = (100,)
    stability: bool = True
    backend: Literal["tomotopy", "sklearn", "gensim"] = "tomotopy"
    min_documents: Count = 5


class OneSource:
    topics_from: str | None
    label_field: str | None

    def __post_init__(self) -> None:
        refuse_if(
            self.label_field is not None and self.topics_from is not None,
            "label_field and topics_from both say what the topics are; give one of them",
        )


@section
class ProbeConfig(OneSource, TextConfig, Measurement):
    """Settings of `probe`, and the options of `topicscope probe`.

    Attributes:
        models: Folders or hub ids; one or several.
        corpus: Files, globs, folders or hf:NAME; one or several.
        topics: Number of topics that are fitted, where none are given.
        topics_from: Given topics: a folder of `topicscope topics`, or a CSV or JSON file of words and topics.
        label_field: Field of the corpus whose labels are the topics; then nothing is fitted.
        documents: Number of documents that the models read, sampled.
        device: 'cpu', 'cuda' or 'auto'.
        windows: Pieces of the model's length that are taken of each document; None: all.
        embedding: 'matrix' (word embeddings) or 'layer' (the embedding layer's output).
        bootstrap: Number of resamples.
        matched: Also compare pairs of equal word frequencies.
        thresholds: Shares of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one', 'many', or both.
        shuffles: Shuffles of topics among words.
        random: Also probe the same architecture with random weights.
        cooccurrence: Also compare the pairs that stand together most often (Table 2).
        states: Probe hidden states, layer by layer.
        ablation: Measure the loss without topical heads.
        show_documents: Number of documents to look at.
        text_field: Field of the text in JSON lines, CSV and Parquet.
        split_text: What a document of a plain text file is: 'line', 'paragraph', 'file' or 'auto'.
        stop_words: 'english', 'none', or a file with one word per line.
        iterations: Sweeps of the topic sampler.
        max_documents: Topics are fitted to a sample of so many documents; None: all.
        seed: Seed of samples, fits, resamples and masks.

    Example:
        >>> from topicscope import ProbeConfig
        >>> config = ProbeConfig("bert-base-uncased", corpus="articles.jsonl.gz", thresholds=0.001)
        >>> config.models, config.thresholds, config.topics
        (('bert-base-uncased',), (0.001,), 100)
    """

    FILES: ClassVar[tuple[str, ...]] = ("models", "corpus", "topics_from", "stop_words")
    QUICK: ClassVar[Mapping[str, int]] = {**QUICK_FIT, "documents": 50, "windows": 1, "bootstrap": 200, "shuffles": 200}

    models: SomeNames
    corpus: SomeNames
    _: KW_ONLY
    topics: TopicCount = 100
    topics_from: Name | None = None
    label_field: Text | None = None
    documents: Count = 250
    device: Device = "auto"

    @classmethod
    def require(cls, settings: Mapping[str, object]) -> None:
        refuse(
            (not settings.get("models"), "no model is given; name model folders or hub ids (models)"),
            (not settings.get("corpus"), "no text is given; name files, folders or hf:NAME (corpus)"),
        )


@section
class TimelineConfig(OneSource, TextConfig, ModelPass):
    """Settings of `timeline`, and the options of `topicscope timeline`.

    Attributes:
        snapshots: Folders of snapshots, model folders, or hub ids with a revision (OWNER/NAME@step1000).
        corpus: Files, globs, folders or hf:NAME. A run of `topicscope train` takes none.
        topics: Number of topics that are fitted, where none are given.
        topics_from: Given topics: a folder, or a CSV or JSON file.
        label_field: Field of the corpus whose labels are the topics.
        documents: Number of documents that the models read, sampled.
        threshold: Share of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one' or 'many'.
        device: 'cpu', 'cuda' or 'auto'.
        windows: Pieces of the model's length that are taken of each document; None: all.
        embedding: 'matrix' or 'layer'.
        bootstrap: Number of resamples.
        matched: Also compare pairs of equal word frequencies.
        text_field: Field of the text in JSON lines, CSV and Parquet.
        split_text: What a document of a plain text file is.
        stop_words: 'english', 'none', or a file with one word per line.
        iterations: Sweeps of the topic sampler.
        max_documents: Topics are fitted to a sample of so many documents; None: all.
        seed: Seed of samples, fits and resamples.

    Example:
        >>> from topicscope import TimelineConfig
        >>> config = TimelineConfig("runs/pretrain", corpus="articles.txt")  # one path, or several
        >>> config.snapshots, config.threshold, config.changed({"topics": 50}).topics
        (('runs/pretrain',), 0.002, 50)
    """

    FILES: ClassVar[tuple[str, ...]] = ("snapshots", "corpus", "topics_from", "stop_words")

    snapshots: SomeNames
    corpus: Names = ()
    _: KW_ONLY
    topics: TopicCount = 100
    topics_from: Name | None = None
    label_field: Text | None = None
    documents: Count = 250
    threshold: Threshold = THRESHOLDS[-1]
    topics_per_word: TopicsPerWord = "one"
    device: Device = "auto"


@section
class WordsConfig(Config):
    FILES: ClassVar[tuple[str, ...]] = ("model",)

    model: Name
    groups: Annotated[
        Sequence[Annotated[Sequence[Text], Field(max_length=1000)]], BeforeValidator(_groups), Field(max_length=1000)
    ]
    embedding: Embedding = "matrix"
    seed: Seed = 0

    def __post_init__(self) -> None:
        refuse_if(
            sum(map(len, self.groups)) < 2,
            "give at least two words, in groups separated by /, for example: frog toad / mozart schubert",
        )


def topics_config(config: ProbeConfig | TimelineConfig, tokenizer: str) -> TopicsConfig:
    """The fit of topics inside a probe or a timeline, as a command of its own would do it, without a second fit."""
    return TopicsConfig.of(
        {part.name: getattr(config, part.name) for part in fields(TextConfig)},
        corpus=config.corpus,
        tokenizer=tokenizer,
        topics=config.topics,
        stability=False,
    )


def probe_point(settings: Mapping[str, object]) -> ProbeConfig:
    config = ProbeConfig.of({"thresholds": THRESHOLDS[-1:], "show_documents": 0, **settings})
    refuse(
        *(
            (
                len(getattr(config, name)) > 1,
                f"{name} has several values, and a point of a sweep has one; make {name} an axis",
            )
            for name in ("models", "thresholds", "topics_per_word")
        )
    )
    return config
