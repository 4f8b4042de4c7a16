"""The one-layer transformer of Section 3.3: its parts, a dense pass to read and a collapsed pass to run."""

from topicscope.model.collapsed import collapsed_loss, loss_and_gradient
from topicscope.model.dense import attention, dense_forward, dense_loss
from topicscope.model.objective import Objective
from topicscope.model.parts import PARTS, ModelConfig
from topicscope.model.weights import Weights

__all__ = ["PARTS", "ModelConfig", "Objective", "Weights", "attention", "collapsed_loss", "dense_forward", "dense_loss", "loss_and_gradient"]
