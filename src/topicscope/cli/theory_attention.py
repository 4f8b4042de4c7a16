"""`topicscope theory theorem3`, `theorem5` and `landscape`: the best attention once W_V is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from topicscope.cli.pictures import heat_map
from topicscope.cli.theory_options import (
    AsJson,
    PCorrect,
    PMask,
    PRandom,
    Tau,
    Topics,
    Words,
    app,
    describe,
    emit,
    setting,
)

if TYPE_CHECKING:
    from topicscope.theory import Setting


def attention_report(
    s: Setting, kind: Literal["blocks", "diagonal"], convention: Literal["exact", "paper"], cap: bool
) -> dict[str, Any]:
    """What `landscape`, `theorem3` and `theorem5` share: minimum, loss at uniform attention, bounds, and whether they hold it."""
    from topicscope.ground import InputError
    from topicscope.theory import Entries, attention_loss, best_attention, theorem3, theorem5

    found = best_attention(s, kind, convention, cap=cap)
    bounds: dict[str, float] | None
    inside: bool | None
    if kind == "blocks":
        low, high = theorem3.bounds(s)
        bounds, inside = {"gamma_low": low, "gamma_high": high}, theorem3.contains(s, found.alpha, found.beta)
    else:
        try:
            bounds, inside = theorem5.bounds(s), theorem5.contains(s, found.alpha, found.beta)
        except InputError:
            if s.v == 1:
                raise
            bounds = inside = None  # v too small for lambda4: the loss is still defined
    return {
        "value_matrix": kind,
        "convention": convention,
        "cap": cap,
        "settings": describe(s),
        "minimum": {"alpha": found.alpha, "beta": found.beta, "gamma": found.gamma, "loss": found.loss},
        "edge": found.edge,
        "only_gamma": found.only_gamma,
        "uniform_loss": float(attention_loss(s, Entries.of(kind, s), 1.0, 1.0, convention, cap=cap)),
        "bounds": bounds,
        "inside_bounds": inside,
        "assumptions_strained": theorem3.assumptions(s),
    }


def attention_lines(report: dict[str, Any]) -> list[Any]:
    low = report["minimum"]
    table = Table("", "alpha (same topic)", "beta (same word)", "gamma (average)", "loss")
    table.add_row("uniform attention", "1", "1", "1", f"{report['uniform_loss']:.6f}")
    table.add_row(
        "best attention", f"{low['alpha']:.4g}", f"{low['beta']:.4g}", f"{low['gamma']:.4g}", f"{low['loss']:.6f}"
    )
    lines: list[Any] = [table]
    if report["edge"]:
        lines.append(f"Where the minimum lies: {report['edge']}.")
    if report["only_gamma"]:
        lines.append(
            "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; alpha = beta is shown."
        )
    b, where = report["bounds"], "inside" if report["inside_bounds"] else "OUTSIDE"
    if b is None:
        lines.append("Theorem 5's bounds are not defined for so small a v.")
    elif report["value_matrix"] == "blocks":
        lines.append(
            f"Theorem 3: gamma lies in ({b['gamma_low']:.5g}, {b['gamma_high']:.5g}). The best gamma {low['gamma']:.5g} is {where}."
        )
        lines.append(
            "How to read it: with block-wise W_V the document is best read by attending words of the same topic "
            + _times(low["gamma"])
            + " as much as others."
        )
    else:
        lines.append(
            f"Theorem 5: beta lies in ({b['beta_low']:.5g}, {b['beta_high']:.5g}) and alpha < {b['alpha_over_beta']:.4g} beta. The best attention is {where}."
        )
        lines.append(
            "How to read it: with diagonal W_V a word is best read by attending itself "
            + _times(low["beta"])
            + " as much as words of other topics."
        )
    if report["assumptions_strained"]:
        lines.append(f"The theorem is asymptotic; here it is strained: {'; '.join(report['assumptions_strained'])}.")
    return lines


def _times(number: float) -> str:
    return f"{number:.3g} times"


@app.command()
def theorem3(
    topics: Topics = 10,
    words_per_topic: Words = 10,
    topics_per_document: Tau = 3,
    p_mask: PMask = 0.15,
    p_correct: PCorrect = 0.1,
    p_random: PRandom = 0.1,
    convention: Annotated[
        Literal["exact", "paper"],
        typer.Option(
            help="exact: MASK is a word of its own topic. paper: words share all attention, positions showing MASK are left out."
        ),
    ] = "exact",
    as_json: AsJson = False,
) -> int:
    """The best attention when W_V is frozen at Theorem 2's blocks: minimiser, bounds, and whether they hold it.

    Example: [bold]topicscope theory theorem3 --topics 1000000 --words-per-topic 1000 --topics-per-document 100[/bold]
    """
    from topicscope.theory import theorem3 as theorem

    s = setting(topics, words_per_topic, topics_per_document, p_mask, p_correct, p_random)
    report = attention_report(s, "blocks", convention, cap=False)
    report["lambda1"], report["lambda2"] = theorem.lambdas(s)
    emit(report, as_json, attention_lines(report))
    return 0


@app.command()
def theorem5(
    topics: Topics = 10,
    words_per_topic: Words = 10,
    topics_per_document: Tau = 3,
    p_mask: PMask = 0.15,
    p_correct: PCorrect = 0.1,
    p_random: PRandom = 0.1,
    convention: Annotated[
        Literal["exact", "paper"],
        typer.Option(
            help="exact: MASK is a word of its own topic. paper: words share all attention, positions showing MASK are left out."
        ),
    ] = "exact",
    as_json: AsJson = False,
) -> int:
    """The best attention when W_V is frozen at the diagonal optimum: minimiser, bounds, and whether they hold it.

    Example: [bold]topicscope theory theorem5 --words-per-topic 300 --topics 100 --topics-per-document 20[/bold]
    """
    from topicscope.theory import theorem5 as theorem

    s = setting(topics, words_per_topic, topics_per_document, p_mask, p_correct, p_random)
    lambdas = theorem.lambdas(s)
    report = attention_report(s, "diagonal", convention, cap=convention == "paper")
    report["lambda3"], report["lambda4"], report["lambda5"] = lambdas
    emit(report, as_json, attention_lines(report))
    return 0


@app.command()
def landscape(
    value_matrix: Annotated[
        Literal["blocks", "diagonal"], typer.Option(help="W_V frozen at Theorem 2's blocks or at the diagonal optimum.")
    ] = "blocks",
    topics: Topics = 10,
    words_per_topic: Words = 10,
    topics_per_document: Tau = 3,
    p_mask: PMask = 0.15,
    p_correct: PCorrect = 0.1,
    p_random: PRandom = 0.1,
    convention: Annotated[
        Literal["exact", "paper"],
        typer.Option(
            help="exact: MASK is a word of its own topic. paper: words share all attention, positions showing MASK are left out."
        ),
    ] = "exact",
    cap: Annotated[
        bool | None, typer.Option("--cap/--no-cap", help="Cap predictions at 1 (default: diagonal, paper convention).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the grid (npz, csv) and the picture.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into --out even if it is not empty.")] = False,
    as_json: AsJson = False,
) -> int:
    """Find and draw the best attention for any finite setting (Figures 7 and 8).

    Example: [bold]topicscope theory landscape --value-matrix diagonal --topics 100 --words-per-topic 300 --topics-per-document 20
    --convention paper --out runs/figure7[/bold]
    """
    from topicscope.ground import files, old_folders as folders
    from topicscope.theory import landscape as grid_of

    s = setting(topics, words_per_topic, topics_per_document, p_mask, p_correct, p_random)
    capped = (value_matrix == "diagonal" and convention == "paper") if cap is None else cap
    report = attention_report(s, value_matrix, convention, capped)
    grid = grid_of(s, value_matrix, convention, cap=capped)
    alpha, beta, loss = grid.minimum
    report["grid_minimum"] = {"alpha": alpha, "beta": beta, "gamma": s.gamma(alpha, beta), "loss": loss}
    lines = [
        heat_map(
            -grid.loss[::-1], "loss, the fuller a cell the lower; beta from 1e-4 to the right, alpha from 1e-4 upwards"
        ),
        *attention_lines(report),
    ]
    if out is not None:
        from topicscope.figures import landscape_figure
        from topicscope.report import draw_figure

        folders.check(out, resume=False, force=force)
        folders.prepare(out)
        files.write_json(out / "landscape.json", report)
        files.write_npz(out / "landscape.npz", {"alpha": grid.alpha, "beta": grid.beta, "loss": grid.loss})
        rows = ["alpha,beta,loss\n"] + [
            f"{a:.10g},{b:.10g},{grid.loss[i, j]:.17g}\n"
            for i, a in enumerate(grid.alpha)
            for j, b in enumerate(grid.beta)
        ]
        files.write(out / "landscape.csv", "".join(rows).encode())
        title = f"{value_matrix} W_V: T = {s.T}, v = {s.v}, τ = {s.tau} ({convention})"
        best = (report["minimum"]["alpha"], report["minimum"]["beta"])
        draw_figure(landscape_figure("landscape", title, {"": grid}, {"": best}), out)
        lines.append(f"written to {out}: landscape.png, .svg, .npz, .csv, .json")
    emit(report, as_json, lines)
    return 0
