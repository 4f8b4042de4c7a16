"""What the theorems' experiments share: training on infinite documents (Assumption 1) with squared loss."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from topicscope.figures import Figure
from topicscope.measure import estimate
from topicscope.paper.block_figures import heat
from topicscope.paper.experiment import Context, train_many
from topicscope.paper.outcome import Outcome
from topicscope.theory import Setting, best_attention, theorem3, theorem5
from topicscope.training import Run

INFINITE: dict[str, Any] = {
    "documents": {"kind": "infinite", "topics_per_document": 3},
    "objective": {"loss": "squared"},
    "dtype": "float64",
}


def verdict(ok: bool) -> Literal["reproduced", "not reproduced"]:
    return "reproduced" if ok else "not reproduced"


def second_stage(context: Context, kind: Literal["blocks", "diagonal"]) -> Outcome:
    """W_V frozen, key and query trained on infinite documents; the attention found against the theorem and the exact minimiser."""
    s = Setting.of(10, 10, 3)
    settings = INFINITE | {
        "steps": context.pick(400, 2000),
        "batch_size": 24,
        "data": {"documents": 120, "dev_documents": 120},
        "optimizer": {"lr": 0.03},
        "dtype": "float32",
        "model": {"value": kind, "prediction_bias": "none", "init_scale": 0.02},
    }
    runs = train_many(context, settings)
    best = best_attention(s, kind)
    alphas, betas = zip(*(relation_ratios(run) for run in runs), strict=True)
    gammas = [s.gamma(a, b) for a, b in zip(alphas, betas, strict=True)]
    losses = [run.results["dev_loss"] for run in runs]
    if kind == "blocks":
        low, high = theorem3(s).bounds["gamma"]
        ok = all(low < g < high for g in gammas)
        theory = f"gamma in ({low:.3g}, {high:.3g}); exact minimiser gamma = {best.gamma:.3g}, loss {best.loss:.5f}"
        measured = f"gamma = {estimate(gammas)}, alpha = {estimate(alphas).mean:.3g}, beta = {estimate(betas).mean:.3g}; loss {np.mean(losses):.5f}"
    else:
        diagonal = theorem5(s)
        low, high = diagonal.bounds["beta"]
        ok = all(diagonal.contains(a, c) for a, c in zip(alphas, betas, strict=True))
        theory = f"beta in ({low:.3g}, {high:.3g}), alpha < {diagonal.lambda5:.3g} beta"
        theory += f"; exact minimiser beta = {best.beta:.3g}, loss {best.loss:.5f}"
        measured = f"beta = {estimate(betas)}, alpha / beta = {np.mean([a / c for a, c in zip(alphas, betas, strict=True)]):.3g}; loss {np.mean(losses):.5f}"
    scores = runs[0].weights["query"].T @ runs[0].weights["key"] / np.sqrt(len(runs[0].weights["key"]))
    name = "theorem3" if kind == "blocks" else "theorem5"
    figure = Figure(
        name,
        f"Trained attention scores, {kind} W_V",
        "Heat map of attention scores between words, ordered by topic.",
        [heat("query word (row), key word", scores, runs[0])],
        1,
    )
    reason = f"trained attention of {len(runs)} seeds is {'inside' if ok else 'outside'} the theorem's bounds, which are asymptotic (here T = v = 10, tau = 3)"
    reason += f"; uniform attention costs {1 - 1 / 30:.5f}"
    return Outcome(
        "bounds for T, tau to infinity",
        theory,
        measured,
        verdict(ok),
        reason,
        [figure],
        [],
        {"alpha": list(alphas), "beta": list(betas), "loss": losses},
        runs[0].config.as_dict(),
    )


def relation_ratios(run: Run) -> tuple[float, float]:
    """alpha and beta of trained scores: mean exp(score) over same-topic and same-word pairs, each relative to different topics for its query."""
    key, query = run.weights["key"].astype(float), run.weights["query"].astype(float)
    weight = np.exp((query.T @ key / np.sqrt(len(key)))[1:, 1:])
    topic = run.config.topic_model.topic_of_word[1:]
    same = topic[:, None] == topic
    other = np.where(~same, weight, 0).sum(1) / (~same).sum(1)
    own = np.diagonal(weight)
    inside = (np.where(same, weight, 0).sum(1) - own) / (same.sum(1) - 1)
    return float(np.mean(inside / other)), float(np.mean(own / other))
