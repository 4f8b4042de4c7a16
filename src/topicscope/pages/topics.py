"""Fitted topics (their numbers compared, a map, their words), and the word map of Figure 3."""

from collections.abc import Sequence

import numpy as np

from topicscope.language import TopicQuality, Topics, WordMap, best, short
from topicscope.measure import topic_map
from topicscope.pages.panels import (
    Circles,
    Figure,
    Heat,
    Lines,
    Panel,
    Points,
    Section,
    Series,
    TableData,
    banded,
    curve_of,
)

MOST_NAMED = 8  # topics whose names fit side by side under a figure; of more, the map shows coherence in colours
MOST_MAPPED = 300  # circles, the largest topics; more would hide each other
MOST_WORDS = 30  # of a topic that is chosen


def topic_model_sections(topics: Topics) -> list[Section]:
    fit = fit_figure(topics)
    words = Section(
        "Topics and their words",
        "Share: of a document's words, averaged over documents. c_npmi: coherence, how much likelier than by chance "
        "two of the top 10 words stand within ten words of each other (1: only together, 0: by chance). Stability: the "
        "share of the top 10 words that reappear in the matching topic of a second fit. Nearest: the topic at the "
        "smallest Hellinger distance (0: the same words, 1: no word in common).",
        figures=[fit] if fit.panels else [],
        tables=[topic_model_table(topics)],
    )
    return [*([compared_section(topics.compared)] if topics.compared else []), map_section(topics), words]


def topic_model_table(topics: Topics) -> TableData:
    return TableData(
        "Topics",
        ["topic", "share", "c_npmi", "stability", "nearest", "top words"],
        [
            [
                str(row["topic"]),
                f"{100 * row['share']:.1f}%",
                f"{row['coherence']:.3f}",
                cell(row["stability"], ".1f"),
                f"{row['nearest']} ({row['distance']:.2f})",
                " ".join(row["words"]),
            ]
            for row in topics.records()
        ],
    )


def cell(value: float | None, how: str) -> str:
    return "-" if value is None else format(value, how)


def fit_figure(topics: Topics) -> Figure:
    """The log-likelihood against sweeps, where the fit recorded it; and the coherence of topics that are not many."""
    panels: list[Panel] = []
    trace = topics.fit.log_likelihood
    few = len(topics) <= MOST_NAMED
    if len(trace) >= 2:
        sweeps = [float(min(10 * (i + 1), topics.fit.iterations)) for i in range(len(trace))]
        panels.append(
            Lines("fit", [Series("log-likelihood", sweeps, trace)], "sweep over all words", "log-likelihood per word")
        )
    if few:
        names = [f"{k}: {' '.join(topics.top_words(k, 3))}" for k in range(len(topics))]
        curves = [curve_of("c_npmi", enumerate(topics.fit.coherence))]
        panels.append(Points("coherence by topic", names, curves, "c_npmi", levels=[(0.0, "by chance")]))
    alt = "Log-likelihood against sweeps" + (", and coherence of every topic." if few else ".")
    return Figure("topics", "Fitted topics", alt, panels, columns=1)


def map_section(topics: Topics) -> Section:
    count = min(len(topics), MOST_MAPPED)  # topics are in order of their share
    plane = topic_map(topics.probability[:count])
    which = "" if count == len(topics) else f" The {count} largest of {len(topics)} topics are shown."
    note = (
        "Topics that are near each other give similar probabilities to words. Areas: share of the text. Colours: "
        "coherence. Click a topic to read its words. "
        "Distances are Hellinger distances between the topics' word probabilities; the map is their first "
        f"two principal components, which keep {100 * plane.shown:.0f}% of the squared distances: topics that look "
        f"close may still be apart along other directions, as the nearest topics in the table show.{which}"
    )
    circles = Circles(
        "",
        plane.places[:, 0].tolist(),
        plane.places[:, 1].tolist(),
        topics.shares[:count].tolist(),
        topics.fit.coherence[:count],
        [str(k) for k in range(count)],
        [
            [
                f"topic {k}: {100 * topics.shares[k]:.1f}% of the text, c_npmi {topics.fit.coherence[k]:.3f}",
                " ".join(topics.top_words(k)),
            ]
            for k in range(count)
        ],
        "first principal component",
        "second principal component",
        "c_npmi",
        [
            [
                (topics.words[i], f"{100 * topics.probability[k, i]:.2f}%")
                for i in best(topics.probability[k], MOST_WORDS)
            ]
            for k in range(count)
        ],
    )
    alt = f"Map of {count} topics: near ones have similar words, large ones have more of the text."
    return Section("Topic map", note, figures=[Figure("topic-map", "Topic map", alt, [circles], columns=1)])


def compared_section(compared: Sequence[TopicQuality]) -> Section:
    return Section(
        "Numbers of topics compared",
        "Bands: two standard errors of the mean over topics. The best number has the largest coherence x diversity "
        "among those without a warning. Each fit is in the folder topics-N of this folder: 'topicscope probe "
        "--topics-from FOLDER/topics-N' takes it. FOLDER itself holds the best one.",
        figures=[compared_figure(compared)],
        tables=[compared_table(compared)],
    )


def compared_figure(compared: Sequence[TopicQuality]) -> Figure:
    def panel(title: str, y_label: str, *curves: Series) -> Lines:
        return Lines(f"{title} is better", [curve for curve in curves if curve.x], "number of topics", y_label)

    def line(name: str, of: str) -> Series:
        return curve_of(name, [(one.topics, getattr(one, of)) for one in compared], markers=True)

    coherence = [
        (one.topics, one.coherence, (one.coherence - 2 * one.coherence_error, one.coherence + 2 * one.coherence_error))
        for one in compared
    ]
    perplexity = line("topics", "perplexity"), line("word frequencies alone", "unigram_perplexity")
    panels = [
        panel("coherence: higher", "mean c_npmi", banded("coherence", coherence)),
        panel("diversity: higher", "share of distinct top words", line("diversity", "diversity")),
        panel("stability: higher", "top words that recur", line("stability", "stability")),
        panel("held-out perplexity: lower", "perplexity per word", *perplexity),
    ]
    alt = "Coherence, diversity, stability and held-out perplexity against the number of topics."
    return Figure("topic-counts", "Which number of topics", alt, [one for one in panels if one.series])


def compared_table(compared: Sequence[TopicQuality]) -> TableData:
    return TableData(
        "Numbers of topics",
        ["topics", "c_npmi", "diversity", "stability", "perplexity", "frequencies", "c_npmi x diversity", "warning"],
        [
            [
                str(one.topics),
                f"{one.coherence:.3f} ± {one.coherence_error:.3f}",
                f"{one.diversity:.2f}",
                cell(one.stability, ".2f"),
                cell(one.perplexity, ",.0f"),
                cell(one.unigram_perplexity, ",.0f"),
                f"{one.score:.3f}",
                "poor" if one.warnings() else "-",
            ]
            for one in compared
        ],
    )


def word_sections(words: WordMap) -> list[Section]:
    return [
        Section(
            "Cosine of word embeddings",
            "Each cell is the cosine of two words' embeddings: 1 for the same direction, 0 for unrelated ones. Where a "
            "model keeps groups apart, blocks on the diagonal are brighter than the rest. "
            "Words that are not one token are means of their pieces, and have a star.",
            figures=[word_figure(words)],
            tables=[word_table(words)],
        )
    ]


def word_figure(words: WordMap) -> Figure:
    return Figure(
        "figure3",
        "Cosine of word embeddings",
        f"Heat map of cosines between {len(words.words)} words.",
        [Heat(short(words.model), np.round(words.cosine, 5).tolist(), labels=words.labels)],
        columns=1,
    )


def word_table(words: WordMap) -> TableData:
    return TableData(
        f"Cosines, {short(words.model)}",
        ["", *words.labels],
        [[label, *(f"{value:.2f}" for value in row)] for label, row in zip(words.labels, words.cosine, strict=True)],
    )
