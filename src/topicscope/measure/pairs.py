"""Sums and means over pairs of words by topic: of vectors, of a matrix, and of attention.

Sums over pairs of vectors are sums of vectors: with S_k the sum over topic k, the pairs inside k have |S_k|^2 less the
squared lengths of its words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from topicscope.ground import Stream, generator


@dataclass(frozen=True)
class Membership:
    """Which words are in which topics, as a list of (word, topic) in order of topic."""

    word: Int[np.ndarray, " I"]
    topic: Int[np.ndarray, " I"]  # their topics (I)
    words: int
    topics: int

    @property
    def sizes(self) -> Int[np.ndarray, " K"]:
        return np.bincount(self.topic, minlength=self.topics)

    @property
    def topics_of_word(self) -> Int[np.ndarray, " W"]:
        return np.bincount(self.word, minlength=self.words)

    def matrix(self) -> sparse.csr_array:
        return sparse.csr_array((np.ones(len(self.word)), (self.word, self.topic)), shape=(self.words, self.topics))

    def among(self, words: Int[np.ndarray, " U"]) -> Membership:
        """The same topics of some of the words, which are numbered anew in their order."""
        place = np.full(self.words, -1)
        place[words] = np.arange(len(words))
        among = place[self.word] >= 0
        return Membership(place[self.word[among]], self.topic[among], len(words), self.topics)

    def shared(self) -> tuple[Int[np.ndarray, " P"], Int[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """Ordered pairs (a word with itself included) that share a topic though one of them has another topic too.

        The third array is how many topics they share.
        """
        members = self.matrix()
        several = np.flatnonzero(self.topics_of_word > 1)
        rows = (members[several] @ members.T).tocoo()
        left, right, common = several[rows.row], rows.col, rows.data
        once = ~np.isin(right, several)  # seen from one side only
        return (
            np.concatenate([left, right[once]]),
            np.concatenate([right, left[once]]),
            np.concatenate([common, common[once]]),
        )


@dataclass(frozen=True)
class PairSums:
    """Sums and numbers of ordered pairs of words inside each topic and between every two.

    The last axis are strata: by how frequent the two words are, or just one.
    """

    same: Float[np.ndarray, "K S"]  # sums inside topics
    same_pairs: Float[np.ndarray, "K S"]  # numbers of pairs inside topics
    between: Float[np.ndarray, "K K S"]  # sums between topics; zero between a topic and itself
    between_pairs: Float[np.ndarray, "K K S"]  # numbers of pairs between topics

    def means(
        self, weight: Float[np.ndarray, "*R K"] | None = None, *, matched: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Same-topic and different-topic mean, each topic counted `weight` times; `matched`: at equal frequencies."""
        w = np.ones(len(self.same)) if weight is None else weight
        same, same_pairs = w @ self.same, w @ self.same_pairs  # ... S
        between, between_pairs = (_both_weighted(w, x) for x in (self.between, self.between_pairs))
        if not matched:
            return _mean(same.sum(-1), same_pairs.sum(-1)), _mean(between.sum(-1), between_pairs.sum(-1))
        return matched_means((same, same_pairs), (between, between_pairs))

    def pooled(self) -> PairSums:
        return PairSums(*(table.sum(-1, keepdims=True) for table in vars(self).values()))

    def topic_means(self) -> Float[np.ndarray, " K"]:
        """The same-topic mean of each topic; NaN where it has one word only."""
        return _mean(self.same.sum(-1), self.same_pairs.sum(-1))

    def topic_between(self) -> Float[np.ndarray, "K K"]:
        return _mean(self.between.sum(-1), self.between_pairs.sum(-1))


Strata = tuple[Float[np.ndarray, "*R S"], Float[np.ndarray, "*R S"]]  # sums and numbers of pairs


@np.errstate(invalid="ignore")
def matched_means(same: Strata, different: Strata) -> tuple[np.ndarray, np.ndarray]:
    """Both means, different-topic pairs weighted as same-topic pairs; strata without pairs of both are left out."""
    usable = np.minimum(same[1], different[1]) > 0.5
    share = np.where(usable, same[1], 0)
    share /= share.sum(-1, keepdims=True)
    left, right = ((share * np.where(usable, _mean(*kind), 0)).sum(-1) for kind in (same, different))
    return left, right


def _mean(total: Float[np.ndarray, "*R"], pairs: Float[np.ndarray, "*R"]) -> Float[np.ndarray, "*R"]:
    """NaN where there are no pairs: what is left of the sum is rounding."""
    return np.divide(total, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs > 0.5)


def _both_weighted(w: Float[np.ndarray, "*R K"], table: Float[np.ndarray, "K K S"]) -> Float[np.ndarray, "*R S"]:
    topics, _, strata = table.shape
    return np.einsum("...k,...ks->...s", w, (w @ table.reshape(topics, -1)).reshape(*w.shape[:-1], topics, strata))


def pair_sums(
    vectors: Float[np.ndarray, "W d"],
    membership: Membership,
    bins: Int[np.ndarray, " W"] | None = None,
    *,
    partners: Float[np.ndarray, "W d"] | None = None,
) -> PairSums:
    u = np.asarray(vectors, dtype=np.float64)
    v = u if partners is None else np.asarray(partners, dtype=np.float64)
    bins = np.zeros(len(u), dtype=np.int64) if bins is None else bins
    topics, count = membership.topics, int(bins.max(initial=0)) + 1
    # sums over the words of a topic that are in a bin
    cells = sparse.csr_array(
        (np.ones(len(membership.word)), (membership.word, membership.topic * count + bins[membership.word])),
        shape=(membership.words, topics * count),
    )
    sums, sizes = cells.T @ u, np.bincount(cells.indices, minlength=topics * count).astype(float)
    left, right, _ = membership.shared()

    def tables(every: np.ndarray, own: np.ndarray, common: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inside topics and between them: from sums over all pairs, pairs of a word with itself, and shared pairs."""
        shape, cell, topic = (topics, count, topics, count), np.arange(count), np.arange(topics)
        inside = np.einsum("kbkc->kbc", every.reshape(shape)).copy()
        inside[:, cell, cell] -= own.reshape(topics, count)
        of_words = sparse.csr_array((common, (left, right)), shape=(membership.words, membership.words))
        between = (every - (cells.T @ of_words @ cells).toarray()).reshape(shape).transpose(0, 2, 1, 3).copy()
        between[topic, topic] = 0
        return inside.reshape(topics, -1), between.reshape(topics, topics, -1)

    products = sums @ (sums if partners is None else cells.T @ v).T
    same, between = tables(products, cells.T @ (u * v).sum(1), np.einsum("pd,pd->p", u[left], v[right]))
    same_pairs, between_pairs = tables(np.outer(sizes, sizes), sizes, np.ones(len(left)))
    return PairSums(same, same_pairs, between, between_pairs)


def frequency_bins(frequency: Float[np.ndarray, " W"], count: int = 5) -> Int[np.ndarray, " W"]:
    """Put words into bins of about the same size, by frequency; equally frequent words are in the same bin."""
    edges = np.quantile(frequency, np.linspace(0, 1, count + 1)[1:-1])
    return np.searchsorted(np.unique(edges), frequency, side="left")


def shuffled_means(
    vectors: Float[np.ndarray, "W d"],
    membership: Membership,
    shuffles: int,
    seed: int,
    *,
    partners: Float[np.ndarray, "W d"] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Same-topic and different-topic mean with topics dealt to words at random; sizes and overlaps of topics stay."""
    import torch
    from torch.nn.functional import embedding_bag

    rng = generator(seed, Stream.SHUFFLED_TOPICS)
    u = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    v = u if partners is None else torch.from_numpy(np.ascontiguousarray(partners, dtype=np.float32))
    both = u if partners is None else torch.cat([u, v], 1)
    norms = (u.double() * v.double()).sum(1)
    sizes, topics_of_word = membership.sizes, membership.topics_of_word
    left, right, common = membership.shared()
    # how often a shared pair would be counted as one between two different topics
    extra = topics_of_word[left] * topics_of_word[right] - common
    ordered = np.argsort(left, kind="stable")  # the partners of a word side by side
    firsts, starts = np.unique(left[ordered], return_index=True)
    arrays = (
        *(membership.word, np.cumsum(sizes) - sizes, topics_of_word),
        *(firsts, starts, right[ordered], extra[ordered].astype(np.float32)),
    )
    word, offset, per_word, first, start, second, times = map(torch.from_numpy, arrays)
    same, different = np.empty(shuffles), np.empty(shuffles)
    for i in range(shuffles):
        order = torch.from_numpy(rng.permutation(membership.words))
        bags = embedding_bag(order[word], both, offset, mode="sum").double()
        sums, others = bags[:, : u.shape[1]], bags[:, -u.shape[1] :]
        inside, shared = float((sums * others).sum()), 0.0
        if len(left):
            mates = embedding_bag(order[second], v, start, mode="sum", per_sample_weights=times)
            shared = float((mates * u[order[first]]).sum(dtype=torch.float64))
        same[i] = inside - float((norms[order] * per_word).sum())
        different[i] = float(sums.sum(0) @ others.sum(0)) - inside - shared
    between_pairs = float(sizes.sum() ** 2 - (sizes**2).sum() - extra.sum())
    return same / float((sizes * (sizes - 1)).sum()), different / between_pairs


def matrix_pair_sums(
    sums: Float[np.ndarray, "V V"], pairs: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"]
) -> PairSums:
    members = (topic[:, None] == np.arange(1, topic.max() + 1)).astype(float)  # V x K

    def tables(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        between, off = members.T @ matrix @ members, matrix * (1 - np.eye(len(topic)))
        np.fill_diagonal(between, 0)
        return np.einsum("ik,ij,jk->k", members, off, members, optimize=True)[:, None], between[:, :, None]

    (same, between), (same_pairs, between_pairs) = tables(sums), tables(pairs)
    return PairSums(same, same_pairs, between, between_pairs)


class AttentionMeans(NamedTuple):
    """Mean attention weight of a pair of positions by the relation of their words (Tables 3 and 4)."""

    same_word: float  # mean weight of a key with the same word
    same_topic: float  # mean weight of a key with another word of the same topic
    different_topic: float  # mean weight of a key with a word of another topic

    @property
    def alpha(self) -> float:
        return self.same_topic / self.different_topic

    @property
    def beta(self) -> float:
        return self.same_word / self.different_topic


def attention_means(
    scores: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"], counts: Float[np.ndarray, "D V"]
) -> AttentionMeans:
    sums, pairs = word_pair_sums(scores, counts)
    same_topic = (topic[:, None] == topic) & ~np.eye(len(topic), dtype=bool)
    own = np.diagonal(sums).sum(), np.diagonal(pairs).sum()
    mates = sums[same_topic].sum(), pairs[same_topic].sum()
    # the attention of every position sums to 1
    others = counts.sum() - own[0] - mates[0], (counts.sum(1) ** 2).sum() - own[1] - mates[1]
    return AttentionMeans(*(float(total / number) for total, number in (own, mates, others)))


def attention_pair_sums(
    scores: Float[np.ndarray, "V V"], topic: Int[np.ndarray, " V"], counts: Float[np.ndarray, "D V"]
) -> PairSums:
    return matrix_pair_sums(*word_pair_sums(scores, counts), topic)


def word_pair_sums(
    scores: Float[np.ndarray, "V V"], counts: Float[np.ndarray, "D V"]
) -> tuple[Float[np.ndarray, "V V"], Float[np.ndarray, "V V"]]:
    """Attention and number of pairs of positions, summed over documents, for every query word j and key word i.

    A query word j of a document attends each position of word i with exp(score) / z_j, z_j = sum_i count_i exp(score).
    So sums over pairs of positions are sums over pairs of words, weighted by their counts: three matrix products.
    """
    weight = np.exp(scores - scores.max(1, keepdims=True))
    share = np.divide(counts, counts @ weight.T, out=np.zeros(counts.shape), where=counts > 0)  # query positions / z
    return (share.T @ counts) * weight, counts.T @ counts
