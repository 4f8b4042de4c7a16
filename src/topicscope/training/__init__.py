"""Objective, optimiser, freeze schedule, the loop, ensembles, checkpoints: config in, run out."""

from topicscope.training.config import Data, Optimizer, Phase, RunConfig, Schedule, apply_settings, build_config, load_settings
from topicscope.training.run import Run, seeds, train

__all__ = ["Data", "Optimizer", "Phase", "Run", "RunConfig", "Schedule", "apply_settings", "build_config", "load_settings", "seeds", "train"]
