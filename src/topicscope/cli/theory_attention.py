"""`topicscope theory landscape`: the loss over attention once W_V is frozen, and its minimum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from topicscope.cli.options import Force, Out
from topicscope.cli.pictures import heat_map
from topicscope.cli.theory_options import Option, command, emit, example
from topicscope.theory import Convention, SecondStage, Setting, ValueMatrix, attention_landscape


def attention_table(stage: SecondStage) -> Table:
    best = stage.optimum
    table = Table("", "alpha (same topic)", "beta (same word)", "gamma (average)", "loss")
    table.add_row("uniform attention", "1", "1", "1", f"{stage.uniform_loss:.6f}")
    table.add_row("best attention", f"{best.alpha:.4g}", f"{best.beta:.4g}", f"{best.gamma:.4g}", f"{best.loss:.6f}")
    return table


FROZEN = Annotated[ValueMatrix, typer.Option(help="W_V frozen at Theorem 2's blocks or at the diagonal optimum.")]
CAP = Annotated[
    bool | None, typer.Option("--cap/--no-cap", help="Cap predictions at 1 (default: diagonal, paper convention).")
]
OPTIONS: dict[str, Option] = {
    "value_matrix": (FROZEN, "blocks"),
    "cap": (CAP, None),
    "out": (Out, None),
    "force": (Force, False),
}


def landscape(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention,
    cap: bool | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    result = attention_landscape(setting, value_matrix, convention, cap=cap, out=out, force=force)
    title = "loss, the fuller a cell the lower; beta from 1e-4 to the right, alpha from 1e-4 upwards"
    lines: list[Any] = [heat_map(-result.grid.loss[::-1], title), attention_table(result.stage), *result.summary()]
    if out is not None:
        from topicscope.report import draw_figure

        draw_figure(result.sections()[0].figures[0], out)
        lines.append(f"written to {out}: landscape.png, .svg, .npz, .csv, results.json")
    emit(result.as_dict(), as_json, lines)
    return 0


command(
    landscape,
    "landscape",
    help_=example(
        "Find and draw the best attention for any finite setting (Figures 7 and 8).",
        "landscape --value-matrix diagonal --topics 100 --words-per-topic 300 --topics-per-document 20 "
        "--convention paper --out runs/figure7",
    ),
    own=OPTIONS,
)
