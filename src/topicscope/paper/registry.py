"""All experiments, in the paper's order, and the verdicts of the reference runs."""

import importlib
from typing import Any

from topicscope.ground import InputError, nearest
from topicscope.pages import Verdict
from topicscope.paper.experiment import Experiment

ORDER = (
    "figure1",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "figure6",
    "figure7",
    "figure8",
    "figure9",
    "figure10",
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "theorem1",
    "theorem2",
    "theorem3",
    "theorem5",
    "losses",
    "assumptions",
    "finite-length",
    "coarse-to-fine",
    "topic-order",
    "stage-law",
    "rank",
    "no-correct-words",
    "one-topic",
    "sgd-second-stage",
    "adam-clocks",
    "mask-first",
    "small-start",
    "pipeline",
    "timeline",
    "two-stage",
)

EXPERIMENTS: dict[str, Experiment[Any]] = {
    name: importlib.import_module(f"topicscope.paper.{name.replace('-', '_')}").EXPERIMENT for name in ORDER
}
"""One module per experiment; the id names its file."""

BEYOND = frozenset(ORDER[ORDER.index("assumptions") :]) - {"two-stage"}
"""Claims that are not the paper's: theory and training of this project."""


def verdict_name(experiment: str, verdict: Verdict) -> str:
    """A verdict in the words that tables show: only a claim of the paper can be reproduced.

    Args:
        experiment: Its id.
        verdict: The verdict.

    Returns:
        The words.

    Example:
        >>> verdict_name("figure7", "reproduced"), verdict_name("assumptions", "reproduced")
        ('reproduced', 'as predicted')
    """
    return verdict.replace("reproduced", "as predicted") if experiment in BEYOND else verdict


NOT_IN_REFERENCE = {"quick": frozenset({"table4"}), "full": frozenset({"table4", "losses", "adam-clocks"})}
"""Claims that the reference runs of a scale did not reproduce either; all others must come out 'reproduced'."""


def chosen(ids: list[str] | None) -> list[Experiment[Any]]:
    """Experiments by their ids, in the paper's order.

    Args:
        ids: Such as ['figure7']; None or empty: all.

    Returns:
        The experiments.

    Raises:
        InputError: An id is unknown.

    Example:
        >>> [experiment.id for experiment in chosen(["theorem1", "figure7"])]
        ['figure7', 'theorem1']
    """
    for name in ids or []:
        if name not in EXPERIMENTS:
            raise InputError(f"no experiment {name!r}; {nearest(name, EXPERIMENTS)} ('topicscope list' shows all)")
    return [EXPERIMENTS[name] for name in ORDER if not ids or name in ids]
