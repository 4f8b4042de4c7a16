"""What Figures 7 and 8 share: landscapes at T = 100, v = 300, and the minima that they have to show."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from topicscope.figures import Figure, Heat, TableData
from topicscope.paper.infinite import verdict
from topicscope.paper.outcome import Outcome
from topicscope.theory import Setting, best_attention, landscape, theorem3, theorem5

PAPER_MINIMA = {
    "diagonal": {20: 0.58328, 40: 0.64286, 60: 0.68754, 80: 0.72224},
    "blocks": {20: 0.99852, 40: 0.99876, 60: 0.99892, 80: 0.99904},
}
"""The minima of these very maps (appendix D.5), computed apart from this code: the figures print none."""
BEST_GAMMA = {20: 53.2, 40: 66.4, 60: 72.1, 80: 75.2}


def run_landscape(kind: Literal["diagonal", "blocks"]) -> Outcome:
    panels: list[Any] = []
    rows, ok = [], True
    for tau, minimum in PAPER_MINIMA[kind].items():
        s = Setting.of(100, 300, tau)
        grid = landscape(s, kind, "paper", cap=kind == "diagonal")
        best = best_attention(s, kind, "paper", cap=kind == "diagonal")
        alpha, beta, low = grid.minimum
        inside = (theorem5(s) if kind == "diagonal" else theorem3(s)).contains(alpha, beta)
        ok = (
            ok
            and inside
            and abs(low - minimum) < 5e-6
            and (kind == "diagonal" or abs(best.gamma / BEST_GAMMA[tau] - 1) < 0.005)
        )
        z = np.round(grid.loss, 6).tolist()
        panels.append(
            Heat(
                f"tau = {tau}",
                z,
                "beta",
                "alpha",
                x=grid.beta.tolist(),
                y=grid.alpha.tolist(),
                log=True,
                marks=[(beta, alpha, "lowest")],
            )
        )
        rows.append(
            [
                str(tau),
                f"{minimum:.5f}",
                f"{low:.5f}",
                f"{alpha:.3g}, {beta:.3g}",
                f"{best.gamma:.4g}" if kind == "blocks" else "-",
                f"{BEST_GAMMA[tau]:g}" if kind == "blocks" else "-",
                "yes" if inside else "no",
            ]
        )
    name = "figure7" if kind == "diagonal" else "figure8"
    figure = Figure(
        name,
        f"Loss landscape, {kind} W_V",
        "Four heat maps of the loss over alpha and beta on logarithmic axes; dark is low.",
        panels,
    )
    table = TableData(
        "Minima of the landscape",
        [
            "tau",
            "reference minimum",
            "minimum of the grid",
            "its alpha, beta",
            "best gamma",
            "reference gamma",
            "inside the theorem's bounds",
        ],
        rows,
    )
    return Outcome(
        "; ".join(f"tau {r[0]}: {r[1]}" for r in rows),
        "Theorem 5: beta in an interval, alpha a small fraction of it"
        if kind == "diagonal"
        else "Theorem 3: gamma in an interval",
        "; ".join(f"tau {r[0]}: {r[2]}" for r in rows),
        verdict(ok),
        "all minima agree to five digits and lie inside the theorem's bounds"
        if ok
        else "minima differ, or lie outside the theorem's bounds",
        [figure],
        [table],
        {"minima": {r[0]: float(r[2]) for r in rows}},
        {"topics": 100, "words_per_topic": 300},
    )
