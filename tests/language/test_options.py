"""The help shows the defaults of the configs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from topicscope.cli.text import probe, timeline, topics
from topicscope.language import ProbeConfig, TimelineConfig, TopicsConfig


@pytest.mark.parametrize(
    ("command", "config"),
    [(probe, ProbeConfig), (timeline, TimelineConfig), (topics, TopicsConfig)],
)
def test_shown_defaults_are_those_of_the_config(command: Callable[..., int], config: Any) -> None:
    defaults = {part.name: part.default for part in fields(config)}
    compared = 0
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        option = getattr(parameter.annotation, "__metadata__", [None])[0]
        if isinstance(getattr(option, "show_default", None), str):
            default = defaults[name]
            if isinstance(default, tuple):
                default = ", ".join(map(str, default))
            assert option.show_default == (name if default is True else str(default)), name
            compared += 1
    assert compared > 7
