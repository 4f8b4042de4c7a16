"""The word map of Figure 3: cosines between words, as a heat map."""

import numpy as np

from topicscope.figures.panels import Figure, Heat, Section, TableData
from topicscope.language import WordMap, short


def word_sections(words: WordMap) -> list[Section]:
    note = (
        "Each cell is the cosine of two words' embeddings: 1 for the same direction, 0 for unrelated ones. Where a "
        "model keeps groups apart, blocks on the diagonal are brighter than the rest. "
        "Words that are not one token are means of their pieces, and have a star."
    )
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
