"""Every random draw comes from a stream named by the run's seed, a purpose and an index: no draw depends on what ran before it.

So a run can be resumed at any block of steps, and a member of an ensemble sees exactly what it sees alone.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The purposes."""

    TRAIN_DOCUMENTS = 0
    DEV_DOCUMENTS = 1
    TRAIN_MASKS = 2  # index: block of steps, where masks are fresh
    INITIAL_WEIGHTS = 3  # index: part
    ORDER = 4  # index: epoch
    DEV_MASKS = 5


def generator(seed: int, stream: Stream, index: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, int(stream), index])
