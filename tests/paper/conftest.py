"""Experiments that take no time, for tests of what is done with their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.paper import samples
from topicscope.paper import EXPERIMENTS, Context


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Experiments that measure in no time; the note says which did."""
    measured: list[str] = []

    def measure(name: str) -> Callable[[Context], Any]:
        def measuring(_context: Context) -> Any:
            measured.append(name)
            return samples.GOOD[name]()

        return measuring

    for name, experiment in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, measure=measure(name)))
    return measured
