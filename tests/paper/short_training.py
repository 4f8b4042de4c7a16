"""Training for tests: one step on a few documents, with a note of every run and of the settings that were asked for."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import pytest

from tests.paper.settings import SEED
from topicscope import training
from topicscope.paper import EXPERIMENTS, Context
from topicscope.training import Run, RunConfig


@dataclass
class Training:
    settings: list[Any] = field(default_factory=list)
    runs: list[list[Run]] = field(default_factory=list)


def shortened(monkeypatch: pytest.MonkeyPatch) -> Training:
    """From now on training takes one step, and sets of documents of one length share their least-squares matrix."""
    made, build, train, best = Training(), RunConfig.of, training.train, training.own_optimum
    matrices: dict[str, Any] = {}

    def note(settings: dict[str, Any]) -> RunConfig:
        made.settings.append(json.loads(json.dumps(settings)))
        return build(settings)

    def short(configs: Sequence[RunConfig], **options: Any) -> list[Run]:
        data = [dataclasses.replace(c.data, documents=12, dev_documents=6) for c in configs]
        few = [
            dataclasses.replace(c, steps=1, data=d, snapshots=[s for s in c.snapshot_steps if s <= 1])
            for c, d in zip(configs, data, strict=True)
        ]
        made.runs.append(list(train(few, **options)))
        return made.runs[-1]

    def few_documents(config: RunConfig) -> Any:
        length = str(config.documents.length)
        if length not in matrices:
            matrices[length] = best(dataclasses.replace(config, data=dataclasses.replace(config.data, documents=200)))
        return matrices[length]

    monkeypatch.setattr(RunConfig, "of", note)
    monkeypatch.setattr(training, "own_optimum", few_documents)
    monkeypatch.setattr(training, "train", short)
    return made


@cache
def measured(name: str, scale: Literal["quick", "full"] = "quick") -> tuple[Any, Training]:
    """What an experiment measures after one step, and what it trained for that; once per process."""
    with pytest.MonkeyPatch.context() as patch:
        made = shortened(patch)
        return EXPERIMENTS[name].measure(Context(scale, SEED)), made
