"""`Population`: every document of a law, infinitely long, and the exact loss of the one-layer model on them.

The prediction at a masked position that shows word j is U a with a_i = x_i exp(L_ij) / sum_l x_l exp(L_lj) (eq 6).
The tables U and L come from named weights: U = W_E' W_V W_E with a bias on every column (attention sums to 1),
L = (W_K W_E)' (W_Q W_E) / sqrt(d_a); one-hot words have W_E = I. All expectations over documents, masks and words are
sums, so the gradient has no noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError, Stream, generator, refuse_if
from topicscope.theory.forces import SAME, Loss, SmallWorld, contrast_force, listed_shares, topic_shares
from topicscope.theory.theorem import Setting
from topicscope.world import DocumentPrior, Fixed, Masking, TopicModel

if TYPE_CHECKING:
    from torch import Tensor

Matrix = Float[np.ndarray, "..."]
# Matrices by name: value, key and query, and where they are trained embedding (d x V) and bias (V).
NamedWeights = dict[str, Matrix]

Table = Any  # An array, or a tensor that PyTorch differentiates

STREAMS = {"embedding": 0, "value": 3, "key": 1, "query": 2}  # of the initial weights
FEW_PAIRS = 6  # pairs of groups per document up to which sums over pairs are cheaper
BLOCK = 2**17  # numbers of a block of documents: a few arrays of this size stay in the cache
MOST_LISTED = 300  # documents of a finite law up to which a flow takes all
DRAWN = 20  # documents of another law
STRICT = 1e4  # weight of the moments against that of equal weights


def gaussian_start(
    vocabulary: int, attention_dim: int, scale: float, seed: int, *, width: int | None = None
) -> NamedWeights:
    """Initial weights from N(0, scale^2): those with which `train` starts for this seed."""
    inner = vocabulary if width is None else width
    shapes = {} if width is None else {"embedding": (width, vocabulary)}
    shapes |= {"value": (inner, inner), "key": (attention_dim, inner), "query": (attention_dim, inner)}
    return {
        name: scale * generator(seed, Stream.INITIAL_WEIGHTS, STREAMS[name]).standard_normal(shape)
        for name, shape in shapes.items()
    }


class WordTables(NamedTuple):
    """What weights say of words: the model with one-hot words that predicts the same."""

    votes: Table  # what a word in the document adds to another (output word, key word)
    scores: Table  # attention scores L (key word, query word)


def word_tables(weights: Mapping[str, Table], root: Table = None) -> WordTables:
    """The tables of votes and scores of named weights, as arrays or tensors."""
    embedding = weights.get("embedding")

    def by_word(matrix: Table) -> Table:
        matrix = matrix if embedding is None else matrix @ embedding
        return matrix if root is None else matrix / root

    votes = by_word(by_word(weights["value"]).T).T
    if "bias" in weights:
        votes = votes + (weights["bias"] if root is None else weights["bias"] / root)[:, None]
    key, query = by_word(weights["key"]), by_word(weights["query"])
    return WordTables(votes, key.T @ query / math.sqrt(len(key)))


class Groups(NamedTuple):
    """Words that have the same shares in every document, and these shares."""

    words: Int[np.ndarray, "G n"]  # of each group, filled up with V
    place: Int[np.ndarray, " V"]  # of each word in the flat `words`
    shown: Float[np.ndarray, "D G"]
    true: Float[np.ndarray, "D G"]

    @property
    def member(self) -> Float[np.ndarray, "V G"]:
        return np.eye(len(self.words))[self.place // self.words.shape[1]]


@dataclass(frozen=True, eq=False)
class Population:
    """Every document of a law of theta, and the exact loss of named weights on them.

    `loss_of_tables` is the definition, which PyTorch differentiates. `gradient` gives the same numbers faster: it sums
    over groups of words with the same shares first ([MASK] and the topics, G = T + 1, where topics are disjoint and
    uniform). The squared loss then needs documents only through sums over pairs of groups: a gradient costs about
    6 V^3 + 4 G^2 V^2 + 8 D G^2 V operations for D documents in place of 6 D V^3.

    Attributes:
        true: Shares of the true words of each document (D x V).
        shown: Shares of the words shown (D x V).
        probability: Probability of each document (D).
        instead: What a masked position shows where it does not show its own word (V).
        sizes: Number of words that each of the V kinds stands for; 1 unless words of a topic are one kind.
        p_correct: How often it shows its own word.
        objective: 'squared' or 'cross-entropy'.

    Example:
        >>> world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
        >>> loss, gradient = world.gradient(gaussian_start(13, 13, 0.0, seed=0))
        >>> len(world.probability), round(loss, 9), gradient["value"].shape
        (6, 1.0, (13, 13))
    """

    true: Float[np.ndarray, "D V"]
    shown: Float[np.ndarray, "D V"]
    probability: Float[np.ndarray, " D"]
    instead: Float[np.ndarray, " V"]
    sizes: Float[np.ndarray, " V"]
    p_correct: float
    objective: Loss = "squared"

    @classmethod
    def of(
        cls, topic_model: TopicModel, prior: DocumentPrior, masking: Masking, objective: Loss = "squared"
    ) -> Population:
        support = prior.support(topic_model.topics)
        if support is None:
            raise InputError(
                "gradient flow lists every document, and this law of topic proportions has too many; "
                "take fewer topics, or give the proportions (documents.kind = given)"
            )
        return cls.of_world(SmallWorld(topic_model.word_topics, *support), masking, objective)

    @classmethod
    def of_world(cls, world: SmallWorld, masking: Masking, objective: Loss = "squared") -> Population:
        shown, true = world.infinite(masking)
        instead = np.full(true.shape[1], masking.p_random / (true.shape[1] - 1))
        instead[0] = masking.p_mask_word
        return cls(true, shown, world.probabilities, instead, np.ones(len(instead)), masking.p_correct, objective)

    @classmethod
    def of_topics(
        cls,
        topic_model: TopicModel,
        prior: DocumentPrior,
        masking: Masking,
        objective: Loss = "squared",
        *,
        alike: bool = True,
    ) -> Population:
        """Documents that stand for any law of alike topics (`flow_documents`).

        With `alike` the kinds are [MASK] and the topics: forces on the weights treat words of one topic alike, so the
        flow has T + 1 words instead of V. What the start has outside of them stays, except for differences inside
        topics that the scores of a large start make: these, and with them the third act, are left out.
        """
        unlike = "the flow of topics needs disjoint topics of equally many, equally probable words"
        refuse_if(not topic_model.uniform, unlike)
        topics, block = topic_model.topics, topic_model.block_size
        each = 1 if alike else block  # kinds per topic
        kinds, sizes = np.kron(np.eye(topics), np.full((each, 1), 1 / each)), [1.0, *[block / each] * (topics * each)]
        world = SmallWorld(kinds, *flow_documents(prior, topics, block, masking))
        return replace(cls.of_world(world, masking, objective), sizes=np.array(sizes))

    @cached_property
    def root(self) -> Float[np.ndarray, " V"] | None:
        """What divides the coordinates of kinds; None where every kind is a word."""
        return None if (self.sizes == 1).all() else np.sqrt(self.sizes)

    def alike(self, weights: NamedWeights) -> NamedWeights:
        """The part of these weights that treats the words of a kind alike, in coordinates that keep norms."""
        basis = np.repeat(np.diag(1 / np.sqrt(self.sizes)), self.sizes.astype(int), axis=0)
        embedded = "embedding" in weights  # the other parts then have no words
        from_words, to_words = {"embedding"} if embedded else {"value", "key", "query"}, {"bias"}
        to_words |= set() if embedded else {"value"}
        parts = {name: basis.T @ part if name in to_words else part for name, part in weights.items()}
        return {name: part @ basis if name in from_words else part for name, part in parts.items()}

    def fits(self, weights: NamedWeights) -> bool:
        words, dim = len(self.instead), len(weights["key"])
        width = len(weights["embedding"]) if "embedding" in weights else words
        inner = {"value": (width, width), "key": (dim, width), "query": (dim, width)}
        expected = inner | {"embedding": (width, words), "bias": (words,)}
        known = all(part.shape == expected.get(name) for name, part in weights.items())
        return known and inner.keys() <= weights.keys()

    def loss_of_tables(self, votes: Tensor, scores: Tensor) -> Tensor:
        import torch

        true, shown, probability, instead, sizes, asked = map(
            torch.from_numpy, (self.true, self.shown, self.probability, self.instead, self.sizes, self.queries)
        )
        attended = torch.softmax(scores + shown.log()[:, :, None], 1)  # document, key, query
        predicted = votes @ attended  # document, output word, query
        joint = true[:, :, None] * instead + self.p_correct * torch.diag_embed(true)  # true word, word shown
        if self.objective == "squared":
            cost = asked * (1 + (sizes[:, None] * predicted.square()).sum(1)) - 2 * (joint * predicted).sum(1)
        else:
            cost = asked * torch.logsumexp(predicted + sizes.log()[:, None], 1) - (joint * predicted).sum(1)
        return probability @ cost.sum(1)

    def gradient(self, weights: NamedWeights) -> tuple[float, NamedWeights]:
        """What autograd makes of `loss_of_tables`, in numpy, whose last digits are the same in every process."""
        key, query, value = weights["key"], weights["query"], weights["value"]
        loss, by_votes, by_scores = self.slopes(*word_tables(weights, self.root))
        root = np.ones(len(by_votes)) if self.root is None else self.root
        by_bias, both = by_votes.sum(1) / root, np.outer(root, root)
        by_votes, by_scores = by_votes / both, by_scores / (both * math.sqrt(len(key)))
        embedding = weights.get("embedding")
        if embedding is None:
            parts = {"value": by_votes, "key": query @ by_scores.T, "query": key @ by_scores, "bias": by_bias}
        else:
            by_key, by_query = query @ embedding @ by_scores.T, key @ embedding @ by_scores
            by_words = value @ embedding @ by_votes.T + value.T @ embedding @ by_votes
            parts = {
                "embedding": by_words + key.T @ by_key + query.T @ by_query,
                "value": embedding @ by_votes @ embedding.T,
                "key": by_key @ embedding.T,
                "query": by_query @ embedding.T,
                "bias": by_bias,
            }
        return loss, {name: parts[name] for name in weights}

    @cached_property
    def groups(self) -> Groups:
        alike = np.vstack([self.shown, self.true, self.instead, self.sizes]).round(15)
        _, first, group, counts = np.unique(alike, axis=1, return_index=True, return_inverse=True, return_counts=True)
        words = np.full((len(first), counts.max()), len(self.instead))
        for g, count in enumerate(counts):
            words[g, :count] = np.flatnonzero(group == g)
        place = np.argsort(words.ravel(), kind="stable")[: len(self.instead)]
        return Groups(words, place, self.shown[:, first], self.true[:, first])

    @cached_property
    def queries(self) -> Float[np.ndarray, "D V"]:
        """How often a masked position of each document shows each word."""
        return self.p_correct * self.true + self.instead

    @cached_property
    def by_pairs(self) -> bool:
        return self.objective == "squared" and len(self.groups.words) ** 2 <= FEW_PAIRS * len(self.shown)

    @cached_property
    def pairs(self) -> tuple[Float[np.ndarray, "D G*G"], Float[np.ndarray, "D G*G"], Float[np.ndarray, "V G"]]:
        _, _, shown, true = self.groups
        both, joint = (np.einsum("dg,dh->dgh", shown, other).reshape(len(shown), -1) for other in (shown, true))
        return both, joint, self.groups.member

    def slopes(self, votes: Matrix, scores: Matrix) -> tuple[float, Matrix, Matrix]:
        """The loss of tables of words, and its derivatives by both: equal to those of `loss_of_tables`, but faster."""
        weight = np.exp(scores - scores.max(0))  # attention is the same for scores that differ by a number per query
        words, place = self.groups.words, self.groups.place
        blank = np.zeros((1, len(weight)))
        weights, columns = np.vstack([weight, blank])[words], np.vstack([votes.T, blank])[words]  # group, word, -
        sums, by_group = weights.sum(1), weights.transpose(0, 2, 1) @ columns  # group, query (, output word)
        loss, by_vote, by_sum = (self._from_pairs if self.by_pairs else self._from_documents)(by_group, sums)
        by_votes = (weights @ by_vote).reshape(-1, len(weight))[place].T
        by_weight = columns @ by_vote.transpose(0, 2, 1) + by_sum[:, None, :]
        return loss, by_votes, by_weight.reshape(-1, len(weight))[place] * weight

    def _from_pairs(
        self, votes: Float[np.ndarray, "G V V"], sums: Float[np.ndarray, "G V"]
    ) -> tuple[float, Float[np.ndarray, "G V V"], Float[np.ndarray, "G V"]]:
        """The squared loss and its derivatives by votes and sums of groups.

        A document predicts f = sum_g x_g votes_g / z. Sums over documents are of second order in x and P, and z does
        not depend on the output word: sums of products over documents, for each query word.
        """
        groups, size, _ = votes.shape
        by_query = votes.transpose(1, 0, 2)  # query word, group, output word
        both, joint, member = self.pairs
        shown, (words, every) = self.groups.shown, (np.arange(size), self.probability[:, None])
        own = self.p_correct * self.true
        z = shown @ sums  # document, query word
        weighted = by_query * self.sizes
        square = both @ (weighted @ by_query.transpose(0, 2, 1)).reshape(size, -1).T / z**2  # |f|^2
        hits = joint @ (by_query @ member).reshape(size, -1).T * self.instead  # f'P(true word, word shown) z
        hits = (hits + own * (shown @ votes[:, words, words])) / z
        loss = float((every * (self.queries * (1 + square) - 2 * hits)).sum())
        by_sum = -2 * shown.T @ (every * (self.queries * square - hits) / z)
        quadratic = (both.T @ (2 * every * self.queries / z**2)).T.reshape(size, groups, groups)
        linear = (joint.T @ (2 * every * self.instead / z)).T.reshape(size, groups, groups)
        by_vote = quadratic @ weighted - linear @ member.T
        by_vote[words, :, words] -= (shown.T @ (2 * every * own / z)).T
        return loss, by_vote.transpose(1, 0, 2), by_sum

    def _from_documents(
        self, votes: Float[np.ndarray, "G V V"], sums: Float[np.ndarray, "G V"]
    ) -> tuple[float, Float[np.ndarray, "G V V"], Float[np.ndarray, "G V"]]:
        """The same from the prediction of each document, for any loss; in blocks that fit into the cache."""
        (groups, size, _), shares = votes.shape, self.groups.shown
        flat, diagonal = votes.reshape(groups, -1), np.arange(size)
        loss, by_vote, by_sum = 0.0, np.zeros_like(flat), np.zeros_like(sums)
        block = max(1, BLOCK // flat.shape[1])
        for start in range(0, len(shares), block):
            rows = slice(start, start + block)
            share, true, every = shares[rows], self.true[rows], self.probability[rows]
            z = (share @ sums)[:, :, None]
            predicted = (share @ flat).reshape(-1, size, size)  # document, query word, output word
            predicted /= z
            targets = self.instead[:, None] * true[:, None, :]  # P(true word, word shown)
            targets[:, diagonal, diagonal] += self.p_correct * true
            part, slope = self._costs(predicted, targets, self.queries[rows])
            loss += float(every @ part)
            slope *= every[:, None, None] / z
            by_vote += share.T @ slope.reshape(len(share), -1)
            by_sum -= share.T @ np.einsum("djy,djy->dj", slope, predicted)
        return loss, by_vote.reshape(groups, size, size), by_sum

    def _costs(
        self,
        predicted: Float[np.ndarray, "D V V"],
        targets: Float[np.ndarray, "D V V"],
        asked: Float[np.ndarray, "D V"],
    ) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D V V"]]:
        """The loss of every document (eqs 3 and 4), and its derivative by the prediction."""
        if self.objective == "squared":
            slope = predicted * asked[:, :, None]
            if self.root is not None:
                slope *= self.sizes
            slope -= targets
            loss = (
                asked.sum(1) + np.einsum("djy,djy->d", predicted, slope) - np.einsum("djy,djy->d", predicted, targets)
            )
            slope *= 2
            return loss, slope
        top = predicted.max(2, keepdims=True)
        slope = np.exp(predicted - top)
        if self.root is not None:
            slope *= self.sizes
        whole = slope.sum(2, keepdims=True)
        logs = top + np.log(whole)
        loss = (logs[:, :, 0] * asked).sum(1) - np.einsum("djy,djy->d", predicted, targets)
        slope *= asked[:, :, None] / whole
        slope -= targets
        return loss, slope


def score_force(
    world: SmallWorld, masking: Masking, value: Matrix, scores: Matrix | None = None, loss: Loss = "squared"
) -> Matrix:
    """The force on attention scores, -dLoss/dL, of infinite documents."""
    scores = np.zeros_like(value) if scores is None else scores
    return -Population.of_world(world, masking, loss).slopes(value, scores)[2]


def enumerated_loss(
    setting: Setting, matrix: Tensor, alpha: float = 1.0, beta: float = 1.0, bias: Tensor | None = None
) -> Tensor:
    """As `population_loss`, by the definition: every document, every word shown, every true word. It is the check."""
    import torch

    topic = torch.from_numpy(setting.topic_model.topic_of_word)
    attention = matrix.new_ones(len(topic), len(topic))
    attention[topic[:, None] == topic] = alpha
    attention.fill_diagonal_(beta)
    prior = Fixed(topics_per_document=setting.tau, length="infinite")
    votes = matrix if bias is None else matrix + bias[:, None]
    return Population.of(setting.topic_model, prior, setting.masking).loss_of_tables(votes, attention.log())


def flow_documents(
    prior: DocumentPrior, topics: int, words_per_topic: int, masking: Masking
) -> tuple[Float[np.ndarray, "D T"], Float[np.ndarray, " D"]]:
    """Documents that stand for a law of theta in a flow, with their probabilities: all of them where they are few.

    Of a law with many documents 20 are drawn, and each is taken with its topics in T orders, one turned against the
    next. Their topic contrasts, and with them every rate, would be up to 14% off (Dirichlet of .1, T = 10). So they get
    the weights nearest to equal ones with which the second moments of theta and the force on attention (R2) are those
    of the law. With more topics contrasts stay 7% off at T = 20, 15% at T = 30 (22% and more with equal weights).
    """
    support = prior.support(topics)
    if support is not None and len(support[0]) <= MOST_LISTED:
        return support
    drawn = prior.sample_proportions(topics, DRAWN, generator(0, Stream.FLOW_DOCUMENTS))
    weights = matching_weights(drawn, prior, words_per_topic, masking)
    turns = [np.roll(drawn[weights > 0], turn, axis=1) for turn in range(topics)]
    return np.concatenate(turns), np.tile(weights[weights > 0] / topics, topics)


def matching_weights(
    drawn: Float[np.ndarray, "n T"], prior: DocumentPrior, words_per_topic: int, masking: Masking
) -> Float[np.ndarray, " n"]:
    """Weights of drawn documents: E[theta_s theta_t], which in turns depends on t - s alone, and the force."""
    from scipy.optimize import nnls  # a tenth of a second that closed forms do not need

    (count, topics), law = drawn.shape, prior.moments(topics=drawn.shape[1]).second
    lags = range(topics // 2 + 1)
    wanted = np.array([np.roll(law, -lag, axis=1).trace() / topics for lag in lags])
    second = np.array([(drawn * np.roll(drawn, -lag, axis=1)).mean(1) for lag in lags])
    contrast, equal = wanted[0] - wanted[-1], np.full(count, 1 / count)
    if contrast <= SAME * wanted[0]:
        return equal  # all documents are alike: nothing to match
    rows, ends = [np.ones(count), *second / contrast], [1.0, *wanted / contrast]
    try:
        force = contrast_force(topic_shares(prior, topics), words_per_topic, masking)
    except InputError:  # it has none in closed form
        force = 0.0
    if force > 0:
        each = [contrast_force(listed_shares(theta[None], np.ones(1)), words_per_topic, masking) for theta in drawn]
        rows, ends = [*rows, np.array(each) / force], [*ends, 1.0]
    solution, _ = nnls(np.vstack([STRICT * np.array(rows), np.eye(count)]), np.append(STRICT * np.array(ends), equal))
    return np.asarray(solution / solution.sum())
