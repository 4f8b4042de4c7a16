"""Training a part alone: Theorems 1, 2, 3 and 5, and what a part alone loses."""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from topicscope import training
from topicscope.measure import estimate
from topicscope.model import word_scores
from topicscope.pages import Figure, Lines, Points, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, by_category, train_many, verdict
from topicscope.paper.matrices import WordMatrix
from topicscope.theory import (
    AttentionTheorem,
    Setting,
    bayes_loss,
    best_attention,
    fit_embedding,
    theorem2,
    theorem3,
    theorem5,
)

INFINITE = {"kind": "infinite", "topics_per_document": 3}  # infinite documents (Assumption 1)
UNIFORM_LOSS = 1 - 1 / 30  # the best squared loss under uniform attention: 1 - 1 / (tau v) at tau = 3, v = 10


@dataclass(frozen=True)
class TrainedAttention:
    """alpha, beta and dev loss of every seed, and the attention scores of the first."""

    alpha: list[float]
    beta: list[float]
    loss: list[float]
    scores: WordMatrix
    config: training.RunConfig


def measure_attention(context: Context, kind: Literal["blocks", "diagonal"]) -> TrainedAttention:
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
    ratios = [relation_ratios(word_scores(run.weights), run.config.topic_model.topic_of_word) for run in runs]
    return TrainedAttention(
        [alpha for alpha, _ in ratios],
        [beta for _, beta in ratios],
        [run.results["dev_loss"] for run in runs],
        WordMatrix.of(runs[0], scores),
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


def judge_attention(
    found: TrainedAttention, name: str, theorem: AttentionTheorem, *, theory: str, measured: str, ours: float
) -> Outcome:
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


@dataclass(frozen=True)
class TrainedEmbedding:
    """By seed the largest violation of the family's conditions over c3, and the dev loss; W_E'W_E of the first."""

    violation: list[float]
    loss: list[float]
    gram: WordMatrix
    config: training.RunConfig


def measure_theorem1(context: Context) -> TrainedEmbedding:
    runs = train_many(
        context,
        documents=INFINITE,
        objective={"loss": "squared"},
        dtype="float64",
        steps=context.pick(3000, 10_000),
        batch_size=40,
        data={"documents": 120, "dev_documents": 120},
        optimizer={"name": "sgd", "lr": 2.0},
        model={
            "embedding": "trained",
            "key": "zero",
            "query": "zero",
            "value": "identity",
            "prediction_bias": "theorem1",
            "init_scale": 0.1,
        },
    )
    s = Setting.of(10, 10, 3)
    return TrainedEmbedding(
        [fit_embedding(run.weights["embedding"], s.topic_model, s.masking).violation / s.constants.c3 for run in runs],
        [run.results["dev_loss"] for run in runs],
        WordMatrix.of(runs[0]),
        runs[0].config,
    )


def judge_theorem1(found: TrainedEmbedding) -> Outcome:
    excess = [loss - UNIFORM_LOSS for loss in found.loss]
    worst, seeds = max(found.violation), len(found.violation)
    return Outcome(
        paper="the family of Theorem 1 is optimal",
        theory=f"violation of the conditions 0, loss {UNIFORM_LOSS:.6f}",
        measured=f"largest violation / c3: {worst:.3g} (the largest of {seeds} seeds); "
        f"loss above the optimum: {max(excess):.2g}",
        verdict=verdict(worst < 0.01 and max(excess) < 1e-4),
        reason=f"in {seeds} seeds the conditions of the family are violated by at most {worst:.2g} of c3 (below 1% "
        "asked)",
        figures=[
            Figure(
                "theorem1",
                "W_E'W_E, only the embedding trained",
                "Heat map of the Gram matrix after training the embedding alone.",
                [found.gram.heat("W_E'W_E")],
                columns=1,
            )
        ],
        numbers={"violation_over_c3": found.violation, "excess_loss": excess},
        config=found.config.as_dict(),
        ours=worst,
    )


THEOREM1 = Experiment(
    id="theorem1",
    claim="Training only the embedding ends at a member of the optimal family of Theorem 1.",
    rule="In every seed the largest violation of the family's conditions is below 1% of c3, and the dev loss is less "
    "than 1e-4 above the optimum 1 - 1/(tau v).",
    measure=measure_theorem1,
    judge=judge_theorem1,
    seconds=15,
    number=Number(
        "violation / c3",
        "the largest amount by which the trained embedding misses a condition of Theorem 1, over the constant c3 of "
        "these conditions (a ratio; 0 in theory), largest of the seeds",
    ),
)


# By length, their number at quick and at full scale: fewer where they are long.
DOCUMENTS: dict[int | str, tuple[int, int]] = {
    100: (2000, 10_000),
    1000: (2000, 10_000),
    10_000: (400, 2000),
    "infinite": (120, 120),
}


@dataclass(frozen=True)
class Distances:
    """Relative distance to Theorem 2 by document length and seed; W_V of the first run on infinite documents."""

    distance: dict[str, list[float]]
    value: WordMatrix
    config: training.RunConfig


def measure_theorem2(context: Context) -> Distances:
    exact = theorem2(Setting.of(10, 10, 3)).matrix()
    runs = {
        str(length): train_many(
            context,
            dtype="float64",
            steps=context.pick(600, 2000),
            batch_size=40,
            data={"documents": context.pick(*counts), "dev_documents": 100},
            optimizer={"name": "sgd", "lr": 10.0},
            documents={"kind": "fixed", "topics_per_document": 3, "length": length},
            objective={"loss": "squared", "l2": {"value": 1e-7}},
            model={"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.0},
        )
        for length, counts in DOCUMENTS.items()
    }
    size, last = np.linalg.norm(exact), runs["infinite"][0]
    distance = {
        length: [float(np.linalg.norm(run.weights["value"] - exact) / size) for run in here]
        for length, here in runs.items()
    }
    return Distances(distance, WordMatrix.of(last), last.config)


def judge_theorem2(found: Distances) -> Outcome:
    exact = theorem2(Setting.of(10, 10, 3))
    distances = {length: estimate(values) for length, values in found.distance.items()}
    means = list(distances.values())
    falls = all(longer.mean < shorter.mean for shorter, longer in itertools.pairwise(means))
    x = [10.0 ** (2 + i) for i in range(len(means))]  # infinite stands beside 10,000, one decade on
    y, low, high = [m.mean for m in means], [max(m.low, 0) for m in means], [m.high for m in means]
    line = Lines(
        "distance to Theorem 2",
        [Series("trained", x, y, low, high, markers=True)],
        "document length N (last: infinite)",
        "|W_V - W*| / |W*|",
        log_x=True,
        log_y=True,
    )
    return Outcome(
        paper="W_V converges to three constants",
        theory=f"same topic {exact.same_topic:.5f}, different {exact.different_topic:.6f}, "
        f"[MASK] {exact.mask_column:.5f}",
        measured="|W_V - W*| / |W*|, W* of Theorem 2, for documents of N words: "
        + "; ".join(f"N = {length}: {distance}" for length, distance in distances.items()),
        verdict=verdict(falls and means[-1].mean < 1e-3),
        reason=f"|W_V - W*| / |W*| is {means[-1].mean:.2g} on infinite documents (below .001 asked); it falls from "
        f"each N to the next: {'yes' if falls else 'no'}",
        figures=[
            Figure(
                "theorem2",
                "Training against the closed form",
                "Left: the trained value matrix on infinite documents. "
                "Right: its distance to Theorem 2 falls as documents grow.",
                [found.value.heat("W_V, infinite documents"), line],
            )
        ],
        tables=[
            TableData(
                "Relative distance of the trained W_V to Theorem 2",
                ["length", "distance (95%)"],
                [[length, str(distance)] for length, distance in distances.items()],
            )
        ],
        numbers={"distance": found.distance},
        config=found.config.as_dict(),
        ours=means[-1].mean,
    )


THEOREM2 = Experiment(
    id="theorem2",
    claim="Under uniform attention and vanishing L2 the value matrix converges to the matrix of Theorem 2.",
    rule="The distance |W_V - W*| / |W*| of the trained W_V to the matrix W* of Theorem 2 (Frobenius norms, mean over "
    "seeds) falls from each document length to the next and is below .001 on infinite documents.",
    measure=measure_theorem2,
    judge=judge_theorem2,
    seconds=40,
    number=Number(
        "distance to Theorem 2",
        "Frobenius norm of the trained W_V minus the matrix of Theorem 2, over the norm of that matrix (a ratio; 0 in "
        "theory), on infinite documents, mean over seeds",
    ),
)


def judge_theorem3(found: TrainedAttention) -> Outcome:
    setting = Setting.of(10, 10, 3)
    theorem, best = theorem3(setting), best_attention(setting, "blocks")
    low, high = theorem.bounds["gamma"]
    gammas = [setting.gamma(alpha, beta) for alpha, beta in zip(found.alpha, found.beta, strict=True)]
    return judge_attention(
        found,
        "theorem3",
        theorem,
        theory=f"gamma in ({low:.3g}, {high:.3g}); exact minimiser gamma = {best.gamma:.3g}, loss {best.loss:.5f}",
        measured=f"gamma = {estimate(gammas)}, alpha = {estimate(found.alpha).mean:.3g}, "
        f"beta = {estimate(found.beta).mean:.3g}",
        ours=estimate(gammas).mean,
    )


THEOREM3 = Experiment(
    id="theorem3",
    claim="With W_V frozen at its blocks, the best attention inside a topic (gamma) lies in Theorem 3's interval.",
    rule="For every seed gamma = ((v - 1) alpha + beta) / v of the trained attention lies between lambda1 (tau - 1) "
    "and lambda2 T. alpha, beta: attention weights to another word of the topic and to the word itself, over that to a "
    "word of another topic.",
    measure=partial(measure_attention, kind="blocks"),
    judge=judge_theorem3,
    seconds=30,
    number=Number(
        "gamma",
        "mean attention weight to the words of the topic over that to a word of another topic, as in Theorem 3 (a "
        "ratio), mean over seeds; the paper has bounds and no number",
    ),
)


def judge_theorem5(found: TrainedAttention) -> Outcome:
    setting = Setting.of(10, 10, 3)
    theorem, best = theorem5(setting), best_attention(setting, "diagonal")
    low, high = theorem.bounds["beta"]
    shares = [alpha / beta for alpha, beta in zip(found.alpha, found.beta, strict=True)]
    return judge_attention(
        found,
        "theorem5",
        theorem,
        theory=f"beta in ({low:.3g}, {high:.3g}), "
        f"alpha < {theorem.lambda5:.3g} beta; exact minimiser beta = {best.beta:.3g}, loss {best.loss:.5f}",
        measured=f"beta = {estimate(found.beta)}, alpha / beta = {np.mean(shares):.3g}",
        ours=estimate(found.beta).mean,
    )


THEOREM5 = Experiment(
    id="theorem5",
    claim="With W_V frozen at its diagonal optimum, the best attention lies inside Theorem 5's bounds: mostly to the "
    "word itself.",
    rule="For every seed lambda3 tau < beta < lambda4 T and alpha < lambda5 beta. beta, alpha: trained attention "
    "weights to the word itself and to another word of its topic, over that to a word of another topic.",
    measure=partial(measure_attention, kind="diagonal"),
    judge=judge_theorem5,
    seconds=30,
    number=Number(
        "beta",
        "attention weight to the word itself over that to a word of another topic (a ratio), mean over seeds; the "
        "paper has bounds and no number",
    ),
)


EVERYTHING = "everything"
PARTS = {
    EVERYTHING: {"embedding": "trained"},
    "only the embedding": {"embedding": "trained", "key": "zero", "query": "zero", "value": "identity"},
    "only the value matrix": {"key": "zero", "query": "zero"},
}
UNIFORM = {"cross-entropy": float(np.log(100)), "squared": 0.99}  # loss of the uniform prediction over 100 words


@dataclass(frozen=True)
class PartLosses:
    """Dev losses by what was trained and by seed, and the floors: all that a document says, and its topics alone."""

    loss: str
    dev: dict[str, list[float]]
    bayes: float
    bayes_topics: float
    config: training.RunConfig


def measure_loss(context: Context, loss: str) -> PartLosses:
    base = {"steps": context.pick(2000, 8000), "objective": {"loss": loss}, "optimizer": {"lr": 0.003}}
    runs = {name: train_many(context, **base, model=model) for name, model in PARTS.items()}
    dev = {name: [run.results["dev_loss"] for run in here] for name, here in runs.items()}
    c = runs[EVERYTHING][0].config
    masked = training.RunData(c).task.dev
    bayes, bayes_topics = (
        bayes_loss(c.objective.loss, c.topic_model, c.documents, c.masking, masked, own_word=own_word).loss
        for own_word in (True, False)
    )
    return PartLosses(loss, dev, bayes, bayes_topics, c)


def judge_losses(found: list[PartLosses]) -> Outcome:
    """What each training loses of the gain of training everything; less than a fifth is small, if there is a gain."""
    rows, numbers, panels, small, copying = [], {}, [], [], ""
    for one in found:
        dev = {trained: estimate(losses) for trained, losses in one.dev.items()}
        everything = dev[EVERYTHING]
        gain = UNIFORM[one.loss] - everything.mean
        levels = [(one.bayes, "Bayes"), (one.bayes_topics, "Bayes, from topics alone")]
        panels.append(
            Points(f"dev loss, {one.loss}", list(dev), [by_category("dev loss", list(dev.values()))], "loss", levels)
        )
        if everything.high < one.bayes_topics:
            copying += (
                f"; with the {one.loss} loss, training everything goes below what topics alone allow "
                f"({one.bayes_topics:.4g}): it learns to copy the shown word, which uniform attention cannot"
            )
        for trained, here in dev.items():
            lost = here.mean - everything.mean
            small.append(lost < 0.2 * gain)
            numbers[f"{one.loss}, {trained}"] = {
                "dev_loss": here.mean,
                "bayes": one.bayes,
                "bayes_topics": one.bayes_topics,
                "share_of_gain": lost / gain,
            }
            above = [f"{here.mean - floor:.4g}" for floor, _ in levels]
            rows.append([one.loss, trained, str(here), *above, f"{100 * (lost / gain):.1f}%"])
    return Outcome(
        paper="'only slightly more' (no number)",
        theory="-",
        measured="dev loss: " + "; ".join(f"{name} {here['dev_loss']:.4g}" for name, here in numbers.items()),
        verdict=verdict(all(small)),
        reason="training a part alone loses "
        + ", ".join(f"{share} ({loss}, {trained})" for loss, trained, *_, share in rows if trained != EVERYTHING)
        + f" of what training everything gains over the uniform prediction{copying}",
        figures=[
            Figure(
                "losses",
                "What training a part alone costs",
                "Dev losses of three ways of training, beside the Bayes floors.",
                [*panels],
            )
        ],
        tables=[
            TableData(
                "Dev losses",
                [
                    *("loss", "trained", "dev loss (95%)"),
                    *("above Bayes", "above Bayes from topics", "lost share of the gain"),
                ],
                rows,
            )
        ],
        numbers=numbers,
        config=found[0].config.as_dict(),
        ours=max(here["share_of_gain"] for here in numbers.values()),
    )


LOSSES = Experiment(
    id="losses",
    claim="Training only the embedding, or only the value matrix, ends at only slightly more loss than training "
    "everything.",
    rule="For both losses: the gain is the loss of the uniform prediction minus the dev loss of training everything. "
    "Training either part alone ends less than a fifth of the gain above training everything (means over seeds).",
    measure=lambda context: [measure_loss(context, loss) for loss in UNIFORM],
    judge=judge_losses,
    seconds=40,
    lost_at=("full",),
    number=Number(
        "largest lost share",
        "loss of training one part alone minus that of training everything, over the gain that training everything has "
        "over the uniform prediction (a share of 1), largest of the parts and losses; the paper says 'only slightly'",
    ),
)
