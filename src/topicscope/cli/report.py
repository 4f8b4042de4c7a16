"""`topicscope report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(folder: Annotated[Path, typer.Argument(help="A run folder that 'topicscope train --out' wrote.")]) -> int:
    """Draw a finished run: loss and floors, norms, block means, the matrix; figure.png and figure.svg in its folder.

    Example: [bold]topicscope report runs/demo[/bold]
    """
    from topicscope.report import draw_run
    from topicscope.runs import read_run

    for path in draw_run(read_run(folder), folder):
        typer.echo(f"written: {path}")
    return 0
