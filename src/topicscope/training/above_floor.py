"""How far a run is above its floors: on the same documents and masks, so that what is hard for both cancels.

train(RunConfig(steps=500)).results["above_floor"]["bayes"], and its standard error in "above_floor_error"
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from topicscope.model import Weights, document_losses
from topicscope.training.data import RunData
from topicscope.world import InfiniteDocuments, MaskedDocuments, stack

ENDLESS_DOCUMENTS = 500  # infinite ones, whose differences show the spread of all: each has a row for every word


def above_floors(
    data: RunData, weights: Mapping[str, np.ndarray], dev_loss: float, floors: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    """These of a run's results, from the floors that `data` has just found:

    - `above_floor`: the run's loss less the floor, on the floor's documents.
    - `above_floor_error`: its standard error, from the differences of the documents (of infinite ones, of the first
      few hundred). Bayes floors alone: least squares is fitted to these very documents.
    - `floor_dev_loss`: the run's loss on the documents of the Bayes floor, where these are not the whole dev set.
    """
    above = {name: dev_loss - floor["loss"] for name, floor in floors.items()}
    if not data.floor_costs:
        return {"above_floor": above}
    count = len(next(iter(data.floor_costs.values())))
    endless = isinstance(data.dev_masked, InfiniteDocuments)
    own = dev_losses(data, weights, min(count, ENDLESS_DOCUMENTS) if endless else count)
    differences = {name: own - costs[: len(own)] for name, costs in data.floor_costs.items()}
    errors = {name: float(each.std() / math.sqrt(count)) for name, each in differences.items()}
    if count == len(data.dev):
        return {"above_floor": above, "above_floor_error": errors}
    above |= {name: float(each.mean()) for name, each in differences.items()}
    return {"above_floor": above, "above_floor_error": errors, "floor_dev_loss": float(own.mean())}


def dev_losses(data: RunData, weights: Mapping[str, np.ndarray], count: int) -> Float[np.ndarray, " D"]:
    """Loss of a model on each of the first `count` dev documents, in float64."""
    config, dev = data.config, data.dev_masked
    trained = config.model.trained_shapes(config.topic_model.vocabulary)
    frozen = {name: part for name, part in weights.items() if name not in trained}
    model = Weights([{name: weights[name] for name in trained}], frozen, dtype=torch.float64)
    some = dev.first(count) if isinstance(dev, MaskedDocuments) else dev.take(slice(count))
    rows = some.batches(config.topic_model, config.masking, np.dtype("float64"), **data.layout)
    batches = (stack([one], torch.float64) for one in rows)
    return np.concatenate([document_losses(config.model, model, config.objective, one).numpy() for one in batches])
