"""`topicscope reproduce`: figures, tables and theorems with verdicts; `topicscope list`: the experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from topicscope.cli import consoles
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, check_engine, chosen_engine

if TYPE_CHECKING:
    from topicscope.paper import Experiment, Outcome, Reproduction

COLOURS = {"reproduced": "green", "not reproduced": "red", "skipped": "yellow"}


def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(help="What to reproduce, for example figure2 theorem2 (default: everything).")
    ] = None,
    scale: Annotated[
        Literal["quick", "full"], typer.Option(help="quick: minutes. full: the paper's sizes and more seeds.")
    ] = "quick",
    seed: Annotated[int, typer.Option(help="Moves every random draw.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for results, figures and the page; finished experiments in it are not run again. "
            "Default: runs/reproduce...",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Re-measure the paper: each claim with the paper's number, the theory's, ours, and a verdict.

    Writes report.html, results.json and every figure as PNG, SVG and CSV. If interrupted, run it again to continue.

    Example: [bold]topicscope reproduce figure2 theorem2 --out runs/two[/bold]
    """
    from topicscope.paper import Context, chosen, read_reproduction, reproduce as run

    check_engine(engine, address, workers)
    experiments, context = chosen(ids), Context(scale, seed, tuple(model or ()), tuple(corpus or ()))
    variant = (f"-{scale}" if scale != "quick" else "") + (f"-seed-{seed}" if seed else "")
    folder = out or Path("runs") / f"reproduce{variant}"
    with chosen_engine(engine, address, workers) as opened, progress_bar(experiments) as progress:
        reproduction = run(experiments, context, folder, opened, progress)
    write_report(read_reproduction(folder))  # earlier calls' outcomes too
    if as_json:
        print(json.dumps(reproduction.as_dict(), allow_nan=False))
    else:
        print_verdicts(reproduction)
        typer.echo(f"page: {folder / 'report.html'}")
    lost = reproduction.regressions()
    if lost:
        consoles.progress().print(f"not reproduced, though the reference runs were: {', '.join(lost)}", style="red")
    return 1 if lost else 0


@contextmanager
def progress_bar(experiments: Sequence[Experiment[Any]]) -> Iterator[Any]:
    """A bar over the expected seconds of all experiments, and one line per outcome."""
    console = consoles.progress()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        expected = {e.id: e.seconds for e in experiments}
        task = bar.add_task(f"0 of {len(expected)}", total=sum(expected.values()))
        done: set[str] = set()

        def finished(name: str, outcome: Outcome, seconds: float) -> None:
            done.add(name)
            bar.update(task, advance=expected[name], description=f"{len(done)} of {len(expected)}")
            verdict = f"[{COLOURS[outcome.verdict]}]{outcome.verdict}[/]"
            console.print(f"{name}: {verdict} ({seconds:.0f} s)", highlight=False)

        yield finished


def write_report(reproduction: Reproduction) -> None:
    """Figures as files, and the page."""
    from topicscope.report import Section, draw_figure, write_csv, write_page

    context, out = reproduction.context, reproduction.folder
    folder = out / "figures"
    folder.mkdir(exist_ok=True)
    sections = []
    for result in reproduction.as_dict()["results"]:
        outcome = reproduction.outcomes[result["id"]]
        for figure in outcome.figures:
            draw_figure(figure, folder)
            write_csv(figure, folder)
        command = f"topicscope reproduce {result['id']} --scale {context.scale} --seed {context.seed} --out {out}"
        del result["numbers"]
        sections.append(
            Section(**result, command=command, config=outcome.config, figures=outcome.figures, tables=outcome.tables)
        )
    intro = (
        "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured. "
        f"Scale {context.scale}, seed {context.seed}. "
        "The rule that decides a verdict is part of the code and stands in its section."
    )
    write_page(out / "report.html", "topicscope: the paper, re-measured", intro, sections)


def print_verdicts(reproduction: Reproduction) -> None:
    table = Table(
        "id",
        Column("paper", ratio=3, overflow="fold"),
        Column("theory", ratio=2, overflow="fold"),
        Column("measured", ratio=3, overflow="fold"),
        "verdict",
        "s",
    )
    for name, o in reproduction.outcomes.items():
        verdict, seconds = f"[{COLOURS[o.verdict]}]{o.verdict}[/]", f"{reproduction.seconds[name]:.0f}"
        table.add_row(name, o.paper, o.theory, o.measured, verdict, seconds)
    console = consoles.results()
    console.print(table)
    for line in reproduction.summary():
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def list_(as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False) -> int:
    """List the experiments: id, claim, rough cost.

    Example: [bold]topicscope list[/bold]
    """
    from topicscope.paper import EXPERIMENTS

    experiments = EXPERIMENTS.values()
    if as_json:
        print(json.dumps([{"id": e.id, "claim": e.claim, "rule": e.rule, "seconds": e.seconds} for e in experiments]))
        return 0
    table = Table("id", Column("claim", ratio=1), "about s")
    for e in experiments:
        table.add_row(e.id, e.claim, str(e.seconds))
    consoles.results().print(table)
    return 0
