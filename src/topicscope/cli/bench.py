"""`topicscope bench`."""

import json
from dataclasses import asdict
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Column, Table

from topicscope import bench, pretraining
from topicscope.cli.consoles import results
from topicscope.ground import require, usable_device


def command(
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
    usable_device(device)
    if part in ("all", "language"):
        require(["transformers"], "a language model")
    if part in ("all", "pretraining"):
        require(pretraining.LIBRARIES, "pretraining")
    parts = {
        "sandbox": bench.bench_sandbox,
        "language": bench.bench_language,
        "pretraining": bench.bench_pretraining,
        "sweep": bench.bench_sweep,
    }
    with Console(stderr=True).status("measuring") as status:
        rows = [
            row
            for name, measure in parts.items()
            if part in ("all", name)
            for row in measure(device, quick=quick, say=lambda what: status.update(f"measuring: {what}"))
        ]
    if as_json:
        print(json.dumps({"device": device, "quick": quick, "rows": [asdict(row) for row in rows]}))
        return 0
    columns = [
        Column(
            heading, justify="left" if heading in ("what", "aim", "floor", "plain way") else "right", overflow="fold"
        )
        for heading in ("what", "ours", "plain way", "times faster", "floor", "over floor", "aim", "met")
    ]
    table = Table(*columns, title=f"topicscope bench ({device}, one thread per process)", title_justify="left")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.ours:.2f} {row.unit}" if row.unit in ("GB", "CPU s") else seconds(row.ours) + row.unit[1:],
            "\n".join(f"{name}: {seconds(value)}" for name, value in row.plain.items()),
            "\n".join(f"{value:,.1f}" for value in row.times_faster.values()),
            "" if row.floor is None else f"{seconds(row.floor)} ({row.floor_is})",
            "" if row.over_floor is None else f"{row.over_floor:.3g}",
            row.aim,
            {True: "yes", False: "no", None: ""}[row.met],
        )
    results().print(table)
    return 0


def seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value / 1e-3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"
