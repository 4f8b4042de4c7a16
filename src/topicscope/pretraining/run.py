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
    RESUME_NEEDS_OUT,
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
from topicscope.pretraining.config import LIBRARIES, PretrainConfig, cost_of, settings_that_cost
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
    if not configs or not all(isinstance(one, PretrainConfig) for one in configs):
        raise InputError("pretrain takes a PretrainConfig or several; PretrainConfig.of(settings) makes one")
    refuse((force and out is None, FORCE_NEEDS_OUT), (resume and out is None, RESUME_NEEDS_OUT))
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
    """Whether this process is the one that writes and prints, of those that accelerate or torchrun start."""
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
    """Check that the optional libraries that a config makes use of are installed."""
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
