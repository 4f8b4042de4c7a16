"""Small transformers trained on real text by masked language modelling, their attention matrices followed step by step."""

from topicscope.pretraining.config import PretrainConfig, Text, build_config
from topicscope.pretraining.loop import PretrainRun
from topicscope.pretraining.run import pretrain, seeds
from topicscope.pretraining.tokenizer import train_tokenizer
from topicscope.pretraining.track import layer_metrics, layer_names, stages_by_layer

__all__ = [
    "PretrainConfig", "PretrainRun", "Text", "build_config", "layer_metrics", "layer_names", "pretrain", "seeds",
    "stages_by_layer", "train_tokenizer",
]  # fmt: skip
