"""`topicscope train`, `pretrain` and `sweep`: the paper's model, Figure 5 for any text, and grids of runs."""

import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table

from topicscope import pages, pretraining, sweeps, training
from topicscope.cli import shell
from topicscope.cli.shell import OUTPUT, WORLD, option, out_option
from topicscope.ground import (
    FORCE_NEEDS_OUT,
    RESUME_NEEDS_OUT,
    Config,
    InputError,
    Interrupted,
    check_engine,
    check_folder,
    duration,
    flat,
    folders,
    gather,
    parsed,
    progress_shown,
    refuse_if,
    silent,
    size,
    usable_device,
)
from topicscope.world import PRIORS

TEXT, MODEL, TRAINING, RUNNING = "Text", "Model", "Training", "Points"
MOST_COLUMNS = 3  # runs that are shown side by side; of more the table has one row each

COLUMNS = (
    *("status", "dev loss", "dev loss above Bayes", "phase", "W_V, same topic", "W_V, different topic"),
    *("W_V, diagonal", "W_E'W_E, same topic", "W_E'W_E, different topic"),
)
PAGE, PAGE_POINT = 5_000_000, 4_000  # bytes of the page of a sweep, and of each point in page and tables

AnyConfig = TypeVar("AnyConfig", bound=Config)


def run_configs(
    kind: type[AnyConfig],
    stored: Callable[[Path], AnyConfig | list[AnyConfig]],
    flags: Mapping[str, object],
    file: Path | None,
    assignments: Iterable[str],
    runs: int,
    out: Path | None,
    *,
    resume: bool,
    force: bool,
    kept: str = "all settings",
    complete: Callable[[dict[str, object]], dict[str, object]] = dict,
) -> AnyConfig | list[AnyConfig]:
    """What `train` and `pretrain` run: one configuration or one per seed; with `resume` those of the folder.

    `complete` adds to the settings what options of another kind say.
    """
    flags = flat(flags)
    refuse_if(force and out is None, FORCE_NEEDS_OUT)
    if not resume:
        one = kind.of(complete(gather(file, flags, assignments))).absolute()
        return one.with_seeds(runs) if runs > 1 else one
    if out is None:
        raise InputError(RESUME_NEEDS_OUT)
    others = file or assignments or any(flag is not None for flag in flags.values()) or runs > 1 or force
    refuse_if(others, f"--resume takes {kept} from the folder; leave the other options out")
    return stored(out)


def emit_runs(
    runs: "training.Run | training.Runs | pretraining.PretrainRun | pretraining.PretrainRuns",
    payloads: Sequence[object],
    printed: Iterable[shell.Printed],
    *,
    as_json: bool,
) -> int:
    several = runs if isinstance(runs, list) else [runs]
    diverged = [f"topicscope: {run.summary()[0]}" for run in several if run.status == "diverged"]
    return shell.emit(payloads if isinstance(runs, list) else payloads[0], printed, as_json=as_json, failures=diverged)


def train(
    topics: Annotated[int | None, option("T, number of topics.", WORLD)] = None,
    words_per_topic: Annotated[int | None, option("v, words in each topic.", WORLD)] = None,
    prior: Annotated[str | None, option(f"{', '.join(PRIORS)} or infinite.", WORLD)] = None,
    topics_per_document: Annotated[
        int | None, option("tau, for the priors fixed and infinite (default 3) and groups (default 2).", WORLD)
    ] = None,
    world_from: shell.WorldFrom = None,
    words: shell.KeptWords = None,
    embedding: Annotated[str | None, option("one-hot or trained.", MODEL)] = None,
    uniform_attention: Annotated[bool, option("Freeze key and query at zero.", MODEL, "--uniform-attention")] = False,
    value: Annotated[str | None, option("trained, identity, blocks, diagonal or given.", MODEL)] = None,
    loss: Annotated[str | None, option("cross-entropy, squared or squared-mean.", TRAINING)] = None,
    l2: Annotated[float | None, option("lambda of the L2 penalty, on all trained parts.", TRAINING)] = None,
    optimizer: Annotated[str | None, option(f"{training.optimiser_names()}.", TRAINING)] = None,
    lr: Annotated[float | None, option("Learning rate.", TRAINING)] = None,
    schedule: Annotated[str | None, option("joint, two-stage or alternating.", TRAINING)] = None,
    steps: Annotated[int | None, option("Training steps (default: 20 epochs, 5,000 steps).", TRAINING)] = None,
    batch_size: Annotated[int | None, option("Documents per step.", TRAINING)] = None,
    seed: Annotated[int | None, option("Seed of every random draw.", TRAINING)] = None,
    runs: Annotated[int, option("Number of seeds to train, in one batched program.", TRAINING, min=1)] = 1,
    snapshots: Annotated[
        str | None,
        option(
            "Steps at which weights are kept, for a timeline: log (spaced logarithmically), or '[0,10,100]'.", TRAINING
        ),
    ] = None,
    floors: Annotated[bool, option("Compute the floors (lowest possible losses) at the end.", TRAINING)] = True,
    config: shell.ConfigFile = None,
    set_: shell.Assignments = None,
    device: shell.Device = None,
    out: shell.Out = None,
    resume: shell.Resume = False,
    force: shell.Force = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> int:
    """Train the paper's one-layer transformer on the paper's data, with any part trained or frozen.

    Example: [bold]topicscope train --loss squared --uniform-attention --l2 1e-4 --steps 2000 --out runs/blocks[/bold]
    """
    zero = "zero" if uniform_attention else None
    flags = {
        "topic_model": {"topics": topics, "words_per_topic": words_per_topic},
        "documents": {"kind": prior, "topics_per_document": topics_per_document},
        "model": {"embedding": embedding, "key": zero, "query": zero, "value": value},
        "objective": {"loss": loss, "l2": l2},
        "optimizer": {"name": optimizer, "lr": lr},
        "schedule": schedule,
        "steps": steps,
        "batch_size": batch_size,
        "seed": seed,
        "snapshots": None if snapshots is None else parsed(snapshots),
        "floors": None if floors else False,
        "device": device,
    }
    refuse_if(resume and world_from is not None, "--resume takes the world from the folder; leave --world-from out")
    world = shell.world_of(world_from, words)
    what = run_configs(
        training.RunConfig,
        training.stored_configs,
        flags,
        config,
        set_ or (),
        runs,
        out,
        resume=resume,
        force=force,
        complete=partial(shell.in_world, world),
    )
    model = (what[0] if isinstance(what, list) else what).model
    refuse_if(
        uniform_attention and not resume and not model.key == model.query == "zero",
        f"--uniform-attention freezes key and query at zero, but --set makes key {model.key!r} and query "
        f"{model.query!r}; leave one of the two out",
    )
    run = training.train  # PyTorch, once the input is known to be good
    with progress_shown() as progress:
        result = run(what, out, resume=resume, force=force, progress=progress, yes=yes)
    several = result if isinstance(result, list) else [result]
    notes = () if world is None else world.notes
    return emit_runs(result, [one.results for one in several], sentences(result, several, out, notes), as_json=as_json)


def sentences(
    result: "training.Run | training.Runs", several: "list[training.Run]", out: Path | None, notes: Iterable[str]
) -> Iterator[shell.Printed]:
    yield runs_table(several)
    yield from notes
    yield from (sentence for sentence in result.summary() if "diverged" not in sentence)
    if out is not None:
        yield f"Written to {out}; 'topicscope report {out}' draws it."


def runs_table(runs: "list[training.Run]") -> Table:
    facts = [run.facts() for run in runs]
    if len(runs) <= MOST_COLUMNS:
        return shell.side_by_side("topicscope train", [f"seed {run.config.seed}" for run in runs], facts)
    columns = [name for name in COLUMNS if any(name in one for one in facts)]
    rows = [
        [str(run.config.seed), *(shell.cell(one.get(name)) for name in columns)]
        for run, one in zip(runs, facts, strict=True)
    ]
    for name, statistic in (("mean", statistics.fmean), ("sd", statistics.stdev)):
        numbers = [[v for one in facts if isinstance(v := one.get(column), float)] for column in columns]
        rows.append([name, *(shell.cell(statistic(n)) if len(n) > 1 else "" for n in numbers)])
    return shell.table(["seed", *columns], rows, "topicscope train")


def pretrain(
    corpus: Annotated[list[str] | None, option("Files, patterns, folders or hf:NAME; may be repeated.", TEXT)] = None,
    text_field: Annotated[str | None, option("Field of JSON lines, CSV or Parquet with the text.", TEXT)] = None,
    split_text: Annotated[str | None, option("What a document is: line, paragraph, file or auto.", TEXT)] = None,
    tokenizer: Annotated[str | None, option("An existing tokenizer: folder or hub id.", TEXT)] = None,
    train_tokenizer: Annotated[str | None, option("Train one: wordpiece (default), bpe or unigram.", TEXT)] = None,
    vocab_size: Annotated[int | None, option("Tokens of a trained tokenizer (default 8000).", TEXT)] = None,
    architecture: Annotated[str | None, option("bert (default), roberta, albert, electra or bart.", MODEL)] = None,
    layers: Annotated[int | None, option("Layers (default 4).", MODEL)] = None,
    heads: Annotated[int | None, option("Heads per layer (default 4).", MODEL)] = None,
    dim: Annotated[int | None, option("Width (default 128).", MODEL)] = None,
    init_scale: Annotated[
        str | None, option("Scale at which W_K, W_Q, W_V start: a number, a list with one per layer, or usual.", MODEL)
    ] = None,
    dropout: Annotated[str | None, option("Dropout probability, or usual (the architecture's own).", MODEL)] = None,
    steps: Annotated[int | None, option("Training steps (default 400).", TRAINING)] = None,
    batch_size: Annotated[int | None, option("Rows per step (default 32).", TRAINING)] = None,
    length: Annotated[int | None, option("Tokens per row (default 64).", TRAINING)] = None,
    optimizer: Annotated[str | None, option("adamw (default) or sgd.", TRAINING)] = None,
    lr: Annotated[float | None, option("Learning rate (default 0.001).", TRAINING)] = None,
    warmup: Annotated[int | None, option("Steps of warm-up.", TRAINING)] = None,
    held_out: Annotated[
        float | None,
        option("Share of documents kept out of training, to measure the loss on (default 0.02).", TRAINING),
    ] = None,
    bf16: Annotated[bool, option("Mixed precision; GPUs only.", TRAINING, "--bf16")] = False,
    seed: Annotated[int | None, option("Seed of every random draw.", TRAINING, min=0)] = None,
    runs: Annotated[int, option("Number of seeds to train, one after another.", TRAINING, min=1)] = 1,
    config: shell.ConfigFile = None,
    set_: shell.Assignments = None,
    device: shell.Device = None,
    out: shell.Out = None,
    snapshots: Annotated[
        str | None, option("Steps at which the model is kept: log (default), none, or '[0,10,100]'.", OUTPUT)
    ] = None,
    resume: shell.Resume = False,
    force: shell.Force = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> int:
    """Train a small transformer on any text, with attention started near zero, and measure every layer (Figure 5).

    On several processes: accelerate launch --num_processes 2 -m topicscope pretrain ...

    Example: [bold]topicscope pretrain --corpus articles.txt --steps 400 --out runs/pretrain[/bold]
    """
    flags = {
        "text": {"corpus": corpus, "text_field": text_field, "split": split_text},
        "tokenizer": {"existing": tokenizer, "train": train_tokenizer, "vocab_size": vocab_size},
        "model": {"architecture": architecture, "layers": layers, "heads": heads, "dim": dim},
        "steps": steps,
        "batch_size": batch_size,
        "length": length,
        "optimizer": {"name": optimizer, "lr": lr, "warmup": warmup},
        "held_out": {"share": held_out},
        "bf16": bf16 or None,
        "seed": seed,
        "device": None if resume else device,  # a run may go on elsewhere
    }
    given_as_yaml = {"model.init_scale": init_scale, "model.dropout": dropout, "snapshots": snapshots}
    assignments = [f"{name}={value}" for name, value in given_as_yaml.items() if value is not None] + (set_ or [])
    refuse_if(
        tokenizer is not None and train_tokenizer is not None,
        "--tokenizer and --train-tokenizer are both given; give one: an existing tokenizer, or the kind to train",
    )
    configs = run_configs(
        pretraining.PretrainConfig,
        pretraining.stored_configs,
        flags,
        config,
        assignments,
        runs,
        out,
        resume=resume,
        force=force,
        kept="all settings but --device",
    )
    with progress_shown() if pretraining.is_main() else nullcontext(silent) as progress:
        result = pretraining.pretrain(
            configs, out, resume=resume, force=force, device=device, progress=progress, yes=yes
        )
    if not pretraining.is_main():
        return 0
    several = result if isinstance(result, list) else [result]
    sections, last = result.sections(), "--out DIR keeps the model, its snapshots, metrics and a page"
    if out is not None:
        with folders.lock(out):
            pages.write_report(out, f"topicscope pretrain: {out.name}", "\n\n".join(result.summary()), sections)
        last = f"page: {out / 'report.html'}; probe it with: topicscope probe {several[0].folder}/model --corpus ..."
    printed: list[shell.Printed] = [*shell.section_tables(sections), *result.summary(), last]
    return emit_runs(result, [run.results.as_dict() for run in several], printed, as_json=as_json)


def sweep(
    grid: Annotated[Path, typer.Argument(help="YAML file: kind (the command to run), base settings, axes.")],
    engine: shell.EngineOption = "local",
    address: shell.AddressOption = None,
    workers: shell.WorkersOption = None,
    device: Annotated[
        str | None, option("Where all points run: cpu, cuda, or auto (a GPU if there is one).", RUNNING)
    ] = None,
    retry_failed: Annotated[bool, option("Run failed points again.", RUNNING, "--retry-failed")] = False,
    dry_run: Annotated[
        bool,
        option(
            "Count points, and estimate time and disk space from short trials (up to a minute); run nothing else.",
            RUNNING,
            "--dry-run",
        ),
    ] = False,
    out: Annotated[
        Path | None, out_option("Folder of the sweep (default: runs/sweep-NAME, for a grid NAME.yaml).")
    ] = None,
    resume: Annotated[bool, option("Continue what is in the folder; --no-resume requires a new one.", OUTPUT)] = True,
    force: shell.Force = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> int:
    """Run every point of a grid: in this process, on all cores, or on a Ray cluster. Run it again to continue.

    Example: [bold]topicscope sweep grid.yaml --engine local --out runs/sweep[/bold]
    """
    check_engine(engine, workers=workers, address=address)
    refuse_if(
        device == "auto" and engine == "ray",
        "device auto looks for a GPU on this machine, not on Ray's: choose cpu or cuda",
    )
    if device is not None and (engine != "ray" or device not in ("cpu", "cuda")):
        device = usable_device(device)
    with progress_shown() as progress:
        points = sweeps.read_grid(grid, progress, device)
    on_gpu = "cuda" in sweeps.devices(points)
    if on_gpu and engine != "ray":
        usable_device("cuda")
        workers = 1 if engine == "local" and workers is None else workers  # a pack's models share a GPU, not processes
    folder = out or Path("runs") / f"sweep-{grid.stem}"
    resume = resume and not force
    check_folder(folder, sweeps.SWEEP, resume=resume, force=force)
    if dry_run:
        return estimated(points, folder, engine, workers, as_json)
    try:
        with (
            progress_shown() as progress,
            shell.chosen_engine(engine, address, workers, device="cuda" if on_gpu else "cpu") as opened,
        ):
            result = sweeps.sweep(
                points,
                folder,
                opened,
                workers=workers,
                resume=resume,
                force=force,
                retry_failed=retry_failed,
                progress=progress,
                yes=yes,
            )
            progress("drawing the page")
            write_sweep(result)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped: {sweeps.stored_points(points, folder)} of {len(points.points)} points are done and kept in "
            f"{folder}; to continue: {folders.command()}"
        ) from None
    failed = result.counts["failed"]
    printed: list[shell.Printed] = [
        *shell.section_tables(result.sections()),
        *(*result.meanings(), *result.summary()),
        f"table: {folder / 'points.csv'}; page: {folder / 'report.html'}",
    ]
    return shell.emit(
        {"folder": str(folder), "counts": result.counts, "rows": result.rows},
        printed,
        as_json=as_json,
        failures=[f"topicscope: {failed} of {len(result.rows)} points failed"] if failed else [],
    )


def estimated(grid: "sweeps.Grid", folder: Path, engine: str, workers: int | None, as_json: bool) -> int:
    rows = sweeps.Sweep.of(grid, folder, fresh=True).rows
    missing = {row["point"] for row in rows if row["state"] == "missing"}
    axes = {name: len(values) for name, values in grid.axes.items()}
    shape = ", ".join(f"{name}: {count}" for name, count in axes.items())
    points = f"{len(rows):,} points of '{grid.kind}' ({shape}); {len(missing):,} still to do"
    try:
        with progress_shown() as progress:
            cost = sweeps.estimate(grid, missing, progress)
    except InputError as error:
        raise InputError(f"{points}; no estimate, since {error}") from None
    side_by_side = 1 if engine == "serial" else min(workers or os.cpu_count() or 1, max(1, cost.packs))
    seconds = cost.core_seconds / side_by_side
    disk = cost.bytes + (PAGE + PAGE_POINT * len(rows) if missing else 0)
    payload = {
        "points": len(rows),
        "missing": len(missing),
        "axes": axes,
        "packs": cost.packs,
        "core_seconds": round(cost.core_seconds, 1),
        "seconds": round(seconds, 1),
        "side_by_side": side_by_side,
        "bytes": disk,
    }
    processes = f"{side_by_side:,} {'process' if side_by_side == 1 else 'processes'}"
    packs = f"{cost.packs:,} {'pack' if cost.packs == 1 else 'packs'} (points that run together)"
    where = "in this process" if engine == "serial" else f"on {processes} of the engine {engine}"
    about = f"about {duration(seconds)} {where} ({duration(cost.core_seconds)} of one core), not counting start-up"
    return shell.emit(payload, [f"{points}, in {packs}", f"{about}; {size(disk)} in {folder}"], as_json=as_json)


def write_sweep(result: "sweeps.Sweep") -> list[Path]:
    """points.csv, points.parquet, map.png, map.svg and report.html. Returns the page."""
    sections = result.sections()
    intro = "\n\n".join([*result.summary(), *result.meanings(), *(section.command for section in sections)])
    page = result.folder / "report.html"
    with folders.lock(result.folder):  # no other process may write to the folder meanwhile
        result.write_table()
        for section in sections:
            for figure in section.figures:
                pages.draw_figure(figure, result.folder)
        pages.write_sweep_page(page, "topicscope sweep", intro, pages.point_map(result), result.curves())
    return [page]
