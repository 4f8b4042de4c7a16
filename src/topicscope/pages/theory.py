"""Theorems as their matrix over words and a table, and loss landscapes as in Figures 7 and 8.

In landscapes beta goes to the right, alpha upwards, both logarithmic; dark is low.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from topicscope.pages.panels import BOTH, NORM_CURVES, Figure, Heat, Lines, Section, Series, TableData
from topicscope.theory import AttentionLandscape, Dynamics, Landscape, Theorem, ValueOptimum

LARGEST = 401  # words of the largest matrix that is drawn
CORNER = 10  # topics, and words of each, that stand for a larger matrix whose entries are only four numbers


def theorem_sections(theorem: Theorem) -> list[Section]:
    s, name = theorem.setting, type(theorem).__name__
    title = name.replace("Theorem", "Theorem ")
    figures = []
    if s.topic_model.vocabulary <= LARGEST:
        heat = Heat("the matrix", np.round(theorem.matrix(), 6).tolist(), topics=s.T, words_per_topic=s.v)
        alt = "Heat map of the theorem's matrix over words, ordered by topic; [MASK] first."
        figures.append(Figure(name.lower(), f"The matrix of {title} ({s.letters})", alt, [heat], 1))
    rows = [[entry.name, f"{entry.value:.7g}", entry.meaning] for entry in theorem.entries()]
    flags = " ".join(f"--{key.replace('_', '-')} {value:g}" for key, value in theorem.settings().items())
    command = f"topicscope theory {name.lower()} {flags}"
    table = TableData(f"Numbers of {title}", ["entry", "value", "meaning"], rows)
    return [Section(title, theorem.sentence, command, figures, [table], config=theorem.settings())]


def optimum_sections(best: ValueOptimum) -> list[Section]:
    rows = [
        [
            *(mode.name, f"{mode.count:,}", f"{mode.eigenvalue:.6g}"),
            "never learnt" if mode.half_time is None else f"{mode.half_time:.5g}",
        ]
        for mode in best.modes
    ]
    return [
        Section(
            "The optimum under uniform attention",
            " ".join([f"Loss {best.loss:.6f}. Modes stand in the order of learning.", *best.notes]),
            "topicscope theory optimum",
            optimum_figures(best),
            [TableData("Modes of learning", ["mode", "count", "eigenvalue", "half-time"], rows)],
            config=asdict(best.settings),
        )
    ]


def optimum_figures(best: ValueOptimum) -> list[Figure]:
    corner = best if best.vocabulary <= LARGEST else best.corner(CORNER, CORNER)
    if corner is None:
        return []
    order = np.append(0, 1 + corner.topic_order())
    matrices = {
        "W*": corner.matrix(),
        "limit of long documents": corner.limit_matrix(),
        "Theorem 2 for these topics": corner.least_norm_matrix(),
    }
    low, high = (float(end([end(matrix) for matrix in matrices.values()])) for end in (np.min, np.max))
    axes = "input word, by topic", "output word, by topic"
    panels = [
        Heat(name, rounded(matrix[np.ix_(order, order)]), *axes, low=low, high=high)
        for name, matrix in matrices.items()
    ]
    alt = "Heat maps over words, [MASK] first, topic by topic: the optimum, its limit of long documents, Theorem 2."
    if corner is not best:
        alt += f" Of the {best.vocabulary - 1:,} words the first {CORNER} of {CORNER} topics."
    return [Figure("optimum", f"The optimal W_V, documents of length {best.settings.length}", alt, panels, columns=3)]


def rounded(matrix: np.ndarray) -> list[list[float]]:
    """Six digits of the largest entry, which is more than colours show, and keeps pages small."""
    largest = float(np.abs(matrix).max()) or 1.0
    return np.round(matrix, 5 - math.floor(math.log10(largest))).tolist()


def dynamics_sections(found: Dynamics) -> list[Section]:
    rows = [
        [
            *(str(row["stage"]), str(row["quantity"])),
            "not covered" if row["value"] is None else f"{row['value']:.6g}",
            str(row["meaning"]),
        ]
        for row in found.rows()
    ]
    return [
        Section(
            "When each stage happens",
            " ".join(found.summary()),
            "topicscope theory dynamics",
            dynamics_figures(found),
            [TableData("Rates, plateaus and half-times", ["stage", "quantity", "value", "meaning"], rows)],
            config=found.as_dict()["settings"],
        )
    ]


def dynamics_figures(found: Dynamics) -> list[Figure]:
    halves = {"value": found.value.half_time, "key": found.attention.half_time}
    known = {part: half for part, half in halves.items() if half is not None}
    if not known or found.training.loss != "squared" or found.training.embedding != "one-hot":
        return []
    times = np.geomspace(min(known.values()) / 50, 4 * max(known.values()), 300)
    names = {"value": NORM_CURVES["norm_value"], "key": BOTH}
    curves = [Series(names[part], times.tolist(), norm.tolist()) for part, norm in found.norms(times).items()]
    curves += [
        Series(f"half-way, {part}", [half], found.norms(np.array([half]))[part].tolist(), None, None, "half-way", True)
        for part, half in known.items()
    ]
    third, end = found.attention.third_act_time, float(times[-1])
    panel = Lines(
        "predicted norms under gradient flow",
        curves,
        "time (learning rate x steps)",
        "Frobenius norm",
        log_x=True,
        bands=[] if third is None or third > end else [(third, end, "third act: norms keep rising")],
    )
    alt = "Predicted norms of value, key and query against time on a logarithmic axis; a band where they keep rising."
    return [Figure("dynamics", "Norms of value, key and query", alt, [panel], 1)]


def landscape_sections(result: AttentionLandscape) -> list[Section]:
    stage, best, settings = result.stage, result.stage.optimum, result.stage.setting.as_dict()
    alpha, beta, loss = result.grid.minimum
    places = {
        "uniform attention": (1.0, 1.0, 1.0, stage.uniform_loss),
        "best attention": (best.alpha, best.beta, best.gamma, best.loss),
        "lowest point of the grid": (alpha, beta, stage.setting.gamma(alpha, beta), loss),
    }
    flags = {"value_matrix": stage.value_matrix, "convention": stage.convention, **settings}
    command = "topicscope theory landscape " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in flags.items())
    title = f"{stage.value_matrix} W_V: {stage.setting.letters} ({stage.convention})"
    return [
        Section(
            "The best attention for a frozen W_V",
            "α and β are attention weights; a word of another topic has 1. γ is the average weight inside a topic.",
            command + (" --cap" if stage.cap else " --no-cap"),
            [landscape_figure("landscape", title, {"": result.grid}, {"": (best.alpha, best.beta)})],
            [
                TableData(
                    "Attention and loss",
                    ["", "α (same topic)", "β (same word)", "γ (average)", "loss"],
                    [[name, *(f"{value:.6g}" for value in values)] for name, values in places.items()],
                )
            ],
            config={"value_matrix": stage.value_matrix, "convention": stage.convention, "cap": stage.cap, **settings},
        )
    ]


def on_the_map(grid: Landscape, alpha: float, beta: float) -> tuple[float, float, str]:
    """The mark of the lowest point; of one that the loss only tends to (alpha or beta 0) at the edge of the map."""
    if min(alpha, beta) > 0:
        return beta, alpha, "lowest"
    return beta or float(grid.beta[0]), alpha or float(grid.alpha[0]), "lowest, beyond the edge"


def landscape_figure(
    name: str, title: str, grids: Mapping[str, Landscape], best: Mapping[str, tuple[float, float]] | None = None
) -> Figure:
    marked = {panel: grid.minimum[:2] for panel, grid in grids.items()} | dict(best or {})
    panels = [
        Heat(
            panel,
            np.round(grid.loss, 6).tolist(),
            *("β: attention to same word", "α: attention to same topic"),
            x=grid.beta.tolist(),
            y=grid.alpha.tolist(),
            log=True,
            marks=[on_the_map(grid, *marked[panel])],
            references=[(1.0, 1.0, "uniform")],
            contours=12,
            z_label="squared loss",
        )
        for panel, grid in grids.items()
    ]
    alt = (
        "The loss over alpha and beta on logarithmic axes; dark is low. "
        "The coloured mark is the lowest point, the ring uniform attention."
    )
    return Figure(name, title, alt, panels)
