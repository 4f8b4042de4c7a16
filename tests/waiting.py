"""Waiting for something to happen, however slow the machine is."""

import time
from collections.abc import Callable

LIMIT = 600.0
"""Seconds. It ends a test that hangs; it is no guess of how long things take."""


def wait_until(condition: Callable[[], object], limit: float = LIMIT) -> bool:
    """Whether the condition came true."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
