"""Which words stand for a topic: the most likely theta * V of each, in one topic each (Table 1) or in several (Table 5)."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary
from topicscope.measure import Membership

TopicsPerWord = Literal["one", "many"]


@dataclass(frozen=True)
class Assignment:
    """Words (as tokens) and their topics. `threshold` is theta; None where the user gave the topics."""

    token: Int[np.ndarray, " W"]
    words: tuple[str, ...]
    frequency: Float[np.ndarray, " W"]
    membership: Membership
    threshold: float | None
    topics_per_word: TopicsPerWord
    names: tuple[str, ...]  # of the topics
    remark: str = ""  # what of the given topics could not be used


def assign(
    topics: Topics, threshold: float, topics_per_word: TopicsPerWord = "one", names: tuple[str, ...] | None = None
) -> Assignment:
    """The `threshold * V` most likely words of each topic. With 'one', a word in several lists stays where it is likeliest."""
    if not 0 < threshold < 1:
        raise InputError(
            f"threshold {threshold} is not between 0 and 1; it is the share of the vocabulary that each topic keeps, for example 0.001"
        )
    count = int(threshold * topics.vocabulary_size)
    if count < 1:
        raise InputError(
            f"threshold {threshold:g} keeps no word (threshold * V = {threshold * topics.vocabulary_size:.2g}); choose a larger one"
        )
    if count >= len(topics.words):
        raise InputError(
            f"threshold {threshold:g} keeps all {len(topics.words)} words in every topic; choose a smaller one"
        )
    chosen = np.zeros(topics.probability.shape, dtype=bool)
    np.put_along_axis(chosen, np.argsort(-topics.probability, 1, kind="stable")[:, :count], True, 1)
    if topics_per_word == "one":
        likeliest = np.where(chosen, topics.probability, -1).argmax(0)
        chosen &= likeliest == np.arange(len(topics))[:, None]
    used = np.flatnonzero(chosen.any(0))
    topic, word = np.nonzero(chosen[:, used])
    names = names or tuple(" ".join(topics.top_words(k, 3)) for k in range(len(topics)))
    return Assignment(
        topics.token[used],
        tuple(topics.words[i] for i in used),
        topics.frequency[used],
        Membership(word, topic, len(used), len(topics)),
        threshold,
        topics_per_word,
        names,
    )


def given_topics(path: str | Path, vocabulary: Vocabulary, frequency: dict[int, float] | None = None) -> Assignment:
    """Topics that the user wrote down: CSV with the columns word and topic, or JSON {word: topic} or {topic: [words]}."""
    pairs = _read_pairs(Path(path))
    if not pairs:
        raise InputError(
            f"{path} names no words; expected lines 'word,topic' under such a header, or JSON {{word: topic}}"
        )
    known = [(vocabulary.number[word], topic) for word, topic in dict.fromkeys(pairs) if word in vocabulary.number]
    unknown = [word for word, _ in dict.fromkeys(pairs) if word not in vocabulary.number]
    some = ", ".join(repr(word) for word in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    if len({topic for _, topic in known}) < 2 or max(Counter(topic for _, topic in known).values()) < 2:
        raise InputError(
            f"{path}: too few of its {len(pairs)} words are one token of this model and no stop word (not used: {some or 'none'}; is the case right?): "
            "two topics are needed, and one of at least two words"
        )
    names = tuple(dict.fromkeys(topic for _, topic in known))
    numbers = np.unique([word for word, _ in known])
    place = {int(number): i for i, number in enumerate(numbers)}
    listed = sorted((names.index(topic), place[word]) for word, topic in known)
    topic, word = (np.array(side) for side in zip(*listed, strict=True))
    tokens = vocabulary.token[numbers]
    counts = np.array([(frequency or {}).get(int(token), 1.0) for token in tokens])
    several: TopicsPerWord = "many" if len(listed) > len(numbers) else "one"
    words = tuple(vocabulary.words[i] for i in numbers)
    left_out = (
        f"{len(unknown)} of {len(pairs)} given words are not one token of this model, or are stop words: {some}"
        if unknown
        else ""
    )
    return Assignment(
        tokens, words, counts, Membership(word, topic, len(numbers), len(names)), None, several, names, left_out
    )


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not to be read as text ({error})") from None
    if path.suffix.lower() == ".json":
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InputError(f"{path} is no JSON ({error})") from None
        if not isinstance(data, dict) or not data:
            raise InputError(f"{path}: expected {{word: topic}} or {{topic: [words]}}")
        if all(isinstance(value, list) and all(isinstance(word, str) for word in value) for value in data.values()):
            return [(word, str(topic)) for topic, words in data.items() for word in words]
        if not all(isinstance(value, str | int) for value in data.values()):
            raise InputError(f"{path}: expected {{word: topic}} throughout, or {{topic: [words]}} throughout")
        return [(str(word), str(topic)) for word, topic in data.items()]
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    if rows and not {"word", "topic"} <= set(rows[0]):
        raise InputError(f"{path}: expected the columns word and topic; it has {', '.join(map(repr, rows[0]))}")
    return [(row["word"].strip(), row["topic"].strip()) for row in rows if row["word"] and row["topic"]]
