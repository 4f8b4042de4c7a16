"""`read(folder)`: what a folder holds, as the object that the command returned."""

import importlib
import os
from pathlib import Path
from typing import Any

from topicscope.ground import InputError, folders, refuse_if, shown

# By the kind of folder: the room that wrote it, and its reader there
READERS = {
    "train": ("training", "read_run"),
    "pretrain": ("pretraining", "read_pretrain"),
    "probe": ("language", "read_probe"),
    "timeline": ("language", "read_timeline"),
    "topics": ("language", "read_topics_folder"),
    "words": ("language", "read_words"),
    "sweep": ("sweeps", "read_sweep"),
    "landscape": ("theory", "read_landscape"),
    "reproduce": ("paper", "read_reproduction"),
}


def read(folder: str | os.PathLike[str]) -> Any:
    """Read a folder that topicscope wrote, as the object that the command returned.

    Args:
        folder: The folder of a run, runs, a probe, a timeline, topics, words, a sweep, a landscape or a reproduction.

    Returns:
        The result, with `summary()`, `table()` and `plot()`.

    Raises:
        InputError: The folder was not written by topicscope, is not finished, or is damaged.

    Example:
        >>> import tempfile
        >>> from topicscope import RunConfig, read, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = train(RunConfig.of(small, steps=30), f"{folder}/run")
        ...     read(f"{folder}/run")
        Run(seed 0, done, 30 steps)
    """
    path = Path(folder)
    about = folders.read_about(path)
    if about is None:
        reason = f"no {folders.ABOUT}" if os.path.isdir(path) else "no such folder"  # a name too long is no folder
        raise InputError(f"{shown(path)} is not a folder that topicscope wrote ({reason})")
    known = ", ".join(READERS)
    refuse_if(
        about.kind not in READERS, f"{path} is of kind {about.kind!r}, which this topicscope cannot read: {known}"
    )
    room, reader = READERS[about.kind]
    return getattr(importlib.import_module(f"topicscope.{room}"), reader)(path)
