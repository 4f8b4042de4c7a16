"""All experiments, in the paper's order, and the module in which each stands."""

import importlib
from typing import Any

from topicscope.ground import InputError, nearest
from topicscope.paper.experiment import Experiment

MODULES = {
    "figure1": "matrices",
    "figure2": "matrices",
    "figure3": "language_models",
    "figure4": "figure4",
    "figure5": "figure5",
    "figure6": "matrices",
    "figure7": "landscapes",
    "figure8": "landscapes",
    "figure9": "matrices",
    "figure10": "matrices",
    "table1": "language_models",
    "table2": "language_models",
    "table3": "attention_tables",
    "table4": "attention_tables",
    "table5": "language_models",
    "theorem1": "theorems",
    "theorem2": "theorems",
    "theorem3": "theorems",
    "theorem5": "theorems",
    "losses": "theorems",
    "assumptions": "assumptions",
    "finite-length": "finite_length",
    "coarse-to-fine": "topic_order",
    "topic-order": "topic_order",
    "stage-law": "stage_law",
    "rank": "second_stage",
    "no-correct-words": "second_stage",
    "one-topic": "second_stage",
    "sgd-second-stage": "stage_law",
    "adam-clocks": "adam_clocks",
    "mask-first": "mask_first",
    "small-start": "small_start",
    "pipeline": "language_models",
    "timeline": "timeline",
    "two-stage": "two_stage",
}
"""The module of each experiment; the experiment is the constant there that is spelled like its id: FIGURE1."""

EXPERIMENTS: dict[str, Experiment[Any]] = {
    name: getattr(importlib.import_module(f"topicscope.paper.{module}"), name.upper().replace("-", "_"))
    for name, module in MODULES.items()
}


def chosen(ids: list[str] | None) -> list[Experiment[Any]]:
    """Experiments by their ids, in the paper's order; without ids all of them."""
    for name in ids or []:
        if name not in EXPERIMENTS:
            raise InputError(f"no experiment {name!r}; {nearest(name, EXPERIMENTS)} ('topicscope list' shows all)")
    return [experiment for name, experiment in EXPERIMENTS.items() if not ids or name in ids]
