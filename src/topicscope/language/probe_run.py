"""A probe from the corpus to the rows, as `topicscope probe` runs it.

result = probe(ProbeConfig("bert-base-uncased", corpus="articles.jsonl.gz"), "runs/probe")

Input is checked before PyTorch and transformers are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext

from topicscope.ground import Engine, Folder, Progress, open_folder, serial, usable_device, watched
from topicscope.language.answers import short
from topicscope.language.assignment import Assignment, load_topics
from topicscope.language.configs import ProbeConfig, TimelineConfig, TopicsConfig, topics_config
from topicscope.language.corpora import Corpus
from topicscope.language.inputs import check_inputs
from topicscope.language.probes import PROBE, Probe
from topicscope.language.topic_fits import fit_sample
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary, read_stop_words, whole_words


def probe(
    config: ProbeConfig,
    out: str | os.PathLike[str] | None = None,
    *,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Probe:
    """Opens the corpus, loads the models, fits or reads the topics (once per tokenizer), and probes.

    `out`: a folder for the results and the fitted topics; one that holds a probe is replaced.
    """
    check_inputs(config)
    with (
        open_folder(out, PROBE, config.as_dict(), force=True) if out is not None else nullcontext() as folder,
        watched(progress) as shown,
    ):
        source = TextSource(config)
        result = _probed(config, source, engine, shown)
        if folder is not None:
            source.save_topics(folder)
            result.write(folder)
    return result


def _probed(config: ProbeConfig, source: TextSource, engine: Engine, progress: Progress) -> Probe:
    from topicscope.language.models import load_model  # PyTorch, once the input is known to be good
    from topicscope.language.probing import probe_model

    device = usable_device(config.device)
    models = []
    for name in config.models:  # all of them before the long work starts
        progress(f"loading {name}")
        models.append(load_model(name, device))
    texts = source.probed_texts(progress)
    known: dict[str, Topics | Assignment] = {}
    probes, notes = [], []
    for model in models:
        vocabulary = whole_words(model.tokenizer, source.stop_words)
        if vocabulary.fingerprint not in known:
            known[vocabulary.fingerprint] = source.topics(model.name, vocabulary, texts, engine, progress)
        topics = known[vocabulary.fingerprint]
        one = probe_model(model, texts, topics, config, vocabulary=vocabulary, engine=engine, progress=progress)
        notes += [f"{short(model.name)}: {note}" for note in one.notes]
        probes.append(one)
    notes.append(f"corpus: {source.corpus.summary()}")
    return Probe.joined(probes, notes, config)


class TextSource:
    """The text, stop words and topics of a probe or a timeline."""

    def __init__(self, config: ProbeConfig | TimelineConfig) -> None:
        self.config = config
        self.corpus = Corpus(config.corpus, config.text_field, config.split_text)
        self.stop_words = read_stop_words(config.stop_words)
        self.fitted: list[tuple[TopicsConfig, Topics]] = []

    def probed_texts(self, progress: Progress) -> list[str]:
        """The documents of the attention pass: another sample than that of the topics, so another seed."""
        progress("reading the corpus")
        return self.corpus.sample(self.config.documents, self.config.seed + 1)

    def topics(
        self, tokenizer: str, vocabulary: Vocabulary, texts: Sequence[str], engine: Engine, progress: Progress
    ) -> Topics | Assignment:
        """Given topics where there are some, else fitted ones."""
        if self.config.topics_from is not None:
            progress("reading the topics")
            return load_topics(self.config.topics_from, vocabulary, texts, engine)
        fit = topics_config(self.config, tokenizer)
        topics = fit_sample(self.corpus, vocabulary, fit, engine=engine, progress=progress)
        self.fitted.append((fit, topics))
        return topics

    def save_topics(self, folder: Folder) -> None:
        """The fitted topics as folders inside, which `topics_from` takes."""
        for number, (fit, topics) in enumerate(self.fitted, start=1):
            topics.save(folder.file(f"topics-{number}"), fit.as_dict())
