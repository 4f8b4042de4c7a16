"""How good topics are, distances, maps, log-odds, mixtures, and ridge regressions: against plain loops."""

import itertools
import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.measure.samples import there
from topicscope.ground import Stream, generator
from topicscope.measure import (
    ClassScores,
    Scores,
    chosen_inside,
    classified,
    coherence,
    completion_perplexity,
    direct_scores,
    diversity,
    folded_in,
    hellinger,
    log_odds_z,
    matched_overlap,
    nearest_topics,
    ridge_scores,
    stratified_folds,
    topic_map,
)
from topicscope.measure.topics import EM_STEPS, EPSILON, FOLDS, GRID, PRIOR_WORDS, components, fold_in, folds


def documents_of(seed: int, words: int, count: int = 12, longest: int = 25) -> list[np.ndarray]:
    """Every word occurs; some documents are empty or shorter than a window."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, words, rng.integers(0, longest)) for _ in range(count)]
    return [*drawn, np.arange(words), np.array([], dtype=np.int64), np.array([0])]


def npmi_by_loop(documents: list[np.ndarray], top: list[int], window: int) -> float:
    """The definition, window by window."""
    windows = [
        set(document[start : start + window].tolist())
        for document in documents
        if len(document)
        for start in range(max(1, len(document) - window + 1))
    ]

    def share(*words: int) -> float:
        return sum(all(word in one for word in words) for one in windows) / len(windows)

    scores = []
    for v, w in combinations(top, 2):
        both = share(v, w)
        log = math.log(both + EPSILON)
        scores.append(1.0 if both == 1 else (log - math.log(share(v) * share(w))) / -log)
    return sum(scores) / len(scores)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), window=st.integers(1, 12), shard=st.integers(1, 5))
def test_coherence_is_that_of_a_loop_over_windows(seed: int, window: int, shard: int) -> None:
    documents, rng = documents_of(seed, 9), np.random.default_rng(seed)
    tops = [rng.permutation(9)[:size] for size in (2, 4, 6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topicscope.measure.topics.SHARD", shard)
        found = coherence(documents, tops, window)
    assert found == pytest.approx([npmi_by_loop(documents, top.tolist(), window) for top in tops], rel=1e-10, abs=1e-12)


def test_the_ends_of_coherence() -> None:
    documents = [np.array([0, 1, 0, 1]), np.array([2, 3, 2, 3])] * 5
    together, apart = coherence(documents, [np.array([0, 1]), np.array([0, 2])])
    assert together == pytest.approx(1.0, abs=1e-9)
    assert apart == pytest.approx(math.log(EPSILON / 0.25) / -math.log(EPSILON))
    assert apart < -0.9
    assert coherence([np.array([0, 1])] * 3, [np.array([0, 1])]) == [1.0]  # in every window, always together
    documents = [np.array(pair) for pair in product([0, 1], [2, 3])]  # 0 and 2 meet in a quarter, each in a half
    assert coherence(documents, [np.array([0, 2])]) == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("tops", "share"),
    [([[0, 1], [2, 3]], 1.0), ([[0, 1], [0, 1]], 0.5), ([[0, 1, 2], [2, 3, 4]], 5 / 6), ([[0, 1], [1]], 2 / 3)],
)
def test_diversity_counts_distinct_words(tops: list[list[int]], share: float) -> None:
    assert diversity([np.array(top) for top in tops]) == pytest.approx(share, abs=1e-15)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), topics=st.integers(1, 5), more=st.integers(0, 1))
def test_partners_are_the_best_of_all_permutations(seed: int, topics: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    tops, others = ([rng.permutation(9)[:4] for _ in range(count)] for count in (topics, topics + more))
    common = [[len(set(a.tolist()) & set(b.tolist())) / 4 for b in others] for a in tops]
    most = max(sum(common[k][order[k]] for k in range(topics)) for order in permutations(range(topics + more), topics))
    found = matched_overlap(tops, others)
    assert sum(found) == pytest.approx(most, abs=1e-12)
    assert matched_overlap(tops, tops[::-1]) == [1.0] * topics


def test_a_topic_without_a_partner_has_no_overlap() -> None:
    one, two = np.array([0, 1]), np.array([2, 3])
    assert matched_overlap([one, two, one], [two, one]) in ([1.0, 1.0, 0.0], [0.0, 1.0, 1.0])
    assert matched_overlap([one], [np.array([1, 2])]) == [0.5]


def folded_by_loop(words: list[int], probability: np.ndarray, shares: np.ndarray) -> list[float]:
    """EM, word by word and topic by topic."""
    topics, total = len(probability), shares.sum()
    theta = [share / total for share in shares]
    for _ in range(EM_STEPS):
        weight = [PRIOR_WORDS * share / total for share in shares]
        for word in words:
            likelihood = sum(theta[k] * probability[k, word] for k in range(topics))
            for k in range(topics):
                weight[k] += theta[k] * probability[k, word] / likelihood
        theta = [one / sum(weight) for one in weight]
    return theta


def a_topic_model(seed: int, topics: int = 3, words: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    frequency = rng.integers(0, 9, words).astype(float)
    frequency[:2] += 1
    return rng.dirichlet(np.full(words, 0.5), topics), rng.dirichlet(np.ones(topics)), frequency


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_perplexity_is_that_of_a_loop_over_words(seed: int) -> None:
    probability, shares, frequency = a_topic_model(seed)
    probability = 0.99 * probability + 0.01 / 6
    documents = documents_of(seed, 6, count=3, longest=9)
    logs, alone, used = [], [], 0
    for document in documents:
        known = [word for word in document.tolist() if frequency[word] > 0]
        if len(known) < 2:
            continue
        used += 1
        theta = folded_by_loop(known[::2], probability, shares)
        for word in known[1::2]:
            logs.append(math.log(sum(theta[k] * probability[k, word] for k in range(3))))
            alone.append(math.log(frequency[word] / frequency.sum()))
    found = there(completion_perplexity(documents, probability, shares, frequency))
    assert (found.documents, found.words) == (used, len(logs))
    assert found.perplexity == pytest.approx(math.exp(-sum(logs) / len(logs)), rel=1e-10)
    assert found.unigram == pytest.approx(math.exp(-sum(alone) / len(alone)), rel=1e-10)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_mixture_is_the_mode_of_its_posterior(seed: int) -> None:
    """No mixture of a grid over all of them has a larger posterior density (Dirichlet prior, words given)."""
    probability, shares, _ = a_topic_model(seed)
    shares = 0.9 * shares + 0.1 / 3
    probability = 0.9 * probability + 0.1 / 6
    words = np.random.default_rng(seed).integers(0, 6, 12)

    def density(theta: np.ndarray) -> float:
        return float(np.log(theta @ probability[:, words]).sum() + PRIOR_WORDS * (shares * np.log(theta)).sum())

    mode = density(fold_in(words, probability, shares))
    grid = [np.array([i, j, 40 - i - j]) / 40 for i in range(1, 39) for j in range(1, 40 - i)]
    assert mode >= max(map(density, grid))


def test_topics_that_a_document_shows_predict_its_other_words() -> None:
    """Two topics without a common word: half of a document decides which it is."""
    probability = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    document = np.array([0, 1] * 50)
    found = there(completion_perplexity([document], probability, np.array([0.5, 0.5]), np.ones(4)))
    assert found.unigram == pytest.approx(4.0)
    assert completion_perplexity([np.array([0])], probability, np.ones(2), np.ones(4)) is None
    assert found.perplexity == pytest.approx(2 / (55 / 60), rel=1e-9)  # 50 words and half of the prior's 10


def topics_of(seed: int, count: int = 7, words: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(words, 0.3), count)


def distance(p: np.ndarray, q: np.ndarray) -> float:
    return math.sqrt(max(0.0, 1 - sum(math.sqrt(a * b) for a, b in zip(p, q, strict=True))))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4))
def test_distances_and_neighbours_are_those_of_a_loop(seed: int, rows: int) -> None:
    probability = topics_of(seed)
    by_hand = [[distance(p, q) for q in probability] for p in probability]
    np.testing.assert_allclose(hellinger(probability, probability) ** 2, np.square(by_hand), atol=1e-10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topicscope.measure.topics.ROWS", rows)
        nearest, far = nearest_topics(probability)
    for k, row in enumerate(by_hand):
        others = {j: one for j, one in enumerate(row) if j != k}
        assert others[int(nearest[k])] == pytest.approx(min(others.values()), abs=1e-10)
        assert far[k] == pytest.approx(min(others.values()), abs=1e-10)


def test_topics_without_a_common_word_are_at_distance_one() -> None:
    assert hellinger(np.eye(3), np.eye(3)).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert nearest_topics(np.eye(3))[0].tolist() == [1, 0, 0]  # ties: the first


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_three_topics_lie_in_the_plane_at_their_distances(seed: int) -> None:
    probability = topics_of(seed, count=3)
    found = topic_map(probability)
    assert found.shown == pytest.approx(1.0, abs=1e-10)
    for i, j in combinations(range(3), 2):
        apart = math.dist(found.places[i], found.places[j])
        assert apart**2 == pytest.approx(distance(probability[i], probability[j]) ** 2, abs=1e-10)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_map_is_classical_scaling_of_the_distances(seed: int) -> None:
    probability = topics_of(seed)
    squares = np.array([[distance(p, q) ** 2 for q in probability] for p in probability])
    centre = np.eye(7) - 1 / 7
    values = np.linalg.eigvalsh(-centre @ squares @ centre / 2)[::-1]
    found = topic_map(probability)
    np.testing.assert_allclose((found.places**2).sum(0), values[:2], atol=1e-10)
    np.testing.assert_allclose(found.places.sum(0), 0, atol=1e-10)
    assert found.shown == pytest.approx(values[:2].sum() / values.sum(), abs=1e-10)
    largest = np.abs(found.places).argmax(0)
    assert (found.places[largest, [0, 1]] > 0).all(), "signs are fixed"


def test_a_map_of_topics_that_differ_in_one_way_is_a_line() -> None:
    two = topic_map(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert two.places[:, 1].tolist() == [0.0, 0.0]
    assert two.places[:, 0].tolist() == pytest.approx([0.5, -0.5])  # of equal ones the first is positive
    same = topic_map(np.full((3, 4), 0.25))
    assert (same.places.tolist(), same.shown) == ([[0.0, 0.0]] * 3, 1.0)


def plain(counts: np.ndarray, prior: float) -> list[list[float]]:
    """As the docstring has it, one word of one group after another."""
    total = counts.sum()
    rows = []
    for k in range(len(counts)):
        row = []
        for w in range(counts.shape[1]):
            everywhere = sum(counts[j, w] for j in range(len(counts)))
            if everywhere in (0, total):
                row.append(0.0)
                continue
            y, n = counts[k, w], sum(counts[k])
            others = sum(counts[j, w] for j in range(len(counts)) if j != k)
            n_others = sum(sum(counts[j]) for j in range(len(counts)) if j != k)
            a = prior * everywhere / total
            delta = math.log((y + a) / (n + prior - y - a)) - math.log((others + a) / (n_others + prior - others - a))
            row.append(delta / math.sqrt(1 / (y + a) + 1 / (others + a)))
        rows.append(row)
    return rows


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 8), st.sampled_from([0.5, 10.0, 500.0]))
def test_scores_are_those_of_a_double_loop(seed: int, groups: int, words: int, prior: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 40, (groups, words))).astype(float)
    np.testing.assert_allclose(log_odds_z(counts, prior), plain(counts, prior), rtol=1e-10, atol=1e-10)


def test_two_groups_have_opposite_scores_and_common_words_none() -> None:
    z = log_odds_z(np.array([[30.0, 5, 100, 0], [5.0, 30, 100, 0]]))
    np.testing.assert_allclose(z[0], -z[1], atol=1e-12)
    assert z[0, 0] > 1
    assert z[0, 2] == pytest.approx(0)
    assert z[0, 3] == 0
    rare = log_odds_z(np.array([[1.0, 300, 5000], [0.0, 100, 5000]]))
    assert 0 < rare[0, 0] < rare[0, 1]  # a word that came once says little
    assert log_odds_z(np.zeros((2, 3))).tolist() == [[0] * 3] * 2


SEED = 3


def solved(x: np.ndarray, y: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercept: the normal equations with an intercept that is not penalised."""
    full = np.concatenate([x, np.ones((len(x), 1))], 1)
    penalty = strength * np.eye(full.shape[1])
    penalty[-1, -1] = 0
    weights = np.linalg.solve(full.T @ full + penalty, full.T @ y)
    return weights[:-1], weights[-1]


def chosen_by_loop(x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The strength with the least error when every row is left out once, and what is then predicted for these rows."""
    centred, best = x - x.mean(0), (np.inf, 0.0, y)
    for strength in GRID * (centred**2).sum() / np.linalg.matrix_rank(centred):
        left_out = np.empty_like(y)
        for i in range(len(x)):
            rest = np.arange(len(x)) != i
            slopes, start = solved(x[rest], y[rest], strength)
            left_out[i] = x[i] @ slopes + start
        best = min(best, (float(((left_out - y) ** 2).sum()), strength, left_out), key=lambda one: one[0])
    return best[1:]


def by_loop(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    errors, totals = np.empty(len(x)), np.empty(len(x))
    for fold in range(FOLDS):
        test = folds(len(x), SEED) == fold
        slopes, start = solved(x[~test], y[~test], chosen_by_loop(x[~test], y[~test])[0])
        errors[test] = ((x[test] @ slopes + start - y[test]) ** 2).sum(1)
        totals[test] = ((y[test] - y[~test].mean(0)) ** 2).sum(1)
    return errors, totals


@pytest.mark.parametrize(("documents", "features", "noise"), [(23, 4, 0.3), (17, 30, 0.3), (25, 6, 5.0), (12, 12, 1.0)])
def test_errors_are_those_of_the_normal_equations(documents: int, features: int, noise: float) -> None:
    """More documents than features, and fewer; the strength is chosen by leaving out one document after another."""
    rng = np.random.default_rng(documents)
    x = rng.normal(size=(documents, features)) * np.linspace(0.2, 3, features)
    y = x[:, :3] @ rng.normal(size=(3, 4)) + noise * rng.normal(size=(documents, 4)) + 2
    order = rng.permutation(documents)
    for found, target in zip(ridge_scores(x, y, [order], seed=SEED), (y, y[order]), strict=True):
        errors, totals = by_loop(x, target)
        np.testing.assert_allclose(found.errors, errors, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.totals, totals, rtol=1e-12)
        assert found.r2 == pytest.approx(1 - errors.sum() / totals.sum(), abs=1e-10)


def test_what_is_linear_is_found_and_what_is_not_there_is_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 10))
    linear, noise = x @ rng.normal(size=(10, 3)), rng.normal(size=(200, 3))
    (found,), (none,) = ridge_scores(x, linear, seed=SEED), ridge_scores(x, noise, seed=SEED)
    assert there(found.r2) > 0.999
    assert there(none.r2) < 0.05
    (turned,) = ridge_scores(7 * x @ np.linalg.qr(rng.normal(size=(10, 10)))[0] + 3, linear, seed=SEED)
    np.testing.assert_allclose(turned.errors, found.errors, rtol=1e-5, atol=1e-12)  # turned, scaled and moved


def test_features_that_do_not_vary_predict_the_mean() -> None:
    y = np.random.default_rng(1).normal(size=(20, 2))
    (found,) = ridge_scores(np.ones((20, 3)), y, seed=SEED)
    assert found.r2 == 0.0
    assert components(np.ones((4, 3)), np.ones((2, 3)))[2].size == 0
    assert direct_scores(y, y, seed=SEED).r2 == 1.0


def test_numbers_that_are_none_give_no_score() -> None:
    y, truth = np.random.default_rng(1).normal(size=(20, 2)), np.repeat(np.arange(2), [14, 6])
    for x, target in ((np.full((20, 3), np.nan), y), (y, np.ones((20, 2)))):
        (found,) = ridge_scores(x, target, seed=SEED)
        assert (found.r2, found.interval(10, 0)) == (None, None)
    guess = classified(np.full((20, 2), np.nan), truth, stratified_folds(truth, 0))
    assert (guess.accuracy, guess.macro_f1) == (0, 0)
    assert classified(np.ones((20, 2)), truth, stratified_folds(truth, 0)).accuracy == pytest.approx(0.7)


def test_the_interval_resamples_documents() -> None:
    rng = np.random.default_rng(2)
    scores = Scores(rng.random(15), rng.random(15) + 0.5)
    drawn = generator(5, Stream.BOOTSTRAP_MIXTURES)
    each = []
    for _ in range(40):
        times = drawn.multinomial(15, np.full(15, 1 / 15))
        each.append(1 - sum(times * scores.errors) / sum(times * scores.totals))
    assert scores.interval(40, 5) == pytest.approx(tuple(np.quantile(each, [0.025, 0.975])), abs=1e-12)


def test_a_corpus_in_turn_is_predicted_as_one_in_any_order() -> None:
    """Five labels in turn: with fold i mod 5 each fold would hold a label that no other fold has, and R2 be below 0."""
    y = np.eye(5)[np.arange(100) % 5]
    x = y @ np.random.default_rng(0).normal(size=(5, 8))
    (found,) = ridge_scores(x, y, seed=SEED)
    assert there(found.r2) > 0.99
    drawn = folds(100, SEED)
    assert np.bincount(drawn).tolist() == [20] * FOLDS
    assert drawn.tolist() == folds(100, SEED).tolist() != folds(100, SEED + 1).tolist()


def plain_guesses(x: np.ndarray, truth: np.ndarray, folds: np.ndarray) -> tuple[list[int], list[float]]:
    """Every fold from the others; the strength and the inner hits by leaving every single document out."""
    y, guessed, inner = np.eye(truth.max() + 1)[truth], np.full(len(x), -1), []
    for f in range(FOLDS):
        train = folds != f
        strength, left_out = chosen_by_loop(x[train], y[train])
        slopes, start = solved(x[train], y[train], strength)
        inner.append(float((left_out.argmax(1) == truth[train]).mean()))
        guessed[~train] = (x[~train] @ slopes + start).argmax(1)
    return guessed.tolist(), inner


@pytest.mark.parametrize("size", [3, 40])
def test_guesses_are_those_of_plain_regressions(size: int) -> None:
    rng = np.random.default_rng(size)
    truth = rng.permutation(np.repeat(np.arange(3), [12, 9, 9]))
    x = rng.standard_normal((30, size)) + 0.8 * rng.standard_normal((3, size))[truth]
    folds = stratified_folds(truth, 1)
    guess = classified(x, truth, folds)
    guessed, inner = plain_guesses(x, truth, folds)
    assert guess.guessed.tolist() == guessed
    np.testing.assert_allclose(guess.inner, inner, atol=1e-10)


def test_intervals_are_those_of_documents_drawn_one_by_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 50)
    scores = ClassScores(truth, np.where(rng.random(50) < 0.6, truth, rng.integers(0, 4, 50)), np.empty(0))
    times = np.concatenate([np.ones((1, 50)), rng.multinomial(50, np.full(50, 1 / 50), 20)])
    for one, f1 in zip(times, scores._f1(times), strict=True):
        rows = np.repeat(np.arange(50), one.astype(int))
        mine, total, number = scores.truth[rows], 0.0, 0
        for k in range(4):
            hits = sum(1 for t, g in zip(mine, scores.guessed[rows], strict=True) if t == g == k)
            either = sum(1 for t in mine if t == k) + sum(1 for g in scores.guessed[rows] if g == k)
            total, number = total + (2 * hits / either if either else 0), number + (either > 0)
        assert f1 == pytest.approx(total / number, abs=1e-10)
    assert (scores.accuracy, scores.macro_f1) == (np.mean(scores.guessed == truth), scores._f1(times)[0])
    accuracy, macro = map(there, scores.intervals(500, 3))
    assert accuracy[0] < scores.accuracy < accuracy[1]
    assert macro[0] < scores.macro_f1 < macro[1]


def test_folds_hold_equal_shares_of_every_class() -> None:
    truth = np.repeat(np.arange(4), [5, 8, 23, 14])
    folds = stratified_folds(truth, 7)
    for k in range(4):
        counts = np.bincount(folds[truth == k], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    assert np.bincount(folds).tolist() == [10] * FOLDS
    assert folds.tolist() == stratified_folds(truth, 7).tolist()
    assert folds.tolist() != stratified_folds(truth, 8).tolist()


def test_features_are_chosen_without_the_documents_that_they_guess() -> None:
    """Of a hundred features without signal the best looks good; what is chosen inside the folds does not."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(2), 30)
    folds = stratified_folds(truth, 0)
    guesses = [classified(rng.standard_normal((60, 1)), truth, folds) for _ in range(100)]
    best = max(guess.accuracy for guess in guesses)
    chosen, taken = chosen_inside(guesses, folds)
    assert best > 0.65
    assert chosen.accuracy < best - 0.05
    for f in range(FOLDS):
        assert taken[f] == max(range(100), key=lambda i: guesses[i].inner[f])
        mine = folds == f
        assert chosen.guessed[mine].tolist() == guesses[taken[f]].guessed[mine].tolist()


def objective(theta: np.ndarray, probability: np.ndarray, counts: np.ndarray, prior: float) -> float:
    return float(counts @ np.log(theta @ probability) + prior * np.log(theta).sum())


@pytest.mark.parametrize("prior", [0.1, 1.0])
@pytest.mark.parametrize("counts", [[1, 0, 0, 0], [3, 2, 0, 1], [0, 0, 9, 9], [40, 1, 1, 1]])
def test_no_mixture_of_the_grid_is_likelier(counts: list[int], prior: float) -> None:
    probability = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.05, 0.05, 0.4, 0.5]])
    number, steps = np.array(counts, dtype=float), 200
    theta = folded_in(probability, number, prior=prior)
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    best = max(
        (objective(np.array([i, j, steps - i - j]) / steps, probability, number, prior), i, j)
        for i, j in itertools.product(range(1, steps), repeat=2)
        if i + j < steps
    )
    assert objective(theta, probability, number, prior) >= best[0] - 1e-9
    nearest = np.array([best[1], best[2], steps - best[1] - best[2]]) / steps
    assert np.abs(theta - nearest).max() < 2 / steps


def test_the_maximum_is_a_fixed_point_and_unknown_words_do_not_count() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.full(30, 0.2), 6)
    probability[:, 7] = 0
    counts = rng.poisson(1.0, 30).astype(float)
    theta = folded_in(probability, counts, tolerance=1e-13)
    used = (counts > 0) & (np.arange(30) != 7)
    share = np.full(6, 0.1)
    for w in np.flatnonzero(used):
        share += counts[w] * theta * probability[:, w] / (theta @ probability[:, w])
    np.testing.assert_allclose(theta, share / share.sum(), atol=1e-10)
    more = counts.copy()
    more[7] += 100
    assert folded_in(probability, more, tolerance=1e-13).tolist() == theta.tolist()


def test_without_words_all_topics_are_alike_and_order_does_not_matter() -> None:
    probability = np.random.default_rng(1).dirichlet(np.ones(5), 4)
    assert folded_in(probability, np.zeros(5)).tolist() == [0.25] * 4
    counts, order = np.array([2.0, 0, 1, 5, 0]), [2, 0, 3, 1]
    np.testing.assert_allclose(folded_in(probability[order], counts), folded_in(probability, counts)[order], atol=1e-12)
