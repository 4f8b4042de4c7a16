from .collapsed import (
    collapsed_loss as collapsed_loss,
    document_losses as document_losses,
    loss_and_gradient as loss_and_gradient,
)
from .compiled import CompiledPass as CompiledPass
from .dense import attention as attention, dense_forward as dense_forward, dense_loss as dense_loss
from .parts import (
    ATTENTION_PARTS as ATTENTION_PARTS,
    PARTS as PARTS,
    ModelConfig as ModelConfig,
    Objective as Objective,
)
from .weights import Weights as Weights, initial as initial
