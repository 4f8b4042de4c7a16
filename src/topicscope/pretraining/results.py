"""A finished pretraining run, fresh or read back; and several of them.

run = read_pretrain("runs/pretrain")
run.results.layers["0"].separation, run.metrics["norm_key_0"], run.model
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from topicscope import language
from topicscope.ground import METRICS, InputError, Kind, Result, folders, load_settings, read_metrics
from topicscope.measure import Stages
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.layers import Metrics, layer_names

if TYPE_CHECKING:
    import pyarrow

CHECKPOINT, MODEL, TOKENIZER, SNAPSHOTS = "checkpoint.safetensors", "model", "tokenizer", "snapshots"
PRETRAIN = Kind("pretrain", 1, (METRICS, CHECKPOINT, MODEL, TOKENIZER, SNAPSHOTS, ".*.tmp", "*.tmp"))


@dataclass(frozen=True)
class PretrainResults:
    """results.json: where the run ended, and the stages of every layer. Nothing in it depends on the machine's speed."""

    status: str  # 'done' or 'diverged'
    seed: int
    steps: int
    first_loss: float | None
    loss: float | None  # mean of the last 50 steps
    tokens: int
    epochs: int
    parameters: int
    vocabulary: int
    layers: dict[str, Stages]  # none of a run that diverged

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"layers": {name: stages.as_dict() for name, stages in self.layers.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PretrainResults:
        """What `as_dict` wrote; KeyError or TypeError where the data is something else."""
        layers = {
            name: Stages(*(math.nan if steps[f"t50_{part}"] is None else steps[f"t50_{part}"] for part in PARTS))
            for name, steps in data["layers"].items()
        }
        return cls(**{**data, "layers": layers})


PARTS = ("value", "key", "query")
"""In the order of `Stages`."""


@dataclass(frozen=True, repr=False, eq=False)
class PretrainRun(Result):
    """A finished run. Its model and tokenizer are loaded when they are first asked for."""

    kind: ClassVar[str] = PRETRAIN.name

    config: PretrainConfig
    results: PretrainResults
    metrics: Metrics
    folder: Path | None = None
    trained: tuple[Any, Any] | None = None  # model and tokenizer of a run that was just trained

    @property
    def status(self) -> str:
        return self.results.status

    @property
    def homes(self) -> list[Path]:
        """The run's folder, where it has one."""
        return [] if self.folder is None else [self.folder]

    def results_json(self) -> dict[str, Any]:
        """What results.json holds."""
        return self.results.as_dict()

    @cached_property
    def model(self) -> Any:
        """The trained model, a `transformers` masked language model."""
        if self.trained is not None:
            return self.trained[0]
        if self.folder is None or self.status != "done":
            raise InputError(f"{self!r} has no model")
        import transformers

        load: Any = transformers.AutoModelForMaskedLM.from_pretrained
        with language.quiet():
            return load(self.folder / MODEL, local_files_only=True, use_safetensors=True)

    @cached_property
    def tokenizer(self) -> Any:
        if self.trained is not None:
            return self.trained[1]
        if self.folder is None:
            raise InputError(f"{self!r} has no tokenizer")
        return language.load_tokenizer(self.folder / TOKENIZER)

    def summary(self) -> list[str]:
        results = self.results
        end = "diverged" if self.status == "diverged" else f"loss {results.loss:.4f}"
        steps = f"{results.steps} steps ({results.tokens:,} tokens, a vocabulary of {results.vocabulary})"
        return [f"seed {results.seed}: {end} after {steps}", *self._unread()]

    def _unread(self) -> list[str]:
        """A sentence on text that could not be read."""
        if self.folder is None or not (self.folder / folders.ENVIRONMENT).is_file():
            return []
        text = str(json.loads((self.folder / folders.ENVIRONMENT).read_text(encoding="utf-8")).get("text", ""))
        return [f"not all of the text could be read: {text}"] if "broken" in text or "encoding" in text else []

    def table(self) -> pyarrow.Table:
        """One row per step: loss, learning rate, norms and rotation."""
        import pyarrow

        return pyarrow.table(self.metrics)

    def _about(self) -> str:
        return f"seed {self.results.seed}, {self.status}, {self.results.steps} steps"


class PretrainRuns(Result, Sequence[PretrainRun]):
    """Several runs, as `pretrain` returns them for a list of configs; a sequence of `PretrainRun`."""

    kind: ClassVar[str] = PRETRAIN.name

    def __init__(self, runs: Sequence[PretrainRun], folder: Path | None = None) -> None:
        self.runs, self.folder = tuple(runs), folder

    @overload
    def __getitem__(self, index: int) -> PretrainRun: ...
    @overload
    def __getitem__(self, index: slice) -> PretrainRuns: ...
    def __getitem__(self, index: int | slice) -> PretrainRun | PretrainRuns:
        return PretrainRuns(self.runs[index]) if isinstance(index, slice) else self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def status(self) -> str:
        return "diverged" if any(run.status == "diverged" for run in self.runs) else "done"

    @property
    def homes(self) -> list[Path]:
        """The folders of the runs, where they have some."""
        return [home for run in self.runs for home in run.homes]

    def results_json(self) -> list[dict[str, Any]]:
        """What results.json holds."""
        return [run.results_json() for run in self.runs]

    def summary(self) -> list[str]:
        return [sentence for run in self.runs for sentence in run.summary()]

    def table(self) -> pyarrow.Table:
        """One row per run and step, with the run's number and seed."""
        import pyarrow

        tables = []
        for number, run in enumerate(self.runs):
            table, seed = run.table(), run.config.seed
            rows = len(table)
            tables.append(table.add_column(0, "seed", [[seed] * rows]).add_column(0, "run", [[number] * rows]))
        return pyarrow.concat_tables(tables, promote_options="default")

    def _about(self) -> str:
        return f"{len(self.runs)} runs, {self.status}"


def members(folder: Path, runs: int | None) -> list[Path]:
    """The folders of a folder's runs: itself, or run-000, run-001, ..."""
    return [folder] if runs is None else [folder / f"run-{i:03d}" for i in range(runs)]


def read_pretrain(folder: str | os.PathLike[str]) -> PretrainRun | PretrainRuns:
    """Read what `pretrain` wrote: one run, or several. InputError says in one line what is missing or damaged."""
    folder = Path(folder)
    about = folders.finished_about(folder, PRETRAIN)
    if about.runs is not None:
        return PretrainRuns([read_one(home) for home in members(folder, about.runs)], folder)
    return read_one(folder)


def read_one(folder: Path) -> PretrainRun:
    folders.finished_about(folder, PRETRAIN)
    try:
        results = PretrainResults.from_dict(folders.read_results(folder))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / folders.RESULTS} is damaged ({type(error).__name__}: {error})") from None
    return PretrainRun(_stored_config(folder), results, stored_metrics(folder), folder)


def stored_configs(folder: str | os.PathLike[str]) -> PretrainConfig | list[PretrainConfig]:
    """The configs of the runs in a folder, finished or not: what `pretrain` resumes them with."""
    folder = Path(folder)
    about = folders.about_of(folder, PRETRAIN)
    configs = [_stored_config(home) for home in members(folder, about.runs)]
    return configs[0] if about.runs is None else configs


def _stored_config(folder: Path) -> PretrainConfig:
    return PretrainConfig.of(load_settings(folder / folders.CONFIG))


def stored_metrics(folder: Path) -> Metrics:
    """The metrics in a folder, with NaN for what no step had: the rotation of a run of fewer than ten steps."""
    metrics = read_metrics(folder) if (folder / METRICS).exists() else {}
    length = len(metrics.get("step", ()))
    missing = ["loss", *(f"rotation_{name}" for name in layer_names(metrics))]
    return metrics | {name: np.full(length, np.nan) for name in missing if name not in metrics}
