"""A reproduction: the outcomes of experiments of one scale and seed, and the folder that keeps them.

Experiments run on an engine. Each outcome is stored as soon as it arrives, in a file of its own, named by its
experiment. results.json holds the numbers of all of them. Both are the same bytes for the same scale and seed; the
seconds that experiments took are in environment.json.

reproduction = reproduce(chosen(["figure7", "theorem1"]), Context("quick", seed=0), "runs/two")
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from topicscope.figures import Judgement, Section, Verdict
from topicscope.ground import (
    Cost,
    Engine,
    InputError,
    Kind,
    Progress,
    Result,
    afford,
    affordable,
    files,
    folders,
    load_settings,
    parse_json,
    read_bytes,
    serial,
    watched,
)
from topicscope.paper.experiment import Context, Experiment, Outcome, Scale
from topicscope.paper.registry import EXPERIMENTS, NOT_IN_REFERENCE

if TYPE_CHECKING:
    import pyarrow

FORMAT = 3
"""Of the outcome files; one of another format is computed again."""

FULL = 12  # how much longer everything takes at full scale, roughly

REPRODUCE = Kind("reproduce", 3, ("outcomes",), resumes="always")

Finished = Callable[[str, Outcome, float | None], None]
"""Called with an experiment, its outcome and its seconds where known, as soon as the outcome is there."""


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
        """How many verdicts of each kind, and the reason of every one that is not 'reproduced'."""
        return [
            "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured at "
            f"scale {self.context.scale}, seed {self.context.seed}: {self.counts}.",
            *(f"{name}: {o.reason}" for name, o in self.outcomes.items() if o.verdict != "reproduced"),
        ]

    @property
    def counts(self) -> str:
        """For example '20 reproduced, 1 not reproduced, 4 skipped'."""
        counts = Counter(outcome.verdict for outcome in self.outcomes.values())
        return ", ".join(f"{counts[kind]} {kind}" for kind in get_args(Verdict) if counts[kind]) or "no experiments"

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
    *,
    yes: bool = False,
) -> Reproduction:
    """The outcomes of these experiments. Those that the folder holds already are not computed again."""
    folder = Path(folder)
    context.check()
    check_context(folder, context)
    to_do = sum(e.seconds for e in experiments if not outcome_path(folder, e.id).exists())
    cores = 1 if engine is serial else os.cpu_count() or 1
    afford(Cost(seconds=to_do * context.pick(1, FULL) / cores), "experiments", folder, yes=yes)
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
        missing.sort(key=lambda name: -expected[name])  # the longest first
        if missing:
            opened.mark("running")
        for number, (record, took) in engine(compute, context, missing):
            name = missing[number]
            seconds[name] = took
            # before the outcome: a command that is killed in between runs the experiment again, and no time is lost
            files.write_json(folder / folders.ENVIRONMENT, {"seconds": seconds})
            (folder / "outcomes").mkdir(exist_ok=True)
            files.write(outcome_path(folder, name), json.dumps(files.sealed(record)).encode())
            take(name)
        opened.finish(stored_reproduction(folder, context).as_dict(), seconds=seconds)
    return Reproduction.of(context, outcomes, seconds, folder)


def compute(context: Context, name: str) -> tuple[dict[str, Any], float]:
    """In a worker: what the outcome's file holds, and the seconds that it took."""
    began, experiment = time.perf_counter(), EXPERIMENTS[name]
    with affordable():  # the reproduction was announced as a whole
        outcome = asdict(experiment.run(context))
    seconds = round(time.perf_counter() - began, 2)
    return {"format": FORMAT, "context": experiment.key(context), "outcome": outcome}, seconds


def check_context(folder: Path, context: Context) -> None:
    """Refuse a folder that holds a reproduction of another scale or seed."""
    about = folders.read_about(folder)
    if about is None or about.kind != REPRODUCE.name or about.status == "starting":
        return  # killed before it had a config, a folder counts as empty
    stored = stored_context(folder)
    if stored.config() != context.config():
        raise InputError(
            f"{folder} holds a reproduction of scale {stored.scale}, seed {stored.seed}, not of {context.scale}, "
            f"{context.seed}; choose another folder"
        )


def stored_context(folder: Path) -> Context:
    """Scale and seed of the folder."""
    config = load_settings(folder / folders.CONFIG, own=True)
    if config.get("scale") not in get_args(Scale) or not isinstance(config.get("seed"), int):
        raise InputError(f"{folder / folders.CONFIG} is damaged: expected scale and seed; choose another folder")
    return Context(config["scale"], config["seed"])


def outcome_path(folder: Path, experiment: str) -> Path:
    return folder / "outcomes" / f"{experiment}.json"


def read_outcome(folder: Path, experiment: str, context: Context, *, inputs: bool = True) -> Outcome | None:
    """A stored outcome; None where it is damaged, was changed, or is of another context.

    Without `inputs` the models and texts that it was made from do not matter.
    """
    try:
        content = read_bytes(outcome_path(folder, experiment))
        stored = files.unsealed(parse_json(content, experiment, finite=False))  # figures may have gaps
        wanted = EXPERIMENTS[experiment].key(context) if inputs else context.config()
        if stored["format"] != FORMAT or any(stored["context"][key] != value for key, value in wanted.items()):
            return None
        return Outcome.from_dict(stored["outcome"])
    except (ValueError, KeyError, TypeError, AttributeError):  # InputError is a ValueError
        return None


def read_seconds(folder: Path) -> dict[str, float]:
    """By experiment, as far as environment.json says: it is no part of the result, and may be missing or damaged."""
    try:
        stored = folders.read_json(folder / folders.ENVIRONMENT)["seconds"]
        known = {name: float(stored[name]) for name in EXPERIMENTS if name in stored}
    except (ValueError, KeyError, TypeError):
        return {}
    return {name: value for name, value in known.items() if math.isfinite(value)}


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


def stored_reproduction(folder: Path, context: Context) -> Reproduction:
    """All outcomes of a folder, of whatever models and texts."""
    stored = {name: read_outcome(folder, name, context, inputs=False) for name in EXPERIMENTS}
    outcomes = {name: outcome for name, outcome in stored.items() if outcome is not None}
    return Reproduction.of(context, outcomes, read_seconds(folder), folder)
