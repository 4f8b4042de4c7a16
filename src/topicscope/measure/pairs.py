"""Sums and means over pairs of words by topic or relation: of vectors, of a matrix, and of attention.

Sums over pairs of vectors are sums of vectors: with S_k the sum over topic k, the pairs inside k have |S_k|^2 less the
squared lengths of its words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from topicscope.ground import Stream, generator

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Membership:
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

    @np.errstate(invalid="ignore")  # a run that diverged has infinite sums
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

    def by_topic(self) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K K"]]:
        """The same-topic mean of each topic, and the mean of every two; NaN where there is no pair."""
        pooled = self.pooled()
        return (
            _mean(pooled.same[:, 0], pooled.same_pairs[:, 0]),
            _mean(pooled.between[:, :, 0], pooled.between_pairs[:, :, 0]),
        )


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
        shape = (topics, count, topics, count)
        inside = np.einsum("kbkc->kbc", every.reshape(shape)).copy()
        inside[:, np.arange(count), np.arange(count)] -= own.reshape(topics, count)
        of_words = sparse.csr_array((common, (left, right)), shape=(membership.words, membership.words))
        between = (every - (cells.T @ of_words @ cells).toarray()).reshape(shape).transpose(0, 2, 1, 3).copy()
        between[np.arange(topics), np.arange(topics)] = 0
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
    word, offset, per_word = map(torch.from_numpy, (membership.word, np.cumsum(sizes) - sizes, topics_of_word))
    partnered = (firsts, starts, right[ordered], extra[ordered].astype(np.float32))
    first, start, second, times = map(torch.from_numpy, partnered)
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


# Means of a V x V matrix by the relation of two words; [MASK], the first word, is in no relation


@np.errstate(invalid="ignore")
def relation_masks(
    topic: Int[np.ndarray, " V"] | Bool[np.ndarray, "V V"], dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Float[torch.Tensor, "3 V*V"]:
    """Rows that average a flattened V x V matrix over three relations: same topic, different topic, diagonal."""
    import torch

    there = topic > 0 if topic.ndim == 1 else np.arange(len(topic)) > 0
    both = np.outer(there, there)
    same_topic = topic[:, None] == topic if topic.ndim == 1 else topic
    diagonal = np.eye(len(topic), dtype=bool)
    masks = np.stack([both & same_topic & ~diagonal, both & ~same_topic, both & diagonal]).reshape(3, -1).astype(float)
    return torch.tensor(masks / masks.sum(1, keepdims=True), dtype=dtype, device=device)


def matrix_block_means(
    masks: Float[torch.Tensor, "3 V*V"], matrices: Float[torch.Tensor, "*E V*V"]
) -> Float[torch.Tensor, "*E 3"]:
    return matrices @ masks.mT


def gram_block_means(topics: int, embedding: Float[torch.Tensor, "E d V"]) -> Float[torch.Tensor, "E 3"]:
    """Means of the Gram matrix W_E'W_E over the three relations, from sums of vectors. The matrix is not built."""
    import torch

    models, d, vocabulary = embedding.shape
    n, v = vocabulary - 1, (vocabulary - 1) // topics
    words = embedding[:, :, 1:]
    topic_sums = words.reshape(models, d, topics, v).sum(3)
    lengths, inside = (vectors.square().sum((1, 2)) for vectors in (words, topic_sums))
    total = topic_sums.sum(2).square().sum(1)
    nan = torch.full_like(total, torch.nan)
    same = (inside - lengths) / (n * (v - 1)) if v > 1 else nan
    different = (total - inside) / (n * (n - v)) if topics > 1 else nan
    return torch.stack([same, different, lengths / n], dim=1)


class WordKinds(NamedTuple):
    """Words that may have several topics, by kind: those of one kind have the same topics."""

    members: Float[torch.Tensor, "n K"]  # 1 at the kind of each word, without [MASK]
    related: Float[torch.Tensor, "K K"]  # 1 where two kinds have a topic in common
    pairs: Float[torch.Tensor, " 3"]

    @classmethod
    def of(cls, kind: Int[np.ndarray, " n"], related: Bool[np.ndarray, "K K"], like: torch.Tensor) -> WordKinds:
        import torch

        size = np.bincount(kind, minlength=len(related)).astype(float)
        n, mates = len(kind), size @ related @ size  # a word with itself among them
        pairs = np.array([mates - n, n * n - mates, n])
        tables = (np.eye(len(related))[kind], related.astype(float), np.where(pairs > 0, pairs, np.nan))
        return cls(*(torch.from_numpy(table).to(like) for table in tables))


def gram_relation_means(words: WordKinds, embedding: Float[torch.Tensor, "E d V"]) -> Float[torch.Tensor, "E 3"]:
    """As `gram_block_means`, where words have several topics, or topics differ in size."""
    import torch

    vectors = embedding[:, :, 1:]
    lengths, sums = vectors.square().sum((1, 2)), vectors @ words.members
    inside, total = ((sums @ words.related) * sums).sum((1, 2)), sums.sum(2).square().sum(1)
    return torch.stack([inside - lengths, total - inside, lengths], dim=1) / words.pairs


Square = Float[np.ndarray, "V V"]
Has = Bool[np.ndarray, "words T"]


def topic_pair_means(matrix: Square, weight: Float[np.ndarray, "words T"]) -> Float[np.ndarray, "T T"]:
    """The mean entry of a matrix over words in rows of one topic and columns of another."""
    weight, words = np.asarray(weight, dtype=float), np.asarray(matrix, dtype=float)[1:, 1:]
    total = weight.T @ words @ weight - (weight * np.diag(words)[:, None]).T @ weight
    pairs = np.outer(weight.sum(0), weight.sum(0)) - weight.T @ weight
    # a topic of one word has no pair; rounding may leave a little of nothing
    there = pairs > 1e-12 * np.outer(weight.sum(0), weight.sum(0))
    return np.divide(total, pairs, out=np.full_like(total, np.nan), where=there)


def shared_topic_means(matrix: Square, has: Has) -> dict[int, float]:
    """The mean entry over pairs of different words, by how many topics the two have in common."""
    patterns, kind = _kinds(has)
    return _means_by_code(matrix, kind, (patterns @ patterns.T).astype(int))


def partner_means(matrix: Square, has: Has, group: Int[np.ndarray, " T"]) -> dict[str, float | None]:
    patterns, kind = _kinds(has)
    groups = patterns @ np.eye(int(group.max()) + 1)[group]
    means = _means_by_code(matrix, kind, np.where(patterns @ patterns.T > 0, 0, np.where(groups @ groups.T > 0, 1, 2)))
    return {name: means.get(number) for number, name in enumerate(("same", "partner", "other"))}


def _kinds(has: Has) -> tuple[Float[np.ndarray, "K T"], Int[np.ndarray, " words"]]:
    """Words that are in the same topics are of one kind: the topics of each kind, and the kind of each word."""
    patterns, kind = np.unique(has, axis=0, return_inverse=True)
    return patterns.astype(float), kind.reshape(-1)


def _means_by_code(matrix: Square, kind: Int[np.ndarray, " words"], code: Int[np.ndarray, "K K"]) -> dict[int, float]:
    """`code` of two kinds of words; a sum over pairs of words is one over pairs of kinds."""
    words = np.asarray(matrix, dtype=float)[1:, 1:]
    order, size = np.argsort(kind, kind="stable"), np.bincount(kind)
    starts = np.cumsum(size) - size
    sums = np.add.reduceat(np.add.reduceat(words[order], starts, axis=0)[:, order], starts, axis=1)
    pairs, own = np.outer(size, size), np.arange(len(size))
    pairs[own, own] -= size
    sums[own, own] -= np.bincount(kind, np.diag(words))
    flat = code.ravel()
    total, count = np.bincount(flat, sums.ravel()), np.bincount(flat, pairs.ravel())
    return {int(one): float(total[one] / count[one]) for one in np.flatnonzero(count)}
