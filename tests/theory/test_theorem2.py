from __future__ import annotations

import numpy as np
import pytest

from topicscope import InputError, Masking, TopicModel
from topicscope.theory import Setting, random_member, theorem2, uniform_optimum
from topicscope.world import every_document


def test_the_entries_at_the_papers_size() -> None:
    optimum = theorem2(Setting.of(10, 10))
    assert optimum.different_topic == pytest.approx(-0.0075867, abs=5e-8)
    assert optimum.same_topic == pytest.approx(0.108020, abs=5e-7)
    assert optimum.mask_column == pytest.approx(0.054191, abs=5e-7)
    assert optimum.mask_row == 0


@pytest.mark.parametrize(("topics", "v", "tau"), [(10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 4), (3, 1, 2)])
@pytest.mark.parametrize("masking", [Masking(), Masking(0.4, 0.2, 0.3), Masking(0.15, 0.1, 0.0)])
def test_is_the_least_squares_solution_over_all_documents(topics: int, v: int, tau: int, masking: Masking) -> None:
    model = TopicModel(topics, v)
    solution = uniform_optimum(every_document(model, tau).batches(model, masking, uniform=True)).matrix
    assert np.abs(solution - theorem2(Setting(model, tau, masking)).matrix()).max() < 1e-12
    assert theorem2(Setting(model, tau, masking)).contains(solution, tolerance=1e-12)


@pytest.mark.parametrize(("topics", "v", "tau"), [(10, 10, 3), (20, 7, 4), (6, 3, 1), (3, 1, 2)])
@pytest.mark.parametrize("masking", [Masking(), Masking(0.4, 0.2, 0.3), Masking(0.15, 0.1, 0.0)])
def test_times_a_masked_document_is_the_documents_word_distribution(
    topics: int, v: int, tau: int, masking: Masking
) -> None:
    """What the summary says of infinite documents, and of the part that the negative rest and [MASK] have in it."""
    setting = Setting(TopicModel(topics, v), tau, masking)
    optimum = theorem2(setting)
    inside = np.repeat(np.arange(topics) < tau, v)
    before = np.append(0.0, inside / (v * tau))
    masked = np.append(setting.p0, np.where(inside, setting.p1, setting.p2))
    assert masked.sum() == pytest.approx(1, abs=1e-14)
    assert np.abs(optimum.matrix() @ masked - before).max() < 1e-14
    rest = optimum.different_topic * (1 - setting.p0) + optimum.mask_column * setting.p0
    of_random_words = setting.constants.c3 / v * v * setting.p2  # votes of the random words of a topic
    assert rest == pytest.approx(-of_random_words, abs=1e-15)
    assert "cancel what random words add" in optimum.summary()[1]


def test_contains_its_own_matrix_and_no_other_optimum() -> None:
    s = Setting.of(4, 3, 2)
    optimum = theorem2(s)
    assert optimum.contains(optimum.matrix(), tolerance=0)
    assert not optimum.contains(optimum.matrix() + 1e-5)
    assert optimum.contains(optimum.matrix() + 1e-5, tolerance=2e-5)
    assert not optimum.contains(np.zeros((3, 3)))
    other = random_member(s, np.random.default_rng(0))
    assert not optimum.contains(other)
    examined = optimum.examine(other).numbers
    assert examined["family_violation"] < 1e-12  # as good, but not of least norm
    assert examined["largest_difference"] > 0.01
    with pytest.raises(InputError, match="shape"):
        optimum.examine(np.zeros((3, 3)))
