"""The language half on known ground: texts drawn from word lists, a small BERT trained on them, topics fitted, the model probed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from topicscope import figures as drawn
from topicscope.figures import Figure, Lines, Series
from topicscope.ground import one_thread
from topicscope.language import Measurement, Probe, Topics, assign, checked, fit_topics, probe_model, whole_words
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import attention_ratio
from topicscope.paper.outcome import Outcome
from topicscope.paper.word_texts import DOCUMENTS, LENGTH, SPECIAL, build_tokenizer, sample_texts, word_lists

BATCH = 48


def train_bert(tokenizer: Any, texts: list[str], steps: int, seed: int) -> tuple[Any, list[float]]:
    """Masked language modelling: 15% of the words, of which 80% show [MASK] and 10% a random word."""
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LENGTH + 2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    build: Any = transformers.BertForMaskedLM
    model = build(config)
    tokens = torch.tensor(tokenizer(texts)["input_ids"])
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    draw, losses = torch.Generator().manual_seed(seed), []
    for _ in range(steps):
        batch = tokens[torch.randint(len(tokens), (BATCH,), generator=draw)]
        chance = torch.rand(batch.shape, generator=draw)
        masked = (chance < 0.15) & (batch >= len(SPECIAL))
        anything = torch.randint(len(SPECIAL), len(tokenizer), batch.shape, generator=draw)
        shown = torch.where(
            masked & (chance < 0.12), tokenizer.mask_token_id, torch.where(masked & (chance < 0.135), anything, batch)
        )
        loss = model(input_ids=shown, labels=batch.masked_fill(~masked, -100)).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return model.bert.eval(), losses


def matching(topics: Topics, lists: dict[str, list[str]], threshold: float) -> tuple[float, list[str]]:
    """Share of the words that are in the right fitted topic, fitted and true topics matched one to one; and the true name of each."""
    names = list(lists)
    true = {word: k for k, topic in enumerate(lists.values()) for word in topic}
    found = assign(topics, threshold)
    table = np.zeros((len(topics), len(names)))
    for word, topic in zip(found.membership.word, found.membership.topic, strict=True):
        table[topic, true[found.words[word]]] += 1
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(true)), [names[k] for k in columns[np.argsort(rows)]]


def pipeline(context: Context) -> Outcome:
    lists = word_lists()
    texts = sample_texts(lists, context.seed)
    with one_thread():
        tokenizer = build_tokenizer(lists)
        model, losses = train_bert(tokenizer, texts, context.pick(900, 2500), context.seed)
        vocabulary = whole_words(tokenizer)
        topics = fit_topics(texts, vocabulary, len(lists), iterations=50, restarts=12, seed=context.seed)
        threshold = (len(next(iter(lists.values()))) + 0.5) / len(tokenizer)
        accuracy, names = matching(topics, lists, threshold)
        found = probe_model(
            checked("small BERT", model, tokenizer),
            texts[:150],
            assign(topics, threshold, names=tuple(names)),
            Measurement(seed=context.seed),
        )
    return outcome_of(found, accuracy, losses, len(lists))


def outcome_of(found: Probe, accuracy: float, losses: list[float], count: int) -> Outcome:
    trained, fresh = found.rows
    effects = {
        m: e is not None and e.interval is not None and e.p_value is not None and e.interval[0] > 0 and e.p_value < 0.05
        for m, e in trained.effects.items()
        if m in drawn.MAIN_MEASURES
    }
    interval = fresh.cosine.interval if fresh.cosine is not None else None
    none = abs(attention_ratio(fresh.attention) - 1) < 0.01 and interval is not None and interval[0] <= 0 <= interval[1]
    ok = accuracy >= 0.95 and all(effects.values()) and none
    curve = Lines(
        "training",
        [Series("loss", [float(i) for i in range(0, len(losses), 10)], losses[::10])],
        "step",
        "masked-word loss",
    )
    figures = [
        Figure("pipeline-training", "A small BERT on texts from word lists", "Loss against steps.", [curve], columns=1),
        *drawn.head_figures(found.heads),
        *drawn.topic_figures(found.topics),
    ]
    for number, figure in enumerate(figures[1:], start=1):
        figure.name = f"pipeline-{number}"
    shown = {m: e for m, e in trained.effects.items() if m in drawn.MAIN_MEASURES and e is not None}
    missing = [name for name, ok_ in effects.items() if not ok_]
    return Outcome(
        "same-topic words are nearer and attend each other more (Table 1)",
        "the topics are known: all of it must be found",
        f"fitted topics {100 * accuracy:.0f}% right; same against different: "
        + ", ".join(f"{m} {e.same:.3g}, {e.different:.3g}" for m, e in shown.items())
        + f"; attention ratio {drawn.ratio_text(trained.attention)}, "
        + f"random model {attention_ratio(fresh.attention):.4f}",
        "reproduced" if ok else "not reproduced",
        f"{100 * accuracy:.0f}% of the words are in their true topic of {count}; "
        + ("every effect is found" if not missing else f"not found: {', '.join(missing)}")
        + ("; the random model shows none" if none else "; the random model shows an effect"),
        figures,
        [drawn.ratio_table(found.rows), drawn.difference_table(found.rows), drawn.head_table(found.heads)],
        {
            "accuracy": accuracy,
            "rows": [row.as_dict() for row in found.rows],
            "heads": [head.as_dict() for head in found.heads],
            "loss": [float(np.mean(losses[:20])), float(np.mean(losses[-50:]))],
        },
        {"documents": DOCUMENTS, "length": LENGTH, "steps": len(losses), "topics": count},
    )


EXPERIMENT = Experiment(
    "pipeline",
    "On texts with known topics the whole language half works: topics are found, a trained BERT encodes them, a random one does not.",
    "At least 95% of the words are in their true topic; cosine, dot product and attention of the trained model have 95% intervals above zero and beat 95% of "
    "the shuffles; random models have an attention ratio within .01 of 1 and a cosine contrast whose interval (over topics and five of them) covers zero.",
    pipeline,
    60,
)
