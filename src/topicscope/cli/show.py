"""`topicscope show`: what folders hold, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from topicscope.cli import consoles
from topicscope.cli.options import AsJson


def command(
    folders: Annotated[list[Path], typer.Argument(help="Folders that any topicscope command wrote.")],
    as_json: AsJson = False,
) -> int:
    """Show finished folders of any kind; runs are compared: results side by side, and the settings that differ.

    Example: [bold]topicscope show runs/blocks runs/joint[/bold]
    """
    from topicscope.ground import flat, folders as protocol, load_settings
    from topicscope.reading import read

    results = [one for folder in folders for one in members(read(folder), folder)]
    if as_json:
        entries = []
        for folder, result in results:
            config = load_settings(path) if (path := folder / protocol.CONFIG).is_file() else None
            entry = {
                "folder": str(folder),
                "kind": result.kind,
                "config": config,
                "results": protocol.read_results(folder),
            }
            entries.append(entry)
        print(json.dumps(entries, allow_nan=False))
        return 0
    runs = [(folder, result) for folder, result in results if hasattr(result, "facts")]
    if runs:
        settings = [flat(result.config.as_dict()) for _, result in runs]
        differing = [key for key in dict.fromkeys(key for one in settings for key in one) if differs(key, settings)]
        facts = [
            {key: one.get(key) for key in differing} | result.facts()
            for one, (_, result) in zip(settings, runs, strict=True)
        ]
        consoles.print_side_by_side("", [str(folder) for folder, _ in runs], facts, marked=len(differing))
    for folder, result in results:
        if len(results) > 1:
            consoles.print_lines([f"{folder} ({result.kind}):"])
        if not hasattr(result, "facts"):
            for table in [table for section in result.sections() for table in section.tables][:1]:
                consoles.print_table(table)
        consoles.print_lines(result.summary())
    return 0


def members(result: Any, folder: Path) -> list[tuple[Path, Any]]:
    """The runs of an ensemble one by one; anything else as it is."""
    return [(run.folder, run) for run in result] if isinstance(result, list) else [(folder, result)]


def differs(key: str, settings: list[dict[str, Any]]) -> bool:
    return any(one.get(key) != settings[0].get(key) for one in settings)
