"""`topicscope theory landscape`: the loss over attention once W_V is frozen, and its minimum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from topicscope.cli.pictures import heat_map
from topicscope.cli.theory_options import Option, command, emit, example
from topicscope.theory import Convention, Landscape, SecondStage, Setting, ValueMatrix, landscape, second_stage


def attention_table(stage: SecondStage) -> Table:
    best = stage.optimum
    table = Table("", "alpha (same topic)", "beta (same word)", "gamma (average)", "loss")
    table.add_row("uniform attention", "1", "1", "1", f"{stage.uniform_loss:.6f}")
    table.add_row("best attention", f"{best.alpha:.4g}", f"{best.beta:.4g}", f"{best.gamma:.4g}", f"{best.loss:.6f}")
    return table


OPTIONS: dict[str, Option] = {
    "value_matrix": (
        Annotated[ValueMatrix, typer.Option(help="W_V frozen at Theorem 2's blocks or at the diagonal optimum.")],
        "blocks",
    ),
    "cap": (
        Annotated[
            bool | None,
            typer.Option("--cap/--no-cap", help="Cap predictions at 1 (default: diagonal, paper convention)."),
        ],
        None,
    ),
    "out": (
        Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the grid (npz, csv) and the picture.")],
        None,
    ),
    "force": (Annotated[bool, typer.Option("--force", help="Write into --out even if it is not empty.")], False),
}


def draw_landscape_of(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention,
    cap: bool | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    stage = second_stage(setting, value_matrix, convention, cap=cap)
    grid = landscape(setting, value_matrix, convention, cap=stage.cap)
    alpha, beta, loss = grid.minimum
    payload = stage.as_dict()
    payload["grid_minimum"] = {"alpha": alpha, "beta": beta, "gamma": setting.gamma(alpha, beta), "loss": loss}
    title = "loss, the fuller a cell the lower; beta from 1e-4 to the right, alpha from 1e-4 upwards"
    lines: list[Any] = [heat_map(-grid.loss[::-1], title), attention_table(stage), *stage.summary()]
    if out is not None:
        write_landscape(out, force, stage, grid, payload)
        lines.append(f"written to {out}: landscape.png, .svg, .npz, .csv, .json")
    emit(payload, as_json, lines)
    return 0


def write_landscape(out: Path, force: bool, stage: SecondStage, grid: Landscape, payload: dict[str, Any]) -> None:
    from topicscope.ground import files, old_folders as folders
    from topicscope.report import draw_landscape

    folders.check(out, resume=False, force=force)
    folders.prepare(out)
    files.write_json(out / "landscape.json", payload)
    files.write_npz(out / "landscape.npz", {"alpha": grid.alpha, "beta": grid.beta, "loss": grid.loss})
    rows = ["alpha,beta,loss\n"] + [
        f"{a:.10g},{b:.10g},{grid.loss[i, j]:.17g}\n" for i, a in enumerate(grid.alpha) for j, b in enumerate(grid.beta)
    ]
    files.write(out / "landscape.csv", "".join(rows).encode())
    s, best = stage.setting, stage.optimum
    title = f"{stage.value_matrix} $W_V$: T = {s.T}, v = {s.v}, $\\tau$ = {s.tau} ({stage.convention})"
    draw_landscape(grid.alpha, grid.beta, grid.loss, (best.alpha, best.beta), title, out)


command(
    draw_landscape_of,
    "landscape",
    help_=example(
        "Find and draw the best attention for any finite setting (Figures 7 and 8).",
        "landscape --value-matrix diagonal --topics 100 --words-per-topic 300 --topics-per-document 20 "
        "--convention paper --out runs/figure7",
    ),
    own=OPTIONS,
)
