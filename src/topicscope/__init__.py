"""topicscope: a laboratory for how transformers learn topic structure.

from topicscope import RunConfig, train
run = train(RunConfig(steps=500))
"""

from topicscope.errors import InputError
from topicscope.model import ModelConfig, Objective, Weights
from topicscope.runs import read_run
from topicscope.training import Optimizer, Phase, Run, RunConfig, Schedule, build_config, seeds, train
from topicscope.world import DocumentPrior, Documents, Masking, TopicModel, read_documents, write_documents

__version__ = "0.1.0"

__all__ = [
    "DocumentPrior", "Documents", "InputError", "Masking", "ModelConfig", "Objective", "Optimizer", "Phase", "Run", "RunConfig", "Schedule", "TopicModel",
    "Weights", "build_config", "read_documents", "read_run", "seeds", "train", "write_documents",
]  # fmt: skip
