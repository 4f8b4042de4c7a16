"""How good a run can get: the Bayes-optimal loss, and the least-squares optimum under uniform attention."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from topicscope.theory import bayes_loss, prediction_bias, uniform_optimum
from topicscope.training.config import RunConfig
from topicscope.training.data import RunData
from topicscope.world import MaskedDocuments

LONGEST = 20_000
"""Words of the longest document for which the Bayes floor is computed."""

UNEQUAL_DOCUMENTS = 500
"""Dev documents of the Bayes floor with unequal word probabilities, where the posterior takes longer."""


def floors(config: RunConfig, data: RunData) -> dict[str, Any]:
    """The floors of the dev loss.

    `bayes`: the predictor is exact under the configured prior; its loss is a mean over the dev set, with a standard
    error. `bayes_topics`: a predictor that knows the posterior of the document's topics and uses nothing else.
    Attention that is the same for every query comes near to it; it is no bound (the words of a very short document
    say more than its topics). `least_squares`: the exact optimum, over this very dev set, of all models with uniform
    attention; squared losses only. On a small dev set it is far below what a model trained elsewhere can reach.
    Documents from a file have no floors: their prior is not known.
    """
    if config.data.dev_file is not None:
        return {}
    dev = data.dev_masked
    if isinstance(dev, MaskedDocuments):
        if dev.documents.lengths.max(initial=0) > LONGEST:
            return {}
        if not config.topic_model.uniform:
            dev = dev.first(UNEQUAL_DOCUMENTS)
    result: dict[str, Any] = {}
    for name, own_word in (("bayes", True), ("bayes_topics", False)):
        floor = bayes_loss(
            config.objective.loss,
            config.topic_model,
            config.documents,
            config.masking,
            dev,
            hide_masked=config.model.hide_masked,
            own_word=own_word,
        )
        result[name] = dataclasses.asdict(floor)
    if config.objective.loss != "cross-entropy":
        result["least_squares"] = least_squares_floor(config, data)
    return result


def least_squares_floor(config: RunConfig, data: RunData) -> dict[str, Any]:
    vocabulary = config.topic_model.vocabulary
    real, hide_masked = np.dtype("float64"), config.model.hide_masked
    rows = data.dev_masked.batches(config.topic_model, config.masking, real, uniform=True, hide_masked=hide_masked)
    scale = 1 / vocabulary if config.objective.loss == "squared-mean" else 1.0
    ridge = value_ridge(config)
    bias = config.model.prediction_bias
    fixed = None
    if bias == "theorem1":
        fixed = prediction_bias(config.topic_model, config.masking)
    elif not isinstance(bias, str):
        fixed = np.full(vocabulary, bias)
    optimum = uniform_optimum(rows, ridge=ridge / scale, bias=fixed, free_bias=bias == "trained")
    return {
        "loss": optimum.loss * scale,
        "objective": optimum.objective * scale,
        "ridge": ridge,
        "documents": len(data.dev),
    }


def value_ridge(config: RunConfig) -> float:
    """lambda of W_V where least squares fits W_V itself; elsewhere the floor is that without a penalty."""
    over_words = config.model.embedding == "one-hot" and config.model.head != "untied"
    return (
        config.objective.penalties(("value",)).get("value", 0.0)
        if over_words and config.model.value == "trained"
        else 0.0
    )
