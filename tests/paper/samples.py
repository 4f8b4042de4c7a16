"""What every experiment may measure, built by hand: one sample per id that is reproduced, and ones that just are not.

`GOOD[id]()` is plausible and 'reproduced'. `BAD[id]` has a sample for every clause of the rule that breaks this clause
alone, and `STILL[id]` ones that look worse and must not change the verdict. `UNDECIDED[id]` decides nothing: words that
the model does not have, intervals that are too wide, runs that are too short.
"""

from typing import Any, TypeVar

from tests.paper import samples_flows, samples_language, samples_sandbox
from topicscope.paper import EXPERIMENTS, Outcome

GOOD = samples_sandbox.GOOD | samples_language.GOOD | samples_flows.GOOD
BAD = samples_sandbox.BAD | samples_language.BAD | samples_flows.BAD
STILL = samples_sandbox.STILL | samples_language.STILL | samples_flows.STILL
UNDECIDED = samples_sandbox.UNDECIDED | samples_language.UNDECIDED | samples_flows.UNDECIDED


def judged(name: str, found: Any = None) -> Outcome:
    return EXPERIMENTS[name].judge(GOOD[name]() if found is None else found)


Kind = TypeVar("Kind")


def panel_of(kind: type[Kind], outcome: Outcome, figure: int, number: int) -> Kind:
    panel = outcome.figures[figure].panels[number]
    assert isinstance(panel, kind)
    return panel
