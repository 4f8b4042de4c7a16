"""Attention losses, minimisers and landscapes, against the paper's numbers and plain computation."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from tests.sealed import rewrite
from tests.theory.settings import settings_of_the_theory
from topicscope import InputError
from topicscope.ground import read_about
from topicscope.theory import (
    Landscape,
    Setting,
    ValueMatrix,
    asymptotic_loss,
    attention_landscape,
    attention_loss,
    best_attention,
    diagonal_value_matrix,
    enumerated_loss,
    landscape,
    read_landscape,
    second_stage,
    theorem2,
    theorem3,
)

KINDS: tuple[ValueMatrix, ...] = ("blocks", "diagonal")


@settings(max_examples=40)
@given(s=settings_of_the_theory(), alpha=st.floats(0.01, 100), beta=st.floats(0.01, 100))
def test_a_handful_of_numbers_equals_the_whole_matrix(s: Setting, alpha: float, beta: float) -> None:
    for kind, matrix in zip(
        KINDS, (theorem2(s).matrix(), diagonal_value_matrix(s.topic_model, s.masking)), strict=True
    ):
        exact = enumerated_loss(s, torch.from_numpy(matrix), alpha, beta).item()
        assert attention_loss(s, kind, alpha, beta) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("tau", "alpha", "loss"), [(3, 7.67, 0.961770), (2, 6.29, 0.946103)])
def test_the_exact_minimisers_at_ten_by_ten(tau: int, alpha: float, loss: float) -> None:
    found = best_attention(Setting.of(10, 10, tau), "blocks")
    assert (found.alpha, found.beta) == pytest.approx((alpha, 1.0), abs=0.005)
    assert found.loss == pytest.approx(loss, abs=5e-7)
    assert found.edge is None


DIAGONAL = {20: 0.58328, 40: 0.64286, 60: 0.68754, 80: 0.72224}
BLOCKS = {20: (0.99852, 53.2), 40: (0.99876, 66.4), 60: (0.99892, 72.1), 80: (0.99904, 75.2)}


@pytest.mark.parametrize("tau", DIAGONAL)
def test_the_papers_landscapes(tau: int) -> None:
    s = Setting.of(100, 300, tau)
    diagonal, blocks = landscape(s, "diagonal", "paper", cap=True), landscape(s, "blocks", "paper")
    assert diagonal.loss.shape == (110, 110)
    assert diagonal.loss.min() == pytest.approx(DIAGONAL[tau], abs=5e-6)
    assert blocks.loss.min() == pytest.approx(BLOCKS[tau][0], abs=5e-6)
    assert best_attention(s, "blocks", "paper").gamma == pytest.approx(BLOCKS[tau][1], rel=0.003)


@settings(max_examples=15)
@given(
    s=settings_of_the_theory(most_topics=60, most_words=40, least_words=2),
    kind=st.sampled_from(["blocks", "diagonal"]),
    convention=st.sampled_from(["exact", "paper"]),
)
def test_nothing_on_a_fine_grid_is_lower_than_the_minimiser(s: Setting, kind: Any, convention: Any) -> None:
    found = best_attention(s, kind, convention)
    grid = landscape(s, kind, convention, low=-8, high=11, per_decade=20)
    assert found.loss <= grid.loss.min() + 1e-12
    assert attention_loss(s, kind, found.alpha, found.beta, convention) == pytest.approx(found.loss, rel=1e-12)


def test_capped_predictions_are_minimised_too() -> None:
    s = Setting.of(100, 300, 20)
    found = best_attention(s, "diagonal", "paper", cap=True)
    assert found.loss <= landscape(s, "diagonal", "paper", cap=True).loss.min()
    capped = attention_loss(s, "diagonal", 1e-4, complex(1e6), "paper", cap=True)  # far above 1 before the cut
    assert capped.real == pytest.approx(attention_loss(s, "diagonal", 1e-4, 1e6, "paper", cap=True), rel=1e-12)
    assert capped.real < attention_loss(s, "diagonal", 1e-4, 1e6, "paper") - 0.01
    with pytest.raises(InputError, match="value matrix 'rows': expected blocks or diagonal"):
        attention_loss(s, "rows", 1.0, 1.0)  # type: ignore[arg-type]


def test_minima_at_the_edge_are_called_so() -> None:
    diagonal = best_attention(Setting.of(10, 10, 3), "diagonal")
    assert (diagonal.edge, diagonal.alpha) == ("alpha -> 0", 0)
    assert diagonal.beta == pytest.approx(35.24, abs=0.01)
    huge = Setting.of(10**6, 10**3, 100)  # which needs no matrix
    found = best_attention(huge, "blocks", "paper")
    assert theorem3(huge).contains(found.alpha, found.beta)
    # one word a topic: there is no same-topic other word, and the loss does not depend on alpha
    assert best_attention(Setting.of(6, 1, 2), "blocks").edge in (None, "beta -> 0", "beta -> infinity")


def test_where_only_the_ratio_matters_no_edge_is_named() -> None:
    """One topic, paper convention: alpha and beta have no third weight to compare with, however small both are."""
    s = Setting.of(1, 2, 1, p_mask=0.5, p_correct=0.125, p_random=0.5)
    best = best_attention(s, "diagonal", "paper")
    assert best.edge == "only alpha / beta matters"
    assert best.loss <= landscape(s, "diagonal", "paper").loss.min()
    scaled = attention_loss(s, "diagonal", 1e6 * best.alpha, 1e6 * best.beta, "paper")
    assert scaled == pytest.approx(best.loss, rel=1e-12)


def test_complex_step_is_the_derivative() -> None:
    s = Setting.of(10, 10, 3)
    h = 1e-6
    step = attention_loss(s, "blocks", complex(3, 1e-30), complex(2)).imag / 1e-30
    central = (attention_loss(s, "blocks", 3 + h, 2.0) - attention_loss(s, "blocks", 3 - h, 2.0)) / (2 * h)
    assert step == pytest.approx(central, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_under_uniform_attention_shares_a_prediction_among_all_words(kind: ValueMatrix) -> None:
    """With alpha = beta = 1 the normalisers are whole documents: tau topics seen with p1, the other topics with p2."""
    s = Setting.of(6, 3, 2)
    m, c4 = s.masking, 1 / s.masking.k
    here = c4 / (s.v * s.tau * (1 + c4 * m.p_mask * m.p_random))
    there = c4 * s.p2 / (s.v * (s.tau * s.p1 + (s.T - s.tau) * s.p2))
    own, absent = (1 - here) ** 2 + (s.v - 1) * here**2, 1 + s.v * there**2
    expected = (m.p_correct * own + m.p_random * absent) / (m.p_correct + m.p_random)
    assert asymptotic_loss(s, kind, 1.0, 1.0) == pytest.approx(expected, rel=1e-12)


S = Setting.of(4, 6, 2)


def test_the_grid_is_the_papers_unless_another_is_asked_for() -> None:
    grid = landscape(S, "diagonal")
    assert np.log10(grid.alpha) == pytest.approx(np.linspace(-4, 6.9, 110), abs=1e-12)
    assert np.array_equal(grid.alpha, grid.beta)
    coarse = landscape(S, "diagonal", "paper", low=-1, high=1, per_decade=2)
    assert coarse.alpha == pytest.approx([0.1, 10**-0.5, 1, 10**0.5, 10])
    loss = attention_loss(S, "diagonal", float(coarse.alpha[3]), float(coarse.beta[1]), "paper")
    assert coarse.loss[3, 1] == pytest.approx(loss, rel=1e-14)


def test_caps_are_for_the_diagonal_in_the_papers_convention_unless_asked_for() -> None:
    large = Setting.of(100, 300, 20)
    plain, capped = landscape(large, "diagonal", "paper"), landscape(large, "diagonal", "paper", cap=True)
    assert (capped.loss < plain.loss - 0.01).any()  # predictions above 1 are only cut where it is asked for
    assert not (capped.loss > plain.loss).any()
    assert second_stage(S, "blocks", "paper").cap is False
    assert second_stage(S, "diagonal", cap=True).cap is True
    assert second_stage(S, "diagonal", "paper", cap=False).cap is False


def test_another_theorem_may_give_the_bounds() -> None:
    with pytest.raises(InputError, match="divides by v - 1"):
        second_stage(Setting.of(4, 1, 2), "diagonal")
    narrow = second_stage(S, "blocks", theorem=lambda s: dataclasses.replace(theorem3(s), lambda2=0.0))
    assert (narrow.inside, second_stage(S, "blocks").inside) == (False, True)
    assert narrow.summary()[0].endswith("is OUTSIDE.")


def test_a_landscape_reads_back_from_its_folder(tmp_path: Path) -> None:
    kept = attention_landscape(S, "blocks", out=tmp_path / "x")
    assert attention_landscape(S, "blocks").folder is None
    assert repr(kept) == "AttentionLandscape(blocks W_V, T = 4, v = 6, tau = 2, exact convention)"
    about = read_about(tmp_path / "x")
    assert about is not None
    assert (about.kind, about.format, about.status) == ("landscape", 2, "done")
    found = read_landscape(tmp_path / "x")
    assert (found.stage, found.folder) == (kept.stage, tmp_path / "x")
    assert all(np.array_equal(getattr(found.grid, name), getattr(kept.grid, name)) for name in vars(kept.grid))
    stored = json.loads((tmp_path / "x" / "results.json").read_text())
    assert stored == kept.as_dict()
    alpha, beta, loss = kept.grid.minimum
    gamma = pytest.approx((5 * alpha + beta) / 6)
    assert stored["grid_minimum"] == {"alpha": alpha, "beta": beta, "gamma": gamma, "loss": loss}
    head, *lines = (tmp_path / "x" / "landscape.csv").read_text().splitlines()
    assert head == "alpha,beta,loss"
    values = np.array([line.split(",") for line in lines], dtype=float)
    for column, name in zip(values.T, kept.table().column_names, strict=True):
        assert column == pytest.approx(kept.table()[name].to_numpy(), rel=1e-9)


def test_a_landscape_is_replaced_only_on_demand_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    attention_landscape(S, "blocks", out=tmp_path / "x")
    with pytest.raises(InputError, match="replace it"):
        attention_landscape(S, "diagonal", out=tmp_path / "x")
    attention_landscape(S, "diagonal", "paper", out=tmp_path / "x", force=True)
    again = read_landscape(tmp_path / "x")
    assert (again.stage.value_matrix, again.stage.convention, again.stage.cap) == ("diagonal", "paper", True)
    grid = vars(again.grid) | {"loss": np.array([object()])}
    np.savez(packed := io.BytesIO(), allow_pickle=True, **grid)
    rewrite(tmp_path / "x", "landscape.npz", packed.getvalue())
    with pytest.raises(InputError, match=r"is damaged \(Object arrays cannot be loaded.*make it again"):
        read_landscape(tmp_path / "x")
    rewrite(tmp_path / "x", "landscape.npz", b"PK")
    with pytest.raises(InputError, match=r"is damaged .*make it again \(--force\)$"):
        read_landscape(tmp_path / "x")


def test_the_lowest_point_and_all_points_of_a_grid() -> None:
    grid = Landscape(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([[5.0, 1.0], [2.0, 6.0]]))
    assert grid.minimum == (1.0, 4.0, 1.0)
    assert [*zip(*grid.points().values(), strict=True)] == [(1, 3, 5), (1, 4, 1), (2, 3, 2), (2, 4, 6)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        grid.loss = grid.alpha  # type: ignore[misc]
