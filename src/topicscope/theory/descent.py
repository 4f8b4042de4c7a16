"""Gradient descent on the population loss: full batches at a finite rate, where gradient flow is not what SGD follows.

Below two over the curvature descent goes along the flow. Above it descent may blow up, or swing down into a flatter
region and go on; which of them only its own steps can say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from topicscope.theory.population_gradient import Population, Weights


def descent(population: Population, start: Weights, rate: float, steps: int) -> Iterator[tuple[float, Weights]]:
    """Loss and weights at the start and after each step, up to the last at which the loss is a finite number.

    Args:
        population: The documents and the loss.
        start: Weights to begin with.
        rate: Learning rate.
        steps: Number of steps at most.

    Returns:
        An iterator of (loss, weights).

    Example:
        >>> from topicscope.world import Fixed, Masking, TopicModel
        >>> world = Population.of(TopicModel(4, 3), Fixed(topics_per_document=2, length="infinite"), Masking())
        >>> start = Weights.gaussian(13, 13, 1e-3, seed=0)
        >>> [round(loss, 3) for loss, _ in descent(world, start, rate=4.0, steps=2)]
        [1.0, 0.903, 0.875]
        >>> [len([*descent(world, start, rate, steps=400)]) for rate in (12.0, 16.0)]  # the second ends after 33 steps
        [401, 34]
    """
    weights = start
    for _ in range(steps + 1):
        with np.errstate(all="ignore"):
            loss, gradient = population.gradient(weights)
            following = Weights(*(part - rate * slope for part, slope in zip(weights, gradient, strict=True)))
        if not math.isfinite(loss):
            return
        yield loss, weights
        weights = following
