"""`read(folder)`: what a folder holds, as the object that the command returned."""

import importlib
import os
from pathlib import Path
from typing import Any

from topicscope.ground import InputError, folders, shown

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
"""By the kind of folder: the room that wrote it, and its reader there."""


def read(folder: str | os.PathLike[str]) -> Any:
    """What the folder holds: a run, runs, a probe, a timeline, topics, words, a sweep, a landscape, a reproduction."""
    path = Path(folder)
    about = folders.read_about(path)
    if about is None:
        reason = f"no {folders.ABOUT}" if os.path.isdir(path) else "no such folder"  # a name too long is no folder
        raise InputError(f"{shown(path)} is not a folder that topicscope wrote ({reason})")
    if about.kind not in READERS:
        raise InputError(f"{path} is of kind {about.kind!r}, which this topicscope cannot read: {', '.join(READERS)}")
    room, reader = READERS[about.kind]
    return getattr(importlib.import_module(f"topicscope.{room}"), reader)(path)
