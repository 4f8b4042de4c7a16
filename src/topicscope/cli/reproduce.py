"""`topicscope reproduce`: figures, tables and theorems with verdicts; `topicscope list`: what there is."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from topicscope.cli import consoles

if TYPE_CHECKING:
    from topicscope.paper import Context, Experiment, Outcome

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
            help="Folder for results, figures and the page; finished parts found there are kept. Default: runs/reproduce...",
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
            help="For table1, table2, table5, figure5, timeline: text, as 'topicscope probe' takes it; may be repeated.",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes (default: one a core).", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Re-measure the paper: each claim with the paper's number, the theory's, ours, and a verdict.

    Writes report.html, results.json and every figure as PNG, SVG and CSV. Interrupted, it goes on where it was.

    Example: [bold]topicscope reproduce figure2 theorem2 --out runs/two[/bold]
    """
    from topicscope.ground import old_folders as folders
    from topicscope.paper import Context, chosen, claim

    experiments, context = chosen(ids), Context(scale, seed, tuple(model or ()), tuple(corpus or ()))
    out = out or Path("runs") / (
        "reproduce" + (f"-{scale}" if scale != "quick" else "") + (f"-seed-{seed}" if seed else "")
    )
    claim(out, context)
    with folders.lock(out):
        return _reproduce(experiments, context, out, workers or os.cpu_count() or 1, as_json)


def _reproduce(experiments: list[Experiment], context: Context, out: Path, workers: int, as_json: bool) -> int:
    from topicscope.ground import files
    from topicscope.paper import EXPERIMENTS, NOT_IN_REFERENCE, load, reproduce as run_all, results_of

    console = consoles.progress()
    expected = sum(e.seconds for e in experiments)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        whole = bar.add_task("all", total=expected)
        tasks = {e.id: bar.add_task(e.id, total=1, start=False) for e in experiments}

        def finished(name: str, outcome: Outcome, seconds: float) -> None:
            bar.update(tasks[name], completed=1, visible=False)
            bar.advance(whole, next(e.seconds for e in experiments if e.id == name))
            console.print(
                f"{name}: [{COLOURS[outcome.verdict]}]{outcome.verdict}[/] ({seconds:.0f} s)", highlight=False
            )

        outcomes = run_all(
            experiments,
            context,
            out,
            workers=workers,
            started=lambda name: bar.start_task(tasks[name]),
            finished=finished,
        )
    results = results_of(outcomes, context)
    # the folder's page and results.json hold all that is finished there, also by earlier calls
    everything = {
        name: stored for name in EXPERIMENTS if (stored := load(out, name, context, inputs=False)) is not None
    }
    whole_results = results_of(everything, context)
    files.write_json(out / "results.json", whole_results)
    write_report(out, whole_results, everything)
    if as_json:
        print(json.dumps(results, allow_nan=False))
    else:
        print_verdicts(results["results"])
        typer.echo(f"page: {out / 'report.html'}")
    judged = [r for r in results["results"] if EXPERIMENTS[r["id"]].judged(context)]
    lost = [
        r["id"] for r in judged if r["verdict"] == "not reproduced" and r["id"] not in NOT_IN_REFERENCE[context.scale]
    ]
    if lost:
        console.print(f"not reproduced, though the reference runs were: {', '.join(lost)}", style="red")
    return 1 if lost else 0


def write_report(out: Path, results: dict[str, Any], outcomes: dict[str, tuple[Outcome, float]]) -> None:
    """Figures as files, and the page."""
    from topicscope import report
    from topicscope.figures import Judgement, Section

    sections = []
    for result in results["results"]:
        outcome = outcomes[result["id"]][0]
        command = f"topicscope reproduce {result['id']} --scale {results['scale']} --seed {results['seed']} --out {out}"
        judgement = Judgement(**{field.name: result[field.name] for field in dataclasses.fields(Judgement)})
        section = Section(
            result["id"], "", command, outcome.figures, outcome.tables, verdict=judgement, config=outcome.config
        )
        sections.append(section)
    intro = (
        "Li, Li and Risteski, How Do Transformers Learn Topic Structure (ICML 2023), re-measured. "
        f"Scale {results['scale']}, seed {results['seed']}. The rule that decides a verdict is part of the code and stands in its section."
    )
    report.write_report(out, "topicscope: the paper, re-measured", intro, sections)


def print_verdicts(results: list[dict[str, Any]]) -> None:
    table = Table(
        "id",
        Column("paper", ratio=3, overflow="fold"),
        Column("theory", ratio=2, overflow="fold"),
        Column("measured", ratio=3, overflow="fold"),
        "verdict",
        "s",
    )
    for r in results:
        table.add_row(
            r["id"],
            r["paper"],
            r["theory"],
            r["measured"],
            f"[{COLOURS[r['verdict']]}]{r['verdict']}[/]",
            f"{r['seconds']:.0f}",
        )
    console = consoles.results()
    console.print(table)
    for r in results:
        if r["verdict"] != "reproduced":
            console.print(f"{r['id']}: {r['reason']}", soft_wrap=True, highlight=False, markup=False)


def list_(as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False) -> int:
    """Show what can be reproduced: id, claim, rough cost.

    Example: [bold]topicscope list[/bold]
    """
    from topicscope.paper import EXPERIMENTS

    if as_json:
        print(
            json.dumps(
                [{"id": e.id, "claim": e.claim, "rule": e.rule, "seconds": e.seconds} for e in EXPERIMENTS.values()]
            )
        )
        return 0
    table = Table("id", Column("claim", ratio=1), "about s")
    for e in EXPERIMENTS.values():
        table.add_row(e.id, e.claim, str(e.seconds))
    consoles.results().print(table)
    return 0


def rebuild(folder: Path) -> None:
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
