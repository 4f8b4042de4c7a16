from .architecture import (
    ARCHITECTURES as ARCHITECTURES,
    MOST_PARTS as MOST_PARTS,
    Architecture as Architecture,
    Followed as Followed,
    Gradient as Gradient,
    Layout as Layout,
    Objective as Objective,
    Reading as Reading,
    WordTable as WordTable,
    register_architecture as register_architecture,
)
from .one_layer import (
    AnyModel as AnyModel,
    ModelConfig as ModelConfig,
    word_scores as word_scores,
)
from .passes import (
    Weights as Weights,
    attention as attention,
    dense_forward as dense_forward,
    dense_loss as dense_loss,
)
