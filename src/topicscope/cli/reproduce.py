"""`topicscope reproduce`: figures, tables and theorems with verdicts; `topicscope list`: the experiments."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

from topicscope import laws, pages, paper
from topicscope.cli import shell
from topicscope.cli.shell import AddressOption, AsJson, EngineOption, WorkersOption, Yes, chosen_engine, out_option
from topicscope.ground import MOST, progress_shown

COLOURS = {"reproduced": "green", "not reproduced": "red", "undecided": "yellow", "skipped": "yellow"}


def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to reproduce, for example figure2 theorem2 (default: everything).",
            autocompletion=lambda incomplete: [name for name in paper.EXPERIMENTS if name.startswith(incomplete)],
        ),
    ] = None,
    scale: Annotated[
        Literal["quick", "full"], typer.Option(help="quick: minutes. full: the paper's sizes and more seeds.")
    ] = "quick",
    seed: Annotated[int, typer.Option(help="Seed of every random draw.", min=0, max=MOST)] = 0,
    out: Annotated[
        Path | None,
        out_option(
            "Folder for results, figures and the page; finished experiments in it are not run again. "
            "Default: runs/reproduce..."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="For table1, table2, table5, figure3: model folder or hub id; may be repeated. "
            "Default: five small models, trained on made-up texts.",
        ),
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
        page = Page(folder)
        reproduction = paper.reproduce(
            experiments, context, folder, opened, progress, print_outcome, page.renew, yes=yes
        )
    shell.draw_result(paper.read_reproduction(folder), folder, page.drawn)  # outcomes of earlier calls too
    payload = reproduction.as_dict()
    for entry in payload["results"]:  # results.json has no times: it is the same for the same scale and seed
        entry["seconds"] = reproduction.seconds.get(entry["id"])
    printed = [*outcome_table(reproduction), *reproduction.summary(), f"page: {folder / 'report.html'}"]
    lost = reproduction.regressions()
    failure = shell.coloured(f"not reproduced, although the reference runs reproduced it: {', '.join(lost)}", "red")
    return shell.emit(payload, printed, as_json=as_json, failures=[failure] if lost else [])


def print_outcome(name: str, outcome: "paper.Outcome", seconds: float | None) -> None:
    took = "" if seconds is None else f" ({seconds:.0f} s)"
    words = shell.coloured(paper.EXPERIMENTS[name].verdict_name(outcome.verdict), COLOURS[outcome.verdict])
    typer.echo(f"{name}: {words}{took}", err=True)


class Page:
    """The page while experiments run: renewed whenever one is done, with all that the folder holds so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drawn: set[str] = set()  # experiments whose figures are drawn

    def renew(self, reproduction: "paper.Reproduction") -> None:
        """The folder is locked by this process meanwhile. Figures that were drawn once are not drawn again."""
        done = len(reproduction.outcomes)
        so_far = f"Still running: {done} experiments are done so far. Load the page again to see more."
        intro = "\n\n".join([so_far, *reproduction.intro()])
        sections = reproduction.sections()
        pages.write_report(self.folder, shell.title_of(reproduction, self.folder), intro, sections, self.drawn)
        self.drawn |= {section.title for section in sections}


def outcome_table(reproduction: "paper.Reproduction") -> Iterator[shell.Printed]:
    """One line per experiment, within 80 columns; several in a narrower terminal. The page has the rest."""
    wide, ids = shell.results().width >= 80, max(map(len, reproduction.outcomes), default=0)
    table = Table(
        Column("id", min_width=ids),
        *(Column(name, no_wrap=wide, overflow="fold") for name in ("verdict", "number", "paper", "ours")),
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    judged = [(paper.EXPERIMENTS[name], outcome.verdict) for name, outcome in reproduction.outcomes.items()]
    for experiment, verdict in judged:
        sign = "*" if reproduction.sizes(experiment.id) else ""
        number = reproduction.compared(experiment.id)
        shown = Text(experiment.verdict_name(verdict) + sign, style=COLOURS[verdict])
        table.add_row(experiment.id, shown, number.name, number.paper, number.ours)
    yield table
    if len(judged) == 1:
        yield f"Claim: {judged[0][0].claim}"
    yield "'number' names what is compared; the page defines it and gives its unit. '-': the paper prints none."
    if any(experiment.verdict_name(verdict) != verdict for experiment, verdict in judged):
        yield "'as predicted', 'not as predicted': the claim is this project's, not the paper's"
    if any(map(reproduction.sizes, reproduction.outcomes)):
        yield "* the pattern is reproduced, but our number is more than 10% away from the paper's; see below"


def list_(
    what: Annotated[
        Literal["experiments", "laws"],
        typer.Argument(help="experiments: of the paper. laws: what theory predicts of which runs."),
    ] = "experiments",
    as_json: AsJson = False,
) -> int:
    """List the experiments (id, claim, rough cost), or the laws (what they cover, status, error, where derived).

    Example: [bold]topicscope list laws[/bold]
    """
    if what == "laws":  # the table decides where a prediction is drawn or printed
        return shell.emit([law.as_dict() for law in laws.TABLE], [law_table()], as_json=as_json)
    found = paper.EXPERIMENTS.values()
    payload = [{"id": e.id, "claim": e.claim, "rule": e.rule, "seconds": e.seconds} for e in found]
    rows = ([e.id, e.claim, str(e.seconds)] for e in found)
    table = shell.table(["id", Column("claim", ratio=1), "about (s)"], rows)
    return shell.emit(payload, [table], as_json=as_json)


def law_table() -> Table:
    headings: list[str | Column] = [
        "law",
        Column("covers", ratio=2),
        "status",
        Column("error", ratio=1),
        "derived in (docs)",
    ]
    table = shell.table(headings, [])
    for law in laws.TABLE:
        text = f"{law.predicts}.\nCovers: {'; '.join(law.covers)}"
        table.add_row(law.name, text, law.status, law.error, law.derived, end_section=True)
    return table
