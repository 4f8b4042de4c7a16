"""Where a run that goes on stands: its act, and its stages as far as they can be told."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import Float

from topicscope.measure.phases import FIRST, RISEN, START, TWO_STAGE, last_step, stage_bands, stages

Act = Literal["start", "stage 1", "between", "stage 2", "at once", "third act", "ended"]
MOVING = 0.02  # share of its norm that a part gains in the last tenth of the steps
CLEARLY = 1.5  # times its start that key or query must reach, before their rest can be a plateau


def act(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> Act:
    """Where a run that is still going on stands: which norms have risen from their start, and which are rising now.

    Unlike `phase` it knows no plateau: the rest of the run is not there yet.

    Args:
        metrics: Columns norm_value, norm_key and norm_query so far.

    Returns:
        The name of the act.

    Example:
        >>> flat, rising = np.ones(6), np.array([1.0, 2, 3, 4, 5, 6])
        >>> act({"norm_value": flat, "norm_key": flat, "norm_query": flat})
        'start'
        >>> act({"norm_value": rising, "norm_key": flat, "norm_query": flat})
        'stage 1'
    """
    norms = [metrics[f"norm_{part}"] for part in ("value", "key", "query")]
    window = max(1, len(norms[0]) // 10)
    if len(norms[0]) < 3:
        return "start"
    has_risen = [norm[-1] > RISEN * norm[0] for norm in norms]
    moves = [norm[-1] > (1 + MOVING) * norm[-1 - window] for norm in norms]
    value, attention = has_risen[0], any(has_risen[1:])
    separation = stages(metrics, START).separation  # not a number as long as the last tenth of attention has not risen
    apart = separation >= TWO_STAGE  # value had started long before key and query
    clearly = max(norm[-1] / norm[0] for norm in norms[1:]) >= CLEARLY
    rules: list[tuple[Act, bool]] = [  # the first that holds
        ("start", not value and not attention),
        ("stage 1", not attention and moves[0]),
        ("between", not attention),
        ("stage 2", any(moves[1:]) and not moves[0]),
        ("at once", any(moves[1:]) and not apart),
        ("third act", moves[0] and apart),
        ("at once", moves[0]),
        ("between", value and not clearly and not separation < TWO_STAGE),  # attention has only begun, slowly
        ("ended", True),
    ]
    return next(name for name, holds in rules if holds)


def bands_so_far(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> list[tuple[float, float, str]]:
    """The stages of a run that goes on, as far as they can be told: the first alone, as long as attention rests.

    Args:
        metrics: Columns norm_value, norm_key and norm_query, up to now.

    Returns:
        From, to and name of each; empty where they cannot be told.

    Example:
        >>> rest = np.ones(200)
        >>> bands_so_far({"norm_value": np.linspace(1.0, 9, 200), "norm_key": rest, "norm_query": rest})
        [(0.0, 199.0, 'stage 1: value')]
    """
    apart = stages(metrics, START).separation  # not a number as long as attention has not risen
    if not apart < TWO_STAGE and act(metrics) in ("stage 1", "between"):
        return [(0.0, last_step(metrics), FIRST)]
    return stage_bands(metrics) if apart >= TWO_STAGE else []
