"""The topics of documents, and what predicts them: states of a model by a linear map, words, half of the words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator
from topicscope.language.assignment import Assignment, LabelWords
from topicscope.language.state_rows import SPOTS, MixtureScore
from topicscope.language.states import DocumentStates
from topicscope.language.topics import Topics
from topicscope.measure import FEWEST, Interval, Scores, direct_scores, folded_in, ridge_scores

SHUFFLES = 5  # of mixtures among documents
SPOT_NAMES = tuple(f"{spot}/{SPOTS}" for spot in range(1, SPOTS + 1))

Tokens = Int[np.ndarray, " n"]
Mixture = Float[np.ndarray, " K"]


@dataclass(frozen=True)
class Targets:
    """The mixtures of the documents that have one, and how well words predict them."""

    documents: list[int]
    shares: Float[np.ndarray, "D K"]
    bag_of_words: Scores
    half_document: Scores | None  # of labels None: no topic model infers them
    orders: list[Int[np.ndarray, " D"]]  # of the shuffles


def mixture_of(topics: Topics | LabelWords | Assignment) -> Callable[[Tokens], Mixture | None]:
    """From the tokens of a document's words to its topics; None where no topic has any of the words.

    Fitted topics: the likeliest mixture (`folded_in`). Given lists of words: the shares of the topics among the words
    that are listed; a word of several topics is shared out equally. Labels are known or not: words say nothing of them.
    """
    if isinstance(topics, LabelWords):
        return lambda _: None
    size = int(topics.token.max()) + 1
    index = np.full(size, -1)
    index[topics.token] = np.arange(len(topics.token))
    if isinstance(topics, Topics):
        table = topics.probability
    else:
        members = topics.membership
        table = np.asarray((members.matrix() / np.maximum(members.topics_of_word, 1)[:, None]).todense()).T

    def mixture(tokens: Tokens) -> Mixture | None:
        known = index[tokens[tokens < size]]
        counts = np.bincount(known[known >= 0], minlength=len(topics.token)).astype(float)
        if not (counts @ table.T).any():
            return None
        shares = folded_in(table, counts) if isinstance(topics, Topics) else table @ counts
        return shares / shares.sum()

    return mixture


def targets_of(
    topics: Topics | LabelWords | Assignment,
    documents: Mapping[int, Tokens],
    seed: int,
    labels: Sequence[str | None] = (),
) -> Targets | None:
    """Of documents by number; None where too few of them have a mixture. Labels: all of the document is its label."""
    half = None
    if isinstance(topics, LabelWords):
        known = {number: topics.mixture(labels[number]) for number in sorted(documents)}
        found = {number: shares for number, shares in known.items() if shares is not None}
    else:
        mixture = mixture_of(topics)
        found = {number: shares for number in sorted(documents) if (shares := mixture(documents[number])) is not None}
    if len(found) < FEWEST:
        return None
    shares, tokens = np.stack(list(found.values())), [documents[number] for number in found]
    if not isinstance(topics, LabelWords):
        # every second of the words that have topics, the first among them, so that no half is empty
        halves = [mixture(words[np.isin(words, topics.token)][::2]) for words in tokens]
        even = np.full(shares.shape[1], 1 / shares.shape[1])
        half = direct_scores(np.stack([even if one is None else one for one in halves]), shares, seed=seed)
    (bag,) = ridge_scores(bags_of_words(tokens), shares, seed=seed)
    orders = [generator(seed, Stream.SHUFFLED_MIXTURES, i).permutation(len(found)) for i in range(SHUFFLES)]
    return Targets(list(found), shares, bag, half, orders)


def bags_of_words(documents: Sequence[Tokens]) -> Float[np.ndarray, "D V"]:
    """log(1 + count) of every word."""
    words, place = np.unique(np.concatenate(documents), return_inverse=True)
    row = np.repeat(np.arange(len(documents)), [len(tokens) for tokens in documents])
    counts = np.bincount(row * len(words) + place, minlength=len(documents) * len(words))
    return np.log1p(counts.reshape(len(documents), len(words)))


def mixture_scores(
    targets: Targets,
    documents: Mapping[int, DocumentStates],
    part: str,
    layer: int,
    *,
    resamples: int,
    seed: int,
    positions: bool,
) -> MixtureScore:
    """Of one layer. `positions`: from single states too."""
    mine = [documents[number] for number in targets.documents]
    means = np.stack([one.sums[part][layer] / max(1, one.numbers[part]) for one in mine])
    score, *shuffled = ridge_scores(means, targets.shares, targets.orders, seed=seed)
    by_position: dict[str, float | None] = {}
    if positions:
        none = np.zeros((SPOTS, means.shape[1]))  # a decoder may not read the only word of a document
        states = np.stack([one.spots[part][:, layer] if part in one.spots else none for one in mine])
        by_position = {
            name: ridge_scores(states[:, spot], targets.shares, seed=seed)[0].r2 for spot, name in enumerate(SPOT_NAMES)
        }
    chance = [one.r2 for one in shuffled if one.r2 is not None]

    def with_interval(scores: Scores | None) -> tuple[float | None, Interval | None]:
        return (None, None) if scores is None else (scores.r2, scores.interval(resamples, seed))

    (r2, interval), (bag, bag_interval), (half, half_interval) = map(
        with_interval, (score, targets.bag_of_words, targets.half_document)
    )
    return MixtureScore(
        mixture_r2=r2,
        mixture_interval=interval,
        bag_of_words_r2=bag,
        bag_of_words_interval=bag_interval,
        half_document_r2=half,
        half_document_interval=half_interval,
        shuffled_r2=float(np.mean(chance)) if chance else None,
        documents=len(targets.documents),
        by_position=by_position,
    )
