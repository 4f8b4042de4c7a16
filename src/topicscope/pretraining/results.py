"""A finished pretraining run, fresh or read back, and several of them: what was measured, layer by layer.

run = read_pretrain("runs/pretrain")
run.results.layers["0"].separation, run.metrics["norm_key_0"], run.model
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from topicscope import language
from topicscope.ground import (
    METRICS,
    InputError,
    Kind,
    Result,
    SeveralRuns,
    configs_to_resume,
    file_digest,
    folders,
    load_settings,
    one_line,
    read_metrics,
    shown,
    whole_folder,
    write_json,
)
from topicscope.measure import Course, Stages, course, stages
from topicscope.pretraining.config import Part, PretrainConfig

if TYPE_CHECKING:
    import pyarrow

PARTS: tuple[Part, ...] = ("key", "query", "value")
FIGURES = ("loss", "lr", "gradient_norm", "held_out_loss")  # of a step, before those of its layers
Metrics = dict[str, Float[np.ndarray, " S"]]  # by figure, one row per step; NaN where a step has no such figure


def stages_by_layer(metrics: Metrics) -> dict[str, Stages]:
    """When the norms of each layer have made half of their rise."""
    return {name: stages(layer_metrics(metrics, name)) for name in layer_names(metrics)}


def layer_names(metrics: Metrics) -> list[str]:
    """The layers of a run."""
    return [name.removeprefix("norm_key_") for name in metrics if name.startswith("norm_key_")]


def layer_metrics(metrics: Metrics, name: str) -> Metrics:
    """The norms of one layer, under the names that a one-layer run has."""
    return {f"norm_{part}": metrics[f"norm_{part}_{name}"] for part in PARTS}


@dataclass(frozen=True)
class PretrainResults:
    """The content of results.json: where the run ended, and the stages of every layer."""

    status: str
    seed: int
    steps: int
    first_loss: float | None
    loss: float | None
    held_out_loss: float | None
    gradient_norm: float | None
    tokens: int
    epochs: int
    parameters: int
    vocabulary: int
    layers: dict[str, Stages]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"layers": {name: stages.as_dict() for name, stages in self.layers.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PretrainResults:
        """What `as_dict` wrote; KeyError or TypeError where the data is something else."""
        layers = {
            name: Stages(**{part: np.nan if steps[f"t50_{part}"] is None else steps[f"t50_{part}"] for part in PARTS})
            for name, steps in data["layers"].items()
        }
        return cls(**{**data, "layers": layers})


ADVICE = "start the run again (--force)"
CHECKPOINT, MODEL, TOKENIZER, SNAPSHOTS = "checkpoint.safetensors", "model", "tokenizer", "snapshots"
PRETRAIN = Kind(
    "pretrain", 3, (METRICS, CHECKPOINT, MODEL, TOKENIZER, SNAPSHOTS, ".*.tmp"), sealed=(METRICS,), resumes="asked"
)


@dataclass(frozen=True, repr=False, eq=False)
class PretrainRun(Result):
    """A finished pretraining run. Its model and tokenizer are loaded when they are first asked for.

    Attributes:
        config: The config that was run.
        results: Where it ended.
        metrics: One column per measure, with one number per step.
        folder: Where it was written, or None.
        trained: Model and tokenizer of a run that was just trained.

    Example:
        See `pretrain`.
    """

    kind: ClassVar[str] = PRETRAIN.name

    config: PretrainConfig
    results: PretrainResults
    metrics: Metrics
    folder: Path | None = None
    trained: tuple[Any, Any] | None = None

    @property
    def status(self) -> str:
        return self.results.status

    @cached_property
    def course(self) -> Course:
        """Which phase the run took; of its layers the one with the smallest separation counts."""
        return course(
            self.status,
            self.metrics["loss"],
            self.results.loss,
            [layer_metrics(self.metrics, name) for name in layer_names(self.metrics)],
        )

    def facts(self) -> dict[str, Any]:
        """The main numbers, by what they are."""
        return {
            "status": self.status,
            "steps": self.results.steps,
            "first loss": self.results.first_loss,
            "training loss (last 50 steps)": self.results.loss,
            "held-out loss": self.results.held_out_loss,
            "gradient norm (last 50 steps)": self.results.gradient_norm,
            "phase": self.course.phase,
            **{f"separation, layer {name}": at.as_dict()["separation"] for name, at in self.results.layers.items()},
        }

    @cached_property
    def model(self) -> Any:
        """The trained model, a `transformers` masked language model."""
        if self.trained is not None:
            return self.trained[0]
        if self.folder is None or self.status != "done":
            raise InputError(f"{self!r} has no model")
        path = self.folder / MODEL
        return language.load_weights(language.check_model(path), path, "AutoModelForMaskedLM")[0]

    @cached_property
    def tokenizer(self) -> Any:
        if self.trained is not None:
            return self.trained[1]
        if self.folder is None:
            raise InputError(f"{self!r} has no tokenizer")
        return language.load_tokenizer(self.folder / TOKENIZER)

    def summary(self) -> list[str]:
        results = self.results
        held_out = "" if results.held_out_loss is None else f", held-out loss {results.held_out_loss:.4f}"
        end = "diverged" if self.status == "diverged" else f"loss {results.loss:.4f}{held_out}"
        steps = f"{results.steps} steps ({results.tokens:,} tokens, a vocabulary of {results.vocabulary})"
        return [
            f"Seed {results.seed}: {end} after {steps}.",
            self.course.sentence,
            *self._not_held_out(),
            *self._unread(),
        ]

    def _not_held_out(self) -> list[str]:
        """A sentence where text was to be held out and there was none."""
        if self.status != "done" or not self.config.held_out.share or self.results.held_out_loss is not None:
            return []
        return [
            f"There is no held-out loss: {100 * self.config.held_out.share:.3g}% of the documents is too little "
            f"to fill a row of {self.config.length} tokens. Give more text, or hold out more of it (--held-out)."
        ]

    def _unread(self) -> list[str]:
        """A sentence on text that could not be read."""
        try:  # no part of the result: a file that is gone says nothing
            text = "" if self.folder is None else str(folders.read_json(self.folder / folders.ENVIRONMENT)["text"])
        except (InputError, KeyError, TypeError):
            return []
        return language.unread(text)

    def table(self) -> pyarrow.Table:
        """One row per step: losses, learning rate, norms and rotation."""
        import pyarrow

        return pyarrow.table(self.metrics)

    def _about(self) -> str:
        return f"seed {self.results.seed}, {self.status}, {self.results.steps} steps"


class PretrainRuns(SeveralRuns[PretrainRun]):
    """A list of `PretrainRun`, with one table and one summary; `pretrain` returns it for several configs."""

    kind: ClassVar[str] = PRETRAIN.name

    @property
    def status(self) -> str:
        return "diverged" if any(run.status == "diverged" for run in self) else "done"

    def _about(self) -> str:
        return f"{len(self)} runs, {self.status}"


def read_pretrain(folder: str | os.PathLike[str]) -> PretrainRun | PretrainRuns:
    """Read what `pretrain` wrote: one run, or several."""
    path, runs = Path(folder), folders.finished_about(folder, PRETRAIN).runs
    return read_one(path) if runs is None else PretrainRuns(map(read_one, folders.member_paths(path, runs)), path)


def read_one(path: Path) -> PretrainRun:
    folders.finished_about(path, PRETRAIN)
    try:
        results = PretrainResults.from_dict(folders.read_results(path))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError):
        raise InputError(f"{path / folders.RESULTS} is damaged: it holds no results of a run") from None
    config = PretrainConfig.of(load_settings(path / folders.CONFIG, own=True))
    return PretrainRun(config, results, stored_metrics(path), path)


def stored_configs(folder: str | os.PathLike[str]) -> PretrainConfig | list[PretrainConfig]:
    """The config, or the configs, of the runs that a folder was opened for: to resume them."""
    return configs_to_resume(folder, PRETRAIN, PretrainConfig, "pretraining run")


def stored_metrics(folder: Path) -> Metrics:
    """The metrics in a folder, with NaN for what no step had: the rotation of a run of fewer than ten steps."""
    metrics = read_metrics(folder) if (folder / METRICS).exists() else {}
    expected = (*FIGURES, *(f"rotation_{name}" for name in layer_names(metrics)))
    missing = [name for name in expected if name not in metrics]
    return metrics | {name: np.full(len(metrics.get("step", ())), np.nan) for name in missing}


def write_pretrained(folder: Path, *parts: Any) -> None:
    """A model, its tokenizer, or both, as the library's `from_pretrained` reads them: whole or not there.

    With a file of the digests of all the others, which whoever loads it compares.
    """
    with whole_folder(folder) as temporary, language.quiet():
        for part in parts:
            part.save_pretrained(temporary)
        digests = {file.name: file_digest(file) for file in sorted(temporary.iterdir())}
        write_json(temporary / language.SEAL, digests)


def has_tokenizer(folder: Path) -> bool:
    """Whether a run has its tokenizer. With a checkpoint it cannot go on without: a new one may be another one.

    Before the first checkpoint it is made anew, as everything is: the text may have changed since.
    """
    if not (folder.parent / CHECKPOINT).exists():
        return False
    if not folder.is_dir():
        raise InputError(f"{shown(folder)}, the tokenizer of the run, is missing; {ADVICE}")
    return True


def stored_tokenizer(folder: Path) -> Any:
    """The tokenizer with which a run began; InputError where it is damaged, or is another one by now."""
    try:
        if not (folder / language.SEAL).is_file():
            raise InputError(f"{language.SEAL} is missing")
        return language.load_tokenizer(folder)  # which compares it with its digests
    except InputError as error:
        raise InputError(f"the tokenizer of the run is damaged ({one_line(error)}); {ADVICE}") from None
