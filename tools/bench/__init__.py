"""Speed, measured against the plain way in the same run: what `topicscope bench` and `make bench` print."""

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Column, Table

from tools.bench.language import bench_language
from tools.bench.pretraining import bench_pretraining
from tools.bench.rows import Row
from tools.bench.sandbox import bench_sandbox
from tools.bench.sweep import bench_sweep
from topicscope.cli.shell import results

PARTS = {
    "sandbox": bench_sandbox,
    "language": bench_language,
    "pretraining": bench_pretraining,
    "sweep": bench_sweep,
}


def run(device: str, part: str, *, quick: bool, as_json: bool) -> int:
    """Measure one part, or all of them, and print the rows."""
    with Console(stderr=True).status("measuring") as status:
        rows = [
            row
            for name, measure in PARTS.items()
            if part in ("all", name)
            for row in measure(device, quick=quick, say=lambda what: status.update(f"measuring: {what}"))
        ]
    if as_json:
        print(json.dumps({"device": device, "quick": quick, "rows": [asdict(row) for row in rows]}))
    else:
        results().print(table(rows, device))
    return 0


def table(rows: list[Row], device: str) -> Table:
    columns = [
        Column(
            heading, justify="left" if heading in ("what", "aim", "floor", "plain way") else "right", overflow="fold"
        )
        for heading in ("what", "ours", "plain way", "times faster", "floor", "over floor", "aim", "met")
    ]
    printed = Table(*columns, title=f"topicscope bench ({device}, one thread per process)", title_justify="left")
    for row in rows:
        printed.add_row(
            row.name,
            f"{row.ours:.2f} {row.unit}" if row.unit in ("GB", "CPU s") else seconds(row.ours) + row.unit[1:],
            "\n".join(f"{name}: {seconds(value)}" for name, value in row.plain.items()),
            "\n".join(f"{value:,.1f}" for value in row.times_faster.values()),
            "" if row.floor is None else f"{seconds(row.floor)} ({row.floor_is})",
            "" if row.over_floor is None else f"{row.over_floor:.3g}",
            row.aim,
            {True: "yes", False: "no", None: ""}[row.met],
        )
    return printed


def seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value / 1e-3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"
