"""Made-up texts: the topics, the words that two of them share, and the pairs that stand together and share none."""

from __future__ import annotations

import numpy as np
import pytest

from topicscope import language
from topicscope.paper.made_up import (
    LENT,
    PAIR_CHANCE,
    SENTENCE,
    SENTENCES,
    build_tokenizer,
    draws,
    fixed_pairs,
    sample_language,
    topic_words,
    word_lists,
)


def test_topics_lend_their_last_words_to_the_next() -> None:
    table = topic_words(4, 5)
    assert table.shape == (4, 20)
    assert table.sum(1) == pytest.approx(np.ones(4))
    for topic in range(4):
        own, before = range(5 * topic, 5 * topic + 5), (topic - 1) % 4
        lent = range(5 * before + 5 - LENT, 5 * before + 5)
        assert set(np.flatnonzero(table[topic])) == {*own, *lent}
        ratios = [table[topic, word] / table[before, word] for word in lent]
        assert ratios == pytest.approx([0.5] * LENT)
        assert all(table[topic, i] > table[topic, i + 1] for i in own[:-1])


def test_pairs_are_of_two_topics_and_share_no_word() -> None:
    pairs = fixed_pairs(12, 12)
    assert len(pairs) == 24
    assert not set(pairs) & set(pairs.values())
    assert len(set(pairs.values())) == len(pairs)
    shares = topic_words(12, 12) > 0
    assert not any((shares[:, first] & shares[:, second]).any() for first, second in pairs.items())


def test_draws_follow_their_distributions() -> None:
    table = np.array([[[0.2, 0.5, 0.3]]])
    picked = [int(draws(table, np.array([[u]]))[0, 0]) for u in (0.0, 0.19, 0.2, 0.69, 0.7, 0.999999999999)]
    assert picked == [0, 0, 1, 1, 2, 2]
    assert int(draws(np.array([[[0.1] * 9]]), np.array([[0.95]]))[0, 0]) == 8  # beyond the last


def test_the_language_has_topics_by_sentence_and_pairs_across_topics() -> None:
    lists = word_lists()
    made = sample_language(lists, 2)
    assert sample_language(lists, 2).texts == made.texts
    assert sample_language(lists, 3).texts != made.texts
    number = {word: i for i, word in enumerate(made.words)}
    rows = np.array([[number[word] for word in text.split()] for text in made.texts])
    assert rows.shape == (3000, SENTENCE * SENTENCES)
    followed = np.isin(rows[:, :-1], list(made.pairs))
    seconds = np.array([made.pairs.get(word, -1) for word in rows[:, :-1].ravel()]).reshape(rows[:, :-1].shape)
    chance = (rows[:, 1:] == seconds)[followed].mean()
    assert chance == pytest.approx(PAIR_CHANCE, abs=0.02)
    # some topic explains every word of a sentence that no pair has put there
    plain = np.concatenate([np.ones((len(rows), 1), bool), rows[:, 1:] != seconds], axis=1)
    fits = made.probability[:, rows] > 0
    whole = (fits | ~plain).reshape(12, 3000, SENTENCES, SENTENCE).all(3).any(0)
    assert whole.all()


def test_known_topics_and_what_stands_together_most_often() -> None:
    lists = word_lists()
    made, tokenizer = sample_language(lists, 0), build_tokenizer(lists)
    topics = made.topics(tokenizer)
    assert len(topics) == 12
    for topic, (name, words) in enumerate(lists.items()):
        assert topics.top_words(topic, 12) == words, name
    counts = {word: sum(text.split().count(word) for text in made.texts) for word in ("bread", "virus")}
    assert {word: topics.frequency[topics.words.index(word)] for word in counts} == counts
    fixed = {frozenset((made.words[a], made.words[b])) for a, b in made.pairs.items()}
    commonest = [frozenset(topics.words[i] for i in pair) for pair in topics.cooccurring[:21].tolist()]
    assert all(pair in fixed for pair in commonest)  # the control of Table 2 has something to find
    one = language.assign(topics, 15.5 / topics.vocabulary_size)
    many = language.assign(topics, 15.5 / topics.vocabulary_size, "many")
    assert (len(one.membership.word), len(many.membership.word)) == (144, 144 + 12 * LENT)
    home = {word: k for k, listed in enumerate(lists.values()) for word in listed}
    assert all(
        home[one.words[word]] == topic for word, topic in zip(one.membership.word, one.membership.topic, strict=True)
    )
