"""All experiments; and a reproduction: their outcomes at one scale and seed, and the folder that keeps them.

Each outcome is stored as soon as it arrives, sealed, in a file named by its experiment. results.json holds the numbers
of all of them. Both are the same bytes for the same scale and seed; environment.json has the seconds that they took.
"""

import importlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

from topicscope.ground import (
    Cost,
    Engine,
    Kind,
    Progress,
    Result,
    afford,
    affordable,
    files,
    folders,
    load_settings,
    nearest,
    one_thread,
    parse_json,
    read_bytes,
    refuse_if,
    require,
    serial,
    watched,
)
from topicscope.pages import Compared, Figure, Judgement, Section, counted
from topicscope.paper.experiment import Context, Experiment, Input, Outcome, Scale

if TYPE_CHECKING:
    import pyarrow

# The module of each experiment, in the paper's order: there it is the constant that is spelled like its id (FIGURE1).
MODULES = {
    "figure1": "matrices",
    "figure2": "matrices",
    "figure3": "language_models",
    "figure4": "figure4",
    "figure5": "made_up",
    "figure6": "matrices",
    "figure7": "theorems",
    "figure8": "theorems",
    "figure9": "matrices",
    "figure10": "matrices",
    "table1": "language_models",
    "table2": "language_models",
    "table3": "matrices",
    "table4": "matrices",
    "table5": "language_models",
    "theorem1": "theorems",
    "theorem2": "theorems",
    "theorem3": "theorems",
    "theorem5": "theorems",
    "losses": "theorems",
    "assumptions": "assumptions",
    "finite-length": "assumptions",
    "coarse-to-fine": "topic_order",
    "topic-order": "topic_order",
    "stage-law": "stage_law",
    "rank": "stage_law",
    "no-correct-words": "stage_law",
    "one-topic": "escapes",
    "sgd-second-stage": "stage_law",
    "adam-clocks": "figure4",
    "mask-first": "escapes",
    "small-start": "escapes",
    "pipeline": "language_models",
    "timeline": "made_up",
    "two-stage": "two_stage",
}
EXPERIMENTS: dict[str, Experiment[object]] = {
    name: getattr(importlib.import_module(f"topicscope.paper.{module}"), name.upper().replace("-", "_"))
    for name, module in MODULES.items()
}


def chosen(ids: list[str] | None) -> list[Experiment[object]]:
    """Experiments by their ids, in the paper's order; without ids all of them."""
    for name in ids or []:
        hint = f"{nearest(name, EXPERIMENTS)} ('topicscope list' shows all)"
        refuse_if(name not in EXPERIMENTS, f"no experiment {name!r}; {hint}")
    return [experiment for name, experiment in EXPERIMENTS.items() if not ids or name in ids]


FULL = 12  # how much longer everything takes at full scale, roughly
FORMAT = 4  # of the outcome files; one of another format is computed again
REPRODUCE = Kind("reproduce", 3, ("outcomes",), resumes="always")
Finished = Callable[[str, Outcome, float | None], None]
Renewed = Callable[["Reproduction"], None]


@dataclass(frozen=True, repr=False)
class Reproduction(Result):
    """The outcomes of experiments of one scale and seed, in the paper's order; seconds where they are known."""

    kind: ClassVar[str] = REPRODUCE.name
    context: Context
    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    folder: Path

    @classmethod
    def of(cls, context: Context, outcomes: Mapping[str, Outcome], seconds: Mapping[str, float], folder: Path) -> Self:
        ordered = {name: outcomes[name] for name in EXPERIMENTS if name in outcomes}
        return cls(context, ordered, {name: seconds[name] for name in ordered if name in seconds}, folder)

    def as_dict(self) -> dict[str, Any]:
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

    def table(self) -> "pyarrow.Table":
        import pyarrow

        rows = self.as_dict()["results"]
        columns = {
            name: [row[name] for row in rows] for name in ("id", "claim", "paper", "theory", "measured", "verdict")
        }
        seconds = [self.seconds.get(name) for name in self.outcomes]
        return pyarrow.table(columns | {"seconds": pyarrow.array(seconds, pyarrow.float64())})

    def summary(self) -> list[str]:
        return [
            "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured at "
            f"scale {self.context.scale}, seed {self.context.seed}: {self.counts}.",
            *(f"{name}: {o.reason}" for name, o in self.outcomes.items() if o.verdict != "reproduced"),
            *(f"{name}: {sizes}" for name in self.outcomes if (sizes := self.sizes(name))),
        ]

    def intro(self) -> list[str]:
        return self.summary()[:1]

    def compared(self, name: str) -> Compared:
        return EXPERIMENTS[name].number.compared(self.outcomes[name].ours)

    def sizes(self, name: str) -> str:
        outcome = self.outcomes[name]
        return EXPERIMENTS[name].number.sizes(outcome.verdict, outcome.ours, outcome.differs)

    def figures(self, name: str) -> list[Figure]:
        """The figures of an experiment. The name of each begins with the experiment's: all are files of one folder."""
        return [
            figure if figure.name.startswith(name) else replace(figure, name=f"{name}-{figure.name}")
            for figure in self.outcomes[name].figures
        ]

    def expected_seconds(self, name: str) -> float:
        return EXPERIMENTS[name].seconds * self.context.pick(1, FULL)

    @property
    def counts(self) -> str:
        verdicts = (EXPERIMENTS[name].verdict_name(outcome.verdict) for name, outcome in self.outcomes.items())
        return counted(verdicts) or "no experiments"

    def sections(self) -> list[Section]:
        options = f"--scale {self.context.scale} --seed {self.context.seed} --out {self.folder}"
        return [
            Section(
                name,
                command=f"topicscope reproduce {name} {options}",
                figures=self.figures(name),
                tables=o.tables,
                verdict=Judgement(
                    EXPERIMENTS[name].claim,
                    EXPERIMENTS[name].rule,
                    *(o.paper, o.theory, o.measured, o.verdict, o.reason),
                    self.seconds.get(name),
                    self.compared(name),
                    self.sizes(name),
                    EXPERIMENTS[name].verdict_name(o.verdict),
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
            and self.context.scale not in EXPERIMENTS[name].lost_at
        ]


def finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def reproduce(
    experiments: Sequence[Experiment[object]],
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
            note = f"{len(outcomes)} of {len(expected)} done"
            show("experiments", sum(expected[name] for name in outcomes), sum(expected.values()), note)

        def take(name: str, outcome: Outcome) -> None:
            outcomes[name] = outcome
            if finished is not None:
                finished(name, outcome, seconds.get(name))
            report()

        def so_far() -> Reproduction:
            return Reproduction.of(context, others | outcomes, seconds, folder)

        report()
        for name, outcome in stored_outcomes(folder, context, expected).items():
            take(name, outcome)
        groups = grouped([name for name in expected if name not in outcomes])
        if groups:
            opened.mark("running")
        others = stored_outcomes(folder, context, EXPERIMENTS.keys() - outcomes.keys(), inputs=False)
        for number, measured in engine(compute_group, context, groups):
            for name, (outcome, took) in zip(groups[number], measured, strict=True):
                seconds[name] = took
                # before the outcome: a command that is killed in between runs the experiment again, no time is lost
                files.write_json(folder / folders.ENVIRONMENT, {"seconds": seconds})
                write_outcome(folder, name, context, outcome)
                take(name, outcome)
                if renewed is not None:
                    renewed(so_far())
        opened.finish(so_far().as_dict(), seconds=seconds)
    return Reproduction.of(context, outcomes, seconds, folder)


def check_used(experiments: Sequence[Experiment[object]], context: Context) -> None:
    inputs: dict[Input, str] = {"models": "models (--model)", "corpus": "corpus (--corpus)"}
    for given, name in inputs.items():
        users = [e.id for e in EXPERIMENTS.values() if given in e.takes]
        unused = getattr(context, given) and not any(given in e.takes for e in experiments)
        only = f"only {', '.join(users)} read it: leave it out, or add one of them"
        refuse_if(unused, f"{name} has no effect on these experiments; {only}")


def grouped(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Experiments that share what they train, together, the others alone; what takes longest comes first."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(EXPERIMENTS[name].group or name, []).append(name)
    return sorted(map(tuple, groups.values()), key=lambda group: -sum(EXPERIMENTS[name].seconds for name in group))


def compute_group(context: Context, names: Sequence[str]) -> list[tuple[Outcome, float]]:
    return [compute(context, name) for name in names]


def compute(context: Context, name: str) -> tuple[Outcome, float]:
    began = time.perf_counter()
    # the reproduction was announced as a whole; the number of threads has a part in the last digits
    with affordable(), one_thread():
        outcome = EXPERIMENTS[name].run(context)
    return outcome, round(time.perf_counter() - began, 2)


def read_reproduction(folder: str | Path) -> Reproduction:
    """All outcomes of a finished folder, as `reproduce` returned them."""
    folders.finished_about(folder, REPRODUCE)
    whole = outcomes_so_far(folder)
    for name in (entry["id"] for entry in folders.read_results(folder)["results"]):
        again = f"run it again: topicscope reproduce {name} --out {folder}"
        path = outcome_path(Path(folder), name)
        refuse_if(name not in whole.outcomes, f"{path} is missing or damaged; {again}")
    return whole


def outcomes_so_far(folder: str | Path) -> Reproduction:
    folder = Path(folder)
    context = stored_context(folder)
    return Reproduction.of(
        context, stored_outcomes(folder, context, EXPERIMENTS, inputs=False), read_seconds(folder), folder
    )


def check_context(folder: Path, context: Context) -> None:
    about = folders.read_about(folder)
    if about is None or about.kind != REPRODUCE.name or about.status == "starting":
        return  # killed before it had a config, a folder counts as empty
    stored = stored_context(folder)
    there, asked = (f"of scale {one.scale}, seed {one.seed}" for one in (stored, context))
    refuse_if(there != asked, f"{folder} holds a reproduction {there}, not {asked}; choose another folder")


def stored_context(folder: Path) -> Context:
    config = load_settings(folder / folders.CONFIG, own=True)
    wrong = config.get("scale") not in get_args(Scale) or not isinstance(config.get("seed"), int)
    refuse_if(wrong, f"{folder / folders.CONFIG} is damaged: expected scale and seed; choose another folder")
    return Context(config["scale"], config["seed"])


def outcome_path(folder: Path, experiment: str) -> Path:
    return folder / "outcomes" / f"{experiment}.json"


def write_outcome(folder: Path, experiment: str, context: Context, outcome: Outcome) -> None:
    record = {"format": FORMAT, "context": EXPERIMENTS[experiment].key(context), "outcome": asdict(outcome)}
    path = outcome_path(folder, experiment)
    path.parent.mkdir(exist_ok=True)
    files.write(path, json.dumps(files.sealed(record)).encode())


def read_outcome(folder: Path, experiment: str, context: Context, *, inputs: bool = True) -> Outcome | None:
    """None: damaged, changed or of another context. Without `inputs` any models and texts of the user will do."""
    try:
        content = read_bytes(outcome_path(folder, experiment))
        stored = files.unsealed(parse_json(content, experiment, finite=False))  # figures may have gaps
        wanted = EXPERIMENTS[experiment].key(context) if inputs else context.config()
        if stored["format"] != FORMAT or any(stored["context"][key] != value for key, value in wanted.items()):
            return None
        return Outcome.from_dict(stored["outcome"])
    except (ValueError, KeyError, TypeError, AttributeError):  # InputError is a ValueError
        return None


def stored_outcomes(folder: Path, context: Context, names: Iterable[str], *, inputs: bool = True) -> dict[str, Outcome]:
    stored = {name: read_outcome(folder, name, context, inputs=inputs) for name in names}
    return {name: outcome for name, outcome in stored.items() if outcome is not None}


def read_seconds(folder: Path) -> dict[str, float]:
    """By experiment, as far as environment.json says: it is no part of the result, and may be missing or damaged."""
    try:
        stored = files.read_json(folder / folders.ENVIRONMENT)["seconds"]
        return {name: float(stored[name]) for name in EXPERIMENTS if name in stored and math.isfinite(stored[name])}
    except (ValueError, KeyError, TypeError):
        return {}
