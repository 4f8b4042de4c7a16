"""`export`: what a folder holds, for another program. To add a target, write its function and an entry of TARGETS.

export("runs/demo", "tensorboard"), export("runs/probe", "hf", "models/mine").files
"""

import io
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topicscope import language
from topicscope.exporting.cards import model_card
from topicscope.exporting.curves import all_curves
from topicscope.exporting.events import event_file
from topicscope.ground import (
    InputError,
    Progress,
    check_out,
    files,
    folders,
    nearest,
    parse_json,
    read_bytes,
    shown,
    watched,
)
from topicscope.pretraining import PretrainRun
from topicscope.reading import read

RECEIPT = "exported.json"  # in an exported folder: what it was made from, and its files
EVENTS = "events.out.tfevents.0.topicscope"  # TensorBoard reads files with 'tfevents' in their names
OWN_CARD = "README.source.md"
METADATA = b"topicscope"


@dataclass(frozen=True)
class Exported:
    """What an export wrote, and how to open it.

    Attributes:
        source: The folder that was exported.
        kind: Kind of that folder, such as 'train' or 'probe'.
        to: 'tensorboard', 'parquet' or 'hf'.
        out: The file or folder that was written.
        files: Names of the files in it.
        notes: What it holds, and how to open it, in sentences.

    Example:
        See `export`.
    """

    source: Path
    kind: str
    to: str
    out: Path
    files: list[str]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        about = {"source": str(self.source), "kind": self.kind, "to": self.to, "out": str(self.out)}
        return about | {"files": self.files, "notes": self.notes}

    def summary(self) -> list[str]:
        count = f" ({len(self.files)} files)" if len(self.files) > 1 else ""
        return [f"Written to {self.out}{count}.", *self.notes]


def export(
    folder: str | os.PathLike[str],
    to: str,
    out: str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write what a folder holds for TensorBoard, as Parquet, or as a model folder with a card ('hf').

    Any folder that `read` reads has a Parquet table. Curves are those of `train`, `pretrain`, their ensembles and
    sweeps; models those of `pretrain` and `probe`.

    Args:
        folder: A finished folder.
        to: 'tensorboard', 'parquet' or 'hf'.
        out: A new place; None: beside the folder.
        model: Which one, of a probe of several.
        force: Replace an earlier export there, and nothing else.
        progress: Called as progress(phase, done, total, note).

    Returns:
        What was written, and how to open it.

    Raises:
        InputError: The folder has no such content, or the place is taken.

    Example:
        >>> import tempfile
        >>> from topicscope import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = train(RunConfig.of(small, steps=10), f"{folder}/run")
        ...     exported = export(f"{folder}/run", "parquet")
        >>> exported.files, exported.notes  # one row per step, and one for the start
        (['run.parquet'], ['11 rows, 15 columns'])
    """
    if to not in TARGETS:
        raise InputError(f"no target {to!r}; {nearest(to, TARGETS)}")
    if model is not None and to != "hf":
        raise InputError(f"model {model}: only --to hf exports one of several models; leave it out")
    source, target = Path(folder), TARGETS[to]
    result = read(source)
    source = source if source.name else source.resolve()  # '.' has no name
    place = source.with_name(source.name + target.ending) if out is None else Path(out)
    check_place(place, source, target.is_file, force)
    with watched(progress) as shown_progress:
        written = target.write(result, source, place, model, shown_progress)
    return Exported(source, result.kind, to, place, *written)


def check_place(place: Path, source: Path, is_file: bool, force: bool) -> None:
    """Raise InputError unless the export can be written there without loss."""
    check_out(place.parent if is_file else place)
    if source.resolve() in (place.resolve(), *place.resolve().parents):
        raise InputError(f"{shown(place)} is inside the folder that is exported; choose another place (--out)")
    if not os.path.lexists(place) or (place.is_dir() and place.name and not is_file and not any(place.iterdir())):
        return
    if not (is_own_file(place) if is_file else is_own_folder(place)):
        raise InputError(f"{shown(place)} exists and is not an export of topicscope; choose another place (--out)")
    if not force:
        raise InputError(f"{shown(place)} already exists; replace it (--force), or choose another place (--out)")


def is_own_file(path: Path) -> bool:
    """Whether a file, not a pipe or a device, is a table that an export wrote."""
    from pyarrow import ArrowException, parquet

    try:
        return path.is_file() and METADATA in (parquet.read_schema(path).metadata or {})
    except (ArrowException, OSError, ValueError):
        return False


def is_own_folder(path: Path) -> bool:
    """Whether a folder holds what an export wrote, and nothing else."""
    try:
        listed = parse_json(read_bytes(path / RECEIPT), RECEIPT)["files"]
        there = {str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir()}
        return there == {RECEIPT, *listed}
    except (InputError, OSError, KeyError, TypeError):
        return False


Written = tuple[list[str], list[str]]  # names of files, and notes


def to_tensorboard(result: Any, source: Path, place: Path, _model: str | None, progress: Progress) -> Written:
    """One folder per run, as TensorBoard has it."""
    runs = all_curves(result)
    with files.whole_folder(place) as folder:
        for number, (name, curves) in enumerate(runs):
            progress("writing curves", number, len(runs))
            (folder / name).mkdir(exist_ok=True)
            files.write(folder / name / EVENTS, event_file(curves))
        names = write_receipt(folder, source, result, "tensorboard")
    return names, [f"To view it: tensorboard --logdir {place}"]


def to_parquet(result: Any, source: Path, place: Path, _model: str | None, _progress: Progress) -> Written:
    from pyarrow import parquet

    table, stream = result.table(), io.BytesIO()
    about = f"{result.kind}: {shown(source.resolve().name)}"
    parquet.write_table(table.replace_schema_metadata({METADATA: about}), stream)
    place.parent.mkdir(parents=True, exist_ok=True)
    files.write(place, stream.getvalue())
    return [place.name], [f"{table.num_rows:,} rows, {table.num_columns} columns"]


def to_hf(result: Any, source: Path, place: Path, model: str | None, progress: Progress) -> Written:
    """The files of the model, and the card. Of a model of the hub the card alone: nothing is fetched."""
    run, probe, name = chosen_model(result, source, model)
    at = language.check_model(name)
    if at.local and run is None and Path(at.name).name == "model":
        run = trained_there(Path(at.name).parent)
    config = language.model_config(Path(at.name)) if at.local else {}
    notes = [f"Load it with from_pretrained({str(place)!r}) of transformers"]
    with files.whole_folder(place) as folder:
        for file in language.published_files(Path(at.name)) if at.local else []:
            progress(f"copying {file.name}")
            shutil.copyfile(file, folder / (OWN_CARD if file.name == "README.md" else file.name))
        title = source.resolve().name if isinstance(result, PretrainRun) else at.name
        files.write(folder / "README.md", model_card(title, config, run, probe, on_hub=not at.local).encode())
        names = write_receipt(folder, source, result, "hf")
    if not at.local:
        notes = [f"Only the model card was written: {name} is not a folder here, and nothing is fetched from the hub"]
    return names, notes


def chosen_model(result: Any, source: Path, model: str | None) -> tuple[PretrainRun | None, Any, str]:
    """The training, the probe and the place of the model to export."""
    if isinstance(result, language.Probe):
        names = {key: name for name, brief in result.models.items() for key in (brief, name)}
        if model is None and len(result.models) > 1:
            raise InputError(
                f"{shown(source)} has {len(result.models)} models; choose one with --model: "
                f"{', '.join(result.models.values())}"
            )
        if model is not None and model not in names:
            raise InputError(f"no model {model!r} in {shown(source)}; {nearest(model, result.models.values())}")
        name = names[model] if model is not None else next(iter(result.models))
        return None, result.of_model(name), name
    if isinstance(result, PretrainRun) and result.status == "done" and model is None:
        return result, None, str(source / "model")
    several = f"; name one of its runs, for example {source / 'run-000'}" if isinstance(result, list) else ""
    raise InputError(
        f"{shown(source)} ({result!r}) holds no language model to export{several}; expected a finished run of "
        "pretrain, or a probe"
    )


def trained_there(folder: Path) -> PretrainRun | None:
    """The finished run of `pretrain` whose folder holds the model that was probed."""
    try:
        run = read(folder)
    except InputError:
        return None
    return run if isinstance(run, PretrainRun) else None


def write_receipt(folder: Path, source: Path, result: Any, to: str) -> list[str]:
    """The names of all files, the receipt last."""
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    version = folders.version_of("topicscope")
    about = {"topicscope": version, "from": shown(source.resolve().name), "kind": result.kind, "to": to, "files": names}
    files.write_json(folder / RECEIPT, about)
    return [*names, RECEIPT]


@dataclass(frozen=True)
class Target:
    """How a target is written, how the default name of its place ends, and whether that is a file."""

    write: Callable[[Any, Path, Path, str | None, Progress], Written]
    ending: str
    is_file: bool = False


TARGETS: Mapping[str, Target] = {
    "tensorboard": Target(to_tensorboard, "-tensorboard"),
    "parquet": Target(to_parquet, ".parquet", is_file=True),
    "hf": Target(to_hf, "-hf"),
}
