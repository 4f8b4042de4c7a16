"""The language half on known ground: texts from word lists, a small BERT trained on them, topics fitted and probed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from topicscope import language, pages, pretraining
from topicscope.ground import one_thread
from topicscope.pages import Figure, Lines, Series
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, verdict
from topicscope.paper.language_models import above_zero, attention_ratio, known
from topicscope.paper.made_up import DOCUMENTS, LENGTH, build_tokenizer, sample_texts, word_lists

EVERY = 10
"""The loss curve that is drawn has every tenth step."""

SETTINGS = {
    "text": {"corpus": ["(texts from word lists)"]},
    "length": LENGTH + 3,  # a row is one document, between the special tokens
    "batch_size": 48,
    "micro_batch": 48,
    "snapshots": "none",
    "checkpoint_every": None,
    "held_out": {"share": 0.0},
    "model": {"layers": 2, "heads": 4, "dim": 64, "feedforward": 128, "dropout": 0.0, "init_scale": "usual"},
    "optimizer": {"lr": 0.003, "clip": None},
    "device": "cpu",
}
"""The usual masking: 15% of the words are predicted, of which 80% show [MASK] and 10% a random word."""


@dataclass(frozen=True)
class Found:
    """The probe of the small BERT and its losses in training; the share of words in their true topic, of `topics`."""

    probe: language.Probe
    accuracy: float
    losses: list[float]
    topics: int


def train_bert(tokenizer: Any, texts: list[str], steps: int, seed: int) -> tuple[Any, list[float]]:
    config = pretraining.PretrainConfig.of(SETTINGS, steps=steps, seed=seed)
    run = pretraining.pretrain(config, texts=texts, tokenizer=tokenizer)
    return run.model.base_model, run.metrics["loss"][:steps].tolist()


def matching(fitted: language.Assignment, lists: dict[str, list[str]]) -> tuple[float, list[str]]:
    """Share of all words that are in the right fitted topic, and the true name of each fitted topic.

    Fitted and true topics are matched one to one so that the share is largest.
    """
    from scipy.optimize import linear_sum_assignment

    true = {word: k for k, topic in enumerate(lists.values()) for word in topic}
    table = np.zeros((len(fitted.names), len(lists)))
    for word, topic in zip(fitted.membership.word, fitted.membership.topic, strict=True):
        table[topic, true[fitted.words[word]]] += 1
    rows, columns = linear_sum_assignment(-table)  # the rows are sorted
    return float(table[rows, columns].sum() / len(true)), [list(lists)[k] for k in columns]


def measure(context: Context) -> Found:
    lists = word_lists()
    texts = sample_texts(lists, context.seed)
    with one_thread():
        tokenizer = build_tokenizer(lists)
        model, losses = train_bert(tokenizer, texts, context.pick(900, 2500), context.seed)
        words, sizes = language.whole_words(tokenizer), len(lists)
        topics = language.fit_topics(
            texts, words, sizes, iterations=50, restarts=12, stability=False, seed=context.seed
        )
        threshold = (len(next(iter(lists.values()))) + 0.5) / len(tokenizer)
        accuracy, names = matching(language.assign(topics, threshold), lists)
        probe = language.probe_model(
            language.checked("small BERT", model, tokenizer),
            texts[:150],
            language.assign(topics, threshold, names=tuple(names)),
            language.Measurement(seed=context.seed, ablation=False),
        )
    return Found(probe, accuracy, losses, len(lists))


def judge(found: Found) -> Outcome:
    rows, heads = found.probe.rows, found.probe.heads
    trained, fresh = rows
    effects = {name: trained.effects[name] for name in pages.MAIN_MEASURES}
    beyond_shuffled = {m for m, e in effects.items() if e is not None and e.p_value is not None and e.p_value < 0.05}
    missing = [name for name, effect in effects.items() if not above_zero(effect) or name not in beyond_shuffled]
    random = None if fresh.cosine is None else fresh.cosine.interval
    covers = random is not None and random[0] <= 0 <= random[1]
    silent = abs(attention_ratio(fresh.attention) - 1) < 0.01 and covers
    share = f"{100 * found.accuracy:.0f}%"
    both = ", ".join(f"{m} {e.same:.3g}, {e.different:.3g}" for m, e in effects.items() if e is not None)
    losses = Series("loss", [float(i) for i in range(0, len(found.losses), EVERY)], found.losses[::EVERY])
    probed = [*pages.head_figures(heads), *pages.topic_figures(found.probe.topics)]
    for number, figure in enumerate(probed, start=1):
        figure.name = f"pipeline-{number}"
    return Outcome(
        paper="same-topic words are more similar and attend to each other more (Table 1)",
        theory="the topics are known, so that fit and probe must find them",
        measured=f"{share} of the words are in their true topic; same-topic and different-topic means: {both}; "
        f"attention ratio {language.ratio_text(trained.attention)}, "
        f"random model {attention_ratio(fresh.attention):.4f}",
        verdict=verdict(found.accuracy >= 0.95 and not missing and silent),
        reason=f"{share} of the words are in their true topic of {found.topics}; "
        + ("every effect is found" if not missing else f"not found: {', '.join(missing)}")
        + ("; the random model shows none" if silent else "; the random model shows an effect"),
        figures=[
            Figure(
                "pipeline-training",
                "A small BERT on texts from word lists",
                "Loss against steps.",
                [Lines("training", [losses], "step", "masked-word loss")],
                columns=1,
            ),
            *probed,
        ],
        tables=[pages.ratio_table(rows), pages.difference_table(rows), pages.head_table(heads)],
        numbers={
            "accuracy": found.accuracy,
            "rows": [row.as_dict() for row in rows],
            "heads": [head.as_dict() for head in heads],
            "loss": [float(np.mean(found.losses[:20])), float(np.mean(found.losses[-50:]))],
        },
        config={"documents": DOCUMENTS, "length": LENGTH, "steps": len(found.losses), "topics": found.topics},
        ours=known(attention_ratio(trained.attention)),
    )


PIPELINE = Experiment(
    id="pipeline",
    claim="On texts with known topics pretraining, topic fit and probe work together: the fit finds the topics, a "
    "trained BERT encodes them, one with random weights does not.",
    rule="At least 95% of the words are in their true topic; for the trained model the same-topic minus "
    "different-topic means of cosine, dot product and attention have 95% intervals above zero, and less than 5% of the "
    "shuffled topics show as large an effect; with random weights the attention ratio is within .01 of 1, and the 95% "
    "interval of the cosine difference (over topics and five random models) covers zero.",
    measure=measure,
    judge=judge,
    seconds=60,
    beyond=True,
    number=Number(
        "attention ratio",
        "attention of words to other words of their topic over that to words of other topics (a ratio of means), of "
        "the trained model; in the paper that of five models at the smallest threshold (Table 1)",
        (1.32, 2.14),
        "a small model on texts of known topics stands for five large ones on Wikipedia with fitted topics",
    ),
    uses=LANGUAGE,
)
