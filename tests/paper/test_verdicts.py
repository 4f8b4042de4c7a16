"""Every verdict can fail: for each experiment numbers that reproduce the claim, and numbers that just do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.paper.samples import BAD, GOOD, STILL, UNDECIDED
from topicscope.paper import EXPERIMENTS

CASES = [(name, "plausible", made, "reproduced") for name, made in ((name, good()) for name, good in GOOD.items())]
CASES += [(name, why, found, "reproduced") for name, cases in STILL.items() for why, found in cases.items()]
CASES += [(name, why, found, "not reproduced") for name, cases in BAD.items() for why, found in cases.items()]
CASES += [(name, why, found, "undecided") for name, cases in UNDECIDED.items() for why, found in cases.items()]


def test_no_experiment_is_left_out() -> None:
    assert set(GOOD) == set(BAD) == set(EXPERIMENTS)
    assert all(BAD.values())


@pytest.mark.parametrize(("name", "why", "found", "verdict"), CASES, ids=[f"{name}: {why}" for name, why, *_ in CASES])
def test_verdict(name: str, why: str, found: Any, verdict: str) -> None:
    assert EXPERIMENTS[name].judge(found).verdict == verdict, why
