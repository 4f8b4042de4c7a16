"""Fitted topics as a table and a figure, and the word map of Figure 3: cosines between words, as a heat map."""

import numpy as np

from topicscope.figures.panels import Figure, Heat, Lines, Panel, Points, Section, Series, TableData
from topicscope.language import Topics, WordMap, short


def word_sections(words: WordMap) -> list[Section]:
    note = "Words that are not one token are means of their pieces, and have a star."
    return [Section("Cosine of word embeddings", note, figures=[word_figure(words)], tables=[word_table(words)])]


def word_figure(words: WordMap) -> Figure:
    return Figure(
        "figure3",
        "Cosine of word embeddings",
        f"Heat map of cosines between {len(words.words)} words.",
        [Heat(short(words.model), np.round(words.cosine, 5).tolist(), labels=words.labels)],
        columns=1,
    )


def word_table(words: WordMap) -> TableData:
    rows = [[label, *(f"{value:.2f}" for value in row)] for label, row in zip(words.labels, words.cosine, strict=True)]
    return TableData(f"Cosines, {short(words.model)}", ["", *words.labels], rows)


def topic_model_sections(topics: Topics) -> list[Section]:
    return [
        Section(
            "Topics and their words",
            "Share: of the words of all documents, averaged over documents. c_npmi: coherence, how much likelier than "
            "by chance the top words stand within ten words of each other (1: always, 0: by chance).",
            figures=[topic_model_figure(topics)],
            tables=[topic_model_table(topics)],
        )
    ]


def topic_model_table(topics: Topics) -> TableData:
    shares = topics.document_topics.mean(0)
    rows = [
        [str(k), f"{100 * shares[k]:.1f}%", f"{topics.fit.coherence[k]:.3f}", " ".join(topics.top_words(k))]
        for k in range(len(topics))
    ]
    return TableData("Topics", ["topic", "share", "c_npmi", "top words"], rows)


def topic_model_figure(topics: Topics) -> Figure:
    """Coherence of every topic; and, where the fit recorded it, the log-likelihood against sweeps."""
    names = [f"{k}: {' '.join(topics.top_words(k, 3))}" for k in range(len(topics))]
    coherence = Series("c_npmi", [float(k) for k in range(len(topics))], topics.fit.coherence)
    panels: list[Panel] = [Points("coherence by topic", names, [coherence], "c_npmi")]
    trace = topics.fit.log_likelihood
    if len(trace) >= 2:
        sweeps = [float(min(10 * (i + 1), topics.fit.iterations)) for i in range(len(trace))]
        likelihood = Series("log-likelihood", sweeps, trace)
        panels.insert(0, Lines("fit", [likelihood], "sweep", "log-likelihood per word"))
    return Figure(
        "topics", "Fitted topics", "Log-likelihood against sweeps, and coherence of every topic.", panels, columns=1
    )
