"""Refusals: what is wrong with an input, in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from topicscope import InputError


def refused(match: str, act: Callable[..., object], *given: object, **settings: object) -> str:
    """The one line with which a call is refused; `match` is found in it."""
    with pytest.raises(InputError, match=match) as error:
        act(*given, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)
