"""The predicted half of the phase diagram: cells, shares, the rule that judges the laws, and crosses of the figure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.paper import samples_stages as stages
from tests.paper.samples import judged
from topicscope.measure import NOT_COVERED
from topicscope.pages import Map
from topicscope.paper.two_stage import LOSS, LR, SCALE, Cell, MapLaw, Shares, StageMaps, Swept, cells, crosses, why


def maps_with(predicted: str, count: int, *, optimiser: str = "sgd") -> StageMaps:
    """The sample, in which all predictions are right, with another one for so many cells of an optimiser."""
    found = stages.stage_maps(stages.at(1e-3, 1e-2, "two-stage"))
    swept = found.maps[optimiser]
    rows = [row | ({"predicted_phase": predicted} if i < count else {}) for i, row in enumerate(swept.rows)]
    return StageMaps(found.maps | {optimiser: Swept(swept.axes, rows)}, found.epsilon, found.flow, found.config)


@pytest.mark.parametrize(
    ("predicted", "count", "optimiser", "holds"),
    [
        ("at once", 0, "sgd", True),
        ("never", 2, "sgd", True),  # 22 of 24 cells, 16 of SGD and 8 of gradient flow
        ("never", 3, "sgd", False),  # 21 of 24: 87.5%
        (NOT_COVERED, 2, "sgd", True),
        (NOT_COVERED, 3, "sgd", False),  # no prediction is not a right one
        ("never", 16, "adam", True),  # not judged
    ],
)
def test_the_laws_hold_from_ninety_percent_on(predicted: str, count: int, optimiser: str, holds: bool) -> None:
    outcome = judged("two-stage", maps_with(predicted, count, optimiser=optimiser))
    assert outcome.numbers["law"]["holds"] is holds
    said = outcome.reason.split("\n")[-2]
    assert said.startswith("The laws hold" if holds else "The laws do not hold")
    if optimiser == "sgd":
        covered = 24 - count * (predicted == NOT_COVERED)
        right = f"{24 - count} of 24 cells take the predicted phase"
        assert right in said
        assert f"of the {covered} that the laws cover" in said
        assert len(outcome.tables[-1].rows) == (0 if predicted == NOT_COVERED else count)


def test_a_map_without_predictions_does_not_hold() -> None:
    assert not MapLaw([], []).holds
    assert Shares(4, 0, 0).sentence == "0 of 4 cells take the predicted phase (0%; - of the 0 that the laws cover)"


def test_a_cell_has_the_phase_of_most_seeds() -> None:
    place = {LOSS: "squared", LR: 0.1, SCALE: 0.01}
    rows = [place | stages.point("never"), place | stages.point("at once"), place | stages.point("at once")]
    (one,) = cells("sgd", rows)
    assert (one.measured, one.predicted, one.right, one.covered) == ("at once", "at once", True, True)
    assert one.place[LR] == 0.1
    assert one.row is rows[1]
    two = cells("sgd", [*rows, place | {LR: 1.0} | stages.point("never", predicted_phase=NOT_COVERED)])
    assert [found.right for found in two] == [True, False]
    assert not two[1].covered


@pytest.mark.parametrize(
    ("measured", "predicted", "reason"),
    [
        ("diverged", "never", "noise of batches"),
        ("staggered", "two-stage", "third act"),
        ("never", "first stage only", "predicted to rise by 6.5%"),
        ("two-stage", "at once", "that of the starts is 3, predicted 1.25"),
    ],
)
def test_a_difference_has_its_reason(measured: str, predicted: str, reason: str) -> None:
    more: dict[str, Any] = {"predicted_rise": 0.065, "predicted_start_separation": 1.25}
    assert reason in why(Cell("sgd", {}, measured, predicted, stages.point(measured) | more))


def test_crosses_are_where_a_prediction_is_another_phase() -> None:
    left = Map("", [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], ["a", "b", "c"], ["d", "e"])
    right = Map("", [[0.0, 2.0, 6.0], [4.0, 4.0, 6.0]], ["a", "b", "c"], ["d", "e"])
    assert crosses(left, right) == [(1, 0), (0, 1)]  # 6 is 'not covered'
    figure = judged("two-stage", maps_with("never", 1)).figures[-1]
    panels = [panel for panel in figure.panels if isinstance(panel, Map)]
    assert [panel.title for panel in panels[:8:4]] == ["sgd, squared, one-hot", "law, squared, one-hot"]
    assert [panel.marks for panel in panels[:8]] == [[]] * 4 + [[(0, 0)]] + [[]] * 3
    assert [panel.title for panel in panels[8:10]] == ["adam, squared, one-hot", "law, squared, one-hot"]


def test_maps_of_adam_without_predictions_are_left_out() -> None:
    panels = judged("two-stage", maps_with(NOT_COVERED, 16, optimiser="adam")).figures[-1].panels
    assert len(panels) == 8 + 8  # SGD, and Adam along epsilon
