"""The documents of a probe: how their attention differs, and some of them with topics and attention word by word."""

from collections.abc import Sequence

from topicscope.language import DocumentRow, HeadRow, Probe, ShownDocument, short
from topicscope.pages.panels import Lines, Series
from topicscope.pages.parts import Figure, MarkedText, Section, TableData, TextLinks, TextPiece


def document_sections(probe: Probe) -> list[Section]:
    if not probe.documents:
        return []
    rows = rows_by_name(probe)
    note = (
        "Contrast of a document: attention to words of the same topic minus attention to words of other topics, inside "
        f"the document; the mean over all heads, trained weights ({measured_at(probe.documents)}). Attention is "
        "debiased: without preference it is .01. All documents are in documents.csv and documents.parquet."
    )
    if probe.shown:
        note += (
            " Below are documents to look at: those with the highest and the lowest contrast, among documents with "
            "enough pairs of words, and some at random. Words of topics are coloured, with the number of their topic. "
            "Point at a word, click it, or move with the arrow keys: the words that it attends to are filled, the more "
            "the larger the weight."
        )
    return [
        Section(
            "What does it look like in documents?",
            note,
            figures=contrast_figures(probe.documents),
            tables=[document_table(probe)] if probe.shown else [],
            texts=[marked_text(one, rows[one.model, one.document], probe.heads) for one in probe.shown],
        )
    ]


def measured_at(rows: Sequence[DocumentRow]) -> str:
    """The part and the threshold of the contrasts; of each model, where they differ."""
    places: dict[str, str] = {}
    for row in rows:
        at = "given topics" if row.threshold is None else f"threshold {row.threshold:g}, the one with most words"
        places.setdefault(row.model, f"{row.part}, {at}")
    if len(set(places.values())) == 1:
        return next(iter(places.values()))
    return "; ".join(f"{short(model)}: {place}" for model, place in places.items())


def contrast_figures(rows: Sequence[DocumentRow]) -> list[Figure]:
    """The contrasts of all documents, in order of size, one curve per model."""
    series = []
    for model in dict.fromkeys(row.model for row in rows):
        found = sorted(row.contrast for row in rows if row.model == model and row.contrast is not None)
        if found:
            series.append(Series(short(model), [float(rank) for rank in range(1, len(found) + 1)], found))
    panel = Lines("", series, "documents, lowest contrast first", "contrast", levels=[(0.0, "no difference")])
    alt = "Same-topic minus different-topic attention of each document, in order of size."
    return [Figure("probe-documents", "Contrast of each document", alt, [panel], columns=1)] if series else []


def document_table(probe: Probe) -> TableData:
    """The documents that the page of a probe shows: why each was chosen, its size, contrast and loss.

    Args:
        probe: A probe; `probe.shown` has the documents.

    Returns:
        One row per document. Contrast: attention to words of the same topic minus that to words of other topics.

    Example:
        >>> about = {"model": "bert", "document": 0, "part": "encoder"}
        >>> read = {"place": 7, "words": 120, "tokens": 128, "topic_words": 30, "topics": [], "threshold": 0.001}
        >>> means = {"same": 0.03, "different": 0.01, "contrast": 0.02, "loss": 2.5}
        >>> means |= {"same_pairs": 40, "different_pairs": 60}
        >>> row = DocumentRow(**about, **read, **means)
        >>> rest = {"pieces": [], "topics": [], "keys": 1, "heads": [], "all_heads": 2, "cut": True}
        >>> probe = Probe(documents=[row], shown=[ShownDocument(**about, why="highest contrast", **rest)])
        >>> document_table(probe).rows
        [['bert', '7 of the corpus', 'highest contrast', '120', '128', '30', '0.02', '40 + 60', '2.5']]
    """
    rows, cells = rows_by_name(probe), []
    for one in probe.shown:
        row = rows[one.model, one.document]
        cells.append(
            [
                short(row.model),
                row.named,
                one.why,
                f"{row.words:,}",
                f"{row.tokens:,}",
                f"{row.topic_words:,}",
                "-" if row.contrast is None else f"{row.contrast:.3g}",
                f"{row.same_pairs:,} + {row.different_pairs:,}",
                "-" if row.loss is None else f"{row.loss:.3g}",
            ]
        )
    columns = ["model", "document", "chosen for", "words", "tokens read", "of topics", "contrast"]
    return TableData("The documents below", [*columns, "pairs (same + different)", "loss"], cells)


def rows_by_name(probe: Probe) -> dict[tuple[str, int], DocumentRow]:
    return {(row.model, row.document): row for row in probe.documents}


def marked_text(document: ShownDocument, row: DocumentRow, ranked: Sequence[HeadRow]) -> MarkedText:
    """`ranked`: heads of all models, parts and thresholds, the largest difference first.

    Of those of the document's part at the first threshold, where heads are said to carry topics, the first that does
    is shown first.
    """
    mine = [head for head in ranked if (head.model, head.part) == (document.model, document.part)]
    settings = [(head.threshold, head.topics_per_word) for head in mine]
    order = [(head.layer, head.head) for head, at in zip(mine, settings, strict=True) if at == settings[0]]
    places = {(one.layer, one.head): at for at, one in enumerate(document.heads) if one.topical}
    contrast = "" if row.contrast is None else f", contrast {row.contrast:.3g}"
    topics = ", ".join(f"{topic.name} {topic.share:.0%}" for topic in row.topics)
    words = sum(piece.topic is not None for piece in document.pieces)
    heads = [one for one in document.heads if one.head is not None]
    left_out = document.all_heads - len(heads)
    note = (
        f"Main topics (shares of its mixture): {topics or 'none'}. {len(document.pieces)} words and marks"
        f"{', the first of a longer text' if document.cut else ''}; {words} of topics. "
        f"Attention of the {document.part}, by word: summed over the tokens of the word that is attended, the "
        f"mean over those of the word that attends. Kept: the {document.keys} largest weights of each word, rounded; "
        f"the mean over the heads of each layer, and "
        + ("all heads." if not left_out else f"{len(heads)} of {document.all_heads} heads, those with topics first.")
    )
    return MarkedText(
        f"{short(document.model)}, document {row.named}: {document.why}{contrast}",
        note,
        [TextPiece(piece.before, piece.text, piece.topic) for piece in document.pieces],
        [(topic.name, f"{topic.name} ({', '.join(topic.words)})") for topic in document.topics],
        [
            TextLinks(
                f"{one.layer}",
                "mean over heads" if one.head is None else f"{one.head}{' (carries topics)' if one.topical else ''}",
                one.links,
            )
            for one in document.heads
        ],
        document.keys,
        ("layer", "head"),
        next((places[head] for head in order if head in places), 0),
        f"{document.model} {document.part}",
    )
