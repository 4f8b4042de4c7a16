"""`topicscope train`."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from topicscope.cli import consoles

Flag = dict[str, Any]


def command(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="YAML file of settings; flags and --set override it.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any setting, for example --set masking.p_random=0.2; may be repeated."
        ),
    ] = None,
    topics: Annotated[int | None, typer.Option(help="T, number of topics.")] = None,
    words_per_topic: Annotated[int | None, typer.Option(help="v, words in each topic.")] = None,
    prior: Annotated[str | None, typer.Option(help="dirichlet, fixed, infinite or given.")] = None,
    topics_per_document: Annotated[int | None, typer.Option(help="tau, for the priors fixed and infinite.")] = None,
    loss: Annotated[
        str | None, typer.Option(help="cross-entropy, squared (summed over outputs) or squared-mean.")
    ] = None,
    l2: Annotated[float | None, typer.Option(help="lambda of the L2 penalty, on all trained parts.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="adam or sgd.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    embedding: Annotated[str | None, typer.Option(help="one-hot or trained.")] = None,
    uniform_attention: Annotated[
        bool, typer.Option("--uniform-attention", help="Freeze key and query at zero.")
    ] = False,
    value: Annotated[str | None, typer.Option(help="trained, identity, blocks, diagonal or given.")] = None,
    schedule: Annotated[str | None, typer.Option(help="joint, two-stage or alternating.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps (default: 20 epochs, 5,000 steps).")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Documents a step.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random draw.")] = None,
    runs: Annotated[
        int, typer.Option(help="Train this many runs, with seeds SEED, SEED + 1, ..., in one batched program.", min=1)
    ] = 1,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to write (must be new or empty).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    snapshots: Annotated[
        str | None,
        typer.Option(help="Keep the weights at some steps, for a timeline: log, or a list such as '[0,10,100]'."),
    ] = None,
    floors: Annotated[bool, typer.Option(help="Compute the floors of the loss at the end.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Train the paper's one-layer transformer on the paper's data, with any part trained or frozen.

    Example: [bold]topicscope train --loss squared --uniform-attention --l2 1e-4 --steps 2000 --out runs/blocks[/bold]
    """
    from topicscope.ground import InputError, apply_settings, load_settings
    from topicscope.training import build_config, resume_config, seeds as with_seeds, train

    flags = {
        "topic_model.topics": topics,
        "topic_model.words_per_topic": words_per_topic,
        "documents.kind": prior,
        "documents.topics_per_document": topics_per_document,
        "objective.loss": loss,
        "objective.l2": l2,
        "optimizer.name": optimizer,
        "optimizer.lr": lr,
        "model.embedding": embedding,
        "model.value": value,
        "model.key": "zero" if uniform_attention else None,
        "model.query": "zero" if uniform_attention else None,
        "steps": steps,
        "batch_size": batch_size,
        "seed": seed,
        "device": device,
    }
    flags["floors"] = None if floors else False
    given = {key: flag for key, flag in flags.items() if flag is not None}
    if resume:
        if out is None:
            raise InputError("--resume needs --out, the folder of the run to go on with")
        if config or set_ or given or snapshots or schedule or runs > 1 or force:
            raise InputError(
                "--resume takes all settings from the folder; leave the other options out (--force starts a run anew)"
            )
        many, runs = ensemble_size(out)
        settings = resume_config(out / "run-000" if many else out)
    else:
        settings = load_settings(config) if config is not None else {}
        assignments = (
            [f"{key}={json.dumps(flag)}" for key, flag in given.items()]
            + ([f"snapshots={snapshots}"] if snapshots is not None else [])
            + (set_ or [])
        )
        settings = apply_settings(settings, assignments)
        many = runs > 1
    run_config = build_config(absolute(settings), schedule)
    console = consoles.progress()
    with progress_bar(console, run_config.total_steps * runs) as progress:
        what = with_seeds(run_config, runs) if many else run_config
        result = train(what, out, resume=resume, force=force, progress=progress)
    results = result if isinstance(result, list) else [result]
    if as_json:
        payload: Any = [run.results for run in results]
        print(json.dumps(payload if many else payload[0], allow_nan=False))
    else:
        print_results(consoles.results(), results, out)
    diverged = [run for run in results if run.status == "diverged"]
    for run in diverged:
        console.print(
            f"seed {run.config.seed} diverged at step {run.results['steps']}: loss or weights are no longer finite. "
            "Its figures up to there are kept; try a smaller --lr.",
            style="red",
            soft_wrap=True,
        )
    return 1 if diverged else 0


def ensemble_size(out: Path) -> tuple[bool, int]:
    """Whether the folder holds an ensemble, and of how many runs."""
    from topicscope.ground import ENSEMBLE, InputError

    path = out / ENSEMBLE
    if not path.exists():
        return False, 1
    try:
        return True, int(json.loads(path.read_text())["runs"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged; start the runs anew with --force") from None


def absolute(settings: dict[str, Any]) -> dict[str, Any]:
    """File names in full, so that a run can be resumed from anywhere."""
    for section, key in (
        ("data", "train_file"),
        ("data", "dev_file"),
        ("documents", "proportions"),
        ("model", "value_matrix"),
    ):
        part = settings.get(section)
        if isinstance(part, dict) and isinstance(part.get(key), str):
            part[key] = str(Path(part[key]).resolve())
    return settings


@contextmanager
def progress_bar(console: Console, total: int) -> Iterator[Any]:
    """A bar with loss and rate, on stderr."""
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("{task.fields[rate]:,.0f} steps/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, loss=math.nan, rate=0.0)
        began, done = time.perf_counter(), 0

        def progress(steps: int, _total: int, loss: float) -> None:
            nonlocal done
            done += steps
            bar.update(task, advance=steps, loss=loss, rate=done / max(1e-9, time.perf_counter() - began))

        yield progress


def print_results(console: Console, results: list[Any], out: Path | None) -> None:
    """What came out: a column a run, or, where they are many, a row a run with mean and spread below."""
    if len(results) > 3:
        print_many(console, results)
        if out is not None:
            console.print(f"written to {out}", soft_wrap=True)
        return
    table = Table(title="topicscope train", title_justify="left")
    table.add_column("")
    for run in results:
        table.add_column(f"seed {run.config.seed}", justify="right")
    for label, path in rows_to_print(results):
        table.add_row(label, *(text(lookup(run.results, path)) for run in results))
    console.print(table)
    if out is not None:
        console.print(f"written to {out}", soft_wrap=True)


def print_many(console: Console, results: list[Any]) -> None:
    wanted = [
        ("dev loss", ("dev_loss",)),
        ("above Bayes", ("above_floor", "bayes")),
        ("same topic", ("value", "same")),
        ("different", ("value", "different")),
    ]
    wanted += [
        ("diagonal", ("value", "diagonal")),
        ("Gram same", ("gram", "same")),
        ("Gram different", ("gram", "different")),
    ]
    columns = [(label, path) for label, path in wanted if any(lookup(run.results, path) is not None for run in results)]
    table = Table("seed", "status", *(label for label, _ in columns), title="topicscope train", title_justify="left")
    for run in results:
        table.add_row(str(run.config.seed), run.status, *(text(lookup(run.results, path)) for _, path in columns))
    values = [[v for run in results if isinstance(v := lookup(run.results, path), float)] for _, path in columns]
    table.add_section()
    for name, statistic in (("mean", statistics.fmean), ("sd", statistics.stdev)):
        table.add_row(name, "", *(text(statistic(column)) if len(column) > 1 else "-" for column in values))
    console.print(table)


def rows_to_print(results: list[Any]) -> list[tuple[str, tuple[str, ...]]]:
    rows: list[tuple[str, tuple[str, ...]]] = [
        ("status", ("status",)),
        ("steps", ("steps",)),
        ("training loss (last 100 steps)", ("loss",)),
        ("dev loss", ("dev_loss",)),
        ("Bayes-optimal loss", ("floors", "bayes", "loss")),
        ("  dev loss above it", ("above_floor", "bayes")),
        ("Bayes, from topics alone", ("floors", "bayes_topics", "loss")),
        ("  dev loss above it", ("above_floor", "bayes_topics")),
        ("best uniform-attention fit of dev", ("floors", "least_squares", "loss")),
        ("  dev loss above it", ("above_floor", "least_squares")),
    ]
    for what, name in (("W_V", "value"), ("W_E'W_E", "gram")):
        rows += [
            (f"{what}, {relation}", (name, key))
            for relation, key in (("same topic", "same"), ("different topic", "different"), ("diagonal", "diagonal"))
        ]
    return [(label, path) for label, path in rows if any(lookup(run.results, path) is not None for run in results)]


def lookup(results: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = results
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
