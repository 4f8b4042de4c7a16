"""What every experiment may measure, built by hand: one sample per id that is reproduced, and ones that just are not.

`GOOD[id]()` is plausible and 'reproduced'. `BAD[id]` has a sample for every clause of the rule that breaks this clause
alone, and `STILL[id]` ones that look worse and must not change the verdict. `UNDECIDED[id]` decides nothing: words that
the model does not have, intervals that are too wide, runs that are too short.
"""

from __future__ import annotations

from typing import Any

from tests.paper import samples_flows, samples_language, samples_sandbox
from topicscope.paper import EXPERIMENTS, Outcome

GOOD = samples_sandbox.GOOD | samples_language.GOOD | samples_flows.GOOD
BAD = samples_sandbox.BAD | samples_language.BAD | samples_flows.BAD
STILL = samples_sandbox.STILL | samples_language.STILL | samples_flows.STILL
UNDECIDED = samples_sandbox.UNDECIDED | samples_language.UNDECIDED | samples_flows.UNDECIDED


def judged(name: str, found: Any = None) -> Outcome:
    """The outcome of this sample, else of the plausible one."""
    return EXPERIMENTS[name].judge(GOOD[name]() if found is None else found)
