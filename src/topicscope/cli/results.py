"""`topicscope reproduce` and `list`: the paper's figures, tables and theorems with verdicts; what to do with results:
`show`, `report`, `export`, `explore`; and `bench`, for maintainers.
"""

import importlib
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

from topicscope import exporting, laws, pages, paper, pretraining
from topicscope.cli import runs, shell
from topicscope.cli.shell import OUTPUT, option, out_option
from topicscope.ground import (
    MOST,
    InputError,
    check_out,
    flat,
    folders as protocol,
    load_settings,
    nearest,
    progress_shown,
    refuse_if,
    require,
    usable_device,
)
from topicscope.reading import read

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
    engine: shell.EngineOption = "local",
    address: shell.AddressOption = None,
    workers: shell.WorkersOption = None,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> int:
    """Re-measure the paper: each claim with the paper's number, the theory's, ours, and a verdict.

    Writes report.html, results.json and every figure as PNG, SVG and CSV. If interrupted, run it again to continue.

    Example: [bold]topicscope reproduce figure2 theorem2 --out runs/two[/bold]
    """
    experiments, context = paper.chosen(ids), paper.Context(scale, seed, tuple(model or ()), tuple(corpus or ()))
    variant = (f"-{scale}" if scale != "quick" else "") + (f"-seed-{seed}" if seed else "")
    folder = out or Path("runs") / f"reproduce{variant}"
    with shell.chosen_engine(engine, address, workers) as opened, progress_shown() as progress:
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
    words = shell.coloured(paper.EXPERIMENTS[name].verdict_name(outcome.verdict), COLOURS[outcome.verdict])
    typer.echo(f"{name}: {words}" if seconds is None else f"{name}: {words} ({seconds:.0f} s)", err=True)


class Page:
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
    as_json: shell.AsJson = False,
) -> int:
    """List the experiments (id, claim, rough cost), or the laws (what they cover, status, error, where derived).

    Example: [bold]topicscope list laws[/bold]
    """
    if what == "laws":  # the table decides where a prediction is drawn or printed
        return shell.emit([law.as_dict() for law in laws.TABLE], [law_table()], as_json=as_json)
    found = paper.EXPERIMENTS.values()
    rows = ([e.id, e.claim, str(e.seconds)] for e in found)
    return shell.emit(
        [{"id": e.id, "claim": e.claim, "rule": e.rule, "seconds": e.seconds} for e in found],
        [shell.table(["id", Column("claim", ratio=1), "about (s)"], rows)],
        as_json=as_json,
    )


def law_table() -> Table:
    covers, error = Column("covers", ratio=2), Column("error", ratio=1)
    table = shell.table(["law", covers, "status", error, "derived in (docs)"], [])
    for law in laws.TABLE:
        text = f"{law.predicts}.\nCovers: {'; '.join(law.covers)}"
        table.add_row(law.name, text, law.status, law.error, law.derived, end_section=True)
    return table


def show(
    folders: Annotated[list[Path], typer.Argument(help="Folders that any topicscope command wrote.")],
    as_json: shell.AsJson = False,
) -> int:
    """Show finished folders of any kind. Runs are compared side by side: their results, and the settings that differ.

    Example: [bold]topicscope show runs/blocks runs/joint[/bold]
    """
    results: list[tuple[Path, Any]] = []
    for folder in folders:
        result = read(folder)
        results += [(run.folder, run) for run in result] if isinstance(result, list) else [(folder, result)]
    return shell.emit([entry(*one) for one in results] if as_json else [], shown_beside(results), as_json=as_json)


def entry(folder: Path, result: Any) -> dict[str, object]:
    stored = folder / protocol.CONFIG
    return {
        "folder": str(folder),
        "kind": result.kind,
        "config": load_settings(stored, own=True) if stored.is_file() else None,
        "results": {"counts": result.counts, "rows": result.rows}  # as they are now
        if result.kind == "sweep"
        else protocol.read_results(folder),
    }


def shown_beside(results: list[tuple[Path, Any]]) -> Iterator[shell.Printed]:
    runs = [(str(folder), result) for folder, result in results if hasattr(result, "facts")]
    settings = [flat(run.config.as_dict()) for _, run in runs]
    names = dict.fromkeys(chain.from_iterable(settings))
    differing = [name for name in names if any(one.get(name) != settings[0].get(name) for one in settings)]
    if runs:
        facts = [
            {name: one.get(name) for name in differing} | run.facts()
            for one, (_, run) in zip(settings, runs, strict=True)
        ]
        yield shell.side_by_side("", [folder for folder, _ in runs], facts, marked=len(differing))
    for folder, result in results:
        if len(results) > 1:
            yield f"{folder} ({result.kind}):"
        if result.kind == "reproduce":
            yield from outcome_table(result)
        elif not hasattr(result, "facts"):
            yield from shell.section_tables(result.sections())[:1]
        yield from result.summary()


def report(folder: Annotated[Path, typer.Argument(help="A folder that any topicscope command wrote.")]) -> int:
    """Draw a folder's results: figures as PNG, SVG and CSV, and a page.

    Example: [bold]topicscope report runs/demo[/bold]
    """
    result = read(folder)
    # the page of a sweep is one of its own: a map of any measure over any axes
    written = runs.write_sweep(result) if result.kind == "sweep" else shell.draw_result(result, folder)
    shell.print_all(f"written: {path}" for path in written)
    return 0


def export(
    folder: Annotated[Path, typer.Argument(help="A folder that any topicscope command wrote.", metavar="DIR")],
    to: Annotated[
        str,
        option(
            "tensorboard: curves of train, pretrain and sweeps. parquet: the table of any folder. hf: the model of "
            "pretrain or probe, with a model card.",
            OUTPUT,
            metavar="<tensorboard|parquet|hf>",
            autocompletion=lambda incomplete: [name for name in exporting.TARGETS if name.startswith(incomplete)],
        ),
    ],
    out: Annotated[Path | None, option("Where to write (default: beside DIR).", OUTPUT, "--out", "-o")] = None,
    model: Annotated[str | None, option("For hf: which model, if the probe has several.", OUTPUT)] = None,
    force: Annotated[bool, option("Replace an earlier export there.", OUTPUT, "--force")] = False,
    as_json: shell.AsJson = False,
) -> int:
    """Export a folder's results for other programs: to TensorBoard, to Parquet, or as a model folder with a card.

    Example: [bold]topicscope export runs/demo --to tensorboard[/bold]
    """
    with progress_shown() as progress:
        exported = exporting.export(folder, to, out, model=model, force=force, progress=progress)
    return shell.emit(exported.as_dict(), exported.summary(), as_json=as_json)


CHECKOUT = Path(__file__).parents[3]  # of the repository, where topicscope is not installed from a wheel
SERVER = "Server"
# Options that a request may give: numbers and words, nothing that names a file or says where an answer goes
ASKED = frozenset(
    [
        *("topics", "words_per_topic", "topics_per_document", "p_mask", "p_correct", "p_random"),
        *("convention", "value_matrix", "cap", "prior", "alpha", "groups"),
        *("rho", "length", "weighting", "init_scale", "attention_dim", "loss"),
        *("embedding", "width", "optimizer", "lr", "eps", "loss_scale"),
        *("batch_noise", "output_bias"),
    ]
)


def explore(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Other folders to show, besides the workspace.", show_default=False)
    ] = None,
    workspace: Annotated[Path, option("Folder for new runs; what it holds is shown too.", SERVER)] = Path("runs"),
    port: Annotated[int, option("Port to listen on; 0: any free port.", SERVER, min=0, max=65535)] = 0,
    host: Annotated[
        str, option("Address to listen on; with any but a loopback address, other machines can connect.", SERVER)
    ] = ("127.0.0.1"),
    open_: Annotated[bool, option("Open the browser.", SERVER, "--open/--no-open")] = True,
    read_only: Annotated[
        bool, option("View only: no run can be started, paused or resumed.", SERVER, "--read-only")
    ] = False,
    as_json: shell.AsJson = False,
) -> int:
    """Open the explorer in the browser: change settings and see the theory, watch runs learn, browse results.

    Example: [bold]topicscope explore runs[/bold]
    """
    require(["starlette", "uvicorn"], "the explorer")
    from topicscope import explorer

    check_out(workspace)
    place = explorer.Workspace(workspace, folders or [])
    if not explorer.is_loopback(host):
        typer.echo(
            f"topicscope: warning: {host} can be reached from other machines, without encryption; "
            "anyone who has the token can start runs here",
            err=True,
        )

    def ready(url: str, bound: int) -> None:
        shell.emit(
            {"url": url, "port": bound, "workspace": str(place.home)},
            [f"The explorer is at {url}", "Ctrl-C stops the explorer; its runs continue."],
            as_json=as_json,
        )
        sys.stdout.flush()
        if open_:
            webbrowser.open(url)

    explorer.serve(place, answer, ready, host=host, port=port, read_only=read_only)
    return 0


def answer(name: str, options: Mapping[str, str]) -> object:
    """The JSON of `topicscope theory NAME`, computed in this process."""
    from topicscope.cli import theory

    group: Any = typer.main.get_command(theory.app)
    refuse_if(name not in group.commands, f"no such command of theory; {nearest(name, group.commands)}")
    known = {one.name: one for one in group.commands[name].params if one.name in ASKED}
    arguments = []
    for key, text in options.items():
        refuse_if(key not in known, f"{name} has no option {key!r:.80}; expected: {', '.join(known)}")
        flag = max(known[key].opts, key=len)
        arguments += [flag] * (text.lower() in ("true", "1")) if known[key].is_flag else [f"{flag}={text}"]
    answers: list[object] = []
    before = shell.ANSWERS.set(answers)
    try:
        group.main([name, *arguments, "--json"], standalone_mode=False)
    except shell.UsageError as error:
        raise InputError(shell.misuse(error)) from None
    finally:
        shell.ANSWERS.reset(before)
    return answers[0]


def bench(
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Where to measure: cpu or cuda.")] = "cpu",
    part: Annotated[
        Literal["all", "sandbox", "language", "pretraining", "sweep"], typer.Option(help="What to measure.")
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repetitions: a check that it runs; too rough to quote.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Compare this project's speed with plain implementations, in the same run, on one thread (sweeps: all cores).

    Plain way: the same work done the usual way. Floor: time of what cannot be left out. Aim: what ours must reach.

    Example: [bold]topicscope bench --json > bench.json[/bold]
    """
    refuse_if(
        not (CHECKOUT / "tools" / "bench").is_dir(), "the benchmarks need a checkout of the repository: make bench"
    )
    usable_device(device)
    if part in ("all", "language"):
        require(["transformers"], "a language model")
    if part in ("all", "pretraining"):
        require(pretraining.LIBRARIES, "pretraining")
    sys.path.insert(0, str(CHECKOUT))
    return int(importlib.import_module("tools.bench").run(device, part, quick=quick, as_json=as_json))
