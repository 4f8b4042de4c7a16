"""Experiments that take no time, for tests of what is done with their outcomes; and one real reproduction."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.command import topicscope
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


IDS = ["figure7", "figure8", "mask-first"]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A reproduction that nothing disturbed: its folder, and what the command printed."""
    out = tmp_path_factory.mktemp("whole") / "out"
    return out, topicscope("reproduce", *IDS, "--engine", "serial", "--out", str(out), "--json")
