"""A theorem as a figure and a table: its matrix over words, and its numbers."""

from __future__ import annotations

import numpy as np

from topicscope.figures.panels import Figure, Heat, Section, TableData
from topicscope.theory import Theorem

LARGEST = 401
"""Words of the largest matrix that is drawn."""


def theorem_sections(theorem: Theorem) -> list[Section]:
    s, name = theorem.setting, type(theorem).__name__
    figures = []
    if s.topic_model.vocabulary <= LARGEST:
        z = np.round(theorem.matrix(), 6).tolist()
        heat = Heat("the matrix", z, topics=s.T, words_per_topic=s.v)
        alt = "Heat map of the theorem's matrix over words, ordered by topic; [MASK] first."
        figures.append(Figure(name.lower(), f"The matrix of {name} ({s.letters})", alt, [heat], 1))
    rows = [[entry.name, f"{entry.value:.7g}", entry.meaning] for entry in theorem.entries()]
    flags = " ".join(f"--{key.replace('_', '-')} {value:g}" for key, value in theorem.settings().items())
    command = f"topicscope theory {name.lower()} {flags}"
    tables = [TableData(f"Numbers of {name}", ["entry", "value", "meaning"], rows)]
    return [Section(name, theorem.sentence, command, figures, tables, config=theorem.settings())]
