"""A finished pretraining run, fresh or read back; and several of them.

run = read_pretrain("runs/pretrain")
run.results.layers["0"].separation, run.metrics["norm_key_0"], run.model
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from topicscope import language
from topicscope.ground import METRICS, InputError, Kind, Result, folders, load_settings, read_metrics
from topicscope.measure import Course, Stages, course
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.layers import Metrics, layer_metrics, layer_names

if TYPE_CHECKING:
    import pyarrow

CHECKPOINT, MODEL, TOKENIZER, SNAPSHOTS = "checkpoint.safetensors", "model", "tokenizer", "snapshots"
PRETRAIN = Kind("pretrain", 1, (METRICS, CHECKPOINT, MODEL, TOKENIZER, SNAPSHOTS, ".*.tmp", "*.tmp"))


@dataclass(frozen=True)
class PretrainResults:
    """results.json: where the run ended, and the stages of every layer. Nothing in it depends on the machine."""

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


def as_number(value: float) -> float | None:
    return value if math.isfinite(value) else None


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

    @cached_property
    def course(self) -> Course:
        """Which phase the run took; of its layers the one with the smallest separation counts."""
        layers = [layer_metrics(self.metrics, name) for name in layer_names(self.metrics)]
        return course(self.status, self.metrics["loss"], self.results.loss, layers)

    def facts(self) -> dict[str, Any]:
        """The main numbers, by what they are."""
        results, layers = self.results, self.results.layers.items()
        return {
            "status": results.status,
            "steps": results.steps,
            "first loss": results.first_loss,
            "training loss (last 50 steps)": results.loss,
            "phase": self.course.phase,
            **{f"separation, layer {name}": as_number(stages.separation) for name, stages in layers},
        }

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
        return [f"Seed {results.seed}: {end} after {steps}.", self.course.sentence, *self._unread()]

    def _unread(self) -> list[str]:
        """A sentence on text that could not be read."""
        if self.folder is None or not (self.folder / folders.ENVIRONMENT).is_file():
            return []
        text = str(json.loads((self.folder / folders.ENVIRONMENT).read_text(encoding="utf-8")).get("text", ""))
        return [f"Not all of the text could be read: {text}"] if "broken" in text or "encoding" in text else []

    def table(self) -> pyarrow.Table:
        """One row per step: loss, learning rate, norms and rotation."""
        import pyarrow

        return pyarrow.table(self.metrics)

    def _about(self) -> str:
        return f"seed {self.results.seed}, {self.status}, {self.results.steps} steps"


class PretrainRuns(list[PretrainRun], Result):
    """Several runs, as `pretrain` returns them for several configs."""

    kind: ClassVar[str] = PRETRAIN.name

    def __init__(self, runs: Iterable[PretrainRun], folder: Path | None = None) -> None:
        super().__init__(runs)
        self.folder = folder

    @property
    def status(self) -> str:
        return "diverged" if any(run.status == "diverged" for run in self) else "done"

    def summary(self) -> list[str]:
        return [sentence for run in self for sentence in run.summary()]

    def table(self) -> pyarrow.Table:
        """One row per run: seed and main numbers."""
        import pyarrow

        rows = [{"seed": run.config.seed, **run.facts()} for run in self]
        names = dict.fromkeys(name for row in rows for name in row)
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def _about(self) -> str:
        return f"{len(self)} runs, {self.status}"

    __repr__ = Result.__repr__


def read_pretrain(folder: str | os.PathLike[str]) -> PretrainRun | PretrainRuns:
    """Read what `pretrain` wrote: one run, or several. InputError says in one line what is missing or damaged."""
    path = Path(folder)
    about = folders.finished_about(path, PRETRAIN)
    if about.runs is None:
        return read_one(path)
    return PretrainRuns([read_one(member) for member in folders.member_paths(path, about.runs)], path)


def read_one(path: Path) -> PretrainRun:
    folders.finished_about(path, PRETRAIN)
    try:
        results = PretrainResults.from_dict(folders.read_results(path))
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path / folders.RESULTS} is damaged: it holds no results of a run") from None
    return PretrainRun(PretrainConfig.of(load_settings(path / folders.CONFIG)), results, stored_metrics(path), path)


def stored_configs(folder: str | os.PathLike[str]) -> PretrainConfig | list[PretrainConfig]:
    """The config, or the configs, of the runs that a folder was opened for: to go on with them."""
    path = Path(folder)
    about = folders.read_about(path)
    if about is None or about.kind != PRETRAIN.name or about.status == "starting":
        raise InputError(f"{folder} holds no pretraining run to resume; leave resume out to start one there")
    settings = load_settings(path / folders.CONFIG)
    if about.runs is None:
        return PretrainConfig.of(settings)
    return [PretrainConfig.of(one) for one in settings["runs"]]


def stored_metrics(folder: Path) -> Metrics:
    """The metrics in a folder, with NaN for what no step had: the rotation of a run of fewer than ten steps."""
    metrics = read_metrics(folder) if (folder / METRICS).exists() else {}
    length = len(metrics.get("step", ()))
    missing = ["loss", *(f"rotation_{name}" for name in layer_names(metrics))]
    return metrics | {name: np.full(length, np.nan) for name in missing if name not in metrics}
