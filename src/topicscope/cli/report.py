"""`topicscope report`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Argument(help="A folder that any topicscope command wrote.")],
) -> int:
    """Draw what a folder holds: figures as PNG, SVG and CSV, and a page.

    Example: [bold]topicscope report runs/demo[/bold]
    """
    from topicscope.ground import read_about

    if read_about(folder) is None:
        return rebuild(folder)
    from topicscope.reading import read
    from topicscope.report import draw_figure, write_report

    result = read(folder)
    sections = result.sections()
    main = next((figure for section in sections for figure in section.figures if figure.name == "figure"), None)
    if main is not None:
        for path in draw_figure(main, folder):
            typer.echo(f"written: {path}")
    write_report(folder, f"topicscope {result.kind}: {folder.name}", "\n\n".join(result.summary()), sections)
    typer.echo(f"written: {folder / 'report.html'}")
    return 0


def rebuild(folder: Path) -> int:
    """Folders that do not follow the protocol yet."""
    from topicscope.ground import InputError

    for sign, module in (
        ("probe.json", "probe"),
        ("tokenizer", "pretrain"),
        ("run-000/tokenizer", "pretrain"),
        ("sweep.json", "sweep"),
        ("outcomes", "reproduce"),
    ):
        if (folder / sign).exists():
            importlib.import_module(f"topicscope.cli.{module}").rebuild(folder)
            typer.echo(f"written: {folder / 'report.html'}")
            return 0
    raise InputError(f"{folder} is not a folder that topicscope wrote")
