"""The language half on known ground: texts from word lists, a small BERT trained on them, topics fitted and probed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from topicscope import language, pages
from topicscope.ground import one_thread
from topicscope.pages import Figure, Lines, Series
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, verdict
from topicscope.paper.language_tables import above_zero, attention_ratio, known
from topicscope.paper.made_up import DOCUMENTS, LENGTH, SPECIAL, build_tokenizer, sample_texts, word_lists

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 48
EVERY = 10
"""The loss curve that is drawn has every tenth step."""


@dataclass(frozen=True)
class Found:
    """The probe of the small BERT and its losses in training; the share of words in their true topic, of `topics`."""

    probe: language.Probe
    accuracy: float
    losses: list[float]
    topics: int


def mask_words(words: Tensor, chance: Tensor, random: Tensor, mask: int) -> tuple[Tensor, Tensor]:
    """What the model is shown, and what it has to predict (-100: nothing).

    15% of the words are predicted, of which 80% show [MASK] and 10% a random word.
    """
    import torch

    masked = (chance < 0.15) & (words >= len(SPECIAL))
    shown = torch.where(masked & (chance < 0.12), mask, torch.where(masked & (chance < 0.135), random, words))
    return shown, words.masked_fill(~masked, -100)


def train_bert(tokenizer: Any, texts: list[str], steps: int, seed: int) -> tuple[Any, list[float]]:
    """Masked language modelling; the model and its losses."""
    import torch
    import transformers

    torch.manual_seed(seed)
    build: Any = transformers.BertForMaskedLM
    model = build(
        transformers.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            max_position_embeddings=LENGTH + 2,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )
    tokens = torch.tensor(tokenizer(texts)["input_ids"])
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    draw, losses = torch.Generator().manual_seed(seed), []
    for _ in range(steps):
        batch = tokens[torch.randint(len(tokens), (BATCH,), generator=draw)]
        chance = torch.rand(batch.shape, generator=draw)
        random = torch.randint(len(SPECIAL), len(tokenizer), batch.shape, generator=draw)
        shown, labels = mask_words(batch, chance, random, tokenizer.mask_token_id)
        loss = model(input_ids=shown, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return model.bert.eval(), losses


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


EXPERIMENT = Experiment(
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
    number=Number(
        "attention ratio",
        "attention of words to other words of their topic over that to words of other topics (a ratio of means), of "
        "the trained model; in the paper that of five models at the smallest threshold (Table 1)",
        (1.32, 2.14),
        "a small model on texts of known topics stands for five large ones on Wikipedia with fitted topics",
    ),
    uses=LANGUAGE,
)
