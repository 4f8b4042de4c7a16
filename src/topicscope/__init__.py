"""topicscope: a laboratory for how transformers learn topic structure.

from topicscope import RunConfig, train
run = train(RunConfig(steps=500))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicscope.errors import InputError as InputError
    from topicscope.model import ModelConfig as ModelConfig
    from topicscope.model import Objective as Objective
    from topicscope.model import Weights as Weights
    from topicscope.runs import read_run as read_run
    from topicscope.training import Optimizer as Optimizer
    from topicscope.training import Phase as Phase
    from topicscope.training import Run as Run
    from topicscope.training import RunConfig as RunConfig
    from topicscope.training import Schedule as Schedule
    from topicscope.training import build_config as build_config
    from topicscope.training import seeds as seeds
    from topicscope.training import train as train
    from topicscope.world import DocumentPrior as DocumentPrior
    from topicscope.world import Documents as Documents
    from topicscope.world import Masking as Masking
    from topicscope.world import TopicModel as TopicModel
    from topicscope.world import read_documents as read_documents
    from topicscope.world import write_documents as write_documents

__version__ = "0.1.0"

_ROOMS = {
    "errors": ("InputError",),
    "model": ("ModelConfig", "Objective", "Weights"),
    "runs": ("read_run",),
    "training": ("Optimizer", "Phase", "Run", "RunConfig", "Schedule", "build_config", "seeds", "train"),
    "world": ("DocumentPrior", "Documents", "Masking", "TopicModel", "read_documents", "write_documents"),
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
