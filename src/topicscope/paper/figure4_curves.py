"""The nine curves of Figure 4 in numbers, and how far a run is from them.

The figure counts log entries: one per step up to step 1,000, then one per 50 steps (so the authors' code logs), which
is why its curves end in a steep piece. Only the first 1,000 steps are read. By its caption the nine curves have several
settings of the hyperparameters and several runs of each.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from topicscope.pages import Series

PARTS = ("value", "key", "query")
STEPS = 1000
FLAT_FROM = 500
"""By this step all nine value curves are level."""

RANGES: dict[str, tuple[float, float]] = {
    "value tenth": (64, 142),
    "value half": (110, 240),
    "value at 500": (1.27, 2.05),
    "value end": (1.29, 2.06),
    "key tenth": (400, 670),
    "key half": (520, 860),
    "key end": (4.65, 6.4),
    "query tenth": (420, 655),
    "query half": (540, 840),
    "query end": (6.2, 8.8),
}
"""The least and the largest of the nine curves. 'end' is the norm at step 1,000; 'tenth' and 'half' are the steps at
which a norm reaches these shares of its end. Read to about 5 steps and .05."""

NINE = "the figure's nine curves (range)"

ENVELOPE: dict[str, list[tuple[int, float, float]]] = {
    "value": [
        (0, 0.03, 0.12),
        (50, 0.04, 0.1),
        (100, 0.04, 0.65),
        (150, 0.18, 1.18),
        (200, 0.49, 1.53),
        (250, 0.67, 1.72),
        (300, 0.82, 1.9),
        (350, 0.96, 2.0),
        (400, 1.14, 2.01),
        (450, 1.26, 2.02),
        (500, 1.27, 2.03),
        (1000, 1.29, 2.06),
    ],
    "key": [
        (0, 0.0, 0.0),
        (300, 0.0, 0.05),
        (350, 0.0, 0.2),
        (400, 0.0, 0.6),
        (450, 0.0, 0.9),
        (500, 0.0, 1.9),
        (550, 0.1, 3.5),
        (600, 0.3, 4.4),
        (650, 0.5, 4.6),
        (700, 0.7, 4.8),
        (750, 1.0, 5.3),
        (800, 1.9, 5.6),
        (850, 2.5, 5.9),
        (900, 3.8, 6.4),
        (950, 4.3, 6.5),
        (1000, 4.65, 6.4),
    ],
    "query": [
        (0, 0.0, 0.0),
        (300, 0.0, 0.05),
        (350, 0.0, 0.2),
        (400, 0.0, 0.6),
        (450, 0.0, 1.6),
        (500, 0.1, 3.0),
        (550, 0.15, 4.7),
        (600, 0.3, 5.9),
        (650, 0.6, 6.3),
        (700, 1.0, 6.5),
        (750, 1.6, 7.0),
        (800, 2.5, 7.2),
        (850, 3.7, 7.5),
        (900, 5.0, 8.0),
        (950, 5.9, 8.3),
        (1000, 6.2, 8.8),
    ],
}
"""Step, least and largest norm of the nine curves."""

QUERY_OVER_KEY = (1.2, 1.45)
"""The ratio of the two ends in the nine curves; reported, no part of the distance."""

MISSING = 10.0
"""The factor by which a step counts as wrong that never comes, since the norm does not rise; and the largest factor."""

Norms = Mapping[str, Float[np.ndarray, " S"]]
"""norm_value, norm_key and norm_query of a run; with `step`, where not every step is there (curves of a sweep)."""


def readings(norms: Norms) -> dict[str, float]:
    """The ten numbers of RANGES, of one run: NaN for the steps of a norm that does not double in 1,000 steps."""
    steps = np.asarray(norms.get("step", np.arange(len(norms["norm_value"]))))
    numbers = {}
    for part in PARTS:
        curve = norms[f"norm_{part}"][steps <= STEPS]
        end = float(curve[-1])
        rises = end > 2 * float(curve[0])  # else it is past half of its end from the start
        for name, share in (("tenth", 0.1), ("half", 0.5)):
            numbers[f"{part} {name}"] = float(steps[np.argmax(curve >= share * end)]) if rises else math.nan
        numbers[f"{part} end"] = end
    numbers["value at 500"] = float(np.interp(FLAT_FROM, steps, norms["norm_value"]))
    return {name: numbers[name] for name in RANGES}


def factor(name: str, number: float) -> float:
    """By which factor a number lies above its range (more than 1) or below it (less than 1); 1 inside."""
    if not math.isfinite(number):
        return MISSING
    low, high = RANGES[name]
    off = number / high if number > high else number / low if number < low else 1.0
    return min(max(off, 1 / MISSING), MISSING)


def distance(runs: Sequence[Norms]) -> float:
    """How far runs are from the figure: the root mean square of ln(factor) over the ten numbers of all runs.

    0: every number of every run lies in the figure's range. .69: a typical number is off by a factor of 2. Times and
    sizes count alike. It was fixed before the sweep (examples/figure4.yaml).
    """
    logs = [math.log(factor(name, number)) for run in runs for name, number in readings(run).items()]
    return math.sqrt(sum(log * log for log in logs) / len(logs))


def envelope(part: str) -> list[Series]:
    """The range of the nine curves, as a band behind our own: its lower edge with the band, and its upper edge."""
    steps, low, high = (list(map(float, column)) for column in zip(*ENVELOPE[part], strict=True))
    return [Series(NINE, steps, low, low, high, NINE, thin=True), Series(NINE, steps, high, group=NINE, thin=True)]
