"""Refusals: what is wrong with an input, in one line."""

from collections.abc import Callable

import pytest

from topicscope import InputError


def refused(match: str, act: Callable[..., object], *given: object, **settings: object) -> str:
    """The one line with which a call is refused; `match`, if any, is found in it."""
    with pytest.raises(InputError, match=match or None) as error:
        act(*given, **settings)
    said = str(error.value)
    del error  # it would keep open what the call had opened
    assert "\n" not in said
    return said
