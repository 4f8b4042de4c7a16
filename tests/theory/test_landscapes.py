"""The second stage and its landscape: on the grid, in a folder and back."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.sealed import rewrite
from topicscope import InputError
from topicscope.ground import read_about
from topicscope.theory import (
    Landscape,
    Setting,
    attention_landscape,
    attention_loss,
    landscape,
    read_landscape,
    second_stage,
    theorem3,
)

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


def test_the_lowest_point_and_all_points_of_a_grid() -> None:
    grid = Landscape(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([[5.0, 1.0], [2.0, 6.0]]))
    assert grid.minimum == (1.0, 4.0, 1.0)
    points = [tuple(point) for point in zip(*grid.points().values(), strict=True)]
    assert points == [(1, 3, 5), (1, 4, 1), (2, 3, 2), (2, 4, 6)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        grid.loss = grid.alpha  # type: ignore[misc]


def test_another_theorem_may_give_the_bounds() -> None:
    narrow = second_stage(S, "blocks", theorem=lambda s: dataclasses.replace(theorem3(s), lambda2=0.0))
    assert (narrow.inside, second_stage(S, "blocks").inside) == (False, True)
    assert narrow.summary()[0].endswith("is OUTSIDE.")


def test_one_word_a_topic_has_no_diagonal_stage() -> None:
    with pytest.raises(InputError, match="divides by v - 1"):
        second_stage(Setting.of(4, 1, 2), "diagonal")
    assert second_stage(Setting.of(4, 2, 2), "diagonal").theorem is None


def test_the_sentences_of_a_stage() -> None:
    stage = second_stage(S, "blocks", "paper")
    assert stage.optimum.only_gamma
    only, bounds, how, strained = stage.summary()
    assert only == (
        "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; alpha = beta is shown."
    )
    assert bounds.startswith("Theorem 3: gamma lies in")
    assert how.startswith("How to read it: ")
    assert strained.startswith(
        "The theorem is asymptotic, and this setting strains it: topics_per_document = 2 is not large"
    )
    assert len(second_stage(S, "blocks").summary()) == 3


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
