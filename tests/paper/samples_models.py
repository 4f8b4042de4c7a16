"""What language models may show: cosines, probes and a small BERT, built by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topicscope.language import CooccurrenceRow, HeadRow, PairContrast, Probe, ProbeRow, TopicRow, WordMap
from topicscope.measure import Effect
from topicscope.paper import language_models, pipeline

NINE = tuple(word for group in language_models.GROUPS for word in group)


def word_map(model: str, inside: float, between: float, pieces: Sequence[int] = (1,) * 9) -> WordMap:
    """Nine words of three groups. Cosines with words of several pieces are the other way round."""
    group, whole = np.repeat([0, 1, 2], 3), np.array(pieces) == 1
    same = (group[:, None] == group) == (whole[:, None] & whole)
    cosine = np.where(same, inside, between)
    np.fill_diagonal(cosine, 1)
    return WordMap(model, NINE, tuple(group.tolist()), tuple(pieces), cosine)


def word_maps(inside: float = 0.6, between: float = 0.2, pieces: Sequence[int] = (1,) * 9) -> language_models.WordMaps:
    """Of a model whose tokenizer has all nine words, and of one that has these means and pieces."""
    maps = [word_map("models/bert-base", 0.5, 0.1), word_map("roberta", inside, between, pieces)]
    return language_models.WordMaps({words.model: words for words in maps}, {})


def small_word_maps(inside: float = 0.6, random: float = 0.1) -> language_models.WordMaps:
    """Of a small model, beside random weights of which the words of a group are nearer by this much."""
    found = language_models.WordMaps({"small-bert": word_map("small-bert", inside, 0.0)}, {})
    return replace(found, random={"small-bert": word_map("small-bert", random, 0.0)})


def effect(low: float, ratio: float | None = 1.3, p_value: float | None = 0.01) -> Effect:
    return Effect(
        same=0.4,
        different=0.3,
        difference=0.1,
        ratio=ratio,
        interval=(low, low + 0.2),
        ratio_interval=(1.1, 1.5),
        null_interval=(-0.01, 0.01),
        p_value=p_value,
    )


def about(model: str, variant: str, threshold: float) -> dict[str, Any]:
    """Which model was measured on which words."""
    names = {"model": model, "variant": variant, "threshold": threshold, "topics_per_word": "one", "words": 100}
    return names | {"topics": 10, "embedding": "matrix", "window": 128}


def probe_row(model: str, variant: str, threshold: float, **effects: Effect | None) -> ProbeRow:
    plain = {"cosine": effect(0.05), "dot": effect(0.05), "cosine_centred": None, "dot_centred": None}
    row = ProbeRow(**about(model, variant, threshold), embeddings=plain, attention=effect(0.05), parts={})
    return with_effects(row, effects)


def with_effects(row: ProbeRow, effects: dict[str, Effect | None]) -> ProbeRow:
    embeddings = row.embeddings | {name: effect for name, effect in effects.items() if name != "attention"}
    return replace(row, embeddings=embeddings, attention=effects.get("attention", row.attention))


def head_rows(model: str) -> list[HeadRow]:
    where: dict[str, Any] = {"model": model, "threshold": 0.0005, "topics_per_word": "one", "part": "encoder"}
    return [HeadRow(**where, layer=0, head=head, effect=effect(0.05, 1.2 + head)) for head in range(2)]


MODELS = ["models/bert-base", "roberta"]


THRESHOLDS = (0.0005, 0.001, 0.002)


def probed(number: int | None = None, **effects: Effect | None) -> language_models.Probed:
    """Two models at three thresholds, then their random weights. `effects` replace those of row `number`."""
    rows = [
        probe_row(model, "trained", threshold, attention=effect(0.05, 1.4 - 100 * threshold))
        for model in MODELS
        for threshold in THRESHOLDS
    ]
    rows += [
        probe_row(model, "random", threshold, attention=effect(-0.1, 1.005))
        for model in MODELS
        for threshold in THRESHOLDS
    ]
    if number is not None:
        rows[number] = with_effects(rows[number], effects)
    heads = [row for model in MODELS for row in head_rows(model)]
    return language_models.Probed(Probe(rows, heads, [], []), {"models": MODELS, "corpus": ["text.txt"]})


SMALL = ["small-bert", "small-bart"]


def small_probed(number: int | None = None, decoder: Effect | None = None, **effects: Effect | None) -> Any:
    """Two small models at their known topics, then random weights; the last of each two has a decoder.

    `effects` replace those of row `number`, and `decoder` the attention of its decoder.
    """
    rows = [
        with_effects(probe_row(model, variant, 0.1), {"attention": effect(low, ratio)})
        for variant, low, ratio in (("trained", 0.05, 2.0), ("random", -0.1, 1.005))
        for model in SMALL
    ]
    for place in (1, 3):  # the encoder of an encoder-decoder shows nothing, and does not count
        row = rows[place]
        rows[place] = replace(row, parts={"encoder": effect(-0.3, 0.9), "decoder": row.attention, "cross": None})
        rows[place] = replace(rows[place], attention=effect(-0.3, 0.9))
    if number is not None:
        rows[number] = with_effects(rows[number], effects)
        if decoder is not None:
            rows[number] = replace(rows[number], parts=rows[number].parts | {"decoder": decoder})
    probe = Probe(rows, head_rows(SMALL[0]), [], [])
    return language_models.Probed(probe, {"models": SMALL, "corpus": [language_models.MADE_UP]}, known=True)


def weak_small(judged: Sequence[str]) -> dict[str, language_models.Probed]:
    """One clause each: interval, shuffles, the decoder of an encoder-decoder, random weights."""
    found = {
        f"small models: {name}: {why}": small_probed(0, **{name: here})
        for name in judged
        for why, here in (
            ("interval from zero on", effect(0.0, 2.0)),
            ("as good as shuffled topics", effect(0.05, 2.0, p_value=0.051)),
            ("no shuffles", effect(0.05, 2.0, p_value=None)),
            ("no pairs", None),
        )
    }
    return found | {
        "small models: the decoder shows nothing": small_probed(1, decoder=effect(-0.1, 1.3)),
        "small models: a random decoder shows an effect": small_probed(3, decoder=effect(-0.1, 1.0101)),
        "small models: random weights show an effect": small_probed(2, attention=effect(-0.1, 0.9899)),
    }


def cooccurrence(
    same_topic: float | None = 0.45, margin: tuple[float, float] | None = (0.01, 0.15)
) -> language_models.Probed:
    """Table 2; the last row of the last model has this cosine and margin."""
    rows = []
    for model, threshold in itertools.product(MODELS, THRESHOLDS):
        last = (model, threshold) == (MODELS[-1], THRESHOLDS[-1])
        clear = PairContrast(0.5, 0.4, (0.3, 0.44), (0.06, 0.2), 30)
        cosine = PairContrast(same_topic, 0.4, (0.3, 0.44), margin, 30) if last else clear
        attention = PairContrast(0.006, 0.007, (0.006, 0.008), (-0.002, 0.0), 300)
        rows.append(CooccurrenceRow(**about(model, "trained", threshold), pairs=90, cosine=cosine, attention=attention))
    return language_models.Probed(Probe([], [], rows, []), {"models": MODELS, "corpus": ["text.txt"]})


def weak_ratios(judged: Sequence[str]) -> dict[str, language_models.Probed]:
    rising = probed(2, attention=effect(0.05, 1.36))
    made = {
        "ratio of one model rises": rising,
        "ratio of one model is level": probed(5, attention=effect(0.05, 1.35)),
        "ratio of the last threshold is undefined": probed(5, attention=effect(0.05, None)),
        "ratio of the first threshold is undefined": probed(3, attention=effect(0.05, None)),
        "a random model above 1": probed(11, attention=effect(-0.1, 1.0101)),
        "a random model below 1": probed(6, attention=effect(-0.1, 0.9899)),
        "a random model without attention": probed(7, attention=None),
    }
    for name in judged:
        ratio = {"ratio": 1.3} if name == "attention" else {}
        made |= {
            f"{name}: interval from zero on": probed(1, **{name: effect(0.0, **ratio)}),
            f"{name}: interval below zero": probed(4, **{name: effect(-0.1, **ratio)}),
            f"{name}: no interval": probed(1, **{name: replace(effect(0.1, **ratio), interval=None)}),
            f"{name}: no pairs": probed(4, **{name: None}),
        }
    return made


def small_bert(accuracy: float = 0.97, variant: str = "trained", **effects: Effect | None) -> pipeline.Found:
    rows = [
        probe_row("small BERT", "trained", 0.08),
        probe_row("small BERT", "random", 0.08, attention=effect(-0.1, 1.004), cosine=effect(-0.1, None)),
    ]
    place = 0 if variant == "trained" else 1
    rows[place] = with_effects(rows[place], effects)
    topic: dict[str, Any] = {"model": "small BERT", "threshold": 0.08, "topics_per_word": "one", "topic": 0}
    topic |= {"nearest": None, "nearest_cosine": None, "farthest": None, "farthest_cosine": None}
    topics = [TopicRow(**topic, name="kitchen", words=12, cosine=0.6)]
    falling = [3.0 - 0.01 * i for i in range(101)]
    return pipeline.Found(Probe(rows, head_rows("small BERT"), [], topics), accuracy, falling, 12)


def weak_effects() -> dict[str, pipeline.Found]:
    zero, chance = effect(0.0), effect(0.05, p_value=0.05)
    return {
        "cosine: not measured": small_bert(cosine=None),
        "cosine: no interval": small_bert(cosine=replace(effect(0.1), interval=None)),
        "cosine: no shuffles": small_bert(cosine=effect(0.05, p_value=None)),
        "random cosine: not measured": small_bert(variant="random", cosine=None),
        "random cosine: no interval": small_bert(variant="random", cosine=replace(effect(-0.1), interval=None)),
        "random attention: not measured": small_bert(variant="random", attention=None),
        "cosine: interval from zero on": small_bert(cosine=zero),
        "cosine: as good as shuffled topics": small_bert(cosine=chance),
        "dot: interval from zero on": small_bert(dot=zero),
        "dot: as good as shuffled topics": small_bert(dot=chance),
        "attention: interval from zero on": small_bert(attention=zero),
        "attention: as good as shuffled topics": small_bert(attention=chance),
    }
