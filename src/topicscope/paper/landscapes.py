"""What Figures 7 and 8 share: landscapes at T = 100, v = 300, and the minima that they have to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicscope.figures import TableData, landscape_figure
from topicscope.paper.outcome import Outcome, verdict
from topicscope.theory import Landscape, Setting, best_attention, landscape, theorem3, theorem5

Kind = Literal["diagonal", "blocks"]

REFERENCE: dict[Kind, dict[int, float]] = {
    "diagonal": {20: 0.58328, 40: 0.64286, 60: 0.68754, 80: 0.72224},
    "blocks": {20: 0.99852, 40: 0.99876, 60: 0.99892, 80: 0.99904},
}
"""Minima by tau of these very maps (appendix D.5), computed apart from this code: the figures print none."""

BEST_GAMMA = {20: 53.2, 40: 66.4, 60: 72.1, 80: 75.2}
FIVE_DIGITS = 5e-6
TOPICS, WORDS_PER_TOPIC = 100, 300


@dataclass(frozen=True)
class Found:
    """The landscape by tau; for blocks also the gamma of the best attention."""

    grids: dict[int, Landscape]
    gammas: dict[int, float]


@dataclass(frozen=True)
class Minimum:
    """The lowest point of a landscape."""

    tau: int
    alpha: float
    beta: float
    loss: float
    inside: bool  # the theorem's bounds


def measure_landscapes(kind: Kind) -> Found:
    settings = {tau: Setting.of(TOPICS, WORDS_PER_TOPIC, tau) for tau in REFERENCE[kind]}
    grids = {tau: landscape(s, kind, "paper", cap=kind == "diagonal") for tau, s in settings.items()}
    gammas = {tau: best_attention(s, kind, "paper").gamma for tau, s in settings.items() if kind == "blocks"}
    return Found(grids, gammas)


def minimum_of(tau: int, grid: Landscape, kind: Kind) -> Minimum:
    alpha, beta, loss = grid.minimum
    setting = Setting.of(TOPICS, WORDS_PER_TOPIC, tau)
    theorem = theorem5(setting) if kind == "diagonal" else theorem3(setting)
    return Minimum(tau, alpha, beta, loss, theorem.contains(alpha, beta))


def judge_landscapes(found: Found, name: str, kind: Kind) -> Outcome:
    minima = [minimum_of(tau, grid, kind) for tau, grid in found.grids.items()]
    holds = all(m.inside and abs(m.loss - REFERENCE[kind][m.tau]) < FIVE_DIGITS for m in minima) and all(
        abs(gamma / BEST_GAMMA[tau] - 1) < 0.005 for tau, gamma in found.gammas.items()
    )
    rows = [
        [
            str(m.tau),
            f"{REFERENCE[kind][m.tau]:.5f}",
            f"{m.loss:.5f}",
            f"{m.alpha:.3g}, {m.beta:.3g}",
            *([f"{found.gammas[m.tau]:.4g}", f"{BEST_GAMMA[m.tau]:g}"] if kind == "blocks" else ["-", "-"]),
            "yes" if m.inside else "no",
        ]
        for m in minima
    ]
    columns = ["tau", "reference minimum", "minimum of the grid", "its alpha, beta", "best gamma", "reference gamma"]
    grids = {f"tau = {tau}": grid for tau, grid in found.grids.items()}
    return Outcome(
        paper="; ".join(f"tau {tau}: {loss:.5f}" for tau, loss in REFERENCE[kind].items()),
        theory="Theorem 5: beta in an interval, alpha a small fraction of it"
        if kind == "diagonal"
        else "Theorem 3: gamma in an interval",
        measured="; ".join(f"tau {m.tau}: {m.loss:.5f}" for m in minima),
        verdict=verdict(holds),
        reason="all minima agree to five digits and lie inside the theorem's bounds"
        if holds
        else "minima differ, or lie outside the theorem's bounds",
        figures=[landscape_figure(name, f"Loss landscape, {kind} W_V", grids)],
        tables=[TableData("Minima of the landscape", [*columns, "inside the theorem's bounds"], rows)],
        numbers={"minima": {str(m.tau): round(m.loss, 5) for m in minima}},
        config={"topics": TOPICS, "words_per_topic": WORDS_PER_TOPIC},
    )
