from .config import (
    LIBRARIES as LIBRARIES,
    PretrainConfig as PretrainConfig,
    Shape as Shape,
    Text as Text,
    cost_of as cost_of,
    settings_that_cost as settings_that_cost,
)
from .data import train_tokenizer as train_tokenizer
from .loop import (
    BLOCK as BLOCK,
    Loop as Loop,
    MaskedLoss as MaskedLoss,
    Masker as Masker,
    build_model as build_model,
    build_optimizer as build_optimizer,
)
from .run import (
    PretrainResults as PretrainResults,
    PretrainRun as PretrainRun,
    PretrainRuns as PretrainRuns,
    accelerated as accelerated,
    check_libraries as check_libraries,
    is_main as is_main,
    pretrain as pretrain,
    read_pretrain as read_pretrain,
    stages_by_layer as stages_by_layer,
    stored_configs as stored_configs,
)
