"""Pretraining from Python: masked language modelling on any text, with every attention matrix followed step by step.

from topicscope.pretraining import PretrainConfig, Text, pretrain
run = pretrain(PretrainConfig(text=Text(["articles.txt"]), steps=200), "runs/pretrain")
run.results["layers"]["0"]["separation"], run.metrics["norm_key_0"]
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, overload

import torch

from topicscope.ground import InputError, old_folders as folders, one_thread
from topicscope.language import Corpus, load_tokenizer, needed, quiet
from topicscope.pretraining import checkpoint
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.folder import claimed, stored_tokenizer
from topicscope.pretraining.loop import Loop, PretrainRun, stored_metrics
from topicscope.pretraining.tokenizer import make_tokenizer

Progress = Callable[[int, int, float, float], None]
"""Called with the number of the run, its steps done, the present loss and tokens a second."""


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
) -> list[PretrainRun]: ...
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
) -> PretrainRun | list[PretrainRun]:
    """Train one run, or several one after another; with `out`, into a folder (out/run-000, ... where they are several) that `resume` goes on with.

    `texts` and `tokenizer` may be given instead of read and made; `device` is where to run, whatever the config says.
    """
    single = isinstance(config, PretrainConfig)
    configs = [config] if isinstance(config, PretrainConfig) else list(config)
    accelerator = accelerated(configs[0], device)
    done: list[PretrainRun] = []
    with one_thread(), torch.random.fork_rng(), ExitStack() as held:
        root = None if out is None else Path(out)
        homes = (
            [None] * len(configs)
            if root is None
            else [root]
            if single
            else [root / f"run-{i:03d}" for i in range(len(configs))]
        )
        if root is not None and accelerator.is_main_process:
            held.enter_context(
                claimed(
                    root,
                    [home for home in homes if home is not None],
                    configs,
                    resume=resume,
                    force=force,
                    read=texts is None,
                )
            )
        accelerator.wait_for_everyone()
        for number, (c, home) in enumerate(zip(configs, homes, strict=True)):
            note = None if progress is None else partial(progress, number)
            done.append(_pretrain_one(c, home, accelerator, texts, tokenizer, note))
            tokenizer = (
                tokenizer if tokenizer is not None or c.tokenizer != configs[0].tokenizer else done[-1].tokenizer
            )  # trained once for all
    return done[0] if single else done


def _pretrain_one(
    config: PretrainConfig,
    folder: Path | None,
    accelerator: Any,
    texts: Iterable[str] | None,
    tokenizer: Any,
    progress: Any,
) -> PretrainRun:
    if folder is not None and (folder / folders.RESULTS).exists():
        return finished(config, folder)
    corpus: Iterable[str] = (
        Corpus(config.text.corpus, config.text.text_field, config.text.split) if texts is None else texts
    )
    if folder is not None:
        tokenizer = stored_tokenizer(folder, config, corpus, tokenizer, accelerator)
    elif tokenizer is None:
        tokenizer = make_tokenizer(config, corpus)
    return Loop(config, corpus, tokenizer, folder, accelerator).run(progress)


def accelerated(config: PretrainConfig, device: str | None = None) -> Any:
    device = device or config.device
    accelerate = needed("accelerate", "accelerate", "to pretrain")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda, but PyTorch finds no usable GPU here; choose cpu or auto")
    if config.bf16 and not torch.cuda.is_available():
        raise InputError("bf16 is for GPUs only, and PyTorch finds none here; leave it out")
    cpu = device == "cpu" or not torch.cuda.is_available()
    state = accelerate.state.AcceleratorState
    if state._shared_state and state().num_processes == 1 and (state().device.type == "cpu") != cpu:
        state._reset_state(
            reset_partial_state=True
        )  # the library keeps the first device of a process, and has no other way to let it go
    return accelerate.Accelerator(cpu=cpu)


def seeds(config: PretrainConfig, count: int) -> list[PretrainConfig]:
    """The same run with `count` seeds: config.seed, config.seed + 1, ..."""
    return [dataclasses.replace(config, seed=config.seed + i) for i in range(count)]


def finished(config: PretrainConfig, folder: Path) -> PretrainRun:
    """The run that is there."""
    import transformers

    results = json.loads((folder / folders.RESULTS).read_text(encoding="utf-8"))
    model = None
    if results["status"] == "done":
        load: Any = transformers.AutoModelForMaskedLM.from_pretrained
        with quiet():
            model = load(folder / checkpoint.MODEL, local_files_only=True, use_safetensors=True)
    return PretrainRun(
        config,
        results["status"],
        results,
        stored_metrics(folder),
        model,
        load_tokenizer(folder / checkpoint.TOKENIZER),
        folder,
    )
