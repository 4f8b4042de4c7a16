"""Means over all pairs of words by relation, exactly, from sums of vectors: no loop over pairs, no matrix over words.

A word counts once in each of its topics. Same topic: pairs of different words inside a topic. Different topic: a word
of one topic and one of another, unless the two words share some topic. Where every word has one topic, these are the
plain 'same' and 'different'.

With S_k the sum of topic k's vectors, the pairs inside it sum to |S_k|^2 - sum_i |u_i|^2, and those between k and l to
S_k . S_l. Words with several topics add pairs to that by sharing a topic. Those pairs are few, and are subtracted
one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from topicscope.ground import Stream, generator


@dataclass(frozen=True)
class Membership:
    """Which words are in which topics, as a list of (word, topic) in order of topic.

    Attributes:
        word: Words (I).
        topic: Their topics (I).
        words: Number of words.
        topics: Number of topics.

    Example:
        >>> members = Membership(np.array([0, 1, 1]), np.array([0, 0, 1]), words=2, topics=2)
        >>> members.sizes.tolist(), members.topics_of_word.tolist()
        ([2, 1], [1, 2])
    """

    word: Int[np.ndarray, " I"]
    topic: Int[np.ndarray, " I"]
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
        kept = place[self.word] >= 0
        return Membership(place[self.word[kept]], self.topic[kept], len(words), self.topics)

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

    Attributes:
        same: Sums inside topics (K x S).
        same_pairs: Numbers of pairs inside topics (K x S).
        between: Sums between topics (K x K x S); zero between a topic and itself.
        between_pairs: Numbers of pairs between topics (K x K x S).

    Example:
        See `pair_sums`.
    """

    same: Float[np.ndarray, "K S"]
    same_pairs: Float[np.ndarray, "K S"]
    between: Float[np.ndarray, "K K S"]
    between_pairs: Float[np.ndarray, "K K S"]

    @np.errstate(invalid="ignore")
    def means(
        self, weight: Float[np.ndarray, "*R K"] | None = None, *, matched: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Same-topic and different-topic mean, where each topic counts `weight` times (a bootstrap draws those).

        `matched`: different-topic pairs are weighted to have the word frequencies of the same-topic pairs; strata
        without pairs of both kinds are left out.
        """
        w = np.ones(len(self.same)) if weight is None else weight
        same, same_pairs = w @ self.same, w @ self.same_pairs  # ... S
        between, between_pairs = (_both_weighted(w, x) for x in (self.between, self.between_pairs))
        if not matched:
            return _mean(same.sum(-1), same_pairs.sum(-1)), _mean(between.sum(-1), between_pairs.sum(-1))
        usable = np.minimum(same_pairs, between_pairs) > 0.5
        share = np.where(usable, same_pairs, 0)
        left, right = (np.where(usable, _mean(*kind), 0) for kind in ((same, same_pairs), (between, between_pairs)))
        share /= share.sum(-1, keepdims=True)
        return (share * left).sum(-1), (share * right).sum(-1)

    def pooled(self) -> PairSums:
        """All strata together."""
        return PairSums(
            *(x.sum(-1, keepdims=True) for x in (self.same, self.same_pairs, self.between, self.between_pairs))
        )

    def topic_means(self) -> Float[np.ndarray, " K"]:
        """The same-topic mean of each topic; NaN where it has one word only."""
        return _mean(self.same.sum(-1), self.same_pairs.sum(-1))

    def topic_between(self) -> Float[np.ndarray, "K K"]:
        """Mean between every two topics: which are near each other, and which far."""
        return _mean(self.between.sum(-1), self.between_pairs.sum(-1))


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
    """Sums of dot products over pairs of words, inside topics and between them.

    Args:
        vectors: Vectors of the words (W x d); of length 1 for cosines.
        membership: Which words are in which topics.
        bins: Groups of words, usually by frequency (W); a stratum is the bins of a pair's two words.
        partners: Vectors of the second word of each ordered pair, where they are others than those of the first.

    Returns:
        The sums.

    Example:
        >>> members = Membership(np.arange(4), np.array([0, 0, 1, 1]), words=4, topics=2)
        >>> sums = pair_sums(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), members)
        >>> [round(float(mean), 6) for mean in sums.means()], sums.topic_means().tolist()
        ([0.9, 0.3], [1.0, 0.8])
    """
    u = np.asarray(vectors, dtype=np.float64)
    v = u if partners is None else np.asarray(partners, dtype=np.float64)
    bins = np.zeros(len(u), dtype=np.int64) if bins is None else bins
    topics, count = membership.topics, int(bins.max(initial=0)) + 1
    # sums over the words of a topic that are in a bin
    cells = sparse.csr_array(
        (np.ones(len(membership.word)), (membership.word, membership.topic * count + bins[membership.word])),
        shape=(membership.words, topics * count),
    )
    sums, norms, sizes = (
        cells.T @ u,
        cells.T @ (u * v).sum(1),
        np.bincount(cells.indices, minlength=topics * count).astype(float),
    )
    whole, pairs = sums @ (sums if partners is None else cells.T @ v).T, np.outer(sizes, sizes)
    left, right, _ = membership.shared()

    def shared(values: np.ndarray) -> np.ndarray:
        """Of pairs of words that share a topic, by cell."""
        between_words = sparse.csr_array((values, (left, right)), shape=(membership.words, membership.words))
        return (cells.T @ between_words @ cells).toarray()

    def inside(matrix: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Between the cells of one topic, without a word's pair with itself."""
        blocks = np.einsum("kbkc->kbc", matrix.reshape(topics, count, topics, count)).copy()
        blocks[:, np.arange(count), np.arange(count)] -= own.reshape(topics, count)
        return blocks.reshape(topics, -1)

    def outside(matrix: np.ndarray) -> np.ndarray:
        blocks = matrix.reshape(topics, count, topics, count).transpose(0, 2, 1, 3).reshape(topics, topics, -1).copy()
        blocks[np.arange(topics), np.arange(topics)] = 0
        return blocks

    return PairSums(
        inside(whole, norms),
        inside(pairs, sizes),
        outside(whole - shared(np.einsum("pd,pd->p", u[left], v[right]))),
        outside(pairs - shared(np.ones(len(left)))),
    )


def frequency_bins(frequency: Float[np.ndarray, " W"], count: int = 5) -> Int[np.ndarray, " W"]:
    """Put words into bins of about the same size, by frequency; equally frequent words are in the same bin.

    Args:
        frequency: Frequency of each word (W).
        count: Number of bins.

    Returns:
        Bin of each word (W), from 0.

    Example:
        >>> frequency_bins(np.array([1.0, 1.0, 5.0, 9.0]), count=2).tolist()
        [0, 0, 1, 1]
    """
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
    """Same-topic and different-topic mean where topics are given to words at random. Sizes and overlaps of topics stay.

    Args:
        vectors: Vectors of the words (W x d); of length 1 for cosines.
        membership: Which words are in which topics.
        shuffles: How often the topics are dealt out again.
        seed: Seed of the shuffles.
        partners: As in `pair_sums`.

    Returns:
        Both means after each shuffle (S each).

    Example:
        >>> members = Membership(np.arange(40), np.repeat([0, 1], 20), words=40, topics=2)
        >>> vectors = np.repeat(np.eye(2), 20, axis=0)  # words of one topic are equal
        >>> same, different = shuffled_means(vectors, members, shuffles=100, seed=0)
        >>> bool(abs((same - different).mean()) < 0.02)  # without topics there is no difference; as they are it is 1
        True
    """
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
    same_pairs = float((sizes * (sizes - 1)).sum())
    between_pairs = float(sizes.sum() ** 2 - (sizes**2).sum() - extra.sum())
    same, different = np.empty(shuffles), np.empty(shuffles)
    for i in range(shuffles):
        order = torch.from_numpy(rng.permutation(membership.words))
        bags = embedding_bag(order[word], both, offset, mode="sum").double()
        sums, others = bags[:, : u.shape[1]], bags[:, -u.shape[1] :]
        inside, shared = float((sums * others).sum()), 0.0
        if len(left):
            mates = embedding_bag(order[second], v, start, mode="sum", per_sample_weights=times)
            shared = float((mates * u[order[first]]).sum(dtype=torch.float64))
        same[i] = (inside - float((norms[order] * per_word).sum())) / same_pairs
        different[i] = (float(sums.sum(0) @ others.sum(0)) - inside - shared) / between_pairs
    return same, different
