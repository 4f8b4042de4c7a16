"""A timeline as tables and figures: same topic against different topic at every checkpoint, and when each measure appears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topicscope.figures.panels import Figure, Lines, Series, TableData
from topicscope.measure import Effect, appears, half_way, interval

Effects = Mapping[str, Mapping[int, Effect | None]]
MATCHED = "_matched"
TITLES = {
    "cosine": "embeddings: cosine",
    "dot": "embeddings: dot product",
    "embedding": "embedding: cosine",
    "value": "value matrix",
    "attention": "attention",
}


def title(measure: str) -> str:
    name, _, layer = measure.removesuffix(MATCHED).partition(".")
    return (
        TITLES.get(name, name)
        + (f", layer {layer}" if layer else "")
        + (", equal frequencies" if measure.endswith(MATCHED) else "")
    )


def rows(found: Effects) -> list[dict[str, Any]]:
    """A line a measure and step."""
    return [
        {
            "measure": measure,
            "step": step,
            **{
                key: value
                for key, value in effect.as_dict().items()
                if key not in ("matched", "null_interval", "p_value")
            },
        }
        for measure, by_step in found.items()
        for step, effect in sorted(by_step.items())
        if effect is not None
    ]


def moments(found: Effects) -> list[dict[str, Any]]:
    """When each measure appears (its interval stays above zero from there on), and when it has made half of its rise, with an interval."""
    said = []
    for measure, by_step in found.items():
        effects = [(step, effect) for step, effect in sorted(by_step.items()) if effect is not None]
        if len(effects) < 2:
            continue
        steps, curve = np.array([step for step, _ in effects]), np.array([effect.difference for _, effect in effects])
        low = np.array([-np.inf if effect.interval is None else effect.interval[0] for _, effect in effects])
        first = appears(steps, low)
        half, spread = (
            (float(half_way(steps, curve)), interval(halves(effects))) if first is not None else (float("nan"), None)
        )
        said.append(
            {
                "measure": measure,
                "appears": first,
                "half": half if np.isfinite(half) else None,
                "half_interval": spread,
                "first": float(curve[0]),
            }
            | {"last": float(curve[-1]), "last_interval": effects[-1][1].interval}
        )
    return said


def halves(effects: list[tuple[int, Effect]]) -> np.ndarray:
    """Half-way points of the resampled curves."""
    curves = np.array([effect.resamples for _, effect in effects])
    return half_way(np.array([step for step, _ in effects]), curves.T)


def later(found: Effects, first: str, second: str) -> dict[str, Any] | None:
    """How much later `second` has made half of its rise than `first`: the ratio of the steps, and a 95% interval from both bootstraps."""
    sides = [
        [(step, e) for step, e in sorted(found.get(name, {}).items()) if e is not None] for name in (first, second)
    ]
    said = {m["measure"]: m for m in moments(found)}
    if any(len(side) < 2 for side in sides) or any(said[name]["half"] is None for name in (first, second)):
        return None
    ratios = halves(sides[1]) / halves(sides[0])
    return {
        "first": first,
        "second": second,
        "ratio": said[second]["half"] / said[first]["half"],
        "interval": interval(ratios),
    }


def sentence(found: Effects) -> str:
    """What is seen, in one line."""
    said = {m["measure"]: m for m in moments(found)}
    words = next((name for name in ("cosine", "embedding", "value") if name in said), None)
    parts = []
    for name in [n for n in (words, "attention") if n is not None and n in said]:
        m = said[name]
        where = f"from step {m['appears']} on" if m["appears"] is not None else "not seen at the end"
        parts.append(
            f"{title(name)}: {where}"
            + (
                f", half of its rise at step {m['half']:.0f} {span(m['half_interval'])}"
                if m["half"] is not None
                else ""
            )
        )
    order = later(found, words, "attention") if words else None
    if order is not None and order["interval"] is not None:
        low, high = order["interval"]
        which = (
            "attention is later" if low > 1 else "attention is earlier" if high < 1 else "which is first is not decided"
        )
        parts.append(
            f"{which} (its half-way step is {times(order['ratio'])} times that of the other, 95% {times(low)} to {times(high)})"
        )
    return "; ".join(parts)


def times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def span(ends: Any) -> str:
    return "" if ends is None else f"[{ends[0]:.0f}, {ends[1]:.0f}]"


def timeline_figures(found: Effects, name: str = "timeline") -> list[Figure]:
    """Difference against step with its interval, for each measure; and all of them as shares of their end."""
    shown: dict[str, list[Series]] = {}
    for measure, by_step in found.items():
        main, _, layer = measure.partition(".")
        if layer:
            shown.setdefault(f"{TITLES.get(main, main)}, layer by layer", []).append(band(by_step, f"layer {layer}"))
        else:
            matched = main.endswith(MATCHED)
            shown.setdefault(title(main.removesuffix(MATCHED)), []).append(
                band(by_step, "equal frequencies" if matched else "all pairs")
            )
    panels = [
        Lines(head, series, "step", "same less different", log_x=True, levels=[(0.0, "no effect")])
        for head, series in shown.items()
    ]
    shares = []
    for measure in found:
        curve = band(found[measure], title(measure))
        if "." not in measure and not measure.endswith(MATCHED) and curve.y and (end := curve.y[-1]) > 0:
            y, low, high = ([v / end for v in values or []] for values in (curve.y, curve.low, curve.high))
            shares.append(Series(curve.name, curve.x, y, low, high, markers=True))
    alt = "Same-topic mean less different-topic mean against training step, with 95% bands."
    figures = [Figure(name, "Topic structure against training step", alt, list(panels))]
    if len(shares) > 1:
        both = Lines("each as a share of its end", shares, "step", "share of the final difference", log_x=True)
        figures.append(
            Figure(
                f"{name}-order",
                "Which comes first?",
                "Measures as shares of their final value against training step.",
                [both],
                columns=1,
            )
        )
    return figures


def band(by_step: Mapping[int, Effect | None], name: str) -> Series:
    """Step 0 stands at 1/2 on the logarithmic axis."""
    effects = [(step, effect) for step, effect in sorted(by_step.items()) if effect is not None]
    ends = [effect.interval or (effect.difference,) * 2 for _, effect in effects]
    xs, ys = [max(0.5, float(step)) for step, _ in effects], [effect.difference for _, effect in effects]
    return Series(name, xs, ys, [low for low, _ in ends], [high for _, high in ends], markers=True)


def moment_table(found: Effects) -> TableData:
    columns = ["measure", "appears at step", "half of its rise at step", "difference at the start", "at the end", "95%"]
    cells = []
    for m in moments(found):
        end = "-" if m["last_interval"] is None else f"[{m['last_interval'][0]:.3g}, {m['last_interval'][1]:.3g}]"
        half = "-" if m["half"] is None else f"{m['half']:.0f} {span(m['half_interval'])}"
        cells.append(
            [
                title(m["measure"]),
                "never" if m["appears"] is None else str(m["appears"]),
                half,
                f"{m['first']:.3g}",
                f"{m['last']:.3g}",
                end,
            ]
        )
    return TableData("When topic structure appears", columns, cells)
