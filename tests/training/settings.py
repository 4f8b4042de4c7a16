"""Settings of a run that takes milliseconds."""

from pathlib import Path
from typing import Any

import pytest

from topicscope import RunConfig, train
from topicscope.ground import Interrupted
from topicscope.training import ask_to_pause

SMALL: dict[str, Any] = {
    "steps": 4,
    "evaluate_every": None,
    "device": "cpu",
    "batch_size": 4,
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "documents": {"length": 9},
    "data": {"documents": 20, "dev_documents": 10},
}


def paused(config: RunConfig, folder: Path, step: int) -> None:
    """Train into a folder, and pause at this step."""
    asked: list[float] = []

    def pause(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if done >= step and not asked:
            asked.append(done)
            ask_to_pause(folder)

    with pytest.raises(Interrupted, match=f"paused at step {step}; "):
        train(config, folder, progress=pause)
