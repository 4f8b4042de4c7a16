"""The language half on made-up texts: texts, masks, training, matched topics, and what is said of the probe."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.paper.samples import judged
from tests.paper.samples_models import effect, small_bert
from topicscope import language, pretraining
from topicscope.pages import Lines
from topicscope.paper import Context, pipeline
from topicscope.paper.made_up import SPECIAL, build_tokenizer, sample_texts, word_lists
from topicscope.pretraining.data import Rows


def test_texts_are_documents_of_the_sandbox_in_words() -> None:
    lists = word_lists()
    texts = sample_texts(lists, 2)
    assert (len(texts), {len(text.split()) for text in texts}) == (3000, {48})
    assert texts[0].startswith("athlete father medal hockey soccer medal arena tennis stadiu")  # the reference run's
    assert texts[-1].endswith("beach shore referee league coral mast shore captain beach")
    assert {word for text in texts for word in text.split()} == {word for topic in lists.values() for word in topic}


def test_the_tokenizer_has_one_token_per_word() -> None:
    lists = word_lists()
    tokenizer = build_tokenizer(lists)
    words = [word for topic in lists.values() for word in topic]
    assert len(tokenizer) == len(SPECIAL) + 1 + len(words)
    ids = tokenizer(" ".join(words[:3]))["input_ids"]
    assert ids == [2, 6, 7, 8, 3]  # [CLS], three words after the special tokens and 'a', [SEP]
    assert (tokenizer.mask_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (4, 0, 1)
    assert tokenizer.model_max_length == 50


def test_a_row_of_the_training_is_one_document() -> None:
    lists = word_lists()
    texts, tokenizer = sample_texts(lists, 2)[:200], build_tokenizer(lists)
    settings = pretraining.PretrainConfig.of(pipeline.SETTINGS)
    model, losses = pipeline.train_bert(tokenizer, texts, 4, 2)
    assert len(losses) == 4
    assert losses == pytest.approx([np.log(len(tokenizer))] * 4, abs=0.1)  # untrained, it guesses among all tokens
    assert not model.training
    rows = Rows(texts, tokenizer, settings.length, 2).take(0, settings.batch_size)
    documents = {tuple(row) for row in tokenizer(texts)["input_ids"]}
    assert {tuple(row[:-1]) for row in rows.tolist()} <= documents
    assert (settings.masking.p_mask, settings.masking.p_correct, settings.masking.p_random) == (0.15, 0.1, 0.1)


def fitted(topics: list[list[str]]) -> Any:
    """Topics as fitted: their words."""
    words = sorted(word for topic in topics for word in topic)
    pairs = [(words.index(word), k) for k, topic in enumerate(topics) for word in topic]
    word, topic = (np.array(side) for side in zip(*pairs, strict=True))
    return SimpleNamespace(
        words=tuple(words), membership=SimpleNamespace(word=word, topic=topic), names=("?",) * len(topics)
    )


def test_topics_are_matched_one_to_one() -> None:
    lists = {
        "kitchen": ["bread", "butter", "cheese"],
        "sea": ["boat", "beach", "coral"],
        "law": ["court", "judge", "bail"],
    }
    exact = [lists["law"], lists["kitchen"], lists["sea"]]
    assert pipeline.matching(fitted(exact), lists) == (1.0, ["law", "kitchen", "sea"])
    mixed = [["court", "judge", "bread"], ["butter", "cheese", "boat"], ["beach", "coral"]]
    share, names = pipeline.matching(fitted(mixed), lists)
    assert share == pytest.approx(6 / 9)  # bail is nowhere
    assert names == ["law", "kitchen", "sea"]
    every = [
        sum(len(set(topic) & set(lists[name])) for topic, name in zip(mixed, order, strict=True))
        for order in itertools.permutations(lists)
    ]
    assert share * 9 == pytest.approx(max(every))


@pytest.mark.parametrize(("scale", "steps"), [("quick", 900), ("full", 2500)])
def test_what_is_trained_fitted_and_probed(monkeypatch: pytest.MonkeyPatch, scale: Any, steps: int) -> None:
    asked: dict[str, Any] = {}
    lists = word_lists()
    topics = [*list(lists.values())[1:], next(iter(lists.values()))]  # the fit has another order

    def train(tokenizer: Any, texts: list[str], count: int, seed: int) -> tuple[str, list[float]]:
        asked["train"] = (len(tokenizer), len(texts), count, seed)
        return "model", [3.0, 2.0]

    def fit(texts: list[str], words: Any, count: int, **options: Any) -> str:
        asked["fit"] = (len(texts), count, options)
        return "topics"

    def assign(model: str, threshold: float, names: tuple[str, ...] = ()) -> Any:
        asked.setdefault("assign", []).append((model, threshold, names))
        return fitted(topics)

    def probe(model: Any, texts: list[str], assignment: Any, measurement: Any) -> str:
        asked["probe"] = (model, texts, measurement.seed)
        return "probe"

    monkeypatch.setattr(pipeline, "train_bert", train)
    monkeypatch.setattr(language, "fit_topics", fit)
    monkeypatch.setattr(language, "assign", assign)
    monkeypatch.setattr(language, "checked", lambda name, model, _: (name, model))
    monkeypatch.setattr(language, "probe_model", probe)
    found: Any = pipeline.measure(Context(scale, 2))
    assert (found.probe, found.accuracy, found.losses, found.topics) == ("probe", 1.0, [3.0, 2.0], len(lists))
    size = len(SPECIAL) + 1 + sum(map(len, lists.values()))
    assert asked["train"] == (size, 3000, steps, 2)
    assert asked["fit"] == (3000, len(lists), {"iterations": 50, "restarts": 12, "stability": False, "seed": 2})
    (_, threshold, _), named = asked["assign"]
    assert int(threshold * size) == len(topics[0])  # as many words for a topic as it has
    assert (threshold * size) % 1 == pytest.approx(0.5)  # however the product is rounded
    assert named == ("topics", threshold, (*list(lists)[1:], next(iter(lists))))
    model, texts, seed = asked["probe"]
    assert (model, texts, seed) == (("small BERT", "model"), sample_texts(lists, 2)[:150], 2)


def test_the_outcome_says_what_was_found() -> None:
    outcome = judged("pipeline", small_bert(0.96))
    assert outcome.measured == (
        "96% of the words are in their true topic; same-topic and different-topic means: cosine 0.4, 0.3, dot 0.4, "
        "0.3, attention 0.4, 0.3; attention ratio 1.3 [1.1, 1.5], random model 1.0040"
    )
    assert outcome.reason == (
        "96% of the words are in their true topic of 12; every effect is found; the random model shows none"
    )
    weak = judged("pipeline", small_bert(dot=effect(-0.1), attention=effect(0.05, p_value=0.2)))
    assert "; not found: dot, attention; " in weak.reason
    loud = judged("pipeline", small_bert(variant="random", cosine=effect(0.01)))
    assert loud.reason.endswith("every effect is found; the random model shows an effect")
    assert outcome.numbers["accuracy"] == 0.96
    assert outcome.numbers["loss"] == pytest.approx([3 - 0.01 * 9.5, 3 - 0.01 * 75.5])  # first 20, last 50 of 101
    curve = outcome.figures[0].panels[0]
    assert isinstance(curve, Lines)
    assert curve.series[0].x == [10.0 * i for i in range(11)]
    assert curve.series[0].y == pytest.approx([3 - 0.1 * i for i in range(11)])
    assert [figure.name for figure in outcome.figures] == ["pipeline-training", "pipeline-1", "pipeline-2"]
    assert outcome.config == {"documents": 3000, "length": 48, "steps": 101, "topics": 12}
