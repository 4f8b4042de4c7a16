"""Topics in real text and real models: corpora, whole words, topic fitting, loading models, probing them."""

from topicscope.language.assignment import Assignment, assign, given_topics
from topicscope.language.corpora import Corpus
from topicscope.language.models import LoadedModel, load_model, load_tokenizer, word_vectors
from topicscope.language.probe import THRESHOLDS, Probe, Settings, probe, probe_model, unit
from topicscope.language.probe_run import ProbeConfig, run_probe
from topicscope.language.topics import BACKENDS, Topics, fit_topics
from topicscope.language.vocabulary import Vocabulary, read_stop_words, whole_words
from topicscope.language.word_map import WordMap, word_map

__all__ = [
    "BACKENDS", "THRESHOLDS", "Assignment", "Corpus", "LoadedModel", "Probe", "ProbeConfig", "Settings", "Topics", "Vocabulary", "WordMap", "assign",
    "fit_topics", "given_topics", "load_model", "load_tokenizer", "probe", "probe_model", "read_stop_words", "run_probe", "unit", "whole_words", "word_map",
    "word_vectors",
]  # fmt: skip
