"""Settings of a run that takes milliseconds."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {
    "steps": 4,
    "evaluate_every": None,
    "device": "cpu",
    "batch_size": 4,
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "documents": {"length": 9},
    "data": {"documents": 20, "dev_documents": 10},
}
