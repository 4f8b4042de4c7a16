"""`export`: what a folder holds, for another program: curves for TensorBoard, tables as Parquet, models with a card.

export("runs/demo", "tensorboard"), export("runs/probe", "hf", "models/mine").files
"""

import io
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path, PurePath

import numpy as np
import yaml

from topicscope import language
from topicscope.ground import (
    InputError,
    Progress,
    Result,
    SeveralRuns,
    check_out,
    files,
    folders,
    nearest,
    parse_json,
    read_bytes,
    refuse,
    refuse_if,
    shown,
    watched,
)
from topicscope.language import Probe, ProbeConfig, short
from topicscope.pretraining import PretrainRun
from topicscope.reading import read
from topicscope.sweeps import Sweep
from topicscope.training import Run

Curves = Mapping[str, np.ndarray]  # columns by name, 'step' among them

# TensorBoard's event files are TFRecords, each around one `Event` in protobuf's wire format. They are written here:
# TensorBoard's own writer brings 57 MB of gRPC and web server, and puts the time of day into the file. Here the same
# curves give the same bytes.
POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected
MASK = 0xA282EAD8  # the format adds it to a rotated checksum, so that data may hold checksums
VERSION = b"brain.Event:2"
STEP, FILE_VERSION, SUMMARY = b"\x10", b"\x1a", b"\x2a"  # keys of Event: number of the field << 3 | wire type
VALUE, TAG, SIMPLE_VALUE = b"\x0a", b"\x0a", b"\x15"  # the key of Summary, and those of its values


def divided(byte: int, _bit: int) -> int:
    return byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)


CHECKSUMS = [reduce(divided, range(8), byte) for byte in range(256)]  # of each byte, bit by bit


def checksum(data: bytes) -> int:
    """CRC-32C.

    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CHECKSUMS[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    checksums = (((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF for crc in map(checksum, (length, data)))
    first, second = (struct.pack("<I", number) for number in checksums)
    return length + first + data + second


def varint(number: int) -> bytes:
    """Seven bits per byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    if number > 0x7F:
        return bytes([number & 0x7F | 0x80]) + varint(number >> 7)
    return bytes([number])


def field(key: bytes, data: bytes) -> bytes:
    return key + varint(len(data)) + data


def event_file(curves: Curves) -> bytes:
    """TensorBoard's event file of the curves of a run: one event per step, values as float32.

    >>> content = event_file({"step": np.array([0, 1]), "dev_loss": np.array([np.nan, 0.5])})
    >>> content.count(b"loss/dev"), np.float32(0.5).tobytes() in content  # nothing for the NaN at step 0
    (1, True)
    """
    columns = [
        (field(TAG, tag(name).encode()) + SIMPLE_VALUE, np.asarray(values, dtype="<f4"))
        for name, values in curves.items()
        if name != "step"
    ]
    records = [record(field(FILE_VERSION, VERSION))]
    for row, step in enumerate(curves["step"].astype(int).tolist()):
        values = [field(VALUE, name + column[row].tobytes()) for name, column in columns if np.isfinite(column[row])]
        if values:
            records.append(record(STEP + varint(step) + field(SUMMARY, b"".join(values))))
    return b"".join(records)


def tag(name: str) -> str:
    """TensorBoard puts figures with the same first part of their names together.

    >>> tag("norm_value"), tag("norm_key_0"), tag("dev_loss")
    ('norm/value', 'norm/key_0', 'loss/dev')
    """
    group, _, rest = name.partition("_")
    if group in ("norm", "rotation", "gradient"):
        return f"{group}/{rest}"
    return f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else "loss/train" if name == "loss" else name


TASKS = {"MaskedLM": "fill-mask", "CausalLM": "text-generation", "LMHeadModel": "text-generation"}
CLASSES = {"fill-mask": "AutoModelForMaskedLM", "text-generation": "AutoModelForCausalLM"}
READING = (
    "'yes': the difference passes all four controls. 'unsure': it passes some of them, or there is too little text. "
    "'no': there is no such difference. 'off': it was not measured."
)


def model_card(
    name: str, config: Mapping[str, object], run: PretrainRun | None, probe: Probe | None, *, on_hub: bool
) -> str:
    named = config.get("architectures")
    architecture = str(named[0]) if isinstance(named, list) and named else ""
    task = next((task for end, task in TASKS.items() if architecture.endswith(end)), "feature-extraction")
    loader = CLASSES.get(task, "AutoModel")
    use = [
        *("## Use", "", "```python", f"from transformers import {loader}, AutoTokenizer", ""),
        f'model = {loader}.from_pretrained("FOLDER")',
        *('tokenizer = AutoTokenizer.from_pretrained("FOLDER")', "```", ""),
    ]
    lines = [
        *(f"# {plain(short(name))}", ""),
        *(() if run is None else training_part(run)),
        *(() if probe is None else verdict_part(probe)),
        *(() if on_hub else use),
    ]
    front = yaml.safe_dump(
        {
            "library_name": "transformers",
            "tags": ["topicscope", "topic-structure", "interpretability"],
            **({"pipeline_tag": task} if config else {}),
            **({"base_model": name} if on_hub else {}),
        },
        sort_keys=False,
        allow_unicode=True,
    )
    return f"---\n{front}---\n\n" + "\n".join(lines).rstrip() + "\n"


def training_part(run: PretrainRun) -> list[str]:
    config, results, shape = run.config, run.results, run.config.model
    facts = [
        (name, f"{value:.5g}" if isinstance(value, float) else str(value))
        for name, value in run.facts().items()
        if value is not None
    ]
    return [
        *("## Training", "", "Masked language modelling with `topicscope pretrain`.", ""),
        *table(
            ["setting", "value"],
            {
                "architecture": f"{shape.architecture}, {shape.layers} layers of {shape.heads} heads, "
                f"width {shape.dim}",
                "parameters": f"{results.parameters:,}",
                "vocabulary": f"{results.vocabulary:,} tokens",
                "text": names(config.text.corpus),
                "steps": f"{results.steps:,} of {config.batch_size} rows of {config.length} tokens",
                "optimiser": f"{config.optimizer.name}, learning rate {config.optimizer.lr:g}",
                "seed": str(results.seed),
            }.items(),
        ),
        *(plain(run.course.sentence), ""),
        *table(["result", "value"], facts),
    ]


def verdict_part(probe: Probe) -> list[str]:
    [verdict], config = probe.verdicts, probe.config
    assert isinstance(config, ProbeConfig)  # what a folder of a probe holds
    controls = list(verdict.embeddings.controls)
    topics = "given topics" if config.topics_from or config.label_field else f"{config.topics} fitted topics"
    return [
        *("## Does the model encode topics?", ""),
        *table(
            ["where", "answer", *controls],
            [
                (place, answer.answer, *(answer.controls.get(name, "-") for name in controls))
                for place, answer in verdict.answers.items()
            ],
        ),
        *(f"- {plain(answer.sentence)}" for answer in verdict.answers.values() if answer.checks),
        *("", READING, ""),
        f"Measured with `topicscope probe` on {plain(names(config.corpus))}: {topics}, {config.documents:,} documents, "
        f"thresholds {', '.join(f'{one:g}' for one in config.thresholds)}, seed {config.seed}.",
        "",
    ]


def names(files: Sequence[str]) -> str:
    return ", ".join(shown(file if file.startswith("hf:") else PurePath(file).name) for file in files)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [columns, ["---"] * len(columns), *([plain(cell) for cell in row] for row in rows)]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def plain(text: str) -> str:
    """Text that Markdown and HTML take as it is.

    >>> plain("a|b <b>*c*</b>")
    'a\\\\|b \\\\<b\\\\>\\\\*c\\\\*\\\\</b\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>|#!])", r"\\\1", " ".join(shown(text).split()))


def curves_of(result: Result) -> Iterator[tuple[str, Curves]]:
    if isinstance(result, Run | PretrainRun):
        yield "", result.metrics
    elif isinstance(result, SeveralRuns):
        for number, run in enumerate(result):
            yield f"run-{number:03d}-seed-{run.config.seed}", run.metrics
    elif isinstance(result, Sweep):
        for row, curves in zip(result.rows, result.curves(), strict=True):
            if row["state"] == "done" and "step" in curves:
                values = ",".join(f"{name}={row[name]}" for name in result.grid.axes)
                yield f"{re.sub(r'[^A-Za-z0-9_.=,+-]+', '_', values)[:100]}-{row['point'][:6]}", curves


RECEIPT = "exported.json"  # this file says what an exported folder was made from, and lists its files
EVENTS = "events.out.tfevents.0.topicscope"  # TensorBoard reads files with 'tfevents' in their names
METADATA = b"topicscope"


@dataclass(frozen=True)
class Exported:
    source: Path
    kind: str
    to: str
    out: Path
    files: list[str]
    notes: list[str]

    def as_dict(self) -> dict[str, object]:
        return vars(self) | {"source": str(self.source), "out": str(self.out)}

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
    refuse(
        (to not in TARGETS, f"no target {to!r}; {nearest(to, TARGETS)}"),
        (model is not None and to != "hf", f"model {model}: only --to hf exports one of several models; leave it out"),
    )
    write, ending = TARGETS[to]
    result = read(folder)
    source = Path(folder) if Path(folder).name else Path(folder).resolve()  # '.' has no name
    place = source.with_name(source.name + ending) if out is None else Path(out)
    check_place(place, source, ending.startswith("."), force)
    with watched(progress) as shown_progress:
        return Exported(source, result.kind, to, place, *write(result, source, place, model, shown_progress))


def check_place(place: Path, source: Path, is_file: bool, force: bool) -> None:
    check_out(place.parent if is_file else place)
    other, inside = "choose another place (--out)", source.resolve() in (place.resolve(), *place.resolve().parents)
    refuse_if(inside, f"{shown(place)} is inside the folder that is exported; {other}")
    if os.path.lexists(place) and (is_file or not (place.is_dir() and place.name and not any(place.iterdir()))):
        refuse(
            (
                not (is_own_file if is_file else is_own_folder)(place),
                f"{shown(place)} exists and is not an export of topicscope; {other}",
            ),
            (not force, f"{shown(place)} already exists; replace it (--force), or {other}"),
        )


def is_own_file(path: Path) -> bool:
    from pyarrow import ArrowException, parquet

    try:
        return path.is_file() and METADATA in (parquet.read_schema(path).metadata or {})
    except (ArrowException, OSError, ValueError):
        return False


def is_own_folder(path: Path) -> bool:
    try:
        listed = parse_json(read_bytes(path / RECEIPT), RECEIPT)["files"]
        return {str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir()} == {RECEIPT, *listed}
    except (InputError, OSError, KeyError, TypeError):
        return False


Written = tuple[list[str], list[str]]  # names of files, and notes


def to_tensorboard(result: Result, source: Path, place: Path, _model: str | None, progress: Progress) -> Written:
    runs = [(name, curves) for name, curves in curves_of(result) if len(curves.get("step", ()))]
    refuse_if(
        not runs,
        f"{result!r} has no curves over steps for TensorBoard: expected a folder of train or pretrain, or a sweep "
        "of them with points that are done; --to parquet accepts any",
    )
    with files.whole_folder(place) as folder:
        for number, (name, curves) in enumerate(runs):
            progress("writing curves", number, len(runs))
            (folder / name).mkdir(exist_ok=True)
            files.write(folder / name / EVENTS, event_file(curves))
        return write_receipt(folder, source, result, "tensorboard"), [f"To view it: tensorboard --logdir {place}"]


def to_parquet(result: Result, source: Path, place: Path, _model: str | None, _progress: Progress) -> Written:
    from pyarrow import parquet

    stream = io.BytesIO()
    table = result.table().replace_schema_metadata({METADATA: f"{result.kind}: {shown(source.resolve().name)}"})
    parquet.write_table(table, stream)
    place.parent.mkdir(parents=True, exist_ok=True)
    files.write(place, stream.getvalue())
    return [place.name], [f"{table.num_rows:,} rows, {table.num_columns} columns"]


def to_hf(result: Result, source: Path, place: Path, model: str | None, progress: Progress) -> Written:
    """The files of the model, and the card. Of a model of the hub the card alone: nothing is fetched."""
    run, probe, name = chosen_model(result, source, model)
    at = language.check_model(name)
    home = Path(at.name)
    if at.local and run is None and home.name == "model":
        with suppress(InputError):  # the run whose folder holds the model that was probed
            trained = read(home.parent)
            run = trained if isinstance(trained, PretrainRun) else None
    config = language.read_model_files(home)[0] if at.local else {}
    title = source.resolve().name if isinstance(result, PretrainRun) else at.name
    with files.whole_folder(place) as folder:
        for file in language.published_files(home) if at.local else []:
            progress(f"copying {file.name}")
            shutil.copyfile(file, folder / ("README.source.md" if file.name == "README.md" else file.name))
        files.write(folder / "README.md", model_card(title, config, run, probe, on_hub=not at.local).encode())
        return write_receipt(folder, source, result, "hf"), [
            f"Load it with from_pretrained({str(place)!r}) of transformers"
            if at.local
            else f"Only the model card was written: {name} is not a folder here, and nothing is fetched from the hub"
        ]


def chosen_model(result: Result, source: Path, model: str | None) -> tuple[PretrainRun | None, Probe | None, str]:
    if isinstance(result, Probe):
        brief = result.models.values()
        names = {key: name for name, short_name in result.models.items() for key in (None, short_name, name)}
        refuse(
            (
                model is None and len(brief) > 1,
                f"{shown(source)} has {len(brief)} models; choose one with --model: {', '.join(brief)}",
            ),
            (model not in names, f"no model {model!r} in {shown(source)}; {nearest(str(model), brief)}"),
        )
        return None, result.of_model(names[model]), names[model]
    if isinstance(result, PretrainRun) and result.status == "done" and model is None:
        return result, None, str(source / "model")
    several = f"; name one of its runs, for example {source / 'run-000'}" if isinstance(result, list) else ""
    raise InputError(
        f"{shown(source)} ({result!r}) holds no language model to export{several}; expected a finished run of "
        "pretrain, or a probe"
    )


def write_receipt(folder: Path, source: Path, result: Result, to: str) -> list[str]:
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    files.write_json(
        folder / RECEIPT,
        {
            "topicscope": folders.version_of("topicscope"),
            "from": shown(source.resolve().name),
            "kind": result.kind,
            "to": to,
            "files": names,
        },
    )
    return [*names, RECEIPT]


# for each target its writer and the ending of its default name; an ending with a dot is that of a file
TARGETS: Mapping[str, tuple[Callable[[Result, Path, Path, str | None, Progress], Written], str]] = {
    "tensorboard": (to_tensorboard, "-tensorboard"),
    "parquet": (to_parquet, ".parquet"),
    "hf": (to_hf, "-hf"),
}
