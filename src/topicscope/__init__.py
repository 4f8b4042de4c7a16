"""topicscope: a laboratory for how transformers learn topic structure.

from topicscope import RunConfig, train
run = train(RunConfig(steps=500))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicscope.ground import InputError as InputError, read_run as read_run
    from topicscope.model import ModelConfig as ModelConfig, Objective as Objective, Weights as Weights
    from topicscope.training import (
        Optimizer as Optimizer,
        Phase as Phase,
        Run as Run,
        RunConfig as RunConfig,
        Schedule as Schedule,
        build_config as build_config,
        seeds as seeds,
        train as train,
    )
    from topicscope.world import (
        Dirichlet as Dirichlet,
        Documents as Documents,
        Fixed as Fixed,
        Given as Given,
        Masking as Masking,
        TopicModel as TopicModel,
        read_documents as read_documents,
        write_documents as write_documents,
    )

__version__ = "0.1.0"

_ROOMS = {
    "ground": ("InputError", "read_run"),
    "model": ("ModelConfig", "Objective", "Weights"),
    "training": ("Optimizer", "Phase", "Run", "RunConfig", "Schedule", "build_config", "seeds", "train"),
    "world": ("Dirichlet", "Documents", "Fixed", "Given", "Masking", "TopicModel", "read_documents", "write_documents"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> Any:
    """Names are fetched when they are asked for: `topicscope --help` need not wait two seconds for PyTorch."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'topicscope' has no attribute {name!r}")
    return getattr(importlib.import_module(f"topicscope.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
