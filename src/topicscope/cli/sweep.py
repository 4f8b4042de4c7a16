"""`topicscope sweep`: a grid of runs on any engine, with a table and a map at the end."""

import os
from pathlib import Path
from typing import Annotated

import typer

from topicscope import pages, sweeps
from topicscope.cli import consoles
from topicscope.cli.options import (
    OUTPUT,
    AddressOption,
    AsJson,
    EngineOption,
    Force,
    WorkersOption,
    Yes,
    chosen_engine,
    option,
    out_option,
)
from topicscope.ground import (
    InputError,
    Interrupted,
    check_engine,
    check_folder,
    duration,
    folders,
    progress_shown,
    refuse,
    size,
    usable_device,
)

RUNNING = "Points"
PAGE, PAGE_POINT = 5_000_000, 4_000  # bytes of the page, and of each point in page and tables


def command(
    grid: Annotated[Path, typer.Argument(help="YAML file: kind (the command to run), base settings, axes.")],
    engine: EngineOption = "local",
    address: AddressOption = None,
    workers: WorkersOption = None,
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
    force: Force = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Run every point of a grid: in this process, on all cores, or on a Ray cluster. Run it again to continue.

    Example: [bold]topicscope sweep grid.yaml --engine local --out runs/sweep[/bold]
    """
    check_engine(engine, workers=workers, address=address)
    refuse(
        (
            device == "auto" and engine == "ray",
            "device auto looks for a GPU on this machine, not on Ray's: choose cpu or cuda",
        )
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
            chosen_engine(engine, address, workers, device="cuda" if on_gpu else "cpu") as opened,
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
            write(result)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped: {sweeps.stored_points(points, folder)} of {len(points.points)} points are done and kept in "
            f"{folder}; to continue: {folders.command()}"
        ) from None
    failed = result.counts["failed"]
    printed: list[consoles.Printed] = [
        *consoles.section_tables(result.sections()),
        *(*result.meanings(), *result.summary()),
        f"table: {folder / 'points.csv'}; page: {folder / 'report.html'}",
    ]
    payload = {"folder": str(folder), "counts": result.counts, "rows": result.rows}
    code = consoles.emit(payload, printed, as_json=as_json, failed=failed > 0)
    if failed:
        typer.echo(f"topicscope: {failed} of {len(result.rows)} points failed", err=True)
    return code


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
    processes = f"{side_by_side:,} process{'es' * (side_by_side > 1)}"
    packs = f"{cost.packs:,} pack{'s' * (cost.packs != 1)} (points that run together)"
    where = "in this process" if engine == "serial" else f"on {processes} of the engine {engine}"
    about = f"about {duration(seconds)} {where} ({duration(cost.core_seconds)} of one core), not counting start-up"
    printed = [f"{points}, in {packs}", f"{about}; {size(disk)} in {folder}"]
    return consoles.emit(payload, printed, as_json=as_json)


def write(result: "sweeps.Sweep") -> None:
    """points.csv, points.parquet, map.png, map.svg and report.html."""
    sections = result.sections()
    intro = "\n\n".join([*result.summary(), *result.meanings(), *(section.command for section in sections)])
    page = result.folder / "report.html"
    with folders.lock(result.folder):  # no other process may write to the folder meanwhile
        result.write_table()
        for section in sections:
            for figure in section.figures:
                pages.draw_figure(figure, result.folder)
        pages.write_sweep_page(page, "topicscope sweep", intro, pages.point_map(result), result.curves())
