"""Fitted topics (their numbers compared, a map, their words), Figure 3, and a probe's topics and documents."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from topicscope.language import (
    AblationRow,
    CooccurrenceRow,
    DocumentRow,
    HeadRow,
    Probe,
    ProbeRow,
    ShownDocument,
    StateRow,
    TopicQuality,
    TopicRow,
    Topics,
    WordMap,
    best,
    interval_text,
    short,
)
from topicscope.measure import Interval, topic_map
from topicscope.pages.panels import (
    Circles,
    Figure,
    Heat,
    Lines,
    MarkedText,
    Panel,
    Points,
    Section,
    Series,
    TableData,
    banded,
    curve_of,
    drawn,
)

MOST_NAMED = 8  # topics whose names fit side by side under a figure; of more, the map shows coherence in colours
MOST_MAPPED = 300  # circles, the largest topics; more would hide each other
MOST_WORDS = 30  # of a topic that is chosen
SHOWN = 8  # a probe's topics at each end that a figure shows: the tightest and the loosest

Row = TypeVar("Row", AblationRow, CooccurrenceRow, DocumentRow, HeadRow, ProbeRow, StateRow, TopicRow)
Chosen = TypeVar("Chosen", HeadRow, ProbeRow, StateRow, TopicRow)


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
                number(row["stability"], ".1f"),
                f"{row['nearest']} ({row['distance']:.2f})",
                " ".join(row["words"]),
            ]
            for row in topics.records()
        ],
    )


def fit_figure(topics: Topics) -> Figure:
    panels: list[Panel] = []
    trace = topics.fit.log_likelihood
    if len(trace) >= 2:
        sweeps = [float(min(10 * (i + 1), topics.fit.iterations)) for i in range(len(trace))]
        panels.append(
            Lines("fit", [Series("log-likelihood", sweeps, trace)], "sweep over all words", "log-likelihood per word")
        )
    alt = "Log-likelihood against sweeps."
    if len(topics) <= MOST_NAMED:
        alt = "Log-likelihood against sweeps, and coherence of every topic."
        names = [f"{k}: {' '.join(topics.top_words(k, 3))}" for k in range(len(topics))]
        curves = [curve_of("c_npmi", enumerate(topics.fit.coherence))]
        panels.append(Points("coherence by topic", names, curves, "c_npmi", levels=[(0.0, "by chance")]))
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
        return Lines(f"{title} is better", drawn(curves), "number of topics", y_label)

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
                number(one.stability, ".2f"),
                *(number(one.perplexity, ",.0f"), number(one.unigram_perplexity, ",.0f")),
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


def setting_name(rows: Sequence[StateRow | HeadRow | TopicRow]) -> str:
    """Of which words the rows are, by the first of them."""
    if not rows or rows[0].threshold is None:
        return "given topics"
    return f"threshold {rows[0].threshold:g}{', many topics per word' if rows[0].topics_per_word == 'many' else ''}"


def setting_of(row: Chosen) -> tuple[float | None, str]:
    return row.threshold, row.topics_per_word


def at_first(rows: Sequence[Chosen]) -> list[Chosen]:
    """The rows at the first threshold and kind of topics."""
    return [row for row in rows if setting_of(row) == setting_of(rows[0])]


def by_model(rows: Sequence[Row]) -> Iterator[tuple[int, str, list[Row]]]:
    """Number (from 1), name and rows of each model."""
    for place, model in enumerate(dict.fromkeys(row.model for row in rows), start=1):
        yield place, model, [row for row in rows if row.model == model]


def number(value: float | None, how: str = ".3g") -> str:
    return "-" if value is None else format(value, how)


def with_interval(value: float | None, interval: Interval | None) -> str:
    return "-" if value is None else f"{value:.3g} {interval_text(interval)}"


def topic_table(topics: Sequence[TopicRow]) -> TableData:
    return TableData(
        f"Topics: inside, nearest, farthest (mean cosine), {setting_name(topics)}",
        ["model", "topic", "words", "inside", "nearest", "farthest"],
        [
            [
                *(short(topic.model), topic.name, str(topic.words), number(topic.cosine)),
                f"{topic.nearest} ({number(topic.nearest_cosine)})",
                f"{topic.farthest} ({number(topic.farthest_cosine)})",
            ]
            for topic in at_first(topics)
        ],
    )


def topic_figures(topics: Sequence[TopicRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-topics-{place}",
            f"{short(model)}: topics",
            "Mean cosine inside topics and to other topics.",
            [topic_panel(sorted(at_first(mine), key=lambda topic: -topic.cosine))],
            columns=1,
        )
        for place, model, mine in by_model(topics)
    ]


def topic_panel(topics: list[TopicRow]) -> Points:
    shown = topics if len(topics) <= 2 * SHOWN else topics[:SHOWN] + topics[-SHOWN:]
    series = [
        curve_of("inside the topic", enumerate(topic.cosine for topic in shown)),
        curve_of("to the nearest topic", enumerate(topic.nearest_cosine for topic in shown)),
        curve_of("to the farthest topic", enumerate(topic.farthest_cosine for topic in shown)),
    ]
    return Points("mean cosine by topic", [topic.name for topic in shown], series, "cosine")


def document_section(probe: Probe) -> Section:
    shown = shown_documents(probe)
    note = (
        "Contrast of a document: attention to words of the same topic minus attention to words of other topics, inside "
        f"the document; the mean over all heads, trained weights ({measured_at(probe.documents)}). Attention is "
        "debiased: without preference it is .01. All documents are in documents.csv and documents.parquet."
    )
    if shown:
        note += (
            " Below are documents to look at: those with the highest and the lowest contrast, among documents with "
            "enough pairs of words, and some at random. Words of topics are coloured, with the number of their topic. "
            "Point at a word, click it, or move with the arrow keys: the words that it attends to are filled, the more "
            "the larger the weight."
        )
    return Section(
        "What does it look like in documents?",
        note,
        figures=contrast_figures(probe.documents),
        tables=[document_table(probe)] if shown else [],
        texts=[marked_text(one, row, probe.heads) for one, row in shown],
    )


def measured_at(rows: Sequence[DocumentRow]) -> str:
    """The part and the threshold of the contrasts; of each model, where they differ."""
    places = {
        model: f"{row.part}, given topics"
        if row.threshold is None
        else f"{row.part}, threshold {row.threshold:g}, the one with most words"
        for _, model, (row, *_) in by_model(rows)
    }
    if len(set(places.values())) == 1:
        return next(iter(places.values()))
    return "; ".join(f"{short(model)}: {place}" for model, place in places.items())


def contrast_figures(rows: Sequence[DocumentRow]) -> list[Figure]:
    contrasts = {
        model: sorted(row.contrast for row in mine if row.contrast is not None) for _, model, mine in by_model(rows)
    }
    series = [curve_of(short(model), enumerate(values, start=1)) for model, values in contrasts.items() if values]
    panel = Lines("", series, "documents, lowest contrast first", "contrast", levels=[(0.0, "no difference")])
    alt = "Same-topic minus different-topic attention of each document, in order of size."
    return [Figure("probe-documents", "Contrast of each document", alt, [panel], columns=1)] if series else []


def document_table(probe: Probe) -> TableData:
    return TableData(
        "The documents below",
        [
            *("model", "document", "chosen for", "words", "tokens read", "of topics", "contrast"),
            *("pairs (same + different)", "loss"),
        ],
        [
            [
                *(short(row.model), row.named, one.why),
                *(f"{row.words:,}", f"{row.tokens:,}", f"{row.topic_words:,}", number(row.contrast)),
                f"{row.same_pairs:,} + {row.different_pairs:,}",
                number(row.loss),
            ]
            for one, row in shown_documents(probe)
        ],
    )


def shown_documents(probe: Probe) -> list[tuple[ShownDocument, DocumentRow]]:
    rows = {(row.model, row.document): row for row in probe.documents}
    return [(one, rows[one.model, one.document]) for one in probe.shown]


def marked_text(document: ShownDocument, row: DocumentRow, ranked: Sequence[HeadRow]) -> MarkedText:
    """`ranked`: heads of all models, largest difference first. The first that carries topics is shown first."""
    mine = at_first([head for head in ranked if (head.model, head.part) == (document.model, document.part)])
    places = {(one.layer, one.head): at for at, one in enumerate(document.heads) if one.topical}
    contrast = "" if row.contrast is None else f", contrast {row.contrast:.3g}"
    topics = ", ".join(f"{topic.name} {topic.share:.0%}" for topic in row.topics)
    words = sum(piece.topic is not None for piece in document.pieces)
    heads = sum(one.head is not None for one in document.heads)
    some = f"{heads} of {document.all_heads} heads, those with topics first."
    return MarkedText(
        f"{short(document.model)}, document {row.named}: {document.why}{contrast}",
        f"Main topics (shares of its mixture): {topics or 'none'}. {len(document.pieces)} words and marks"
        f"{', the first of a longer text' if document.cut else ''}; {words} of topics. "
        f"Attention of the {document.part}, by word: summed over the tokens of the word that is attended, the "
        f"mean over those of the word that attends. Kept: the {document.keys} largest weights of each word, rounded; "
        f"the mean over the heads of each layer, and "
        f"{'all heads.' if heads == document.all_heads else some}",
        [(piece.before, piece.text, piece.topic) for piece in document.pieces],
        [(topic.name, f"{topic.name} ({', '.join(topic.words)})") for topic in document.topics],
        [
            (
                f"{one.layer}",
                "mean over heads" if one.head is None else f"{one.head}{' (carries topics)' if one.topical else ''}",
                one.links,
            )
            for one in document.heads
        ],
        document.keys,
        ("layer", "head"),
        next((places[head.layer, head.head] for head in mine if (head.layer, head.head) in places), 0),
        f"{document.model} {document.part}",
    )
