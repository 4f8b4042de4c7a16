"""Word maps, as data."""

from __future__ import annotations

import numpy as np

from topicscope.language import WordMap
from topicscope.pages import Heat, word_figure, word_table
from topicscope.pages.words import word_sections

WORDS = WordMap("org/bert", ("frog", "toad"), (0, 0), (1, 2), np.array([[1.0, 0.123456789], [0.123456789, 1.0]]))


def test_a_word_map_has_names_and_five_digits() -> None:
    figure = word_figure(WORDS)
    (heat,) = figure.panels
    assert isinstance(heat, Heat)
    assert (figure.name, figure.columns, heat.title, heat.labels) == ("figure3", 1, "bert", ["frog", "toad*"])
    assert heat.z == [[1.0, 0.12346], [0.12346, 1.0]]
    table = word_table(WORDS)
    assert table.columns == ["", "frog", "toad*"]
    assert table.rows == [["frog", "1.00", "0.12"], ["toad*", "0.12", "1.00"]]
    (section,) = word_sections(WORDS)
    assert (section.figures, section.tables) == ([figure], [table])
    assert "blocks on the diagonal are brighter" in section.note
