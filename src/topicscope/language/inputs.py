"""Whether the files that a config names are there: checked before PyTorch is loaded and before an engine is started."""

from __future__ import annotations

from topicscope.ground import InputError
from topicscope.language.assignment import check_topics
from topicscope.language.configs import ProbeConfig, TextConfig, TimelineConfig, TopicsConfig, WordsConfig
from topicscope.language.corpora import Corpus
from topicscope.language.places import check_model, model_place
from topicscope.language.snapshots import find_snapshots
from topicscope.language.vocabulary import read_stop_words


def check_inputs(config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig) -> None:
    """Raise InputError where a model, a snapshot, a corpus, topics or stop words are missing or cannot be read."""
    if isinstance(config, TextConfig):
        if not config.corpus:
            raise InputError("no text is given; name files, folders or hf:NAME (corpus)")
        Corpus(config.corpus, config.text_field, config.split_text).check()
        read_stop_words(config.stop_words)
    if isinstance(config, ProbeConfig | TimelineConfig) and config.topics_from is not None:
        check_topics(config.topics_from)
    if isinstance(config, TopicsConfig):
        model_place(config.tokenizer)
    elif isinstance(config, TimelineConfig):
        for _, name in find_snapshots(config.snapshots):
            check_model(name)
    else:
        for name in config.models if isinstance(config, ProbeConfig) else [config.model]:
            check_model(name)
