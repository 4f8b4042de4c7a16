"""Objective, optimiser, freeze schedule, the loop, ensembles, checkpoints: config in, run out."""

from topicscope.settings import apply_settings, load_settings
from topicscope.training.config import Data, Optimizer, Phase, RunConfig, Schedule, build_config
from topicscope.training.run import Run, seeds, train

__all__ = ["Data", "Optimizer", "Phase", "Run", "RunConfig", "Schedule", "apply_settings", "build_config", "load_settings", "seeds", "train"]
