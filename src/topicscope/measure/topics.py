"""How good topics are, which are alike, and which words tell groups of documents apart.

A document is an array of word numbers; `tops` has the numbers of each topic's most likely words. The Hellinger distance
of topics is the Euclidean distance of sqrt(p / 2), so a map by principal components only leaves dimensions out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize, sparse

WINDOW = 10  # words of a sliding window
EPSILON = 1e-12  # added to the probability of a pair, as in the definition of c_npmi: pairs that never meet have a log
SHARD = 256  # documents whose windows are in memory together
EM_STEPS = 100  # EM steps by which the topics of a held-out document are found
FOLDED_PRIOR = 0.1  # words that every topic has beforehand
TOLERANCE, MOST_STEPS = 1e-7, 1000
PRIOR_WORDS = 10.0  # how many words the corpus's own shares of topics weigh against the words of a document
Document = Int[np.ndarray, " N"]
Tops = Sequence[Int[np.ndarray, " n"]]


def coherence(documents: Sequence[Document], tops: Tops, window: int = WINDOW) -> list[float]:
    """c_npmi of each topic: the mean NPMI over the pairs of its top words (Roeder, Both and Hinneburg 2015).

    p(w) is the share of sliding windows of `window` words that hold w. NPMI = log((p(v, w) + epsilon) / (p(v) p(w))) /
    -log(p(v, w) + epsilon): 1 where two words only occur together, 0 where they meet as often as by chance, near -1
    where they never meet.
    """
    words = np.unique(np.concatenate([np.asarray(top) for top in tops]))
    joint, total = joint_windows(documents, words, window)
    alone = joint.diagonal() / total
    scores = []
    for top in tops:
        left, right = np.array(list(combinations(np.searchsorted(words, top), 2))).T
        both = np.asarray(joint[left, right]).ravel() / total
        always = both == 1  # both in every window: the limit of two words that only occur together
        log_both = np.log(np.where(always, 0.5, both) + EPSILON)
        scores.append(np.where(always, 1.0, (log_both - np.log(alone[left] * alone[right])) / -log_both).mean())
    return [float(score) for score in scores]


def joint_windows(
    documents: Sequence[Document], words: Int[np.ndarray, " n"], window: int
) -> tuple[sparse.csr_array, int]:
    """In how many windows each two of some words (sorted) stand, the diagonal for one word alone; and of how many."""
    place = np.full(1 + max(int(words.max()), *(int(document.max(initial=0)) for document in documents)), -1)
    place[words] = np.arange(len(words))
    joint, total = sparse.csr_array((len(words), len(words)), dtype=np.int64), 0
    for start in range(0, len(documents), SHARD):
        shard = documents[start : start + SHARD]
        lengths = np.array([len(document) for document in shard])
        counts = np.maximum(1, lengths - window + 1) * (lengths > 0)  # windows of each document
        position = np.concatenate([np.arange(length) for length in lengths])
        number = place[np.concatenate(list(shard))]
        first = np.maximum(0, position - window + 1)
        last = np.minimum(position, np.repeat(counts, lengths) - 1)
        offset, ours = np.repeat(np.cumsum(counts) - counts, lengths), number >= 0
        spans, first, number = (last - first + 1)[ours], (first + offset)[ours], number[ours]
        inside = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
        cells = (np.repeat(first, spans) + inside, np.repeat(number, spans))
        table = sparse.coo_array((np.ones_like(inside), cells), shape=(int(counts.sum()), len(words))).tocsr()
        table.data[:] = 1  # a word that stands twice in a window is in it
        joint = joint + table.T @ table
        total += int(counts.sum())
    return joint, total


def diversity(tops: Tops) -> float:
    """The share of distinct words among the top words of all topics: 1 where no two topics share one."""
    every = np.concatenate([np.asarray(top) for top in tops])
    return len(np.unique(every)) / len(every)


def matched_overlap(tops: Tops, others: Tops) -> list[float]:
    """Of each topic, the share of its top words that its partner in a second fit has too.

    Partners are chosen so that the sum of overlaps is largest (the Hungarian method). A topic without one has 0.
    """
    size = 1 + max(int(np.max(top)) for top in (*tops, *others))
    common = (_indicators(tops, size) @ _indicators(others, size).T).toarray()
    rows, columns = optimize.linear_sum_assignment(common, maximize=True)
    overlap = np.zeros(len(tops))
    overlap[rows] = common[rows, columns] / np.array([len(top) for top in tops])[rows]
    return [float(share) for share in overlap]


def _indicators(tops: Tops, size: int) -> sparse.csr_array:
    row = np.repeat(np.arange(len(tops)), [len(top) for top in tops])
    column = np.concatenate([np.asarray(top) for top in tops])
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(tops), size))


@dataclass(frozen=True)
class Completion:
    perplexity: float  # per word of the second halves
    unigram: float  # perplexity of word frequencies alone, on the same words
    documents: int
    words: int


def completion_perplexity(
    documents: Sequence[Document],
    probability: Float[np.ndarray, "K W"],
    shares: Float[np.ndarray, " K"],
    frequency: Float[np.ndarray, " W"],
) -> Completion | None:
    """Document completion: a document's topics from every other word of it, and how well they predict the rest.

    Perplexity is exp of the mean of -log p(word).
    """
    logs: list[Float[np.ndarray, " n"]] = []
    unigrams: list[Float[np.ndarray, " n"]] = []
    for seen, hidden in halves(documents, frequency):
        logs.append(np.log(fold_in(seen, probability, shares) @ probability[:, hidden]))
        unigrams.append(np.log(frequency[hidden] / frequency.sum()))
    if not logs:
        return None
    model, alone = (float(np.exp(-np.concatenate(some).mean())) for some in (logs, unigrams))
    return Completion(model, alone, len(logs), sum(map(len, logs)))


def halves(documents: Sequence[Document], frequency: Float[np.ndarray, " W"]) -> Iterator[tuple[Document, Document]]:
    """The words at even places, and those at odd places, of documents that have both."""
    for document in documents:
        known = document[frequency[document] > 0]
        if len(known) >= 2:
            yield known[::2], known[1::2]


def fold_in(
    words: Document, probability: Float[np.ndarray, "K W"], shares: Float[np.ndarray, " K"]
) -> Float[np.ndarray, " K"]:
    """The topic mixture of some words, the topics being fixed, by EM from the corpus's shares.

    It is the mode under a Dirichlet prior: theta_k ~ PRIOR_WORDS shares_k + the words that fall to topic k.
    """
    used, counts = np.unique(words, return_counts=True)
    start = shares / shares.sum()
    return mixture_by_em(probability[:, used], counts, PRIOR_WORDS * shares / shares.sum(), start, EM_STEPS)


def folded_in(
    probability: Float[np.ndarray, "K W"],
    counts: Float[np.ndarray, " W"],
    *,
    prior: float = FOLDED_PRIOR,
    tolerance: float = TOLERANCE,
) -> Float[np.ndarray, " K"]:
    """The likeliest mixture theta of given topics for a document, by EM.

    It maximises sum_w n_w log(sum_k theta_k p_kw) + prior * sum_k log(theta_k). With a positive prior there is one
    maximum, which EM reaches from everywhere.
    """
    used = np.flatnonzero((counts > 0) & (probability.sum(0) > 0))
    start = np.full(len(probability), 1 / len(probability))
    words = np.ascontiguousarray(probability[:, used])
    return mixture_by_em(words, counts[used].astype(float), prior, start, MOST_STEPS, tolerance)


def mixture_by_em(
    words: Float[np.ndarray, "K U"],
    counts: Float[np.ndarray, " U"],
    prior: Float[np.ndarray, " K"] | float,
    theta: Float[np.ndarray, " K"],
    steps: int,
    tolerance: float = 0.0,
) -> Float[np.ndarray, " K"]:
    """Each step: theta_k ~ prior_k + the words that fall to topic k; at most so many, or until theta hardly moves."""
    for _ in range(steps):
        before, theta = theta, prior + theta * (words @ (counts / (theta @ words)))
        theta /= theta.sum()
        if tolerance and np.abs(theta - before).sum() < tolerance:
            break
    return theta


ROWS = 256  # topics whose distances to all others are in memory together


@dataclass(frozen=True)
class TopicMap:
    places: Float[np.ndarray, "K 2"]
    shown: float  # share of their squared distances that the plane keeps


def hellinger(left: Float[np.ndarray, "K W"], right: Float[np.ndarray, "L W"]) -> Float[np.ndarray, "K L"]:
    """Hellinger distances between topics: sqrt(1 - sum_w sqrt(p_w q_w)), from 0 (equal) to 1 (no word in common)."""
    return np.sqrt(np.maximum(0.0, 1 - np.sqrt(left) @ np.sqrt(right).T))


def nearest_topics(
    probability: Float[np.ndarray, "K W"],
) -> tuple[Int[np.ndarray, " K"], Float[np.ndarray, " K"]]:
    topics = len(probability)
    nearest, distance = np.zeros(topics, dtype=np.int64), np.zeros(topics)
    for start in range(0, topics, ROWS):
        rows = np.arange(start, min(start + ROWS, topics))
        block = hellinger(probability[rows], probability)
        block[rows - start, rows] = np.inf
        nearest[rows] = block.argmin(1)
        distance[rows] = block[rows - start, nearest[rows]]
    return nearest, distance


def topic_map(probability: Float[np.ndarray, "K W"]) -> TopicMap:
    """Topics in the plane: the first two principal components of sqrt(p / 2).

    This is classical scaling of Hellinger distances.

    Signs are fixed: in each component the entry that is largest in size is positive (of equal ones the first).
    """
    points = np.sqrt(probability / 2)
    points = points - points.mean(0)
    values, vectors = np.linalg.eigh(points @ points.T)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    places = np.zeros((len(points), 2))
    total = float(values.sum())
    for axis in range(min(2, len(points))):
        if values[axis] > 1e-12 * total:  # else all topics are at one place along it, and only noise is left
            column = vectors[:, axis] * np.sqrt(values[axis])
            largest = int(np.argmax(np.abs(column) > (1 - 1e-9) * np.abs(column).max()))
            places[:, axis] = column * np.sign(column[largest])
    return TopicMap(places, float(values[:2].sum() / total) if total > 0 else 1.0)


PRIOR = 500.0  # words that every side has beforehand, shared out as in all text


def log_odds_z(counts: Float[np.ndarray, "K W"], prior: float = PRIOR) -> Float[np.ndarray, "K W"]:
    """How much likelier a word is in a group of documents than in the others, in standard errors.

    y is the count of word w in group k of n words, y' that in the other groups, of n' words. The prior has a_w = prior
    * (y + y') / (n + n') words w. Then z = (log((y + a_w) / (n + prior - y - a_w)) - log((y' + a_w) / (n' + prior - y'
    - a_w))) / sqrt(1 / (y + a_w) + 1 / (y' + a_w)).
    """
    whole = counts.sum(0, dtype=np.float64)
    total = whole.sum()
    both_sides = np.flatnonzero((whole > 0) & (whole < total))
    z = np.zeros(counts.shape)
    for k, row in enumerate(counts):  # one at a time: there may be many groups of many words
        size, beforehand = row.sum(), prior * whole[both_sides] / total
        here, there = row[both_sides] + beforehand, whole[both_sides] - row[both_sides] + beforehand
        odds, other_odds = here / (size + prior - here), there / (total - size + prior - there)
        z[k, both_sides] = np.log(odds / other_odds) / np.sqrt(1 / here + 1 / there)
    return z
