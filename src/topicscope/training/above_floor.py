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
from topicscope.world import MaskedDocuments, stack


def above_floors(
    data: RunData, weights: Mapping[str, np.ndarray], dev_loss: float, floors: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    """These of a run's results, from the floors that `data` has just found:

    - `above_floor`: the run's loss less the floor, on the floor's documents.
    - `above_floor_error`: its standard error, from the differences of the documents. Floors of finite documents alone.
    - `floor_dev_loss`: the run's loss on the documents of the Bayes floor, where these are not the whole dev set.
    """
    above = {name: dev_loss - floor["loss"] for name, floor in floors.items()}
    if not data.floor_costs:
        return {"above_floor": above}
    count = len(next(iter(data.floor_costs.values())))
    own = dev_losses(data, weights, count)
    differences = {name: own - costs for name, costs in data.floor_costs.items()}
    errors = {name: float(each.std() / math.sqrt(count)) for name, each in differences.items()}
    if count == len(data.dev):
        return {"above_floor": above, "above_floor_error": errors}
    above |= {name: float(each.mean()) for name, each in differences.items()}
    return {"above_floor": above, "above_floor_error": errors, "floor_dev_loss": float(own.mean())}


def dev_losses(data: RunData, weights: Mapping[str, np.ndarray], count: int) -> Float[np.ndarray, " D"]:
    """Loss of a model on each of the first `count` finite dev documents, in float64."""
    config, dev = data.config, data.dev_masked
    assert isinstance(dev, MaskedDocuments)
    trained = config.model.trained_shapes(config.topic_model.vocabulary)
    frozen = {name: part for name, part in weights.items() if name not in trained}
    model = Weights([{name: weights[name] for name in trained}], frozen, dtype=torch.float64)
    rows = dev.first(count).batches(config.topic_model, config.masking, np.dtype("float64"), **data.layout)
    batches = (stack([one], torch.float64) for one in rows)
    return np.concatenate([document_losses(config.model, model, config.objective, one).numpy() for one in batches])
