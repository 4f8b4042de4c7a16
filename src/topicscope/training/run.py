"""Training from Python: one call, one or many configs, in memory or into folders.

from topicscope import RunConfig, train
run = train(RunConfig(steps=500))
run.results["dev_loss"], run.weights["value"], run.metrics["norm_key"]
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import overload

import torch

from topicscope.ground import (
    FORCE_NEEDS_OUT,
    RESUME_NEEDS_OUT,
    Folder,
    Progress,
    afford,
    check_gpu,
    compiling_announced,
    folders,
    refuse,
    repeatable,
    watched,
)
from topicscope.training.config import TOGETHER, RunConfig
from topicscope.training.cost import cost_of, settings_that_cost
from topicscope.training.data import RunData
from topicscope.training.ensemble import Ensemble, check_alike, resolve_device
from topicscope.training.recorder import Recorder, forget_wishes
from topicscope.training.result import CHECKPOINT, TRAIN, Run, Runs, read_one


@overload
def train(
    config: RunConfig,
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    with_floors: bool = ...,
    progress: Progress | None = ...,
    yes: bool = ...,
) -> Run: ...
@overload
def train(
    config: Sequence[RunConfig],
    out: str | Path | None = ...,
    *,
    resume: bool = ...,
    force: bool = ...,
    with_floors: bool = ...,
    progress: Progress | None = ...,
    yes: bool = ...,
) -> Runs: ...
def train(
    config: RunConfig | Sequence[RunConfig],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    with_floors: bool = True,
    progress: Progress | None = None,
    yes: bool = False,
) -> Run | Runs:
    """Train one run, or several runs that differ only in seed, learning rate or initial scale, in one program.

    Args:
        config: One config, or a list of them.
        out: Folder for the results; several runs fill out/run-000, out/run-001, ... None: nothing is written.
        resume: Continue the run in that folder.
        force: Replace what topicscope wrote there.
        with_floors: Compute the floors of the dev loss.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        yes: Train even if the estimate does not fit into memory or onto the disk.

    Returns:
        A `Run` for one config, `Runs` (a list) for several.

    Raises:
        InputError: The configs differ in more than that, the folder is in use, or the run does not fit on this machine.

    Example:
        >>> from topicscope import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> run = train(RunConfig.of(small, steps=30))
        >>> run.status, round(run.results["dev_loss"], 2), run.weights["value"].shape, len(run.metrics["norm_key"])
        ('done', 1.62, (7, 7), 31)
        >>> len(train([RunConfig.of(small, steps=30, seed=seed) for seed in (0, 1)]))
        2
    """
    single = isinstance(config, RunConfig)
    configs = [config] if isinstance(config, RunConfig) else list(config)
    check_alike(configs)
    if (whole := configs[0].with_world()) is not configs[0]:
        configs = [replace(config, topic_model=whole.topic_model, documents=whole.documents) for config in configs]
    refuse((force and out is None, FORCE_NEEDS_OUT), (resume and out is None, RESUME_NEEDS_OUT))
    gpu = resolve_device(configs).type == "cuda"
    cost = cost_of(configs, floors=with_floors, gpu=gpu)
    if out is not None:
        folders.check_folder(out, TRAIN, resume=resume, force=force)
    if gpu:
        check_gpu(cost, lambda: settings_that_cost(configs, gpu=True), yes=yes)
    # a run that goes on has most of its files already
    afford(cost, lambda: settings_that_cost(configs, gpu=gpu), None if resume else out, yes=yes)
    size = len(configs) if gpu else TOGETHER
    with repeatable(), watched(progress) as shown, compiling_announced(shown), ExitStack() as held:
        homes: list[Folder | None] = [None] * len(configs)
        root: Folder | None = None
        if out is not None:
            RunData(configs[0])  # data files are read before anything is written
            settings = [c.as_dict() for c in configs]
            stored, runs = (settings[0], None) if single else ({"runs": settings}, len(configs))
            root = held.enter_context(folders.open_folder(out, TRAIN, stored, resume=resume, force=force, runs=runs))
            members = zip(folders.member_paths(root.path, len(configs)), settings, strict=True)
            homes = [root] if single else [folders.join_folder(p, TRAIN, s, resume=True) for p, s in members]
            for home in homes:  # at once: from now on it counts as running, and somebody may ask
                if home is not None:
                    forget_wishes(home.path)
        done: list[Run] = []
        for start in range(0, len(configs), size):
            part = slice(start, start + size)
            done += _train_together(configs[part], homes[part], with_floors, shown, start, len(configs))
        if root is not None and not single:
            root.finish([run.results for run in done])
        return done[0] if single else Runs(done, None if root is None else root.path)


def _train_together(
    configs: Sequence[RunConfig],
    homes: Sequence[Folder | None],
    with_floors: bool,
    progress: Progress,
    before: int,
    models: int,
) -> list[Run]:
    there = [home for home in homes if home is not None]
    if there and all(home.finished for home in there):
        for home in there:  # killed after its last file was whole, a run has left its checkpoint
            home.file(CHECKPOINT).unlink(missing_ok=True)
        return [read_one(home.path) for home in there]
    ensemble = Ensemble(configs)
    steps = ensemble.config.total_steps
    recorder = Recorder(ensemble, [homes[i] for i in ensemble.order], progress, before * steps, models * steps)
    try:
        ensemble.run(recorder.block)
    except torch.OutOfMemoryError as error:  # of a GPU: as of the machine, nothing is wrong with the run
        raise MemoryError(str(error).split(". ", 1)[0]) from None
    runs = dict(zip(ensemble.order, recorder.finish(with_floors), strict=True))
    return [runs[i] for i in range(len(configs))]
