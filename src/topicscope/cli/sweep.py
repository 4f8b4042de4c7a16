"""`topicscope sweep`: a grid of runs on any engine, with a table and a map at the end."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from topicscope.cli import consoles
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, chosen_engine

if TYPE_CHECKING:
    from topicscope.sweeps import Grid, Sweep

PAGE, PAGE_POINT = 5_000_000, 4_000
"""Bytes of the page, and of each point in page and tables."""

MOST_ROWS = 40
"""Points that the terminal shows one by one; of more it shows how many are in which phase."""


def command(
    grid: Annotated[Path, typer.Argument(help="YAML file: kind (train, pretrain or probe), base settings, axes.")],
    engine: EngineOption = "local",
    address: AddressOption = None,
    workers: WorkersOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the sweep (default: runs/sweep-NAME of the grid file)."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--no-resume", help="Go on with what is in the folder; --no-resume wants a new one."),
    ] = True,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try points again that failed.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Count the points and estimate time and disk; run nothing but short trials."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Run every point of a grid: in this process, on all cores, or on a Ray cluster. Stop it at any time; run again, it goes on.

    Example: [bold]topicscope sweep grid.yaml --engine local --out runs/sweep[/bold]
    """
    from topicscope.ground import InputError, Interrupted, check_engine
    from topicscope.sweeps import ABOUT, check, read_grid, sweep

    check_engine(engine, workers=workers, address=address)
    points = read_grid(grid)
    folder = out or Path("runs") / f"sweep-{grid.stem}"
    check(folder)
    if not resume and (folder / ABOUT).exists():
        raise InputError(
            f"--no-resume, but {folder} holds a sweep; choose another --out, or leave --no-resume out to go on with it"
        )
    if dry_run:
        return estimated(points, folder, engine, workers, as_json)
    told = {"done": 0, "failed": 0, "all": len(points.points)}
    try:
        with chosen_engine(engine, address, workers) as opened, progress_bar(told) as progress:
            found = sweep(points, folder, opened, retry_failed=retry_failed, progress=progress)
    except KeyboardInterrupt:
        kept = f"{told['done'] + told['failed']} of {told['all']} points are done and kept in {folder}"
        raise Interrupted(f"stopped: {kept}; to go on: {shlex.join(['topicscope', *sys.argv[1:]])}") from None
    write(found, shlex.join(["topicscope", *sys.argv[1:]]))
    if as_json:
        print(json.dumps({"folder": str(folder), "counts": found.counts, "rows": found.rows}, allow_nan=False))
    else:
        show(found, folder)
    return 1 if found.counts["failed"] else 0


def estimated(grid: Grid, folder: Path, engine: str, workers: int | None, as_json: bool) -> int:
    from topicscope.ground import InputError
    from topicscope.sweeps import estimate, read_sweep

    rows = read_sweep(grid, folder, fresh=True).rows
    missing = {row["point"] for row in rows if row["state"] == "missing"}
    counts = {
        "points": len(rows),
        "missing": len(missing),
        "axes": {name: len(values) for name, values in grid.axes.items()},
    }
    shape = ", ".join(f"{name}: {len(values)}" for name, values in grid.axes.items()) or "no axes"
    told = f"{len(rows):,} points of '{grid.kind}' ({shape}); {len(missing):,} still to do"
    try:
        with consoles.progress().status("short trials of a few points"):
            cost = estimate(grid, missing)
    except InputError as error:
        raise InputError(f"{told}; no estimate, since {error}") from None
    side_by_side = 1 if engine == "serial" else min(workers or os.cpu_count() or 1, max(1, cost.packs))
    disk = cost.bytes + (PAGE + PAGE_POINT * len(rows) if missing else 0)
    found = counts | {
        "packs": cost.packs,
        "core_seconds": round(cost.core_seconds, 1),
        "side_by_side": side_by_side,
        "seconds": round(cost.core_seconds / side_by_side, 1),
        "bytes": disk,
    }
    if as_json:
        print(json.dumps(found))
        return 0
    typer.echo(f"{told}, in {cost.packs:,} packs")
    where = {"serial": "in this process", "local": f"on {side_by_side} processes"}.get(
        engine, f"on {side_by_side} cores of a Ray here"
    )
    typer.echo(
        f"about {duration(cost.core_seconds / side_by_side)} {where} ({duration(cost.core_seconds)} of one core), and {size(disk)} in {folder} (starting aside)"
    )
    return 0


@contextmanager
def progress_bar(told: dict[str, int]) -> Iterator[Any]:
    """Points done, failed and left; `told` keeps the figures for whoever is interrupted."""
    console = consoles.progress()
    columns = (
        TextColumn("points"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("points", total=None, note="starting")

        def step(done: int, failed: int, count: int) -> None:
            told.update(done=done, failed=failed)
            bar.update(task, completed=done + failed, total=count, note=f"[red]{failed} failed[/red]" if failed else "")

        yield step


def write(found: Sweep, said: str) -> None:
    """points.csv, points.parquet, map.png and report.html."""
    from topicscope.figures import map_figure
    from topicscope.report import draw_figure, write_sweep_page
    from topicscope.sweeps import read, write_table

    write_table(found, found.folder)
    axes = found.grid.axes
    if axes and (measure := main_measure(found)):
        draw_figure(map_figure(found.rows, axes, measure, "map", measure.replace("_", " ")), found.folder)
    counts = found.counts
    intro = f"{len(found.rows)} points of '{found.grid.kind}': {counts['done']} done, {counts['failed']} failed, {counts['missing']} missing.\n\n{said}"
    results = (read(found.folder, point)[1] for point in found.grid.points)
    write_sweep_page(
        found.folder / "report.html",
        "topicscope sweep",
        intro,
        axes,
        found.rows,
        ({} if result is None else result.curves for result in results),
        main_measure(found),
    )


def main_measure(found: Sweep) -> str | None:
    """What the picture shows: phases where there are any, else the first of these that was measured."""
    return next(
        (
            name
            for name in ("phase", "attention_ratio", "cosine_difference", "dev_loss", "loss")
            if name in found.measures
        ),
        None,
    )


def show(found: Sweep, folder: Path) -> None:
    from topicscope.figures import TableData, phase_table, tick

    axes, counts = list(found.grid.axes), found.counts
    if len(found.rows) <= MOST_ROWS:
        measures = [
            name
            for name in ("phase", "separation", "contrast", "loss", "cosine_ratio", "attention_ratio")
            if name in found.measures
        ]
        columns = ["point", *axes, "state", *measures]
        consoles.print_table(
            TableData(
                "Points",
                columns,
                [["-" if row.get(name) is None else tick(row[name]) for name in columns] for row in found.rows],
            )
        )
    elif "phase" in found.measures:
        consoles.print_table(phase_table(found.rows, found.grid.axes))
    others = sum(not path.name.startswith(".") for path in (folder / "points").iterdir()) - sum(
        row["state"] != "missing" for row in found.rows
    )
    if others > 0:
        typer.echo(
            f"{others} points of other grids are in {folder} too, and stay there; table, picture and page are of this grid"
        )
    for row in [row for row in found.rows if row["state"] == "failed"][:5]:
        typer.echo(f"failed: {row['point']} ({', '.join(f'{name}={row[name]}' for name in axes)}): {row['error']}")
    again = "; --retry-failed tries them again" if counts["failed"] else ""
    typer.echo(
        f"{counts['done']} points done, {counts['failed']} failed{again}; table: {folder / 'points.csv'}; page: {folder / 'report.html'}"
    )


def rebuild(folder: Path) -> None:
    """Table, picture and page again, from what is stored."""
    from topicscope.sweeps import read_sweep, stored_grid

    write(read_sweep(stored_grid(folder), folder), f"topicscope sweep GRID.yaml --out {folder}")


def duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def size(count: float) -> str:
    return (
        f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"
    )
