"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

OUTPUT, SETTINGS = "Output", "Settings"


def option(text: str, panel: str, *names: str, **more: Any) -> Any:
    """An option in a panel of the help."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="YAML file of settings; flags and --set win over it.", rich_help_panel=SETTINGS
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any setting by its name; may be repeated.", rich_help_panel=SETTINGS
    ),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda.", rich_help_panel=SETTINGS)]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder to write (new or empty).", rich_help_panel=OUTPUT)
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.", rich_help_panel=OUTPUT)]
Force = Annotated[bool, typer.Option("--force", help="Replace the run in --out.", rich_help_panel=OUTPUT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.", rich_help_panel=OUTPUT)]
