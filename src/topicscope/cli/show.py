"""`topicscope show`: run folders side by side."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer
from rich.table import Table

from topicscope.cli import consoles
from topicscope.cli.train import lookup, rows_to_print, text


def command(
    folders: Annotated[list[Path], typer.Argument(help="Run folders that 'topicscope train --out' wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Read finished runs and compare them: results side by side, and the settings in which they differ.

    Example: [bold]topicscope show runs/blocks runs/joint[/bold]
    """
    from topicscope.ground import ENSEMBLE, MEMBERS, read_run

    members = [
        member
        for folder in folders
        for member in (sorted(folder.glob(MEMBERS)) if (folder / ENSEMBLE).exists() else [folder])
    ]
    runs = [read_run(folder) for folder in members]
    if as_json:
        print(
            json.dumps(
                [{"folder": str(run.folder), "config": run.config, "results": run.results} for run in runs],
                allow_nan=False,
            )
        )
        return 0
    table = Table()
    table.add_column("")
    for run in runs:
        table.add_column(str(run.folder), justify="right")
    flat = [flatten(run.config) for run in runs]
    for key in dict.fromkeys(key for config in flat for key in config):
        values = [config.get(key) for config in flat]
        if len(runs) > 1 and any(value != values[0] for value in values):
            table.add_row(key, *map(text, values), style="cyan")
    for label, path in rows_to_print([SimpleNamespace(results=run.results) for run in runs]):
        table.add_row(label, *(text(lookup(run.results, path)) for run in runs))
    consoles.results().print(table)
    return 0


def flatten(config: dict[str, object], prefix: str = "") -> dict[str, object]:
    """Nested settings as dotted keys, as --set takes them."""
    result: dict[str, object] = {}
    for key, value in config.items():
        result |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return result
