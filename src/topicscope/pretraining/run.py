"""Pretraining from Python: masked language modelling on any text, with every attention matrix measured at every step.

from topicscope.pretraining import PretrainConfig, Text, pretrain
run = pretrain(PretrainConfig(text=Text(["articles.txt"]), steps=200), "runs/pretrain")
run.results.layers["0"].separation, run.metrics["norm_key_0"]
"""

import os
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, overload

from topicscope.ground import (
    FORCE_NEEDS_OUT,
    METRICS,
    Folder,
    InputError,
    Progress,
    afford,
    check_folder,
    folders,
    needed,
    one_thread,
    open_folder,
    read_about,
    refuse,
    require,
    usable_device,
    watched,
)
from topicscope.language import Corpus
from topicscope.pretraining.config import LIBRARIES, PretrainConfig
from topicscope.pretraining.cost import cost_of, settings_that_cost
from topicscope.pretraining.results import (
    CHECKPOINT,
    PRETRAIN,
    SNAPSHOTS,
    TOKENIZER,
    PretrainRun,
    PretrainRuns,
    has_tokenizer,
    read_one,
    stored_tokenizer,
    write_pretrained,
)


@overload
def pretrain(
    config: PretrainConfig,
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    texts: Iterable[str] | None = ...,
    tokenizer: Any = ...,
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
    tokenizer: Any = ...,
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
    tokenizer: Any = None,
    device: str | None = None,
    progress: Progress | None = None,
    yes: bool = False,
) -> PretrainRun | PretrainRuns:
    """Train one run, or several one after another.

    With `out`, one run fills that folder, and several fill out/run-000, out/run-001, ...; `resume` goes on with what is
    there. `texts` and `tokenizer` replace those that the config names; `device` replaces the config's.
    `yes` runs even what does not fit into memory or on the disk.
    """
    single = isinstance(config, PretrainConfig)
    configs = [config] if isinstance(config, PretrainConfig) else list(config)
    root = None if out is None else Path(out)
    if not configs or not all(isinstance(one, PretrainConfig) for one in configs):
        raise InputError("pretrain takes a PretrainConfig or several; PretrainConfig.of(settings) makes one")
    refuse((force and out is None, FORCE_NEEDS_OUT))
    require(LIBRARIES, "pretraining")
    corpora = [corpus_of(one) if texts is None else texts for one in configs]
    if root is not None and is_main():
        check_folder(root, PRETRAIN, resume=resume, force=force)
    if is_main():
        afford(cost_of(configs), lambda: settings_that_cost(configs), None if resume else out, yes=yes)
    import torch  # after the checks: a refusal need not wait for it

    homes = [None] * len(configs) if root is None else [root] if single else folders.member_paths(root, len(configs))
    first, accelerator = configs[0], accelerated(configs[0], device)
    settings = [one.as_dict() for one in configs]
    stored, count = (settings[0], None) if single else ({"runs": settings}, len(configs))
    place: AbstractContextManager[Folder | None] = (
        open_folder(root, PRETRAIN, stored, resume=resume, force=force, runs=count)
        if root is not None and accelerator.is_main_process
        else nullcontext()
    )
    runs = PretrainRuns([], root)
    with watched(progress) as shown, one_thread(), torch.random.fork_rng(), place as whole:
        opened: list[Folder | None] = (
            [whole] * len(configs)
            if whole is None or single
            else [folders.join_folder(p, PRETRAIN, s, resume=True) for p, s in zip(homes, settings, strict=True) if p]
        )
        accelerator.wait_for_everyone()
        for number, (one, corpus, home, folder) in enumerate(zip(configs, corpora, homes, opened, strict=True)):
            same = (one.tokenizer, one.text, one.length) == (first.tokenizer, first.text, first.length)
            known = runs[0].tokenizer if runs and tokenizer is None and same else tokenizer
            runs.append(_pretrain_one(one, corpus, home, folder, accelerator, known, _part_of(shown, configs, number)))
        if whole is not None and not single:
            whole.finish([run.results.as_dict() for run in runs], runs.status)
    return runs[0] if single else runs


def is_main() -> bool:
    """Of several processes, as accelerate and torchrun start them, one writes and prints."""
    return os.environ.get("RANK", "0") == "0"


def _part_of(progress: Progress, configs: Sequence[PretrainConfig], number: int) -> Progress:
    """Progress of one run as part of all."""
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
    tokenizer: Any,
    progress: Progress,
) -> PretrainRun:
    from topicscope.pretraining.data import make_tokenizer
    from topicscope.pretraining.loop import Loop

    if home is not None and (about := read_about(home)) is not None and about.status not in folders.UNFINISHED:
        if folder is not None:  # killed after its last file was whole, a run has left its checkpoint
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
            for name in (TOKENIZER, SNAPSHOTS):  # nothing was done: nothing stands in the way of a better try
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
            text=corpus.summary() if isinstance(corpus, Corpus) else None,  # of the last whole pass
        )
        folder.file(CHECKPOINT).unlink(missing_ok=True)
    accelerator.wait_for_everyone()
    return run


def corpus_of(config: PretrainConfig) -> Corpus:
    """The text that a config names; InputError where it, or an optional library that reads it, is not there."""
    corpus = Corpus(config.text.corpus, config.text.text_field, config.text.split)
    corpus.check_libraries()
    return corpus


def check_libraries(config: PretrainConfig) -> None:
    """Raise InputError where an optional library is not installed that this config makes use of."""
    require(LIBRARIES, "pretraining")
    corpus_of(config)


def accelerated(config: PretrainConfig, device: str | None = None) -> Any:
    """The library's `Accelerator`, on the device that the config or the caller names."""
    accelerate = needed("accelerate", "pretraining")
    cpu = usable_device(device or config.device) == "cpu"
    if config.bf16 and cpu:
        raise InputError("bf16 is for GPUs only, and this run is on the CPU; leave it out")
    state = accelerate.state.AcceleratorState
    if state._shared_state and state().num_processes == 1 and (state().device.type == "cpu") != cpu:
        # the library keeps the first device of a process, and has no other way to let it go
        state._reset_state(reset_partial_state=True)
    return accelerate.Accelerator(cpu=cpu)
