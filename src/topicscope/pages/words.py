"""The word map of Figure 3: cosines between words, as a heat map."""

import numpy as np

from topicscope.language import WordMap, short
from topicscope.pages.panels import Heat
from topicscope.pages.parts import Figure, Section, TableData


def word_sections(words: WordMap) -> list[Section]:
    note = (
        "Each cell is the cosine of two words' embeddings: 1 for the same direction, 0 for unrelated ones. Where a "
        "model keeps groups apart, blocks on the diagonal are brighter than the rest. "
        "Words that are not one token are means of their pieces, and have a star."
    )
    return [Section("Cosine of word embeddings", note, figures=[word_figure(words)], tables=[word_table(words)])]


def word_figure(words: WordMap) -> Figure:
    """Cosines between words as a heat map (Figure 3).

    Args:
        words: The cosines, from `word_map`.

    Returns:
        The figure; words of several tokens have a star.

    Example:
        >>> from topicscope.language import WordMap
        >>> words = WordMap("bert", ("frog", "toad"), (0, 0), (1, 1), np.array([[1.0, 0.5], [0.5, 1.0]]))
        >>> word_figure(words).panels[0].labels
        ['frog', 'toad']
    """
    return Figure(
        "figure3",
        "Cosine of word embeddings",
        f"Heat map of cosines between {len(words.words)} words.",
        [Heat(short(words.model), np.round(words.cosine, 5).tolist(), labels=words.labels)],
        columns=1,
    )


def word_table(words: WordMap) -> TableData:
    """Cosines between words as a table.

    Args:
        words: The cosines, from `word_map`.

    Returns:
        One row and one column per word, with two digits.

    Example:
        >>> from topicscope.language import WordMap
        >>> word_table(WordMap("bert", ("frog", "toad"), (0, 0), (1, 1), np.array([[1.0, 0.5], [0.5, 1.0]]))).rows
        [['frog', '1.00', '0.50'], ['toad', '0.50', '1.00']]
    """
    rows = [[label, *(f"{value:.2f}" for value in row)] for label, row in zip(words.labels, words.cosine, strict=True)]
    return TableData(f"Cosines, {short(words.model)}", ["", *words.labels], rows)
