"""A probe as data: one model, one threshold, everything that the figures depend on; and its run from the corpus to the rows.

found = run_probe(build_config({"model": "bert-base-uncased", "corpus": ["articles.jsonl.gz"]}))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from pydantic.dataclasses import dataclass

from topicscope.ground import STRICT, Engine, InputError, one_thread, validated
from topicscope.language.assignment import Assignment, TopicsPerWord
from topicscope.language.corpora import Corpus, Split
from topicscope.language.models import load_model
from topicscope.language.probing import THRESHOLDS, Probe, Settings, Step, probe_model, read_given
from topicscope.language.topics import Progress, Topics, fit_topics
from topicscope.language.vocabulary import Vocabulary, read_stop_words, whole_words


@dataclass(frozen=True, config=STRICT)
class ProbeConfig:
    """As the options of `topicscope probe`. `topics`: a folder of fitted ones or a file of words and topics; None: `number` are fitted."""

    model: str
    corpus: Annotated[list[str], Field(min_length=1)]
    text_field: str = "text"
    split_text: Split = "auto"
    topics: str | None = None
    number: Annotated[int, Field(ge=2)] = 100
    iterations: PositiveInt = 120
    max_documents: PositiveInt = 2500
    documents: PositiveInt = 250
    windows: PositiveInt = 2
    embedding: Literal["matrix", "layer"] = "matrix"
    threshold: Annotated[float, Field(gt=0, lt=1)] = THRESHOLDS[-1]
    topics_per_word: TopicsPerWord = "one"
    stop_words: str = "english"
    bootstrap: Annotated[int, Field(ge=2)] = 1000
    shuffles: NonNegativeInt = 1000
    matched: bool = True
    random: bool = True
    cooccurrence: bool = True
    seed: NonNegativeInt = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @property
    def settings(self) -> Settings:
        return probe_settings(
            (self.threshold,),
            (self.topics_per_word,),
            embedding=self.embedding,
            bootstrap=self.bootstrap,
            shuffles=self.shuffles,
            matched=self.matched,
            random=self.random,
            cooccurrence=self.cooccurrence,
            windows=self.windows,
            seed=self.seed,
        )

    def as_dict(self) -> dict[str, Any]:
        return dict(ADAPTER.dump_python(self, mode="json"))


ADAPTER = pydantic.TypeAdapter(ProbeConfig)


def build_config(settings: dict[str, Any]) -> ProbeConfig:
    """A config from settings; nothing is opened yet."""
    if not settings.get("model"):
        raise InputError("no model is given; name a model folder or a hub id (model in a config file)")
    if not settings.get("corpus"):
        raise InputError("no text is given; name files, a folder or hf:NAME (corpus in a config file: a list)")
    config = validated(ADAPTER, settings)
    assert isinstance(config, ProbeConfig)
    return config


def run_probe(config: ProbeConfig, *, engine: Engine | None = None, progress: Step | None = None) -> Probe:
    """Opens the corpus, loads the model, fits or reads the topics, and probes."""
    source, stops = Corpus(config.corpus, config.text_field, config.split_text), read_stop_words(config.stop_words)
    loaded = load_model(config.model, usable_device(config.device))
    texts = source.sample(config.documents, config.seed + 1)
    vocabulary = whole_words(loaded.tokenizer, stops)
    topics: Topics | Assignment
    if config.topics is not None:
        topics = read_topics(config.topics, vocabulary, texts, engine)
    else:
        note: Progress | None = (
            None if progress is None else lambda done, total, _: progress("fitting topics", done, total)
        )
        topics = fit_corpus(
            source, vocabulary, config.number, config.iterations, config.max_documents, config.seed, note, engine
        )
    return probe_model(loaded, vocabulary, texts, topics, config.settings, progress, engine)


def probe_settings(
    thresholds: tuple[float, ...], topics_per_word: tuple[TopicsPerWord, ...], *, shuffles: int, **others: Any
) -> Settings:
    """Attention is shuffled a tenth as often as embeddings: a shuffle of it costs more."""
    return Settings(thresholds, topics_per_word, shuffles=shuffles, attention_shuffles=shuffles // 10, **others)


def read_topics(
    path: str | Path, vocabulary: Vocabulary, texts: Sequence[str], engine: Engine | None = None
) -> Topics | Assignment:
    """Fitted ones from their folder, or the user's own from a file."""
    if not Path(path).exists():
        raise InputError(
            f"topics: {path} is not there; expected a folder of 'topicscope topics' or a CSV/JSON file of words and topics"
        )
    return Topics.load(path) if Path(path).is_dir() else read_given(path, vocabulary, texts, engine)


def fit_corpus(
    source: Corpus,
    vocabulary: Vocabulary,
    number: int,
    iterations: int,
    max_documents: int,
    seed: int,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Topics:
    """Topics of a sample of the corpus."""
    with one_thread():
        return fit_topics(
            source.sample(max_documents, seed),
            vocabulary,
            number,
            iterations=iterations,
            seed=seed,
            progress=progress,
            engine=engine,
        )


def usable_device(device: str) -> str:
    """cpu or cuda."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device}: expected auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda, but PyTorch finds no usable GPU here; choose cpu or auto")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
