"""Fitted topics as a table, and their shares and coherence as a figure."""

from __future__ import annotations

from topicscope.figures.panels import Figure, Lines, Points, Section, Series, TableData
from topicscope.language import Topics


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
    places = [float(k) for k in range(len(topics))]
    coherence = Points("coherence by topic", names, [Series("c_npmi", places, topics.fit.coherence)], "c_npmi")
    trace = topics.fit.log_likelihood
    if len(trace) < 2:
        panels: list[Points | Lines] = [coherence]
    else:
        sweeps = [float(min(10 * (i + 1), topics.fit.iterations)) for i in range(len(trace))]
        panels = [
            Lines("fit", [Series("log-likelihood", sweeps, trace)], "sweep", "log-likelihood per word"),
            coherence,
        ]
    alt = "Log-likelihood against sweeps, and coherence of every topic."
    return Figure("topics", "Fitted topics", alt, list(panels), columns=1)
