"""Every kind of result has a function that makes its sections."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, ClassVar

import pytest

from topicscope.ground import InputError, Result
from topicscope.pages import sections
from topicscope.pages.builders import BUILDERS
from topicscope.theory import Setting, theorem1


class Unknown(Result):
    """A result of a kind that the registry does not have."""

    kind: ClassVar[str] = "nothing"

    def summary(self) -> list[str]:
        return []

    def table(self) -> Any:
        return None

    def _about(self) -> str:
        return ""


def test_a_kind_without_sections_is_refused_in_one_line() -> None:
    for call in (Unknown().sections, lambda: sections(Unknown())):
        with pytest.raises(InputError, match=r"^no figures for results of kind 'nothing'; expected one of: .*\btrain"):
            call()


def test_sections_are_those_of_the_kind() -> None:
    theorem = theorem1(Setting.of(3, 4, 2))
    assert [section.title for section in sections(theorem)] == ["Theorem 1"]


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_kind_has_a_builder_that_takes_one_result(kind: str) -> None:
    module, function = BUILDERS[kind].split(".")
    builder = getattr(importlib.import_module(f"topicscope.pages.{module}"), function)
    assert len(inspect.signature(builder).parameters) == 1
