"""A reproduction: the outcomes of experiments of one scale and seed, and the folder that keeps them.

Experiments run on an engine. Each outcome is stored as soon as it arrives, in a file of its own, named by its
experiment. results.json holds the numbers of all of them. Both are the same bytes for the same scale and seed; the
seconds that experiments took are in environment.json.

reproduction = reproduce(chosen(["figure7", "theorem1"]), Context("quick", seed=0), "runs/two")
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from topicscope.figures import Compared, Judgement, Section, counted
from topicscope.ground import (
    Cost,
    Engine,
    InputError,
    Progress,
    Result,
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
from topicscope.paper.registry import EXPERIMENTS, NOT_IN_REFERENCE, verdict_name

if TYPE_CHECKING:
    import pyarrow

FULL = 12  # how much longer everything takes at full scale, roughly

Finished = Callable[[str, Outcome, float | None], None]
"""Called with an experiment, its outcome and its seconds where known, as soon as the outcome is there."""

Renewed = Callable[["Reproduction"], None]
"""Called with all outcomes that the folder holds so far, whenever an experiment has just been measured."""


@dataclass(frozen=True, repr=False)
class Reproduction(Result):
    """Outcomes, and the seconds that they took where known, by experiment, in the paper's order."""

    kind: ClassVar[str] = REPRODUCE.name
    context: Context
    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    folder: Path

    @classmethod
    def of(
        cls, context: Context, outcomes: dict[str, Outcome], seconds: dict[str, float], folder: Path
    ) -> Reproduction:
        names = [name for name in EXPERIMENTS if name in outcomes]
        known = {name: seconds[name] for name in names if name in seconds}
        return cls(context, {name: outcomes[name] for name in names}, known, folder)

    def as_dict(self) -> dict[str, Any]:
        """results.json."""
        return {
            "scale": self.context.scale,
            "seed": self.context.seed,
            "results": [
                {
                    "id": name,
                    "claim": EXPERIMENTS[name].claim,
                    "paper": outcome.paper,
                    "theory": outcome.theory,
                    "measured": outcome.measured,
                    "verdict": outcome.verdict,
                    "reason": outcome.reason,
                    "rule": EXPERIMENTS[name].rule,
                    "numbers": finite(outcome.numbers),
                    "number": asdict(self.compared(name)) | {"close": EXPERIMENTS[name].number.close(outcome.ours)},
                    "sizes": self.sizes(name),
                }
                for name, outcome in self.outcomes.items()
            ],
        }

    def table(self) -> pyarrow.Table:
        """One row per experiment."""
        import pyarrow

        rows = self.as_dict()["results"]
        names = ("id", "claim", "paper", "theory", "measured", "verdict")
        columns = {name: [row[name] for row in rows] for name in names}
        seconds = pyarrow.array([self.seconds.get(name) for name in self.outcomes], pyarrow.float64())
        return pyarrow.table(columns | {"seconds": seconds})

    def summary(self) -> list[str]:
        """How many verdicts of each kind; why one is not 'reproduced', or its sizes are not the paper's."""
        return [
            "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured at "
            f"scale {self.context.scale}, seed {self.context.seed}: {self.counts}.",
            *(f"{name}: {o.reason}" for name, o in self.outcomes.items() if o.verdict != "reproduced"),
            *(f"{name}: {sizes}" for name in self.outcomes if (sizes := self.sizes(name))),
        ]

    def intro(self) -> list[str]:
        """The first sentence: the page's table and sections have the others."""
        return self.summary()[:1]

    def compared(self, name: str) -> Compared:
        """The experiment's number: the paper's and ours."""
        return EXPERIMENTS[name].number.compared(self.outcomes[name].ours)

    def sizes(self, name: str) -> str:
        """A sentence where the pattern is reproduced and the paper's number and ours are not close; else nothing."""
        outcome = self.outcomes[name]
        return EXPERIMENTS[name].number.sizes(outcome.verdict, outcome.ours)

    def expected_seconds(self, name: str) -> float:
        """About how long an experiment takes at this scale."""
        return EXPERIMENTS[name].seconds * self.context.pick(1, FULL)

    @property
    def counts(self) -> str:
        """For example '20 reproduced, 14 as predicted, 1 not reproduced, 4 skipped'."""
        return counted(verdict_name(name, o.verdict) for name, o in self.outcomes.items()) or "no experiments"

    def sections(self) -> list[Section]:
        """One section per experiment."""
        options = f"--scale {self.context.scale} --seed {self.context.seed} --out {self.folder}"
        return [
            Section(
                name,
                command=f"topicscope reproduce {name} {options}",
                figures=o.figures,
                tables=o.tables,
                verdict=Judgement(
                    EXPERIMENTS[name].claim,
                    EXPERIMENTS[name].rule,
                    *(o.paper, o.theory, o.measured, o.verdict, o.reason),
                    self.seconds.get(name),
                    self.compared(name),
                    self.sizes(name),
                    verdict_name(name, o.verdict),
                ),
                config=o.config,
            )
            for name, o in self.outcomes.items()
        ]

    def _about(self) -> str:
        return f"{self.context.scale}, seed {self.context.seed}, {self.counts}"

    def regressions(self) -> list[str]:
        """Experiments that were reproduced in the reference runs, and are not here."""
        return [
            name
            for name, outcome in self.outcomes.items()
            if outcome.verdict == "not reproduced"
            and EXPERIMENTS[name].judged(self.context)
            and name not in NOT_IN_REFERENCE[self.context.scale]
        ]


def finite(value: Any) -> Any:
    """Numbers that JSON can hold: None for infinities and NaN."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    """The outcomes of these experiments. Those that the folder holds already are not computed again."""
    folder = Path(folder)
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
    """All outcomes of a finished folder."""
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
    """All outcomes that a folder holds by now, also while others are computed."""
    return stored_reproduction(Path(folder), stored_context(Path(folder)))


def stored_reproduction(folder: Path, context: Context) -> Reproduction:
    """All outcomes of a folder, of whatever models and texts."""
    stored = {name: read_outcome(folder, name, context, inputs=False) for name in EXPERIMENTS}
    outcomes = {name: outcome for name, outcome in stored.items() if outcome is not None}
    return Reproduction.of(context, outcomes, read_seconds(folder), folder)
