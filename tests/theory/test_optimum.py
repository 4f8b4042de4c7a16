"""`optimum` against a double loop, Theorem 2 and known numbers; what it refuses; what it says."""

import itertools
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from topicscope import RunConfig
from topicscope.ground import InputError, Stream
from topicscope.theory import (
    WEIGHTINGS,
    DenseOptimum,
    Setting,
    SmallWorld,
    SymmetricOptimum,
    ValueOptimum,
    closed_form,
    given_moments,
    length_weights,
    optimum,
    theorem2,
)
from topicscope.theory.forces import every_masked_document
from topicscope.theory.value_optimum import graded_eigen
from topicscope.world import Dirichlet, Fixed, Given, LogisticNormal, Masking, Moments, TopicModel, mask_keys
from topicscope.world.logistic_normal import correlated_normal

PAPER = TopicModel()
RNG = np.random.default_rng(3)
OVERLAPPING = RNG.dirichlet(np.ones(6), 3).T  # six words, each in all three topics
THETA = RNG.dirichlet(np.ones(3), 4)
LAW = Moments(THETA.mean(0), THETA.T @ THETA / 4)


def symmetric(**more: Any) -> SymmetricOptimum:
    best = optimum(PAPER, more.pop("prior", Dirichlet()), **more)
    assert isinstance(best, SymmetricOptimum)
    return best


def test_the_numbers_of_the_paper_s_world() -> None:
    """Computed by hand from R1 and R5: k = .865, p_m (1 - p_c - p_r) = .12."""
    endless = symmetric(prior=Fixed(length="infinite"))
    assert endless.loss == pytest.approx(1 - 1 / 30)
    assert {mode.name: (mode.count, mode.eigenvalue) for mode in endless.modes} == {
        "mean": (1, pytest.approx(0.12**2 + 0.88**2 / 100)),
        "topic contrasts": (9, pytest.approx(0.865**2 * 7 / (10 * 3 * 10 * 9))),
        "[MASK] against words": (1, 0.0),
        "within-topic": (90, 0.0),
    }
    assert [mode.name for mode in endless.modes][:2] == ["mean", "topic contrasts"]  # in the order of learning
    assert endless.modes[1].half_time == pytest.approx(178.66, abs=0.01)
    assert endless.modes[3].half_time is None
    excess = {n: best.diagonal - best.same_topic for n in (30, 125, 1000) if (best := symmetric(length=n).entries)}
    assert excess[125] == pytest.approx(0.1 / (0.865 + 0.015), abs=1e-8)
    assert excess[30] == pytest.approx(0.1 / (1 - (0.15 + 0.85**30 / 30) * 0.8))
    assert symmetric(length=125).entries.mask_column == pytest.approx(0.01)
    assert symmetric(length=5, weighting="documents").parts.b == pytest.approx(0.1 / (1 - 0.15 / (1 - 0.85**5) * 0.8))
    positions = symmetric(length=125, weighting="positions")
    assert positions.modes[-1].eigenvalue == pytest.approx((1 - (1 + 124 * 0.15) / 125 * 0.8) / 12500)
    limit = symmetric(length=10**7).entries
    assert vars(limit) == pytest.approx(vars(endless.limit), abs=1e-6)
    assert (endless.limit.mask_column, endless.limit.different_topic) == pytest.approx((0.01, (1 - 1 / 0.865) / 100))


@pytest.mark.parametrize("sizes", [(10, 10, 3), (5, 4, 2), (6, 3, 1)])
def test_infinite_documents_lead_to_theorem_2(sizes: tuple[int, int, int]) -> None:
    s = Setting.of(*sizes, p_mask=0.3, p_correct=0.2, p_random=0.1)
    best = optimum(s.topic_model, Fixed(topics_per_document=s.tau, length="infinite"), s.masking)
    exact = theorem2(s).matrix()
    assert np.abs(best.matrix() - exact).max() < 1e-14
    assert best.value_at(1e9) == pytest.approx(exact, abs=1e-12)
    dense = optimum(s.topic_model.word_topics, Fixed(topics_per_document=s.tau), s.masking, length="infinite")
    assert np.abs(dense.matrix() - exact).max() < 1e-12
    assert np.abs(closed_form(s.topic_model.word_topics, s.masking) - exact).max() < 1e-12


def test_mixed_lengths_are_averaged_by_the_weight_of_a_document() -> None:
    masking, lengths = Masking(p_mask=0.3), (2, 3, 4)
    weight = {"run": [1, 1, 1], "positions": lengths, "documents": [1 - 0.7**n for n in lengths]}
    for weighting in WEIGHTINGS:
        parts = [length_weights(n, 0.3, weighting) for n in lengths]
        mean = np.average(np.array(parts), axis=0, weights=weight[weighting])
        assert np.array(length_weights((2, 4), masking.p_mask, weighting)) == pytest.approx(mean, rel=1e-13)


def test_moments_of_given_documents_are_the_expectation_over_masks() -> None:
    """Against every mask and every word shown of two short documents."""
    masking, texts = Masking(p_mask=0.4, p_correct=0.3, p_random=0.2), [(1, 2, 2), (3, 1)]
    for weighting in WEIGHTINGS:
        g, h, total = np.zeros((4, 4)), np.zeros((4, 4)), 0.0
        for text in texts:
            uniform = SmallWorld(np.full((3, 1), 1 / 3), np.ones((1, 1)), np.ones(1))
            x, y, weight = every_masked_document(uniform, masking, len(text), weighting)
            listed = np.array(list(itertools.product((1, 2, 3), repeat=len(text))))
            own = np.tile((listed == text).all(1), len(x) // len(listed))  # rows of this text
            documents = {"run": 1.0, "positions": len(text), "documents": 1 - 0.6 ** len(text)}[weighting]
            rows = weight[own] / weight[own].sum() * documents
            g += (rows[:, None] * x[own]).T @ x[own]
            h += (rows[:, None] * y[own]).T @ x[own]
            total += documents
        counts = np.array([[0, 1, 2, 0], [0, 1, 0, 1]])
        found = given_moments(counts, masking, weighting)
        assert np.abs(found.shown - g / total).max() < 1e-15
        assert np.abs(found.joint - h / total).max() < 1e-15


def test_flow_starts_where_it_starts_and_keeps_what_it_does_not_see() -> None:
    start = np.random.default_rng(4).standard_normal((101, 101))
    best = symmetric(prior=Fixed(length="infinite"))
    assert best.value_at(0, start) == pytest.approx(start)
    end = best.value_at(1e9, start)
    for w in (start, end):
        w[1:, 1:] -= w[1:, 1:].reshape(100, 10, 10).mean(2).repeat(10, 1)
    assert end[1:, 1:] == pytest.approx(start[1:, 1:])  # differences inside topics stay
    half = best.modes[1].half_time or 0
    contrast = np.repeat(np.eye(10)[0] - np.eye(10)[1], 10)
    assert (best.value_at(half)[1:, 1:] @ contrast) == pytest.approx(best.matrix()[1:, 1:] @ contrast / 2)


def test_large_symmetric_worlds_are_a_handful_of_numbers() -> None:
    began = time.perf_counter()
    best = optimum(TopicModel(1000, 100), Dirichlet(), length=125)
    assert time.perf_counter() - began < 2
    assert isinstance(best, SymmetricOptimum)
    assert best.entries.diagonal - best.entries.same_topic == pytest.approx(0.1 / 0.88, abs=1e-8)
    with pytest.raises(InputError, match="at most 20,000"):
        best.matrix()
    normal = optimum(TopicModel(1000, 100), LogisticNormal(covariance=1.0), length=125)
    assert isinstance(normal, SymmetricOptimum)
    assert normal.notes == ()
    assert [mode.count for mode in normal.modes if mode.name == "topic contrasts"] == [999]
    even = Given(proportions=[[1.0, 0.0], [0.0, 1.0]], length=20)
    assert isinstance(optimum(TopicModel(2, 3), even), SymmetricOptimum)
    assert isinstance(optimum(TopicModel(2, 2, [0.3, 0.7]), Fixed(topics_per_document=1)), DenseOptimum)
    config = RunConfig.of({"documents": {"kind": "fixed", "length": 40}, "masking": {"p_mask": 0.3}})
    exact = optimum(PAPER, Fixed(length=40), Masking(p_mask=0.3))
    assert optimum(config).matrix() == pytest.approx(exact.matrix())


def test_symmetry_and_matrices_agree_at_every_edge() -> None:
    """One topic, one word, all masked, nothing shown in its place, every topic in every document."""
    rng = np.random.default_rng(0)
    for i in range(90):
        topics = TopicModel(int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        p_correct = float(rng.choice([0, 0.1, 0.5, 1]))
        p_random = float(rng.choice([0, min(0.1, 1 - p_correct), 1 - p_correct]))
        masking = Masking(p_mask=float(rng.choice([0.001, 0.15, 0.9, 1])), p_correct=p_correct, p_random=p_random)
        if masking.k < 1e-6:
            continue
        prior = Dirichlet(alpha=0.3) if i % 2 else Fixed(topics_per_document=int(rng.integers(1, topics.topics + 1)))
        more: Any = {"length": [1, 2, (1, 4), 50, "infinite"][i % 5], "weighting": WEIGHTINGS[i % 3]}
        few, whole = (optimum(one, prior, masking, **more) for one in (topics, topics.word_topics))
        for name in ("matrix", "limit_matrix", "least_norm_matrix"):
            assert getattr(few, name)() == pytest.approx(getattr(whole, name)(), abs=1e-10)
        assert few.value_at(3.0) == pytest.approx(whole.value_at(3.0), abs=1e-10)
        assert few.loss == pytest.approx(whole.loss, abs=1e-12)
        assert sum(mode.count for mode in few.modes) == sum(mode.count for mode in whole.modes) == topics.vocabulary


def test_dependent_topics_use_a_basis_and_say_so() -> None:
    twice = OVERLAPPING[:, [0, 1, 1]]
    with pytest.raises(InputError, match=r"dependent.*a basis of their span instead"):
        closed_form(twice, Masking())
    best = optimum(twice, Dirichlet(), length="infinite")
    assert "documents span 2 of 3 dimensions" in " ".join(best.summary())
    assert np.abs(best.matrix() - closed_form(twice[:, :2], Masking())).max() < 1e-12
    assert not optimum(OVERLAPPING, Dirichlet(), length="infinite").notes
    assert "standard error" in optimum(OVERLAPPING, Moments(LAW.mean, LAW.second, 1e-4), length=5).notes[0]


@pytest.mark.parametrize(
    ("topics", "prior", "more", "message"),
    [
        (2 * OVERLAPPING, Dirichlet(), {}, "column 1 of 3 sums to 2; expected 1"),
        (-OVERLAPPING, Dirichlet(), {}, "row 1, column 1 is -.*; expected a probability"),
        ([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]], Dirichlet(), {}, "word 3 has probability 0 in every topic"),
        (OVERLAPPING[:, 0], Dirichlet(), {}, "expected one row per word"),
        (OVERLAPPING, Moments(LAW.mean, -LAW.second), {"length": 5}, "must not be negative"),
        (OVERLAPPING, Moments(2 * LAW.mean, LAW.second), {"length": 5}, r"E\[theta\] sums to 2"),
        (OVERLAPPING, Moments(LAW.mean, 2 * LAW.second), {"length": 5}, r"row . of .* sums to .* must be equal"),
        (OVERLAPPING, Moments(LAW.mean[:2], LAW.second[:2, :2]), {"length": 5}, r"expected \(3,\) and \(3, 3\)"),
        (PAPER, Dirichlet(), {"masking": Masking(p_mask=1.0, p_correct=0.0)}, "p_mask = 1 and p_correct = 0"),
        (PAPER, None, {}, "needs a prior"),
        (TopicModel(6000, 1), Dirichlet(), {}, "6,000 topics: expected at most 5,000"),
        (PAPER, Dirichlet(), {"weighting": "words"}, "weighting = 'words': expected run, positions, documents"),
        (PAPER, Dirichlet(), {"length": 0}, "length = 0: expected a number of words"),
        (PAPER, Dirichlet(), {"length": (5, 3)}, "an increasing range"),
        (OVERLAPPING, LAW, {}, "length = None"),
        (PAPER, Fixed(topics_per_document=11), {}, "topics_per_document = 11 is more than topics"),
        (TopicModel(100, 100, np.full(100, 0.01).tolist()), Dirichlet(), {}, "without symmetry at most 6,000"),
    ],
)
def test_what_cannot_be_is_refused(topics: Any, prior: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        optimum(topics, prior, **more)


def test_matrices_and_times_are_checked() -> None:
    best = symmetric(length=20)
    with pytest.raises(InputError, match=r"shape \(3, 3\); expected \(101, 101\)"):
        best.distances(np.zeros((3, 3)))
    with pytest.raises(InputError, match="time = -1"):
        best.value_at(-1)
    distances = best.distances(2 * best.matrix())
    assert distances["optimum"] == pytest.approx(1)
    assert best.distances(best.least_norm_matrix())["theorem2"] == 0
    assert best.table().num_rows == 4
    assert "loss" in repr(best)


def test_least_squares_on_sampled_documents_agrees_within_its_error() -> None:
    """E[(y - W* x) x'] vanishes: every entry of its sample mean lies within 4.5 standard errors."""
    topics, masking = TopicModel(3, 2, [0.3, 0.7]), Masking(p_mask=0.3)
    prior = Dirichlet(alpha=0.5, length=(4, 9))
    sampled = prior.sample(topics, 40_000, np.random.default_rng(1))
    best = optimum(topics, prior, masking).matrix()
    masked = sampled.masked(masking, topics, mask_keys(Stream.TRAIN_MASKS, 0))
    scores = []
    for rows in masked.batches(topics, masking, np.dtype("float64"), uniform=True, size=40_000):
        y = np.bincount(rows.target, rows.target_weight, rows.context.size).reshape(rows.context.shape) * 40_000
        residual = y - rows.context @ best.T
        product = residual[:, :, None] * rows.context[:, None, :]
        scores = np.abs(product.mean(0) / (product.std(0) / 200 + 1e-300))[1:]
    assert np.max(scores) < 4.5
    assert np.max(scores) > 0.5  # of 42 numbers some are off by chance


def test_disjoint_topics_that_are_not_alike_have_means() -> None:
    best = optimum(TopicModel(2, 3), Given(proportions=[[1.0, 0.0], [0.5, 0.5]], length=20))
    assert isinstance(best, DenseOptimum)
    assert best.entries is not None
    inner, topic = best.matrix()[1:, 1:], np.repeat([0, 1], 3)
    by_relation: dict[str, list[float]] = {"same_topic": [], "different_topic": [], "diagonal": []}
    for i, j in itertools.product(range(6), repeat=2):
        relation = "diagonal" if i == j else "same_topic" if topic[i] == topic[j] else "different_topic"
        by_relation[relation].append(inner[i, j])
    for relation, values in by_relation.items():
        assert getattr(best.entries, relation) == pytest.approx(np.mean(values))
    assert best.numbers()["mask_column"] == pytest.approx(best.matrix()[1:, 0].mean())
    assert "Means of W*" in best.summary()[0]
    assert optimum(OVERLAPPING, Dirichlet()).entries is None


def test_distances_from_four_entries_are_those_of_the_matrices() -> None:
    for sizes in ((5, 4), (1, 4), (4, 1)):
        for length in (9, "infinite"):
            best = optimum(TopicModel(*sizes), Dirichlet(length=length))
            whole = ValueOptimum.distances_between(best)
            assert best.distances_between() == pytest.approx(whole, rel=1e-12, abs=1e-15)
            assert whole["limit_to_theorem2"] > 0.01


RARE = np.array([[0.6, 0.1], [0.4 - 1e-10, 0.5], [1e-10, 0.0], [0.0, 0.4]])


def exact_optimum(word_topics: Any, moments: Moments, masking: Masking, n: int) -> np.ndarray:
    """H G^-1 in rational numbers, weighting 'positions' (whose E[m] and E[m(m-1)] are rational), pairs by hand."""
    a = [[Fraction(0)] * len(word_topics[0]), *([Fraction(float(x)) for x in row] for row in word_topics)]
    mean = [Fraction(float(x)) for x in moments.mean]
    second = [[Fraction(float(x)) for x in row] for row in moments.second]
    p, p_c, p_r = (Fraction(x) for x in (masking.p_mask, masking.p_correct, masking.p_random))
    size, topics = len(a), range(len(mean))
    c0 = [1 - p_c - p_r] + [p_r / (size - 1)] * (size - 1)
    word = [sum(a[w][t] * mean[t] for t in topics) for w in range(size)]
    every = range(size)
    pair = [[sum(a[w][s] * second[s][t] * a[u][t] for s in topics for t in topics) for u in every] for w in every]
    m1, m2 = 1 + (n - 1) * p, 2 * (n - 1) * p + (n - 1) * (n - 2) * p**2
    g = [[Fraction(0)] * size for _ in range(size)]
    h = [[Fraction(0)] * size for _ in range(size)]
    for w in range(size):
        for u in range(size):
            shown = p_c * p_c * pair[w][u] + p_c * (word[w] * c0[u] + c0[w] * word[u]) + c0[w] * c0[u]
            half = p_c * pair[w][u] + word[w] * c0[u]
            other = p_c * pair[w][u] + word[u] * c0[w]
            g[w][u] = (m2 * shown + (n * (n - 1) - 2 * (n - 1) * m1 + m2) * pair[w][u]) / n**2
            g[w][u] += ((n - 1) * m1 - m2) * (half + other) / n**2
            h[w][u] = (word[w] * c0[u] + (m1 - 1) * half + (n - m1) * pair[w][u]) / n
            if w == u:
                g[w][u] += (m1 * (p_c * word[w] + c0[w]) + (n - m1) * word[w]) / n**2
                h[w][u] += p_c * word[w] / n
    rows = [g[w] + [h[u][w] for u in range(size)] for w in range(size)]  # W G = H, so G W' = H'
    for i in range(size):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return np.array([[float(rows[u][size + w]) for u in range(size)] for w in range(size)])


@pytest.mark.parametrize("length", [1, 3, 10**5, 10**7])
@pytest.mark.parametrize("p_random", [0.0, 0.1])
def test_rare_words_and_long_documents_against_rational_numbers(length: int, p_random: float) -> None:
    """A word of probability 1e-10: its eigenvalue is 1e-15 of the largest, and W* there is as large as elsewhere."""
    masking, law = Masking(p_random=p_random), Dirichlet(alpha=0.3)
    best = optimum(RARE, law, masking, length=length, weighting="positions")
    exact = exact_optimum(RARE, law.moments(2), masking, length)
    error = np.abs(best.matrix() - exact).max(0) / np.maximum(np.abs(exact).max(0), 1e-300)  # of each column on its own
    assert error.max() < 1e-14 + 1e-15 * length  # the condition of the scaled G grows as N


def test_a_rare_word_is_learnt_in_its_own_time() -> None:
    """Its rate is (share of positions that show it) / N, and flow ends at W*."""
    best = optimum(RARE, Dirichlet(alpha=0.3), Masking(p_random=0.0), length=10**5, weighting="positions")
    rate = (1 - 0.9 * 0.15) * 0.5e-10 / 1e5
    assert sum(mode.count for mode in best.modes if mode.half_time is not None) == 5
    assert min(mode.slowest for mode in best.modes) == pytest.approx(rate, rel=1e-4)
    assert best.value_at(50 / rate) == pytest.approx(best.matrix(), abs=1e-9)
    assert best.value_at(1e-3 / rate)[:, 3] == pytest.approx(best.matrix()[:, 3] * 2e-3, abs=1e-5)


def test_eigenvalues_of_all_sizes_are_found() -> None:
    sizes = 10.0 ** np.array([0.0, -9.0, -18.0, -27.0])
    scale = np.sqrt(np.outer(sizes, sizes))
    matrix = scale * (np.eye(4) + 0.3 * (1 - np.eye(4)))
    rates, vectors = graded_eigen(matrix)
    # of strongly graded matrices the eigenvalues are the pivots
    pivots = np.diagonal(np.linalg.cholesky(np.eye(4) + 0.3 * (1 - np.eye(4)))) ** 2
    assert rates == pytest.approx(sizes * pivots, rel=1e-7)
    assert vectors.T @ vectors == pytest.approx(np.eye(4), abs=1e-14)


def test_a_billion_words_keep_their_diagonal() -> None:
    """T = 1,000, v = 10^6, N = 10^7: rates of 1e-16 and less are small, and not zero."""
    for weighting in WEIGHTINGS:
        best = optimum(TopicModel(1000, 10**6), Fixed(topics_per_document=3), length=10**7, weighting=weighting)
        assert isinstance(best, SymmetricOptimum)
        assert best.entries.diagonal - best.entries.same_topic == pytest.approx(0.1 / 0.88, rel=1e-6)
        assert best.entries.mask_column == pytest.approx(1e-9)
        rates = {mode.name: mode.eigenvalue for mode in best.modes}
        assert rates["within-topic"] == pytest.approx(0.88e-16, rel=1e-6)
        # of the plane: variance of the share of [MASK]s, .12 .88 / N, over Tv, over the larger rate
        assert rates["[MASK] against words"] == pytest.approx(0.12 * 0.88 / 1e7 / 1e9 / 0.12**2, rel=1e-5)
    endless = optimum(TopicModel(1000, 10**6), Fixed(topics_per_document=3), length="infinite")
    assert {mode.name for mode in endless.modes if mode.half_time is None} == {"within-topic", "[MASK] against words"}


def test_a_single_word_that_is_hidden_says_nothing() -> None:
    """N = 1 and masks that only show [MASK]: W* has a [MASK] column alone, whatever rounding does to E[m]."""
    for p_mask in (0.1, 0.3, 0.7):
        masking = Masking(p_mask=p_mask, p_correct=0.0, p_random=0.0)
        for weighting in WEIGHTINGS:
            best = optimum(TopicModel(3, 2), Dirichlet(), masking, length=1, weighting=weighting)
            assert list(vars(best.entries).values()) == [0.0, 0.0, 0.0, pytest.approx(1 / 6)]


def test_modes_that_the_error_of_moments_cannot_tell_apart_are_one() -> None:
    """Pairs of correlated topics: 2 contrasts between pairs and 3 inside them, which only noise would order."""
    covariance = [[2.0 if i == j else 1.2 * (i // 2 == j // 2) for j in range(6)] for i in range(6)]
    prior = LogisticNormal(covariance=covariance)
    for length in (50, "infinite"):
        best = optimum(TopicModel(6, 3), prior, length=length)
        contrasts = [mode for mode in best.modes if mode.name.startswith("topic contrasts")]
        assert [mode.count for mode in contrasts] == [2, 3]
        assert all(0 < mode.eigenvalue / mode.slowest - 1 < 0.01 for mode in contrasts)
        assert "one mode" in best.notes[0]
        exact = optimum(TopicModel(6, 3), Moments(prior.moments(6).mean, prior.moments(6).second), length=length)
        assert [m.count for m in exact.modes if m.name.startswith("topic")] == [1] * 5  # as if there were no error


def test_the_prior_is_described_with_its_lists() -> None:
    few = optimum(RARE, Dirichlet(alpha=[0.3, 0.4]), length=5)
    assert few.settings.prior == {"kind": "dirichlet", "alpha": [0.3, 0.4]}
    many = optimum(np.eye(101), Dirichlet(alpha=[0.3] * 101), length=5)
    assert many.settings.prior == {"kind": "dirichlet", "alpha": "101 numbers"}


def test_a_word_that_is_never_shown_gets_no_weight() -> None:
    silent = np.array([[0.5, 0.2, 0.0], [0.5, 0.8, 0.0], [0.0, 0.0, 1.0]])  # of a topic that no document has
    law = Given(proportions=[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    for length in (4, "infinite"):
        best = optimum(silent, law, Masking(p_random=0.0), length=length)
        assert np.abs(best.matrix()[:, 3]).max() < 1e-12
        assert np.abs(best.matrix()[3]).max() < 1e-12
        assert np.isfinite(best.limit_matrix()).all()
    no_mask = optimum(TopicModel(3, 2), Fixed(topics_per_document=1), Masking(p_correct=0.5, p_random=0.5), length=6)
    assert no_mask.entries.mask_column == 0  # type: ignore[union-attr]


def test_the_error_of_w_star_is_stated_where_moments_are_estimates() -> None:
    """Independent normals by points: W* of their exact moments shows whether the stated error is the real one."""
    rng = np.random.default_rng(5)
    word_topics, topics = rng.dirichlet(np.ones(12), size=6).T, 6
    estimate = correlated_normal(np.zeros(topics), np.eye(topics))
    exact = LogisticNormal(covariance=1.0).moments(topics)
    found, true = (optimum(word_topics, law, length=20) for law in (estimate, exact))
    assert isinstance(found, DenseOptimum)
    assert isinstance(true, DenseOptimum)
    assert found.error is not None
    off = found.matrix() - true.matrix()
    assert 0.3 < np.linalg.norm(off) / np.linalg.norm(true.matrix()) / found.error.matrix < 3
    assert 0.1 < np.abs(off).max() / found.error.entry < 5
    assert 0 < abs(found.loss - true.loss) < 5 * found.error.loss
    assert found.numbers()["numerical_error"] == found.error._asdict()
    assert found.summary()[-1] == found.error.sentence == found.notes[-1]
    # exact moments have no error; of infinite documents the law of theta moves the loss alone
    assert true.error is None
    assert "numerical_error" not in true.numbers()
    endless = optimum(word_topics, estimate, length="infinite")
    assert isinstance(endless, DenseOptimum)
    assert endless.error is not None
    assert endless.error.matrix < 1e-12
    assert endless.error.loss > 1e-9
    plain = Dirichlet(alpha=[0.2, 0.5]).moments(2)  # without independent estimates
    unknown = optimum(TopicModel(2, 3), Moments(plain.mean, plain.second, 1e-4), length=5)
    assert "How far W* is off with them is not known" in unknown.notes[0]
    assert "numerical_error" not in unknown.numbers()
