"""Topics of documents, by hand; halves and bags of words; what too few documents give."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tests.language import tiny
from tests.language.samples import assignment, texts
from topicscope.language import Topics, fit_topics, whole_words
from topicscope.language.state_probing import SHUFFLES, bags_of_words, mixture_of, targets_of
from topicscope.language.vocabulary import word_documents
from topicscope.measure import folded_in, ridge_scores

VOCABULARY = whole_words(tiny.tokenizer("wordpiece"))


def tokens_of(several: list[str]) -> list[np.ndarray]:
    return [VOCABULARY.token[words] for words in word_documents(several, VOCABULARY)]


def test_given_topics_are_shares_of_their_words() -> None:
    """'bread' is in kitchen and sea, 'butter' in kitchen, music and law; 'judge' in none."""
    shares = mixture_of(assignment(VOCABULARY, several=True))
    (plain, mixed, none) = tokens_of(["cheese boat boat choir", "bread butter", "judge judge"])
    np.testing.assert_allclose(cast("Any", shares(0, plain)), [0.25, 0.5, 0.25, 0])
    np.testing.assert_allclose(cast("Any", shares(0, mixed)), np.array([1 / 2 + 1 / 3, 1 / 2, 1 / 3, 1 / 3]) / 2)
    assert shares(0, none) is None
    assert shares(0, np.empty(0, dtype=int)) is None


@pytest.fixture(scope="module")
def topics() -> Topics:
    return fit_topics(texts(60), VOCABULARY, 4, iterations=20)


def test_fitted_topics_are_folded_in(topics: Topics) -> None:
    shares = mixture_of(topics)
    for tokens in tokens_of(texts(3, 5)):
        counts = np.array([(tokens == token).sum() for token in topics.token], dtype=float)
        np.testing.assert_allclose(cast("Any", shares(0, tokens)), folded_in(topics.probability, counts), atol=1e-12)
    assert shares(0, np.array([len(tiny.tokenizer("wordpiece")) + 5])) is None


def test_targets_have_halves_bags_and_shuffles(topics: Topics) -> None:
    listed = tokens_of(texts(25, 3))
    listed[4] = np.empty(0, dtype=int)  # a document without words has no mixture
    targets = targets_of(topics, dict(enumerate(listed)), 7)
    assert targets is not None
    assert targets.half_document is not None
    assert targets.documents == [n for n in range(25) if n != 4]
    mixture, used = mixture_of(topics), [listed[n] for n in targets.documents]
    halves = np.stack([cast("Any", mixture(0, tokens[::2])) for tokens in used])  # all words of these texts have topics
    np.testing.assert_allclose(targets.half_document.errors, ((halves - targets.shares) ** 2).sum(1), atol=1e-12)
    bag = bags_of_words(used)
    words = np.unique(np.concatenate(used))
    assert bag[2].tolist() == pytest.approx([np.log(1 + (used[2] == word).sum()) for word in words])
    assert targets.bag_of_words.errors.tolist() == ridge_scores(bag, targets.shares, seed=7)[0].errors.tolist()
    assert len(targets.orders) == SHUFFLES
    assert all(sorted(order) == list(range(24)) for order in targets.orders)
    assert targets_of(topics, dict(enumerate(listed[:9])), 7) is None
    assert targets.shares.sum(1) == pytest.approx(np.ones(24))
