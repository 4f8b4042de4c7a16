"""How good topics are, which are alike, which words tell groups of documents apart; and ridge regression of topics.

A document is an array of word numbers; `tops` has the numbers of each topic's most likely words. The Hellinger distance
of topics is the Euclidean distance of sqrt(p / 2), so a map by principal components only leaves dimensions out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import optimize, sparse

from topicscope.ground import Stream, generator
from topicscope.measure.effects import Interval, draws, interval

EPSILON = 1e-12  # added to the probability of a pair, as in the definition of c_npmi: pairs that never meet have a log
SHARD = 256  # documents whose windows are in memory together
EM_STEPS = 100  # EM steps by which the topics of a held-out document are found
FOLDED_PRIOR = 0.1  # words that every topic has beforehand
TOLERANCE, MOST_STEPS = 1e-7, 1000
PRIOR_WORDS = 10.0  # how many words the corpus's own shares of topics weigh against the words of a document
Document = Int[np.ndarray, " N"]
Tops = Sequence[Int[np.ndarray, " n"]]


def coherence(documents: Sequence[Document], tops: Tops, window: int = 10) -> list[float]:
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
    return sparse.csr_array((np.ones(len(row)), (row, np.concatenate(list(tops)))), shape=(len(tops), size))


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
    split = list(halves(documents, frequency))
    if not split:
        return None
    logs = [np.log(fold_in(seen, probability, shares) @ probability[:, hidden]) for seen, hidden in split]
    unigrams = [np.log(frequency[hidden] / frequency.sum()) for _, hidden in split]
    model, alone = (float(np.exp(-np.concatenate(some).mean())) for some in (logs, unigrams))
    return Completion(model, alone, len(logs), sum(map(len, logs)))


def halves(documents: Sequence[Document], frequency: Float[np.ndarray, " W"]) -> Iterator[tuple[Document, Document]]:
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
    """Topics in the plane: the first two principal components of sqrt(p / 2), classical scaling of Hellinger distances.

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


def log_odds_z(counts: Float[np.ndarray, "K W"], prior: float = 500.0) -> Float[np.ndarray, "K W"]:
    """How much likelier a word is in a group of documents than in the others, in standard errors.

    y is the count of word w in group k of n words, y' that in the other groups, of n' words. The prior has a_w = prior
    * (y + y') / (n + n') words w. Then z = (log((y + a_w) / (n + prior - y - a_w)) - log((y' + a_w) / (n' + prior - y'
    - a_w))) / sqrt(1 / (y + a_w) + 1 / (y' + a_w)). Every side has `prior` words beforehand, shared out as in all text.
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


# How much of a document's topics, or of its class, is linear in some features: ridge regression, cross-validated. Folds
# are drawn: a corpus may be in an order, such as its labels in turn. The strength is chosen from GRID by the exact
# leave-one-out error of the training folds alone. R2 is pooled over topics: 1 - sum of squared errors / sum of squares
# about the mean of the training folds. A classifier has one column per class; the largest is the guess.

FOLDS = 5
FEWEST = 2 * FOLDS  # documents of a cross-validation
GRID = 10.0 ** np.arange(-4, 4)  # strengths, in units of the mean square of the features' principal components
NEGLIGIBLE = 1e-12  # of the largest component: what is below it is rounding


Classes = Int[np.ndarray, " D"]
Predict = Callable[[Float[np.ndarray, "n K"]], tuple[Float[np.ndarray, "m K"], Float[np.ndarray, "n K"]]]


@dataclass(frozen=True)
class Scores:
    errors: Float[np.ndarray, " D"]  # squared error of each prediction
    totals: Float[np.ndarray, " D"]  # squared distance of each document from the mean of the training folds

    @property
    def r2(self) -> float | None:
        total = float(self.totals.sum())
        return 1 - float(self.errors.sum()) / total if total > 0 and np.isfinite(self.errors).all() else None

    @np.errstate(invalid="ignore", divide="ignore")
    def interval(self, resamples: int, seed: int) -> Interval | None:
        if self.r2 is None:
            return None
        times = drawn_documents(len(self.errors), resamples, seed)
        return interval(1 - (times @ self.errors) / (times @ self.totals))


@functools.lru_cache(maxsize=1)  # every layer is resampled alike
def drawn_documents(documents: int, resamples: int, seed: int) -> Float[np.ndarray, "R D"]:
    return draws(generator(seed, Stream.BOOTSTRAP_MIXTURES), documents, resamples)


def folds(documents: int, seed: int) -> Int[np.ndarray, " D"]:
    return generator(seed, Stream.MIXTURE_FOLDS).permutation(documents) % FOLDS


def about_training_mean(shares: Float[np.ndarray, "D K"], fold: Int[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
    means = np.stack([shares[fold != f].mean(0) for f in range(FOLDS)])
    return ((shares - means[fold]) ** 2).sum(1)


def direct_scores(predictions: Float[np.ndarray, "D K"], shares: Float[np.ndarray, "D K"], *, seed: int) -> Scores:
    return Scores(((predictions - shares) ** 2).sum(1), about_training_mean(shares, folds(len(shares), seed)))


def ridge_scores(
    features: Float[np.ndarray, "D d"],
    shares: Float[np.ndarray, "D K"],
    orders: Sequence[Int[np.ndarray, " D"]] = (),
    *,
    seed: int,
) -> list[Scores]:
    y, every, fold = np.asarray(shares, dtype=np.float64), [np.arange(len(shares)), *orders], folds(len(shares), seed)
    errors = np.full((len(every), len(y)), np.nan)
    for train, test, predict in fits(features, fold):
        for mine, order in zip(errors, every, strict=True):
            mine[test] = ((predict(y[order[train]])[0] - y[order[test]]) ** 2).sum(1)
    return [Scores(mine, about_training_mean(y[order], fold)) for mine, order in zip(errors, every, strict=True)]


def fits(
    features: Float[np.ndarray, "D d"], fold: Int[np.ndarray, " D"]
) -> Iterator[tuple[Bool[np.ndarray, " D"], Bool[np.ndarray, " D"], Predict]]:
    """For every fold which documents train and test, and `predictions` of any targets. None if a feature is NaN."""
    x = np.asarray(features, dtype=np.float64)
    for f in range(FOLDS) if np.isfinite(x).all() else ():
        train, test = fold != f, fold == f
        yield train, test, functools.partial(predictions, *components(x[train], x[test]))


def components(
    train: Float[np.ndarray, "n d"], test: Float[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, "m r"], Float[np.ndarray, " r"]]:
    """Principal components of the centred training rows, the test rows in them, and their sums of squares.

    From the smaller of the two matrices of products: rows by rows or features by features.
    """
    mean = train.mean(0)
    x, z = train - mean, test - mean
    few = len(x) <= x.shape[1]
    squares, axes = np.linalg.eigh(x @ x.T if few else x.T @ x)
    real = squares > NEGLIGIBLE * max(squares[-1], 0.0)
    squares, axes = squares[real], axes[:, real]
    if not few:
        return x @ axes, z @ axes, squares
    roots = np.sqrt(squares)
    return axes * roots, (z @ x.T) @ axes / roots, squares


def predictions(
    left: Float[np.ndarray, "n r"],
    right: Float[np.ndarray, "m r"],
    squares: Float[np.ndarray, " r"],
    shares: Float[np.ndarray, "n K"],
) -> tuple[Float[np.ndarray, "m K"], Float[np.ndarray, "n K"]]:
    """Shares of the test rows, at the strength with the least leave-one-out error of the training rows.

    And those of the training rows at this strength, each from a fit without the row.
    """
    mean = shares.mean(0)
    y = shares - mean
    if not len(squares):  # features that do not vary predict the mean
        return np.broadcast_to(mean, (len(right), len(mean))), shares - y / (1 - 1 / len(y))
    inner, least, weights, left_out = left.T @ y, np.inf, np.zeros((len(squares), y.shape[1])), y
    for strength in GRID * squares.sum() / len(squares):
        slopes = inner / (squares + strength)[:, None]
        leverage = (left**2 / (squares + strength)).sum(1) + 1 / len(y)
        # the residual of a row when it is left out: an identity of ridge regression with a free intercept
        residual = (y - left @ slopes) / (1 - leverage)[:, None]
        error = float((residual**2).sum())
        if error < least:
            least, weights, left_out = error, slopes, residual
    return right @ weights + mean, shares - left_out


@dataclass(frozen=True)
class ClassScores:
    truth: Classes
    guessed: Classes  # guessed class, from folds that the document is not in; -1 where the features are no numbers
    inner: Float[np.ndarray, " F"]  # accuracy among the training documents of each fold, each left out of its fit

    @property
    def accuracy(self) -> float:
        return float((self.truth == self.guessed).mean())

    @property
    def macro_f1(self) -> float:
        """The mean over classes of 2 hits / (documents of the class + guesses of it)."""
        return float(self._f1(np.ones((1, len(self.truth))))[0])

    def intervals(self, resamples: int, seed: int) -> tuple[Interval | None, Interval | None]:
        times = drawn_documents(len(self.truth), resamples, seed)
        return interval(times @ (self.truth == self.guessed) / len(self.truth)), interval(self._f1(times))

    def _f1(self, times: Float[np.ndarray, "R D"]) -> Float[np.ndarray, " R"]:
        """Of resamples; over the classes that some document of the resample has or was guessed to have."""
        classes = np.arange(self.truth.max() + 1)
        true, guessed = self.truth[:, None] == classes, self.guessed[:, None] == classes
        hits, either = times @ (true & guessed), times @ (true.astype(float) + guessed)
        return (2 * hits / np.maximum(either, 1)).sum(1) / (either > 0).sum(1)


def stratified_folds(truth: Classes, seed: int) -> Classes:
    """A fold for every document: of each class, and in all, equally many per fold, up to one document."""
    order = generator(seed, Stream.LABEL_FOLDS).permutation(len(truth))
    by_class = order[np.argsort(truth[order], kind="stable")]
    fold = np.empty(len(truth), dtype=np.int64)
    fold[by_class] = np.arange(len(truth)) % FOLDS
    return fold


def classified(features: Float[np.ndarray, "D d"], truth: Classes, folds: Classes) -> ClassScores:
    y, guessed, inner = np.eye(int(truth.max()) + 1)[truth], np.full(len(truth), -1), np.zeros(FOLDS)
    for f, (train, test, predict) in enumerate(fits(features, folds)):
        outside, inside = predict(y[train])
        guessed[test] = outside.argmax(1)
        inner[f] = (inside.argmax(1) == truth[train]).mean()
    return ClassScores(truth, guessed, inner)


def chosen_inside(guesses: Sequence[ClassScores], folds: Classes) -> tuple[ClassScores, Classes]:
    """Guesses where every fold takes the features (layer) that do best on the other folds.

    So no document helps to choose what it is guessed from, as it does where the best of all accuracies is taken.
    """
    inner, guessed = np.stack([one.inner for one in guesses]), np.stack([one.guessed for one in guesses])
    taken = inner.argmax(0)
    return ClassScores(guesses[0].truth, guessed[taken[folds], np.arange(len(folds))], inner.max(0)), taken
