"""Where a run that goes on stands."""

import numpy as np
import pytest

from topicscope.measure import act

STEPS = np.arange(1001.0)


def rise(start: float, to: float, at: float, width: float) -> np.ndarray:
    return start + (to - start) / (1 + np.exp(-(STEPS - at) / width))


VALUE_FIRST = {
    "norm_value": rise(0.1, 3, 60, 10),
    "norm_key": rise(0.2, 9, 600, 25),
    "norm_query": rise(0.2, 9, 600, 25),
}
TOGETHER = {name: rise(0.1, 3, 300, 60) for name in VALUE_FIRST}
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
        (TOGETHER, 300, "at once"),
        (TOGETHER, 1000, "ended"),
        (AGAIN, 1000, "third act"),
    ],
)
def test_the_act_of_a_run(curves: dict[str, np.ndarray], step: int, expected: str) -> None:
    assert act({name: norm[: step + 1] for name, norm in curves.items()}) == expected
