"""`topicscope reproduce`: figures, tables and theorems with verdicts; `topicscope list`: the experiments."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

from topicscope import paper
from topicscope.cli import consoles
from topicscope.cli.options import AddressOption, AsJson, EngineOption, WorkersOption, Yes, chosen_engine, out_option
from topicscope.ground import MOST, progress_shown

COLOURS = {"reproduced": "green", "not reproduced": "red", "skipped": "yellow"}


def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(help="What to reproduce, for example figure2 theorem2 (default: everything).")
    ] = None,
    scale: Annotated[
        Literal["quick", "full"], typer.Option(help="quick: minutes. full: the paper's sizes and more seeds.")
    ] = "quick",
    seed: Annotated[int, typer.Option(help="Moves every random draw.", min=0, max=MOST)] = 0,
    out: Annotated[
        Path | None,
        out_option(
            "Folder for results, figures and the page; finished experiments in it are not run again. "
            "Default: runs/reproduce..."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="For table1, table2, table5, figure3: model folder or hub id; may be repeated."),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            help="For table1, table2, table5, figure5, timeline: text, as 'topicscope probe' takes it; "
            "may be repeated.",
        ),
    ] = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    workers: WorkersOption = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Re-measure the paper: each claim with the paper's number, the theory's, ours, and a verdict.

    Writes report.html, results.json and every figure as PNG, SVG and CSV. If interrupted, run it again to continue.

    Example: [bold]topicscope reproduce figure2 theorem2 --out runs/two[/bold]
    """
    experiments, context = paper.chosen(ids), paper.Context(scale, seed, tuple(model or ()), tuple(corpus or ()))
    variant = (f"-{scale}" if scale != "quick" else "") + (f"-seed-{seed}" if seed else "")
    folder = out or Path("runs") / f"reproduce{variant}"
    with chosen_engine(engine, address, workers) as opened, progress_shown() as progress:
        reproduction = paper.reproduce(experiments, context, folder, opened, progress, print_outcome, yes=yes)
    consoles.draw_result(paper.read_reproduction(folder), folder)  # outcomes of earlier calls too
    if as_json:
        printed = reproduction.as_dict()
        for entry in printed["results"]:  # results.json has no times: it is the same for the same scale and seed
            entry["seconds"] = reproduction.seconds.get(entry["id"])
        print(json.dumps(printed, allow_nan=False))
    else:
        print_table(reproduction)
        consoles.print_lines(reproduction.summary())
        consoles.print_lines([f"page: {folder / 'report.html'}"])
    lost = reproduction.regressions()
    if lost:
        typer.secho(f"not reproduced, though the reference runs were: {', '.join(lost)}", fg="red", err=True)
    return 1 if lost else 0


def print_outcome(name: str, outcome: paper.Outcome, seconds: float | None) -> None:
    took = "" if seconds is None else f" ({seconds:.0f} s)"
    typer.echo(f"{name}: {typer.style(outcome.verdict, fg=COLOURS[outcome.verdict])}{took}", err=True)


def print_table(reproduction: paper.Reproduction) -> None:
    table = Table(
        "id",
        Column("paper", ratio=3, overflow="fold"),
        Column("theory", ratio=2, overflow="fold"),
        Column("measured", ratio=3, overflow="fold"),
        "verdict",
        "s",
    )
    for name, o in reproduction.outcomes.items():
        verdict = Text(o.verdict, style=COLOURS[o.verdict])
        seconds = f"{reproduction.seconds[name]:.0f}" if name in reproduction.seconds else "-"
        table.add_row(name, o.paper, o.theory, o.measured, verdict, seconds)
    consoles.results().print(table)


def list_(as_json: AsJson = False) -> int:
    """List the experiments: id, claim, rough cost.

    Example: [bold]topicscope list[/bold]
    """
    experiments = paper.EXPERIMENTS.values()
    if as_json:
        print(json.dumps([{"id": e.id, "claim": e.claim, "rule": e.rule, "seconds": e.seconds} for e in experiments]))
        return 0
    table = Table("id", Column("claim", ratio=1), "about s")
    for e in experiments:
        table.add_row(e.id, e.claim, str(e.seconds))
    consoles.results().print(table)
    return 0
