"""Where a run that goes on stands."""

import numpy as np
import pytest

from topicscope.measure import act, bands_so_far, stage_bands

STEPS = np.arange(1001.0)


def rise(start: float, to: float, at: float, width: float) -> np.ndarray:
    return start + (to - start) / (1 + np.exp(-(STEPS - at) / width))


VALUE_FIRST = {
    "norm_value": rise(0.1, 3, 60, 10),
    "norm_key": rise(0.2, 9, 600, 25),
    "norm_query": rise(0.2, 9, 600, 25),
}
TOGETHER = {name: rise(0.1, 3, 300, 60) for name in VALUE_FIRST}
SLOWLY = VALUE_FIRST | dict.fromkeys(("norm_key", "norm_query"), np.sqrt(1 + 0.09 * np.expm1(STEPS / 1000)))
"""Key and query reach 1.075 times their start at step 1000, and gain less than a fiftieth in the last tenth."""
AGAIN = VALUE_FIRST | {"norm_value": VALUE_FIRST["norm_value"] + np.maximum(0, STEPS - 800) / 50}


@pytest.mark.parametrize(
    ("curves", "step", "expected"),
    [
        (VALUE_FIRST, 1, "start"),
        (VALUE_FIRST, 5, "start"),
        (VALUE_FIRST, 60, "stage 1"),
        (VALUE_FIRST, 300, "between"),
        (VALUE_FIRST, 600, "stage 2"),
        (VALUE_FIRST, 1000, "ended"),
        (SLOWLY, 400, "between"),
        (SLOWLY, 760, "between"),
        (SLOWLY, 1000, "between"),
        (TOGETHER, 300, "at once"),
        (TOGETHER, 1000, "ended"),
        (AGAIN, 1000, "third act"),
    ],
)
def test_the_act_of_a_run(curves: dict[str, np.ndarray], step: int, expected: str) -> None:
    assert act({name: norm[: step + 1] for name, norm in curves.items()}) == expected


def test_attention_that_has_only_begun_is_no_second_stage() -> None:
    assert bands_so_far(SLOWLY) == [(0.0, 1000.0, "stage 1: value")]


def test_stages_stay_where_value_rises_again_and_is_half_way_after_attention() -> None:
    late = VALUE_FIRST | {"norm_value": VALUE_FIRST["norm_value"] + rise(0, 10, 850, 10)}
    first, second = stage_bands(late)
    assert first == (0.0, second[0], "stage 1: value")
    assert 500 < second[0] < 600
    assert second[1:] == (1000.0, "stage 2: key and query")
    assert bands_so_far(late) == [first, second]
