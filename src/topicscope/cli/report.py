"""`topicscope report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[
        Path,
        typer.Argument(help="A folder that 'topicscope train', 'reproduce', 'probe', 'pretrain' or 'sweep' wrote."),
    ],
) -> int:
    """Draw a finished run (figure.png, figure.svg and a page), or rebuild the page of a reproduction from its outcomes.

    Example: [bold]topicscope report runs/demo[/bold]
    """
    from topicscope.ground import read_run

    if (folder / "probe.json").is_file():
        from topicscope.cli.probe import rebuild as rebuild_probe

        rebuild_probe(folder)
        typer.echo(f"written: {folder / 'report.html'}")
        return 0
    if (folder / "tokenizer").is_dir() or (folder / "run-000" / "tokenizer").is_dir():
        from topicscope.cli.pretrain import rebuild as rebuild_pretrain

        rebuild_pretrain(folder)
        typer.echo(f"written: {folder / 'report.html'}")
        return 0
    if (folder / "sweep.json").is_file():
        from topicscope.cli.sweep import rebuild as rebuild_sweep

        rebuild_sweep(folder)
        typer.echo(f"written: {folder / 'report.html'}")
        return 0
    if (folder / "outcomes").is_dir():
        rebuild(folder)
        typer.echo(f"written: {folder / 'report.html'}")
        return 0
    from topicscope.figures import describe_run
    from topicscope.report import Section, draw_run, write_page

    run = read_run(folder)
    for path in draw_run(run, folder):
        typer.echo(f"written: {path}")
    outcome = describe_run(run)
    section = Section(
        "run",
        "One training run.",
        "-",
        outcome.paper,
        outcome.theory,
        outcome.measured,
        outcome.verdict,
        outcome.reason,
        0.0,
        f"topicscope train --config {folder / 'config.yaml'}",
        outcome.config,
        outcome.figures,
        outcome.tables,
        False,
    )
    write_page(
        folder / "report.html",
        f"topicscope: {folder.name}",
        "A training run: loss, norms, stages, matrices, attention.",
        [section],
    )
    typer.echo(f"written: {folder / 'report.html'}")
    return 0


def rebuild(folder: Path) -> None:
    from topicscope.cli.reproduce import write_report
    from topicscope.paper import read_reproduction

    write_report(read_reproduction(folder))
