"""Pretraining from Python: masked language modelling on any text, with every attention matrix measured at every step.

from topicscope.pretraining import PretrainConfig, Text, pretrain
run = pretrain(PretrainConfig(text=Text(["articles.txt"]), steps=200), "runs/pretrain")
run.results.layers["0"].separation, run.metrics["norm_key_0"], run.model
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from jaxtyping import Float

from topicscope import language
from topicscope.ground import (
    FORCE_NEEDS_OUT,
    METRICS,
    RESUME_NEEDS_OUT,
    Folder,
    InputError,
    Kind,
    Progress,
    Result,
    SeveralRuns,
    afford,
    check_folder,
    configs_to_resume,
    file_digest,
    files,
    folders,
    load_settings,
    needed,
    one_line,
    one_thread,
    open_runs,
    read_about,
    read_finished,
    read_metrics,
    read_runs,
    refuse,
    refuse_if,
    require,
    shown,
    usable_device,
    watched,
    whole_folder,
    write_json,
)
from topicscope.language import Corpus
from topicscope.measure import Course, Stages, course, layer_metrics, layer_names, stages
from topicscope.pretraining.config import LIBRARIES, Part, PretrainConfig, cost_of, settings_that_cost

if TYPE_CHECKING:
    import pyarrow

    from topicscope.language import LibraryModel, Tokenizer

PARTS: tuple[Part, ...] = ("key", "query", "value")
FIGURES = ("loss", "lr", "gradient_norm", "held_out_loss")  # columns of a step, before those of its layers
Metrics = dict[str, Float[np.ndarray, " S"]]  # columns by name, one row per step; NaN where a step has no such number


def stages_by_layer(metrics: Metrics) -> dict[str, Stages]:
    return {name: stages(layer_metrics(metrics, name)) for name in layer_names(metrics)}


@dataclass(frozen=True)
class PretrainResults:
    """The content of results.json: where the run ended, and the stages of every layer."""

    status: str
    seed: int
    steps: int
    first_loss: float | None
    loss: float | None  # mean over the last 50 steps
    held_out_loss: float | None
    gradient_norm: float | None  # before clipping, mean over the last 50 steps
    tokens: int
    epochs: int
    parameters: int
    vocabulary: int
    layers: dict[str, Stages]

    def as_dict(self) -> dict[str, object]:
        return asdict(self) | {"layers": {name: stages.as_dict() for name, stages in self.layers.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PretrainResults:
        return cls(**{**data, "layers": {name: Stages.from_dict(steps) for name, steps in data["layers"].items()}})


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
    trained: tuple[LibraryModel, Tokenizer] | None = None

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

    def facts(self) -> dict[str, object]:
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
    def model(self) -> LibraryModel:
        if self.trained is not None:
            return self.trained[0]
        if self.folder is None or self.status != "done":
            raise InputError(f"{self!r} has no model")
        path = self.folder / MODEL
        return language.load_weights(language.check_model(path), path, "AutoModelForMaskedLM")[0]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        if self.trained is not None:
            return self.trained[1]
        if self.folder is None:
            raise InputError(f"{self!r} has no tokenizer")
        return language.load_tokenizer(self.folder / TOKENIZER)

    def summary(self) -> list[str]:
        results, share = self.results, self.config.held_out.share
        held_out = "" if results.held_out_loss is None else f", held-out loss {results.held_out_loss:.4f}"
        end = "diverged" if self.status == "diverged" else f"loss {results.loss:.4f}{held_out}"
        steps = f"{results.steps} steps ({results.tokens:,} tokens, a vocabulary of {results.vocabulary})"
        too_little = (
            f"There is no held-out loss: {100 * share:.3g}% of the documents is too little "
            f"to fill a row of {self.config.length} tokens. Give more text, or hold out more of it (--held-out)."
        )
        missing = self.status == "done" and share and results.held_out_loss is None
        return [
            f"Seed {results.seed}: {end} after {steps}.",
            self.course.sentence,
            *([too_little] if missing else []),
            *self._unread(),
        ]

    def _unread(self) -> list[str]:
        try:  # the file is no part of the result, and may be gone
            text = "" if self.folder is None else files.read_json(self.folder / folders.ENVIRONMENT)["text"]
        except (InputError, KeyError, TypeError):
            return []
        return language.unread(str(text))

    def table(self) -> pyarrow.Table:
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
    return read_runs(folder, PRETRAIN, read_one, PretrainRuns)


def read_one(path: Path) -> PretrainRun:
    results = read_finished(path, PRETRAIN, PretrainResults.from_dict)
    config = PretrainConfig.of(load_settings(path / folders.CONFIG, own=True))
    return PretrainRun(config, results, stored_metrics(path), path)


def stored_configs(folder: str | os.PathLike[str]) -> PretrainConfig | list[PretrainConfig]:
    return configs_to_resume(folder, PRETRAIN, PretrainConfig, "pretraining run")


def stored_metrics(folder: Path) -> Metrics:
    """The metrics in a folder, with NaN for what no step had: the rotation of a run of fewer than ten steps."""
    metrics = read_metrics(folder) if (folder / METRICS).exists() else {}
    expected = (*FIGURES, *(f"rotation_{name}" for name in layer_names(metrics)))
    missing = [name for name in expected if name not in metrics]
    return metrics | {name: np.full(len(metrics.get("step", ())), np.nan) for name in missing}


def write_pretrained(folder: Path, *parts: LibraryModel | Tokenizer) -> None:
    """A model, its tokenizer, or both, as the library's `from_pretrained` reads them: whole or not there.

    With a file of the digests of all the others, which whoever loads it compares.
    """
    with whole_folder(folder) as temporary, language.quiet():
        for part in parts:
            part.save_pretrained(temporary)
        write_json(temporary / language.SEAL, {file.name: file_digest(file) for file in sorted(temporary.iterdir())})


def has_tokenizer(folder: Path) -> bool:
    """Whether a run has its tokenizer. With a checkpoint it cannot go on without: a new one may be another one.

    Before the first checkpoint it is made anew, as everything is: the text may have changed since.
    """
    begun = (folder.parent / CHECKPOINT).exists()
    refuse_if(begun and not folder.is_dir(), f"{shown(folder)}, the tokenizer of the run, is missing; {ADVICE}")
    return begun


def stored_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer with which a run began; InputError where it is damaged, or is another one by now."""
    try:
        refuse_if(not (folder / language.SEAL).is_file(), f"{language.SEAL} is missing")
        return language.load_tokenizer(folder)  # this compares it with its digests
    except InputError as error:
        raise InputError(f"the tokenizer of the run is damaged ({one_line(error)}); {ADVICE}") from None


@overload
def pretrain(
    config: PretrainConfig,
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    texts: Iterable[str] | None = ...,
    tokenizer: Tokenizer = ...,
    device: str | None = ...,
    progress: Progress | None = ...,
    yes: bool = ...,
) -> PretrainRun: ...
@overload
def pretrain(
    config: Sequence[PretrainConfig],
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    texts: Iterable[str] | None = ...,
    tokenizer: Tokenizer = ...,
    device: str | None = ...,
    progress: Progress | None = ...,
    yes: bool = ...,
) -> PretrainRuns: ...
def pretrain(
    config: PretrainConfig | Sequence[PretrainConfig],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    texts: Iterable[str] | None = None,
    tokenizer: Tokenizer = None,
    device: str | None = None,
    progress: Progress | None = None,
    yes: bool = False,
) -> PretrainRun | PretrainRuns:
    """Pretrain a small transformer on text, or several; every attention matrix is measured at every step.

    Args:
        config: One config, or a list of them.
        out: Folder for the results; several runs fill out/run-000, out/run-001, ... None: nothing is written.
        resume: Continue the run in that folder.
        force: Replace what topicscope wrote there.
        texts: Documents, in place of those that the config names.
        tokenizer: In place of the config's.
        device: In place of the config's.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        yes: Run even if the estimate does not fit into memory or onto the disk.

    Returns:
        A `PretrainRun` for one config, `PretrainRuns` (a list) for several.

    Raises:
        InputError: A config is wrong, the folder is in use, or the run does not fit on this machine.

    Example:
        >>> from topicscope import PretrainConfig, pretrain
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> run = pretrain(PretrainConfig.of(tiny, steps=2, batch_size=4), texts=texts, tokenizer=tokenizer)
        >>> run, run.results.tokens, list(run.results.layers)  # 2 steps of 4 rows of 16 tokens
        (PretrainRun(seed 0, done, 2 steps), 128, ['0'])
    """
    single = isinstance(config, PretrainConfig)
    configs = [config] if isinstance(config, PretrainConfig) else list(config)
    root = None if out is None else Path(out)
    refuse(
        (
            not configs or not all(isinstance(one, PretrainConfig) for one in configs),
            "pretrain takes a PretrainConfig or several; PretrainConfig.of(settings) makes one",
        ),
        (force and out is None, FORCE_NEEDS_OUT),
        (resume and out is None, RESUME_NEEDS_OUT),
    )
    require(LIBRARIES, "pretraining")
    corpora = [corpus_of(one) if texts is None else texts for one in configs]
    if is_main():
        if root is not None:
            check_folder(root, PRETRAIN, resume=resume, force=force)
        afford(cost_of(configs), lambda: settings_that_cost(configs), None if resume else out, yes=yes)
    import torch  # after the checks: a refusal need not wait for it

    nothing = [None] * len(configs)
    homes = nothing if root is None else [root] if single else folders.member_paths(root, len(configs))
    first, accelerator = configs[0], accelerated(configs[0], device)
    written, settings = root if accelerator.is_main_process else None, [one.as_dict() for one in configs]
    place = open_runs(written, PRETRAIN, settings, single=single, resume=resume, force=force)
    runs = PretrainRuns([], root)
    with watched(progress) as shown, one_thread(), torch.random.fork_rng(), place as (whole, opened):
        accelerator.wait_for_everyone()
        each = zip(configs, corpora, homes, opened or nothing, strict=True)
        for number, (one, corpus, home, folder) in enumerate(each):
            same = (one.tokenizer, one.text, one.length) == (first.tokenizer, first.text, first.length)
            known = runs[0].tokenizer if runs and tokenizer is None and same else tokenizer
            runs.append(_pretrain_one(one, corpus, home, folder, accelerator, known, _part_of(shown, configs, number)))
        if whole is not None and not single:
            whole.finish([run.results.as_dict() for run in runs], runs.status)
    return runs[0] if single else runs


def is_main() -> bool:
    """Whether this process is the one that writes and prints, of those that accelerate or torchrun start."""
    return os.environ.get("RANK", "0") == "0"


def _part_of(progress: Progress, configs: Sequence[PretrainConfig], number: int) -> Progress:
    before, steps = sum(config.steps for config in configs[:number]), sum(config.steps for config in configs)
    name = "" if len(configs) == 1 else f"run {number + 1} of {len(configs)}"

    def progress_of_all(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        text = ", ".join(part for part in (name, note) if part)
        progress(phase, done if total is None else before + done, None if total is None else steps, text)

    return progress_of_all


def _pretrain_one(
    config: PretrainConfig,
    corpus: Iterable[str],
    home: Path | None,
    folder: Folder | None,
    accelerator: Any,
    tokenizer: Tokenizer,
    progress: Progress,
) -> PretrainRun:
    from topicscope.pretraining.data import make_tokenizer
    from topicscope.pretraining.loop import Loop

    if home is not None and (about := read_about(home)) is not None and about.status not in folders.UNFINISHED:
        if folder is not None:  # a run that was killed after its last file was whole has left its checkpoint
            folder.file(CHECKPOINT).unlink(missing_ok=True)
        return read_one(home)
    began, stored = time.perf_counter(), None if home is None else home / TOKENIZER
    try:
        # the main process makes the tokenizer and stores it in the folder; all read it from there, on resuming too
        if stored is None or (accelerator.is_main_process and not has_tokenizer(stored)):
            tokenizer = make_tokenizer(config, corpus, progress) if tokenizer is None else tokenizer
            if stored is not None:
                write_pretrained(stored, tokenizer)
        accelerator.wait_for_everyone()
        loop = Loop(config, corpus, tokenizer if stored is None else stored_tokenizer(stored), home, accelerator)
        run = loop.run(progress)
    except (InputError, MemoryError):
        if folder is not None and folder.fresh and not folder.file(METRICS).exists():
            for name in (TOKENIZER, SNAPSHOTS):  # nothing was trained: leave nothing in the way of the next try
                shutil.rmtree(folder.file(name), ignore_errors=True)
        raise
    if folder is not None:
        seconds = time.perf_counter() - began
        folder.finish(
            run.results.as_dict(),
            run.status,
            device=str(accelerator.device),
            processes=accelerator.num_processes,
            wall_seconds=seconds,
            tokens_per_second=loop.tokens_per_second(seconds),
            resumed_at=loop.first_step or None,
            text=corpus.summary() if isinstance(corpus, Corpus) else None,  # what the last whole pass has read
        )
        folder.file(CHECKPOINT).unlink(missing_ok=True)
    accelerator.wait_for_everyone()
    return run


def corpus_of(config: PretrainConfig) -> Corpus:
    corpus = Corpus(config.text.corpus, config.text.text_field, config.text.split)
    corpus.check_libraries()
    return corpus


def check_libraries(config: PretrainConfig) -> None:
    require(LIBRARIES, "pretraining")
    corpus_of(config)


def accelerated(config: PretrainConfig, device: str | None = None) -> Any:
    accelerate = needed("accelerate", "pretraining")
    cpu = usable_device(device or config.device) == "cpu"
    refuse_if(config.bf16 and cpu, "bf16 is for GPUs only, and this run is on the CPU; leave it out")
    state = accelerate.state.AcceleratorState
    if state._shared_state and state().num_processes == 1 and (state().device.type == "cpu") != cpu:
        # the library keeps the first device of a process, and has no other way to let it go
        state._reset_state(reset_partial_state=True)
    return accelerate.Accelerator(cpu=cpu)
