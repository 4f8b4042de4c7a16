"""What Theorems 3 and 5 share: W_V frozen, key and query trained on infinite documents, the attention that results."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from topicscope import training
from topicscope.pages import Figure
from topicscope.paper.blocks import WordMatrix
from topicscope.paper.experiment import Context, Outcome, train_many, verdict
from topicscope.theory import AttentionTheorem

INFINITE = {"kind": "infinite", "topics_per_document": 3}
"""Infinite documents (Assumption 1)."""

UNIFORM_LOSS = 1 - 1 / 30
"""The best squared loss under uniform attention: 1 - 1 / (tau v) at tau = 3, v = 10."""


@dataclass(frozen=True)
class Found:
    """alpha, beta and dev loss of every seed, and the attention scores of the first."""

    alpha: list[float]
    beta: list[float]
    loss: list[float]
    scores: WordMatrix
    config: training.RunConfig


def measure_second_stage(context: Context, kind: Literal["blocks", "diagonal"]) -> Found:
    runs = train_many(
        context,
        documents=INFINITE,
        objective={"loss": "squared"},
        steps=context.pick(400, 2000),
        batch_size=24,
        data={"documents": 120, "dev_documents": 120},
        optimizer={"lr": 0.03},
        dtype="float32",
        model={"value": kind, "prediction_bias": "none", "init_scale": 0.02},
    )
    first = runs[0].weights
    scores = first["query"].T @ first["key"] / np.sqrt(len(first["key"]))
    ratios = [relation_ratios(training.word_scores(run.weights), run.config.topic_model.topic_of_word) for run in runs]
    return Found(
        [alpha for alpha, _ in ratios],
        [beta for _, beta in ratios],
        [run.results["dev_loss"] for run in runs],
        WordMatrix.of(scores, runs[0]),
        runs[0].config,
    )


def relation_ratios(scores: np.ndarray, topic_of_word: np.ndarray) -> tuple[float, float]:
    """alpha and beta of trained scores (query word in rows).

    For each query word: the mean of exp(score) over other words of its topic, and exp(score) of the word itself, each
    over the mean of exp(score) over words of different topics. alpha and beta are the means over query words.
    """
    weight, topic = np.exp(scores[1:, 1:]), topic_of_word[1:]
    same = topic[:, None] == topic
    other = np.where(~same, weight, 0).sum(1) / (~same).sum(1)
    own = np.diagonal(weight)
    inside = (np.where(same, weight, 0).sum(1) - own) / (same.sum(1) - 1)
    return float(np.mean(inside / other)), float(np.mean(own / other))


def judge_second_stage(
    found: Found, name: str, theorem: AttentionTheorem, *, theory: str, measured: str, ours: float
) -> Outcome:
    """Whether the attention of each seed lies inside the theorem's bounds."""
    inside = [theorem.contains(alpha, beta) for alpha, beta in zip(found.alpha, found.beta, strict=True)]
    return Outcome(
        paper="bounds as T and tau go to infinity",
        theory=theory,
        measured=f"{measured}; loss {np.mean(found.loss):.5f}",
        verdict=verdict(all(inside)),
        reason=f"the trained attention is inside the theorem's bounds in {sum(inside)} of {len(inside)} seeds; the "
        f"bounds are asymptotic (here T = v = 10, tau = 3). The loss under uniform attention is {UNIFORM_LOSS:.5f}",
        figures=[
            Figure(
                name,
                f"Trained attention scores, {'block-wise' if theorem.value_matrix == 'blocks' else 'diagonal'} W_V",
                "Heat map of attention scores between words, ordered by topic.",
                [found.scores.heat("query word (row), key word")],
                columns=1,
            )
        ],
        numbers={"alpha": found.alpha, "beta": found.beta, "loss": found.loss},
        config=found.config.as_dict(),
        ours=ours,
    )
