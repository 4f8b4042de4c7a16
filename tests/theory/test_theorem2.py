from __future__ import annotations

import numpy as np
import pytest

from topicscope import Masking, TopicModel
from topicscope.theory import theorem2, uniform_optimum
from topicscope.world import every_document


def test_the_entries_at_the_papers_size() -> None:
    optimum = theorem2(TopicModel(10, 10), Masking())
    assert optimum.different_topic == pytest.approx(-0.0075867, abs=5e-8)
    assert optimum.same_topic == pytest.approx(0.108020, abs=5e-7)
    assert optimum.mask_column == pytest.approx(0.054191, abs=5e-7)
    assert optimum.mask_row == 0


@pytest.mark.parametrize(("topics", "v", "tau"), [(10, 10, 3), (5, 4, 2), (6, 3, 1), (6, 3, 4), (3, 1, 2)])
@pytest.mark.parametrize("masking", [Masking(), Masking(0.4, 0.2, 0.3), Masking(0.15, 0.1, 0.0)])
def test_is_the_least_squares_solution_over_all_documents(topics: int, v: int, tau: int, masking: Masking) -> None:
    model = TopicModel(topics, v)
    found = uniform_optimum(every_document(model, tau).batches(model, masking, uniform=True))
    assert np.abs(found.matrix - theorem2(model, masking).matrix(model)).max() < 1e-12


def test_ridge_solutions_converge_to_it() -> None:
    model, masking = TopicModel(6, 3), Masking()
    rows = list(every_document(model, 2).batches(model, masking, uniform=True))
    exact = theorem2(model, masking).matrix(model)
    errors = [np.abs(uniform_optimum(rows, ridge=ridge).matrix - exact).max() for ridge in (1e-4, 1e-5, 1e-6)]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.1)  # the error falls in proportion to lambda
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.02)
