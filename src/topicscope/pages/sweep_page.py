"""The page of a sweep: a map of any measure over any two axes, the curves of the points that are clicked, failures.

write_sweep_page(Path("report.html"), "My sweep", "What was run.", PointMap(axes, rows, {"loss": "loss"}), curves)
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topicscope.ground import write
from topicscope.pages.layout import PALETTE
from topicscope.pages.matrices import MATRIX_COLOURS, NORM_CURVES
from topicscope.pages.page import environment, html_of
from topicscope.pages.parts import PointMap

CURVE_POINTS = 100
MOST_CURVES = 20_000_000  # bytes of curves in a page; points beyond have theirs in their folders only
MOST_ROWS = 50  # points whose curves one question brings

Curves = Mapping[str, np.ndarray]


def write_sweep_page(path: Path, title: str, intro: str, points: PointMap, curves: Iterable[Curves]) -> None:
    """Write the page of a sweep: a map of any measure over any two axes, curves of clicked points, and failures.

    Args:
        path: The file, written whole or not at all.
        title: Title of the page.
        intro: First paragraphs; blank lines part them.
        points: All points of the sweep, from `topicscope.pages.point_map`.
        curves: Of each row of `points` its curves by name, read one after another.

    Example:
        >>> import tempfile
        >>> rows = [{"point": "a", "lr": 0.1, "state": "done", "loss": 1.5}]
        >>> rows += [{"point": "b", "lr": 9.0, "state": "failed", "error": "it diverged"}]
        >>> points = PointMap({"lr": [0.1, 9.0]}, rows, {"loss": "loss"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_sweep_page(Path(folder, "report.html"), "A sweep", "", points, curves=[{"loss": np.ones(2)}, {}])
        ...     page = Path(folder, "report.html").read_text()
        >>> [line.strip() for line in page.splitlines() if "it diverged</" in line]
        ['<tr><th scope="row"><code>b</code></th><td>lr=9.0</td><td>it diverged</td></tr>']
    """
    parts = map_parts(points, packed(curves, tuple(points.curve_panels.values())))
    write(path, html_of("sweep.html.jinja", title, intro, **parts).encode())


def kept_map_html(
    title: str, intro: str, points: PointMap, curves: dict[str, dict[str, str]], chosen: Mapping[str, Any]
) -> str:
    """The map of a sweep as one page to keep, as the reader has it on the screen.

    Args:
        title: Title of the page.
        intro: First paragraphs; blank lines part them.
        points: All points of the sweep.
        curves: Curves of the chosen points, from `curves_of_rows`.
        chosen: The reader's choices, as far as there are any: 'measure', 'across', 'up', and 'points' (their numbers).

    Returns:
        The page, scripts included.

    Example:
        >>> import re
        >>> rows = [{"point": "a", "lr": 0.1, "state": "done", "loss": 1.5}]
        >>> points = PointMap({"lr": [0.1]}, rows, {"loss": "loss"})
        >>> page = kept_map_html("A sweep", "", points, curves={}, chosen={"measure": "loss", "across": "lr"})
        >>> re.search('"chosen":{.*?}', page).group()
        '"chosen":{"measure":"loss","across":"lr"}'
    """
    return html_of("sweep.html.jinja", title, intro, **map_parts(points, curves, chosen))


def map_html(points: PointMap, chosen: Mapping[str, Any] | None = None) -> str:
    """The map of a sweep as a piece of HTML, for a page that has its script; curves come when they are asked for.

    Args:
        points: All points of the sweep.
        chosen: What it opens with, as in `kept_map_html`; None: nothing is chosen yet.

    Returns:
        The piece of HTML, with all numbers as JSON.

    Example:
        >>> import json
        >>> rows = [{"point": "a", "lr": 0.1, "state": "done", "loss": 1.5}]
        >>> rows += [{"point": "b", "lr": 1.0, "state": "missing"}]
        >>> html = map_html(PointMap({"lr": [0.1, 1.0]}, rows, {"loss": "loss"}))
        >>> data = json.loads(html.split('id="data">')[1].split("</script>")[0])
        >>> [(data["axes"]["lr"][row["at"][0]], row["measures"]) for row in data["rows"]]
        [(0.1, {'loss': 1.5, 'state': 'done'}), (1.0, {'state': 'missing'})]
    """
    return environment().get_template("points.html.jinja").render(**map_parts(points, None, chosen))


def map_parts(
    points: PointMap, curves: dict[str, dict[str, str]] | None, chosen: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the template takes: all numbers by their places on the axes, and the failures."""
    axes, rows = points.axes, points.rows
    known = {"point", "state", "error", *axes}
    measures = list(
        dict.fromkeys(key for row in rows for key, value in row.items() if key not in known and value is not None)
    )
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in [*measures, "state"]}
    words = {
        name: word_colours(found, points.colours.get(name))
        for name, found in values.items()
        if any(isinstance(value, str | bool) for value in found)
    }
    measures.sort(key=lambda name: (name != points.first, name in words))  # words last
    places = {name: {json.dumps(value): i for i, value in enumerate(steps)} for name, steps in axes.items()}
    data = {
        "axes": axes,
        "measures": [*measures, "state"],
        "words": words,
        "meanings": {name: dict(meanings) for name, meanings in points.meanings.items()},
        "chosen": None if chosen is None else dict(chosen),
        "palette": PALETTE,
        "curveNames": {metric: [name, MATRIX_COLOURS[name]] for metric, name in NORM_CURVES.items()},
        "curvePanels": dict(points.curve_panels),
        "curves": curves,
        "rows": [
            {
                "point": row["point"],
                "state": row["state"],
                "error": row.get("error"),
                "at": [places[name][json.dumps(row[name])] for name in axes],
                "measures": {name: row[name] for name in [*measures, "state"] if row.get(name) is not None},
            }
            for row in rows
        ],
    }
    failures = [
        (row["point"], ", ".join(f"{name}={row[name]}" for name in axes), row.get("error"))
        for row in rows
        if row["state"] == "failed"
    ]
    return {"data": data, "failures": failures}


def word_colours(values: list[Any], given: Mapping[str, str] | None) -> list[dict[str, str]]:
    """Words and their colours, the same in every map."""
    if given is None:
        given = {word: PALETTE[i % len(PALETTE)] for i, word in enumerate(dict.fromkeys(map(str, values)))}
    return [{"name": name, "colour": colour} for name, colour in given.items()]


def curves_of_rows(
    points: PointMap, curves_of: Callable[[int], Curves], rows: Sequence[int]
) -> dict[str, dict[str, str]]:
    """The curves of some points of a sweep, packed for a map that asks for them.

    Args:
        points: All points of the sweep.
        curves_of: Called with the number of a point, from 0; gives its curves by name.
        rows: Numbers of the wanted points; numbers that no point has are left out.

    Returns:
        By number of the point and name of the curve: its values as float32 in base64, at most 100 of them.

    Example:
        >>> points = PointMap({"seed": [0]}, [{"point": "a", "seed": 0, "state": "done"}], {"loss": "loss"})
        >>> packed = curves_of_rows(points, lambda number: {"loss": np.array([2.0, 1.5])}, rows=[0, 7])
        >>> packed["0"]["loss"], np.frombuffer(base64.b64decode(packed["0"]["loss"]), "<f4").tolist(), list(packed)
        ('AAAAQAAAwD8=', [2.0, 1.5], ['0'])
    """
    numbers = [number for number in rows[:MOST_ROWS] if 0 <= number < len(points.rows)]
    return packed(map(curves_of, numbers), tuple(points.curve_panels.values()), numbers)


def packed(
    curves: Iterable[Curves], starts: tuple[str, ...], numbers: Sequence[int] | None = None
) -> dict[str, dict[str, str]]:
    """Curves for a page: float32 in base64, a tenth of what the digits would take.

    Args:
        curves: Of each row, by name.
        starts: Curves whose names start so are kept, and the steps.
        numbers: Numbers of the rows; None: from 0 on.

    Returns:
        Texts by number of the row and name of the curve.

    Example:
        >>> packed([{"loss": np.array([1.0, 0.5]), "other": np.ones(2)}], starts=("loss",))
        {'0': {'loss': 'AACAPwAAAD8='}}
    """
    texts: dict[str, dict[str, str]] = {}
    size = 0
    for number, of_point in enumerate(curves) if numbers is None else zip(numbers, curves, strict=True):
        if size > MOST_CURVES:
            break
        wanted = {name: values for name, values in of_point.items() if name == "step" or name.startswith(starts)}
        for name, values in wanted.items():
            spread = np.linspace(0, max(0, len(values) - 1), min(len(values), CURVE_POINTS)).round()
            text = base64.b64encode(np.asarray(values)[np.unique(spread.astype(int))].astype("<f4").tobytes()).decode()
            texts.setdefault(str(number), {})[name] = text
            size += len(text)
    return texts
