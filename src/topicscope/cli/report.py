"""`topicscope report`."""

from __future__ import annotations

import json
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
    from topicscope.figures import run_sections
    from topicscope.report import draw_run, write_page
    from topicscope.training import Run, build_config

    stored = read_run(folder)
    for path in draw_run(stored, folder):
        typer.echo(f"written: {path}")
    run = Run(
        build_config(stored.config), stored.results["status"], stored.results, stored.metrics, stored.weights, folder
    )
    write_page(
        folder / "report.html",
        f"topicscope: {folder.name}",
        "A training run: loss, norms, stages, matrices, attention.",
        run_sections(run),
    )
    typer.echo(f"written: {folder / 'report.html'}")
    return 0


def rebuild(folder: Path) -> None:
    from topicscope.cli.reproduce import write_report
    from topicscope.ground import InputError
    from topicscope.paper import EXPERIMENTS, Context, load

    try:
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        assert {"scale", "seed"} <= set(results)
        assert isinstance(results["results"], list)
    except (OSError, ValueError, AssertionError, KeyError, TypeError):
        raise InputError(
            f"{folder} holds no finished reproduction (results.json); run 'topicscope reproduce --out {folder}' to finish it"
        ) from None
    context = Context(results["scale"], results["seed"])
    stored = {name: load(folder, name, context, inputs=False) for name in EXPERIMENTS}
    outcomes = {name: outcome for name, outcome in stored.items() if outcome is not None}
    results["results"] = [result for result in results["results"] if result["id"] in outcomes]
    write_report(folder, results, outcomes)
