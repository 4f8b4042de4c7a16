"""What a probe found, as tables and figures: Table 1 (and 5), Table 2, layer x head maps, topics, and the word map of Figure 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from topicscope.figures.panels import Figure, Heat, Lines, Points, Series, TableData
from topicscope.language import WordMap

MEASURES = ("cosine", "dot", "attention")
PAPER = {
    "one": {
        "bert": ((1.21, 1.19, 1.32), (1.13, 1.15, 1.28), (1.11, 1.13, 1.22)),
        "albert": ((5.64, 6.29, 1.33), (4.18, 3.74, 1.28), (3.24, 2.93, 1.22)),
        "bart": ((2.80, 2.67, 1.35), (1.95, 1.92, 1.31), (1.63, 1.62, 1.23)),
        "electra": ((5.98, 5.37, 2.14), (7.70, 7.35, 2.09), (7.46, 8.08, 1.95)),
        "roberta": ((6.44, 6.81, 1.40), (5.73, 6.31, 1.31), (5.24, 5.30, 1.22)),
    },
    "many": {
        "bert": ((1.14, 1.04, 1.23), (0.97, 1.05, 1.17), (0.99, 0.93, 1.13)),
        "albert": ((4.15, 3.06, 1.23), (3.09, 3.04, 1.17), (1.54, 1.44, 1.11)),
        "bart": ((2.51, 1.76, 1.27), (1.63, 1.12, 1.20), (1.06, 0.85, 1.11)),
        "electra": ((5.28, 3.99, 1.70), (5.56, 5.57, 1.58), (6.39, 5.61, 1.48)),
        "roberta": ((4.39, 5.01, 1.19), (5.20, 4.25, 1.15), (4.71, 4.15, 1.12)),
    },
}
"""Ratios same / different of cosine, dot and attention at thresholds .0005, .001, .002: Tables 1 and 5."""


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def span(ends: Any) -> str:
    return "-" if ends is None else f"[{ends[0]:.4g}, {ends[1]:.4g}]"


def ratio(effect: dict[str, Any] | None) -> str:
    if effect is None:
        return "-"
    return "undefined" if effect["ratio"] is None else f"{effect['ratio']:.4g} {span(effect['ratio_interval'])}"


def family(model: str, kind: str) -> str:
    """The paper's row of this kind of model, if it has one."""
    name = model.lower().rstrip("/").rsplit("/", 1)[-1]
    for known in ("roberta", "albert", "electra", "bart", "bert"):
        if known in name:
            return " / ".join(" ".join(f"{x:g}" for x in row) for row in PAPER[kind][known])
    return "-"


def short(model: str) -> str:
    return model.rstrip("/").rsplit("/", 1)[-1]


def records(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The numbers of a probe as flat tables: effects (a line a figure), heads, topics, co-occurrence."""
    about = ("model", "variant", "threshold", "topics_per_word", "words", "topics", "embedding", "window")
    effects = [
        {key: row[key] for key in about} | {"measure": measure} | flat(row[measure])
        for row in found["rows"]
        for measure in (*MEASURES, "cosine_centred", "dot_centred")
        if row[measure] is not None
    ]
    tables = {
        "effects": effects,
        **{name: [flat(record) for record in found[name]] for name in ("heads", "topics", "cooccurrence")},
    }
    return {name: table for name, table in tables.items() if table}


def flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Intervals as two columns, what is inside as columns of its own."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        name = prefix + key
        if isinstance(value, dict):
            found |= flat(value, f"{name}_")
        elif isinstance(value, list | tuple):
            found |= {f"{name}_low": value[0], f"{name}_high": value[1]}
        else:
            found[name] = value
    return found


def ratio_table(rows: list[dict[str, Any]]) -> TableData:
    """Table 1: ratios with intervals."""
    columns = [
        "model",
        "weights",
        "threshold",
        "topics a word",
        "words",
        "cosine ratio",
        "dot ratio",
        "attention ratio",
    ]
    return TableData(
        "Same topic over different topic, with 95% intervals",
        columns,
        [
            [
                short(r["model"]),
                r["variant"],
                number(r["threshold"]),
                r["topics_per_word"],
                str(r["words"]),
                *(ratio(r[m]) for m in MEASURES),
            ]
            for r in rows
        ],
    )


def difference_table(rows: list[dict[str, Any]]) -> TableData:
    columns = [
        "model",
        "weights",
        "threshold",
        "topics a word",
        "measure",
        "same",
        "different",
        "difference",
        "95%",
        "shuffled topics",
        "p",
        "matched frequencies",
    ]
    cells = []
    for r in rows:
        for m in (*MEASURES, "cosine_centred", "dot_centred"):
            e = r[m]
            if e is not None:
                equal = (
                    "-"
                    if e["matched"] is None
                    else f"{number(e['matched']['difference'])} {span(e['matched']['interval'])}"
                )
                cells.append(
                    [
                        short(r["model"]),
                        r["variant"],
                        number(r["threshold"]),
                        r["topics_per_word"],
                        m.replace("_", " "),
                        number(e["same"], 4),
                        number(e["different"], 4),
                        number(e["difference"]),
                        span(e["interval"]),
                        span(e["null_interval"]),
                        number(e["p_value"]),
                        equal,
                    ]
                )
    return TableData("Every figure with what chance makes of it", columns, cells)


def ratio_figure(rows: list[dict[str, Any]]) -> Figure:
    """The three ratios against the threshold, a curve a model."""
    panels: list[Any] = []
    trained = [r for r in rows if r["threshold"] is not None and r["topics_per_word"] == rows[0]["topics_per_word"]]
    for m in MEASURES:
        series = []
        for key in dict.fromkeys((r["model"], r["variant"]) for r in trained):
            mine = [
                r
                for r in trained
                if (r["model"], r["variant"]) == key and r[m] is not None and r[m]["ratio"] is not None
            ]
            if mine and (key[1] == "trained" or m == "attention"):
                ends = [r[m]["ratio_interval"] or (r[m]["ratio"],) * 2 for r in mine]
                name = short(key[0]) + ("" if key[1] == "trained" else ", random weights")
                group = None if key[1] == "trained" else "random weights, all models"
                xs, ys = [r["threshold"] for r in mine], [r[m]["ratio"] for r in mine]
                series.append(Series(name, xs, ys, [e[0] for e in ends], [e[1] for e in ends], group, markers=True))
        panels.append(Lines(m, series, "threshold", "same / different", log_x=True, levels=[(1.0, "no effect")]))
    return Figure(
        "probe-ratios",
        "Same topic over different topic",
        "Ratios of cosine, dot product and attention against the threshold.",
        panels,
        columns=3,
    )


def answers(rows: list[dict[str, Any]], heads: list[dict[str, Any]]) -> list[str]:
    """A sentence a model: what it shows at the first threshold, and whether that survives the controls that were on."""
    said = []
    for model in dict.fromkeys(r["model"] for r in rows):
        row = next(r for r in rows if r["model"] == model and r["variant"] == "trained")
        parts = []
        for name, m in (("embeddings", "cosine"), ("attention", "attention")):
            e = row[m]
            if e is None or e["interval"] is None:
                parts.append(f"{name}: too few pairs")
                continue
            checks = [("above zero", e["interval"][0] > 0)]
            if e["p_value"] is not None:
                checks.append(("beyond shuffled topics", e["p_value"] <= 0.05))
            if e["matched"] is not None and e["matched"]["interval"] is not None:
                checks.append(("at equal frequencies", e["matched"]["interval"][0] > 0))
            good, bad = ([text for text, ok in checks if ok is wanted] for wanted in (True, False))
            verdict = "yes" if not bad else "no" if not good or not checks[0][1] else "unsure"
            parts.append(f"{name}: {verdict} ({', '.join(good + [f'not {text}' for text in bad])})")
        mine = [
            h for h in heads if h["model"] == model and h["ratio"] is not None and h["threshold"] == row["threshold"]
        ]
        best = max(mine, key=lambda h: h["ratio"], default=None)
        where = (
            ""
            if best is None
            else f"; strongest head: {best['part']} layer {best['layer']}, head {best['head']} (ratio {ratio(best)})"
        )
        said.append(f"{short(model)} encodes topics? {'; '.join(parts)}{where}.")
    return said


def head_figures(heads: list[dict[str, Any]]) -> list[Figure]:
    """Layer x head maps of the attention ratio, at the smallest threshold of each model."""
    figures: list[Figure] = []
    for model in dict.fromkeys(h["model"] for h in heads):
        mine = [h for h in heads if h["model"] == model]
        mine = [
            h
            for h in mine
            if (h["threshold"], h["topics_per_word"]) == (mine[0]["threshold"], mine[0]["topics_per_word"])
        ]
        panels: list[Any] = []
        for part in dict.fromkeys(h["part"] for h in mine):
            here = [h for h in mine if h["part"] == part]
            z = np.full((max(h["layer"] for h in here) + 1, max(h["head"] for h in here) + 1), np.nan)
            for h in here:
                z[h["layer"], h["head"]] = np.nan if h["ratio"] is None else h["ratio"]
            panels.append(Heat(f"{part} attention", z.tolist(), "head", "layer"))
        figures.append(
            Figure(
                f"probe-heads-{len(figures) + 1}",
                f"{short(model)}: attention ratio of every head",
                "Heat maps, layers by heads.",
                panels,
            )
        )
    return figures


def head_table(heads: list[dict[str, Any]], count: int = 10) -> TableData:
    """The heads that carry topics most."""
    first = [
        h
        for h in heads
        if h["ratio"] is not None
        and (h["threshold"], h["topics_per_word"]) == (heads[0]["threshold"], heads[0]["topics_per_word"])
    ]
    best = sorted(first, key=lambda h: -h["ratio"])[:count]
    rows = [
        [
            short(h["model"]),
            h["part"],
            str(h["layer"]),
            str(h["head"]),
            ratio(h),
            number(h["same"], 4),
            number(h["different"], 4),
        ]
        for h in best
    ]
    return TableData(
        "Heads that attend to their topic most",
        ["model", "part", "layer", "head", "ratio (95%)", "same", "different"],
        rows,
    )


def topic_figures(topics: list[dict[str, Any]], count: int = 8) -> list[Figure]:
    """Mean cosine inside the tightest and the loosest topics of each model."""
    figures: list[Figure] = []
    for model in dict.fromkeys(t["model"] for t in topics):
        mine = [t for t in topics if t["model"] == model]
        mine = sorted(
            (
                t
                for t in mine
                if t["threshold"] == mine[0]["threshold"] and t["topics_per_word"] == mine[0]["topics_per_word"]
            ),
            key=lambda t: -t["cosine"],
        )
        shown = mine if len(mine) <= 2 * count else mine[:count] + mine[-count:]
        places = [float(i) for i in range(len(shown))]
        series = [Series("inside the topic", places, [t["cosine"] for t in shown])]
        for name in ("nearest", "farthest"):
            there = [i for i, t in enumerate(shown) if t[name] is not None]
            series.append(
                Series(f"to the {name} topic", [float(i) for i in there], [shown[i][f"{name}_cosine"] for i in there])
            )
        panel = Points("mean cosine by topic", [t["name"] for t in shown], series, "cosine")
        figures.append(
            Figure(
                f"probe-topics-{len(figures) + 1}",
                f"{short(model)}: topics",
                "Mean cosine inside topics and to other topics.",
                [panel],
                columns=1,
            )
        )
    return figures


def topic_table(topics: list[dict[str, Any]]) -> TableData:
    first = (
        [
            t
            for t in topics
            if t["threshold"] == topics[0]["threshold"] and t["topics_per_word"] == topics[0]["topics_per_word"]
        ]
        if topics
        else []
    )
    rows = [
        [
            short(t["model"]),
            t["name"],
            str(t["words"]),
            number(t["cosine"]),
            f"{t['nearest']} ({number(t['nearest_cosine'])})",
            f"{t['farthest']} ({number(t['farthest_cosine'])})",
        ]
        for t in first
    ]
    return TableData(
        "Topics: inside, nearest, farthest (mean cosine)",
        ["model", "topic", "words", "inside", "nearest", "farthest"],
        rows,
    )


def cooccurrence_table(rows: list[dict[str, Any]]) -> TableData:
    """Table 2."""
    columns = [
        "model",
        "threshold",
        "pairs",
        "cosine: same topic",
        "cosine: co-occurring (95%)",
        "attention: same topic",
        "attention: co-occurring (95%)",
    ]
    cells = [
        [
            short(r["model"]),
            number(r["threshold"]),
            str(r["pairs"]),
            *(
                cell
                for m in ("cosine", "attention")
                for cell in (number(r[m]["same_topic"]), f"{number(r[m]['cooccurring'])} {span(r[m]['interval'])}")
            ),
        ]
        for r in rows
    ]
    return TableData("Pairs of one topic against the pairs that stand together most often", columns, cells)


def word_figure(found: WordMap, model: str) -> Figure:
    panel = Heat(short(model), np.round(found.cosine, 5).tolist(), labels=found.labels)
    return Figure(
        "figure3",
        "Cosine of word embeddings",
        f"Heat map of cosines between {len(found.words)} words.",
        [panel],
        columns=1,
    )
