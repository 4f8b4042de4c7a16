"""The text, stop words and topics of a probe or a timeline: read, fitted or given."""

from dataclasses import replace

from topicscope.ground import Engine, Progress, one_thread
from topicscope.language.assignment import Assignment, load_topics
from topicscope.language.configs import ProbeConfig, TimelineConfig, TopicsConfig, topics_config
from topicscope.language.corpora import Corpus
from topicscope.language.labels import LabelWords, label_words
from topicscope.language.topic_fits import Sampler, fit_each
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary, read_stop_words


class TextSource:
    """The text, stop words and topics of a probe or a timeline."""

    def __init__(self, config: ProbeConfig | TimelineConfig, engine: Engine, progress: Progress) -> None:
        self.config, self.engine, self.progress = config, engine, progress
        self.fitted: list[tuple[TopicsConfig, Topics]] = []
        self.stop_words = read_stop_words(config.stop_words)
        self.corpus = Corpus(config.corpus, config.text_field, config.split_text, label_field=config.label_field)
        progress("reading the corpus")
        # the documents of the attention pass: another sample than that of the topics, so another seed
        drawn = self.corpus.numbered_sample(config.documents, config.seed + 1)
        self.places, documents = [place for place, _ in drawn], [document for _, document in drawn]
        self.texts = [document.text for document in documents]
        self.labels = [document.label for document in documents] if config.label_field is not None else []

    def topics(self, tokenizer: str, vocabulary: Vocabulary) -> Topics | LabelWords | Assignment:
        """The labels of the corpus or given topics where there are some, else fitted ones."""
        if self.config.label_field is not None:
            self.progress("reading the corpus")
            documents = self.corpus.sample_documents(self.config.max_documents, self.config.seed)
            texts, labels = zip(*documents, strict=True)
            name, engine = self.config.label_field, self.engine
            with self.corpus.blamed():
                return label_words(texts, labels, vocabulary, name=name, engine=engine, progress=self.progress)
        if self.config.topics_from is not None:
            self.progress("reading the topics")
            return load_topics(self.config.topics_from, vocabulary, self.texts, self.engine)
        fit = topics_config(self.config, tokenizer)
        self.fitted.append((fit, fit_sample(self.corpus, vocabulary, fit, self.engine, self.progress)[0]))
        return self.fitted[-1][1]


def fit_sample(
    corpus: Corpus, vocabulary: Vocabulary, config: TopicsConfig, engine: Engine, progress: Progress
) -> list[Topics]:
    """One fit for every number of topics, fewest first."""
    progress("reading the corpus")
    how = Sampler(config.backend, config.iterations, 1, config.seed)
    texts = corpus.sample(config.max_documents, config.seed)
    with one_thread(), corpus.blamed():
        fits = fit_each(
            texts,
            vocabulary,
            sorted(set(config.topics)),
            how,
            min_documents=config.min_documents,
            stability=config.stability,
            engine=engine,
            progress=progress,
        )
    return [replace(topics, fit=replace(topics.fit, corpus=corpus.summary())) for topics in fits]
