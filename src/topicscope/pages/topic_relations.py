"""What a run's matrix has between which topics: maps over pairs of topics beside those of W*, means by relation."""

import numpy as np

from topicscope.pages.panels import Heat
from topicscope.pages.parts import Figure, TableData
from topicscope.pages.word_names import optimum_name, topic_names
from topicscope.training import Run

PARTNERS = {
    "same": "a topic in common",
    "partner": "topics of one group, none in common",
    "other": "no group in common",
}


def matrix_names(run: Run) -> dict[str, str]:
    return {"value": "W_V", "optimum": optimum_name(run), "gram": "W_E'W_E"}


def relation_figures(run: Run) -> list[Figure]:
    """A map for each matrix, on one scale; none where all topics are alike."""
    relations, titles = run.results.get("relations", {}), matrix_names(run)
    maps = {titles[name]: one["topics"] for name, one in relations.items() if "topics" in one}
    arrays = {name: np.array(rows, dtype=float) for name, rows in maps.items()}  # None is NaN
    finite = np.concatenate([array[np.isfinite(array)] for array in arrays.values()] or [np.empty(0)])
    if not finite.size:
        return []
    names = topic_names(run)
    x_label, y_label = (f"topic of the {word} word" for word in ("input", "output"))
    low, high = float(finite.min()), float(finite.max())
    panels = [
        Heat(name, array.tolist(), x_label, y_label, low=low, high=high, labels=names) for name, array in arrays.items()
    ]
    alt = "Heat maps over pairs of topics: the mean entry between words of one and of the other, without the diagonal."
    return [Figure("topics", "Mean entry by pair of topics", alt, panels)]


def relation_tables(run: Run) -> list[TableData]:
    """Means by the number of topics in common, and by group."""
    relations = run.results.get("relations", {})
    rows: dict[str, dict[str, float | None]] = {}
    for matrix, one in relations.items():
        shared = {f"{count} topics in common": mean for count, mean in one.get("shared", {}).items()}
        partners = {PARTNERS[name]: mean for name, mean in one.get("partners", {}).items()}
        for relation, mean in (shared | partners).items():
            rows.setdefault(relation, {})[matrix] = mean
    if not rows:
        return []
    cells = [
        [relation, *("-" if (mean := of.get(matrix)) is None else f"{mean:.6g}" for matrix in relations)]
        for relation, of in rows.items()
    ]
    return [
        TableData(
            "Means by relation of two words", ["two words have", *map(matrix_names(run).__getitem__, relations)], cells
        )
    ]
