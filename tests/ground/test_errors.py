"""Errors in one line: the key, what is wrong with it, and what would do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from topicscope import RunConfig
from topicscope.ground import InputError, nearest, section


@section
class Pen:
    width: Annotated[float, Field(gt=0)] = 1.0
    colour: str = "black"


@section
class Box:
    size: int
    pen: Pen | None = None
    pens: list[Pen] = Field(default_factory=list)
    edge: int | Literal["none"] = "none"

    def __post_init__(self) -> None:
        if self.size > 9:
            raise InputError("size = 10: too large for a box")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Box: size is missing; it has no default, so give it a value"),
        ({"size": 10}, "Box: size = 10: too large for a box"),
        ({"size": 1, "pen": {"color": "red"}}, "Box: unknown key 'pen.color'; did you mean 'colour'?"),
        ({"size": 1, "pens": [{}, {"color": "red"}]}, "Box: unknown key 'pens.1.color'; did you mean 'colour'?"),
        ({"size": 1, "width": 2}, "Box: unknown key 'width'; did you mean 'pen.width'?"),
        ({"size": 1, "pen": {"xyz": 1}}, "Box: unknown key 'pen.xyz'; known: colour, width"),
        ({"size": [], "seize": 1}, "Box: unknown key 'seize'; did you mean 'size'?"),  # before the wrong value
        ({"size": 1, "pens": [{}, {"width": -1}]}, "Box: pens.1.width = -1: input should be greater than 0"),
        ({"size": 1, "edge": "x", "pens": [{"width": 0}]}, "Box: pens.0.width = 0: input should be greater than 0"),
        ({"size": 1, "edge": "x"}, "Box: edge = 'x': input should be a whole number, or 'none'"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        Box(**settings)
    assert str(error.value) == message


def test_a_mistyped_key_of_a_phase_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r"unknown key 'schedule\.phases\.0\.part'; did you mean 'parts'"):
        RunConfig.of(schedule={"phases": [{"part": ["value"]}]})


def test_the_nearest_name_or_all_names() -> None:
    assert nearest("optimzer", ["optimizer", "seed"]) == "did you mean 'optimizer'?"
    assert nearest("xyz", ["seed", "optimizer"]) == "known: optimizer, seed"
    assert nearest("abcd", ["abxy", "wxyz"]) == "did you mean 'abxy'?"  # half of the letters are enough
    assert nearest("abcde", ["abxyz"]) == "known: abxyz"
