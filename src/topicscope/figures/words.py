"""The word map of Figure 3: cosines between words, as a heat map."""

from __future__ import annotations

import numpy as np

from topicscope.figures.panels import Figure, Heat, Section, TableData
from topicscope.language import WordMap, short


def word_sections(words: WordMap) -> list[Section]:
    note = "Words that are not one token are means of their pieces, and have a star."
    return [Section("Cosine of word embeddings", note, figures=[word_figure(words)], tables=[word_table(words)])]


def word_figure(words: WordMap) -> Figure:
    panel = Heat(short(words.model), np.round(words.cosine, 5).tolist(), labels=words.labels)
    alt = f"Heat map of cosines between {len(words.words)} words."
    return Figure("figure3", "Cosine of word embeddings", alt, [panel], columns=1)


def word_table(words: WordMap) -> TableData:
    rows = [[label, *(f"{value:.2f}" for value in row)] for label, row in zip(words.labels, words.cosine, strict=True)]
    return TableData(f"Cosines, {short(words.model)}", ["", *words.labels], rows)
