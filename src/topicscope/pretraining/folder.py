"""The folder of a run, or of several: config.yaml, tokenizer, metrics.jsonl, checkpoints, model; claimed by one process at a time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topicscope.ground import InputError, files, load_settings, old_folders as folders
from topicscope.language import Corpus, load_tokenizer
from topicscope.pretraining import checkpoint
from topicscope.pretraining.config import PretrainConfig, build_config
from topicscope.pretraining.tokenizer import make_tokenizer


@contextmanager
def claimed(
    root: Path, homes: list[Path], configs: list[PretrainConfig], *, resume: bool, force: bool, read: bool = True
) -> Iterator[None]:
    """The folder, made and locked, with the configs of all its runs; one that holds another run is left alone. `read`: the text is the config's."""
    folders.check(root, resume=resume, force=force)
    for config in configs:
        if read:
            Corpus(
                config.text.corpus, config.text.text_field, config.text.split
            )  # named files are there before anything is written
    folders.prepare(root)
    with folders.lock(root):
        folders.prepare(root, force=force)
        for home in [root, *root.glob(folders.MEMBERS)] if force else []:
            for name in (checkpoint.MODEL, checkpoint.TOKENIZER, checkpoint.CHECKPOINTS):
                shutil.rmtree(home / name, ignore_errors=True)
            (home / checkpoint.STATE).unlink(missing_ok=True)
        if homes != [root]:
            files.write_json(root / folders.ENSEMBLE, {"runs": len(homes)})
        fresh = [home for home in homes if not (home / folders.CONFIG).exists()]
        for home, config in zip(homes, configs, strict=True):
            folders.claim(home, config.as_dict())
        try:
            yield
        except InputError:
            if fresh == homes and not any(
                (home / folders.METRICS).exists() for home in homes
            ):  # nothing was done: nothing stands in the way of a better try
                forget(root, homes)
            raise


def forget(root: Path, homes: list[Path]) -> None:
    """Take away what a start has written."""
    for home in homes:
        for name in (checkpoint.TOKENIZER, checkpoint.CHECKPOINTS):
            shutil.rmtree(home / name, ignore_errors=True)
        for name in (folders.CONFIG, folders.ENVIRONMENT):
            (home / name).unlink(missing_ok=True)
        if home != root and not any(home.iterdir()):
            home.rmdir()
    (root / folders.ENSEMBLE).unlink(missing_ok=True)


def members(folder: Path) -> list[Path]:
    """The folders of a folder's runs: itself, or run-000, run-001, ..."""
    path = folder / folders.ENSEMBLE
    if not path.exists():
        return [folder]
    try:
        return [folder / f"run-{i:03d}" for i in range(int(json.loads(path.read_text())["runs"]))]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged; start the runs anew with --force") from None


def resume_configs(folder: Path) -> PretrainConfig | list[PretrainConfig]:
    """The configs of the runs in a folder, to go on with."""
    homes = members(folder)
    for home in homes:
        if not (home / folders.CONFIG).is_file():
            raise InputError(
                f"--resume: {home} holds no run (no {folders.CONFIG}); leave --resume out to start one there"
            )
    configs = [build_config(load_settings(home / folders.CONFIG)) for home in homes]
    return configs[0] if homes == [folder] else configs


def stored_tokenizer(folder: Path, config: PretrainConfig, corpus: Iterable[str], given: Any, accelerator: Any) -> Any:
    """Made by the main process, kept in the folder, read from there by all and on resuming."""
    home = folder / checkpoint.TOKENIZER
    if accelerator.is_main_process and not home.is_dir():
        tokenizer = given if given is not None else make_tokenizer(config, corpus)
        temporary = home.with_name(".tokenizer.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        tokenizer.save_pretrained(temporary)
        temporary.rename(home)
    accelerator.wait_for_everyone()
    return load_tokenizer(home)
