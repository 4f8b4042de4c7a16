"""A reproduction: the outcomes of experiments of one scale and seed, and the folder that keeps them.

Experiments run on an engine. Each outcome is stored as soon as it arrives, in a file of its own, named by its
experiment. results.json holds the numbers of all of them. Both are the same bytes for the same scale and seed; the
seconds that experiments took are in environment.json.

reproduction = reproduce(chosen(["figure7", "theorem1"]), Context("quick", seed=0), "runs/two")
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicscope.ground import (
    Cost,
    Engine,
    InputError,
    Progress,
    afford,
    affordable,
    files,
    folders,
    require,
    serial,
    watched,
)
from topicscope.paper.experiment import Context, Experiment, Outcome
from topicscope.paper.outcome_files import (
    REPRODUCE,
    check_context,
    outcome_path,
    read_outcome,
    read_seconds,
    record_of,
    stored_context,
    write_outcome,
)
from topicscope.paper.registry import EXPERIMENTS
from topicscope.paper.reproduction_result import FULL, Reproduction

if TYPE_CHECKING:
    pass


Finished = Callable[[str, Outcome, float | None], None]
"""Called with an experiment, its outcome and its seconds where known, as soon as the outcome is there."""

Renewed = Callable[["Reproduction"], None]
"""Called with all outcomes that the folder holds so far, whenever an experiment has just been measured."""


def reproduce(
    experiments: Sequence[Experiment[Any]],
    context: Context,
    folder: str | Path,
    engine: Engine = serial,
    progress: Progress | None = None,
    finished: Finished | None = None,
    renewed: Renewed | None = None,
    *,
    yes: bool = False,
) -> Reproduction:
    """Reproduce experiments of the paper. Those that the folder holds already are not computed again.

    Args:
        experiments: From `topicscope.paper.chosen`.
        context: Scale, seed and inputs.
        folder: Keeps the outcomes.
        engine: Runs the experiments.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        finished: Called with an experiment, its outcome and its seconds, as soon as the outcome is there.
        renewed: Called with all outcomes so far, whenever an experiment has just been measured.
        yes: Run even what takes long or does not fit.

    Returns:
        The outcomes.

    Raises:
        InputError: An input is missing, or the folder holds another scale or seed.

    Example:
        >>> import tempfile
        >>> from topicscope import reproduce
        >>> from topicscope.paper import Context, chosen
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = reproduce(chosen(["figure7"]), Context("quick"), f"{folder}/figure7")
        >>> found.counts
        '1 reproduced'
    """
    folder = Path(folder)
    check_used(experiments, context)
    context.check()
    check_context(folder, context)
    to_do = [e for e in experiments if not outcome_path(folder, e.id).exists()]
    users = ", ".join(e.id for e in to_do if e.uses)
    require((library for e in to_do for library in e.uses), f"an experiment on language models ({users})")
    cores = 1 if engine is serial else os.cpu_count() or 1
    afford(Cost(seconds=sum(e.seconds for e in to_do) * context.pick(1, FULL) / cores), "experiments", folder, yes=yes)
    outcomes: dict[str, Outcome] = {}
    expected = {e.id: e.seconds for e in experiments}
    with folders.open_folder(folder, REPRODUCE, context.config(), resume=True) as opened, watched(progress) as show:
        seconds = read_seconds(folder)

        def report() -> None:
            done = sum(expected[name] for name in outcomes)
            show("experiments", done, sum(expected.values()), f"{len(outcomes)} of {len(expected)} done")

        def take(name: str) -> bool:
            """Whether the outcome is stored; it is reported then."""
            stored = read_outcome(folder, name, context)
            if stored is not None:
                outcomes[name] = stored
                if finished is not None:
                    finished(name, stored, seconds.get(name))
                report()
            return stored is not None

        report()
        missing = [name for name in expected if not take(name)]
        if missing:
            opened.mark("running")
        earlier = stored_reproduction(folder, context).outcomes if renewed is not None else {}
        groups = grouped(missing)
        for number, measured in engine(compute_group, context, groups):
            for name, (record, took) in zip(groups[number], measured, strict=True):
                seconds[name] = took
                # before the outcome: a command that is killed in between runs the experiment again, no time is lost
                files.write_json(folder / folders.ENVIRONMENT, {"seconds": seconds})
                write_outcome(folder, name, record)
                take(name)
                if renewed is not None:
                    renewed(Reproduction.of(context, earlier | outcomes, seconds, folder))
        opened.finish(stored_reproduction(folder, context).as_dict(), seconds=seconds)
    return Reproduction.of(context, outcomes, seconds, folder)


def check_used(experiments: Sequence[Experiment[Any]], context: Context) -> None:
    """Raise InputError where models or a corpus are given that none of the experiments reads."""
    for given, name in (("models", "models (--model)"), ("corpus", "corpus (--corpus)")):
        users = [e.id for e in EXPERIMENTS.values() if given in (*e.needs, *e.takes)]
        if getattr(context, given) and not any(e.id in users for e in experiments):
            raise InputError(
                f"{name} has no effect on these experiments; only {', '.join(users)} read it: leave it out, or add one "
                "of them"
            )


def grouped(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Experiments that share what they train, together, the others alone; what takes longest comes first."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(EXPERIMENTS[name].group or name, []).append(name)
    return sorted(map(tuple, groups.values()), key=lambda group: -sum(EXPERIMENTS[name].seconds for name in group))


def compute_group(context: Context, names: Sequence[str]) -> list[tuple[dict[str, Any], float]]:
    """In a worker: of each experiment what the outcome's file holds, and the seconds that it took."""
    return [compute(context, name) for name in names]


def compute(context: Context, name: str) -> tuple[dict[str, Any], float]:
    began = time.perf_counter()
    with affordable():  # the reproduction was announced as a whole
        outcome = EXPERIMENTS[name].run(context)
    return record_of(name, context, outcome), round(time.perf_counter() - began, 2)


def read_reproduction(folder: str | Path) -> Reproduction:
    """Read all outcomes of a finished folder, as `reproduce` returned them.

    Args:
        folder: A folder that `reproduce` wrote.

    Returns:
        The outcomes.

    Raises:
        InputError: The folder is missing, unfinished or damaged.

    Example:
        >>> import tempfile
        >>> from topicscope.paper import Context, chosen
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = reproduce(chosen(["figure7"]), Context("quick"), f"{folder}/figure7")
        ...     read_reproduction(f"{folder}/figure7").counts, outcomes_so_far(f"{folder}/figure7").counts
        ('1 reproduced', '1 reproduced')
    """
    folders.finished_about(folder, REPRODUCE)
    whole = stored_reproduction(Path(folder), stored_context(Path(folder)))
    for entry in folders.read_results(folder)["results"]:
        if entry["id"] not in whole.outcomes:
            path = outcome_path(Path(folder), entry["id"])
            raise InputError(
                f"{path} is missing or damaged; run it again: topicscope reproduce {entry['id']} --out {folder}"
            )
    return whole


def outcomes_so_far(folder: str | Path) -> Reproduction:
    """Read all outcomes that a folder holds by now, also while others are computed.

    Args:
        folder: A folder that `reproduce` writes, finished or not.

    Returns:
        The outcomes that are there.

    Raises:
        InputError: The folder holds no reproduction.

    Example:
        See `read_reproduction`.
    """
    return stored_reproduction(Path(folder), stored_context(Path(folder)))


def stored_reproduction(folder: Path, context: Context) -> Reproduction:
    """All outcomes of a folder, of whatever models and texts."""
    stored = {name: read_outcome(folder, name, context, inputs=False) for name in EXPERIMENTS}
    outcomes = {name: outcome for name, outcome in stored.items() if outcome is not None}
    return Reproduction.of(context, outcomes, read_seconds(folder), folder)
