"""The kind of sweep that takes no time."""

import dataclasses
from typing import Any

import pytest

from tests.sweeps.samples import BAKING, Bakery
from topicscope.sweeps import KINDS


@pytest.fixture
def bakery(monkeypatch: pytest.MonkeyPatch) -> Bakery:
    """Makes the kind 'bake' known; called, it changes parts of the kind."""

    def known(**parts: Any) -> None:
        monkeypatch.setitem(KINDS, "bake", dataclasses.replace(BAKING, **parts))

    known()
    return known
