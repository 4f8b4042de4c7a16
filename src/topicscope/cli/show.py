"""`topicscope show`: what folders hold, side by side; `topicscope report`: the same, drawn."""

from pathlib import Path
from typing import Annotated, Any

import typer

from topicscope.cli import consoles, reproduce, sweep
from topicscope.cli.options import AsJson
from topicscope.ground import flat, folders as protocol, load_settings
from topicscope.reading import read


def show(
    folders: Annotated[list[Path], typer.Argument(help="Folders that any topicscope command wrote.")],
    as_json: AsJson = False,
) -> int:
    """Show finished folders of any kind. Runs are compared side by side: their results, and the settings that differ.

    Example: [bold]topicscope show runs/blocks runs/joint[/bold]
    """
    results: list[tuple[Path, Any]] = []
    for folder in folders:
        result = read(folder)
        results += [(run.folder, run) for run in result] if isinstance(result, list) else [(folder, result)]
    if as_json:
        entries = [
            {
                "folder": str(folder),
                "kind": result.kind,
                "config": settings_of(folder),
                "results": {"counts": result.counts, "rows": result.rows}  # as they are now
                if result.kind == "sweep"
                else protocol.read_results(folder),
            }
            for folder, result in results
        ]
        consoles.print_json(entries)
        return 0
    runs = [(folder, result) for folder, result in results if hasattr(result, "facts")]
    if runs:
        settings = [flat(result.config.as_dict()) for _, result in runs]
        differing = [
            name
            for name in dict.fromkeys(name for one in settings for name in one)
            if any(one.get(name) != settings[0].get(name) for one in settings)
        ]
        facts = [
            {name: one.get(name) for name in differing} | result.facts()
            for one, (_, result) in zip(settings, runs, strict=True)
        ]
        consoles.print_side_by_side("", [str(folder) for folder, _ in runs], facts, marked=len(differing))
    for folder, result in results:
        if len(results) > 1:
            consoles.print_lines([f"{folder} ({result.kind}):"])
        if result.kind == "reproduce":
            reproduce.print_table(result)
        elif not hasattr(result, "facts"):
            consoles.print_tables([table for section in result.sections() for table in section.tables][:1])
        consoles.print_lines(result.summary())
    return 0


def settings_of(folder: Path) -> dict[str, Any] | None:
    """What config.yaml holds; a sweep has none."""
    path = folder / protocol.CONFIG
    return load_settings(path, own=True) if path.is_file() else None


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that any topicscope command wrote.")],
) -> int:
    """Draw a folder's results: figures as PNG, SVG and CSV, and a page.

    Example: [bold]topicscope report runs/demo[/bold]
    """
    result = read(folder)
    if result.kind == "sweep":  # its page is one of its own: a map of any measure over any axes
        sweep.write(result)
        written = [folder / "report.html"]
    else:
        written = consoles.draw_result(result, folder)
    consoles.print_lines(f"written: {path}" for path in written)
    return 0
