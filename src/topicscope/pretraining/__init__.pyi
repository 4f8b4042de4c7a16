from .config import PretrainConfig as PretrainConfig, Shape as Shape, Text as Text, build_config as build_config
from .data import Masker as Masker
from .folder import members as members, resume_configs as resume_configs
from .loop import (
    Loop as Loop,
    PretrainRun as PretrainRun,
    build_optimizer as build_optimizer,
    stored_metrics as stored_metrics,
)
from .model import MaskedLoss as MaskedLoss, build_model as build_model
from .run import accelerated as accelerated, pretrain as pretrain, seeds as seeds
from .tokenizer import train_tokenizer as train_tokenizer
from .track import (
    BLOCK as BLOCK,
    layer_metrics as layer_metrics,
    layer_names as layer_names,
    stages_by_layer as stages_by_layer,
)
