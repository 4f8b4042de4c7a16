"""`topicscope report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from topicscope.ground import Result


def command(
    folder: Annotated[Path, typer.Argument(help="A folder that any topicscope command wrote.")],
) -> int:
    """Draw what a folder holds: figures as PNG, SVG and CSV, and a page.

    Example: [bold]topicscope report runs/demo[/bold]
    """
    from topicscope.cli.sweep import write as write_sweep
    from topicscope.reading import read

    result = read(folder)
    if result.kind == "sweep":  # its page is one of its own: a map of any measure over any axes
        write_sweep(result)
        typer.echo(f"written: {folder / 'report.html'}")
        return 0
    for path in draw_result(result, folder):
        typer.echo(f"written: {path}")
    return 0


def draw_result(result: Result, folder: Path) -> list[Path]:
    """The page of a result in its folder, with the command that made it; and its figures. Returns the main ones."""
    from topicscope.ground import read_about
    from topicscope.report import write_report

    about = read_about(folder)
    command = "" if about is None else about.command
    sections = [replace(section, command=section.command or command) for section in result.sections()]
    write_report(folder, f"topicscope {result.kind}: {folder.name}", "\n\n".join(result.summary()), sections)
    main = [folder / "figures" / f"figure.{kind}" for kind in ("png", "svg")]
    return [*(path for path in main if path.exists()), folder / "report.html"]
