"""What several tests of the language half share: topics, model folders, texts, and how results are compared."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.language import tiny
from topicscope.language import (
    Assignment,
    HeadRow,
    LoadedModel,
    TopicFit,
    Topics,
    Vocabulary,
    checked,
    whole_words,
)
from topicscope.language.probe_rows import DocumentRow
from topicscope.measure import Effect, Matched, Membership

SHARED = Path(os.environ.get("TOPICSCOPE_SHARED", Path(__file__).parents[3] / "shared"))
needs_shared = pytest.mark.skipif(
    not (SHARED / "models" / "bert-mini-wiki").is_dir(),
    reason="needs the shared models and corpora (TOPICSCOPE_SHARED)",
)
THETA = 6.5 / len(tiny.tokenizer("wordpiece"))  # at which a topic has the six words that the texts are made of


def assignment(vocabulary: Vocabulary, *, several: bool) -> Assignment:
    """Four topics; with `several`, some words are in two. One topic has one word only."""
    words = [word for word in tiny.WORDS if word in vocabulary.number][:19]
    names = ("kitchen", "sea", "music", "law")
    listed = {(names.index(tiny.TOPICS[word]), i) for i, word in enumerate(words)}
    if several:
        listed |= {(k, i) for k, i in [(1, 0), (2, 1), (3, 1), (0, 12)] if i < len(words)}
    topic, word = (np.array(side) for side in zip(*sorted(listed), strict=True))
    return Assignment(
        token=np.array([vocabulary.token[vocabulary.number[w]] for w in words]),
        words=tuple(words),
        frequency=np.arange(1.0, len(words) + 1),
        membership=Membership(word, topic, len(words), 4),
        threshold=None,
        topics_per_word="many" if several else "one",
        names=names,
    )


def given_topics(probability: Any, mixtures: Any, **parts: Any) -> Topics:
    """Topics with these words in each topic and these topics in each document; `parts`: what else matters."""
    table, documents = np.array(probability), np.array(mixtures, dtype=np.float32)
    count, words = table.shape
    fit = {"backend": "tomotopy", "topics": count, "iterations": 1, "seed": 0, "min_documents": 1}
    fit |= {"documents": len(documents), "tokens": 100, "log_likelihood": [-1.0], "coherence": [0.5] * count}
    plain: dict[str, Any] = {"words": tuple(f"word{w}" for w in range(words)), "token": np.arange(words)}
    plain |= {"document_lengths": np.ones(len(documents), dtype=int), "cooccurring": np.array([[0, 1]])}
    plain |= {"frequency": np.ones(words), "vocabulary_size": words, "fingerprint": "f"}
    plain |= {"fit": TopicFit(**fit | parts.pop("fit", {}))}
    return Topics(probability=table, document_topics=documents, **plain | parts)


def tiny_encoder(length: int = 40) -> tuple[LoadedModel, Vocabulary, Assignment]:
    """With its words, in four topics."""
    tokenizer = tiny.tokenizer("wordpiece", length)
    vocabulary = whole_words(tokenizer)
    loaded = checked("encoder", tiny.model("encoder", len(tokenizer)), tokenizer)
    return loaded, vocabulary, assignment(vocabulary, several=False)


def model_folder(home: Path, kind: str = "encoder", tokens: str = "wordpiece") -> Path:
    """A tiny model with its tokenizer, as a folder."""
    tokenizer = tiny.tokenizer(tokens)
    tiny.model(kind, len(tokenizer)).float().save_pretrained(home / "model")
    tokenizer.save_pretrained(home / "model")
    return home / "model"


def texts(count: int = 200, seed: int = 0) -> list[str]:
    """Documents of one or two of the four topics."""
    rng = np.random.default_rng(seed)
    words = np.array(tiny.WORDS).reshape(4, 6)
    return [" ".join(rng.choice(words[rng.choice(4, 1 + (rng.random() < 0.2))].ravel(), 30)) for _ in range(count)]


def corpus_file(home: Path) -> Path:
    path = home / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text, "title": "t"}) + "\n" for text in texts(120)))
    return path


def document_row(document: int = 0, **changes: Any) -> DocumentRow:
    about: dict[str, Any] = {"model": "m", "document": document, "place": None, "words": 9, "tokens": 9, "topics": []}
    about |= {"threshold": None, "part": "encoder", "topic_words": 9, "same_pairs": 100, "different_pairs": 100}
    return DocumentRow(**{**about, "same": None, "different": None, "contrast": None, **changes})


def head_row(layer: int, head: int, p: float | None, **changes: Any) -> HeadRow:
    """One that has .5 more inside topics."""
    about: dict[str, Any] = {"model": "a/b", "threshold": 0.1, "topics_per_word": "one", "part": "encoder"}
    effect = Effect(same=1.0, different=0.5, difference=0.5, ratio=None, interval=(0.1, 1.0))
    return HeadRow(**{**about, "effect": effect, **changes}, layer=layer, head=head, corrected_p=p)


def assert_same(one: Any, two: Any) -> None:
    """Two results with arrays in them, field by field."""
    assert type(one) is type(two)
    for part in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, part.name), getattr(two, part.name), part.name)


def an_effect(low: float, p_value: float | None = None, matched_low: float | None = None) -> Effect:
    """One whose interval starts at `low`, with the controls that are given."""
    matched = None if matched_low is None else Matched(1.0, 0.5, 0.5, (matched_low, 1.0))
    means: dict[str, Any] = {"same": 1.0, "different": 0.5, "difference": 0.5, "ratio": 2.0}
    return Effect(**means, interval=(low, 1.0), ratio_interval=(1.5, 2.5), p_value=p_value, matched=matched)
