"""All points of a sweep as one table, in CSV and in Parquet: place on the axes, state, measures, error, and the rest of the config."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from topicscope.ground import files
from topicscope.sweeps.grid import flat
from topicscope.sweeps.run import Sweep

CSV, PARQUET = "points.csv", "points.parquet"


def write_table(found: Sweep, folder: str | Path) -> list[Path]:
    """points.csv and points.parquet, a row a point, in the order of the grid."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    columns = table_columns(found)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    files.write(folder / CSV, stream.getvalue().encode())
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), buffer)
    files.write(folder / PARQUET, buffer.getvalue())
    return [folder / CSV, folder / PARQUET]


def table_columns(found: Sweep) -> dict[str, list[Any]]:
    """One kind of value a column: lists as JSON, and a column that mixes words and numbers as words."""
    axes = list(found.grid.axes)
    configs = [flat(point.config) for point in found.grid.points]
    settings = [key for key in dict.fromkeys(key for config in configs for key in config) if key not in axes]
    named = {
        name: [row.get(name) for row in found.rows] for name in ["point", *axes, "state", *found.measures, "error"]
    }
    fixed = {
        f"config.{name}" if name in named else name: [config.get(name) for config in configs] for name in settings
    }  # a measure may have its name
    return {name: alike(values) for name, values in (named | fixed).items()}


def alike(values: list[Any]) -> list[Any]:
    values = [json.dumps(value) if isinstance(value, list | dict) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return [None if value is None else float(value) for value in values] if float in kinds else values
    return values if len(kinds) == 1 else [None if value is None else str(value) for value in values]
