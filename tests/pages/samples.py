"""Small figures of every kind, with text that must come through as it is."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import pyarrow

from topicscope.ground import Result
from topicscope.pages import Figure, Heat, Judgement, Lines, Map, Panel, Points, Section, Series, TableData

EVIL = """<script>window.hacked=1</script> & "double" 'single' <b>$x$</b> %{y}"""
TOPICS, WORDS_PER_TOPIC = 4, 3
SIZE = TOPICS * WORDS_PER_TOPIC + 1


PanelKind = TypeVar("PanelKind", bound=Panel)


def panels(figure: Figure, kind: type[PanelKind]) -> list[PanelKind]:
    assert all(isinstance(panel, kind) for panel in figure.panels)
    return [panel for panel in figure.panels if isinstance(panel, kind)]


def topic_of(word: int) -> int:
    return math.ceil(word / WORDS_PER_TOPIC)


def value(row: int, column: int) -> float:
    """Blocks on the diagonal, and no two cells alike."""
    same = row > 0 and topic_of(row) == topic_of(column)
    return (0.1 if same else -0.02) + 0.0012345678901 * row + 0.0001 * column


def word_heat(title: str = "Squared loss, SGD") -> Heat:
    z = [[value(row, column) for column in range(SIZE)] for row in range(SIZE)]
    return Heat(
        title, z, "topic of the input word", "topic of the output word", topics=TOPICS, words_per_topic=WORDS_PER_TOPIC
    )


def word_figure() -> Figure:
    titles = ["Cross-entropy, SGD", "Cross-entropy, Adam", "Squared loss, SGD", "Squared loss, Adam"]
    return Figure(
        "words",
        "The value matrix after training",
        "Four heat maps with bright blocks on the diagonal.",
        [word_heat(title) for title in titles],
    )


def landscape_figure() -> Figure:
    grid = [10 ** (-2 + 0.25 * i) for i in range(25)]
    panels: list[Panel] = []
    for tau in (20, 40, 60, 80):
        z = [[math.log10(beta / tau) ** 2 + 0.1 * math.log10(alpha) for beta in grid] for alpha in grid]
        z[0][0] = math.nan
        panels.append(
            Heat(
                f"τ = {tau}",
                z,
                "beta",
                "alpha",
                x=grid,
                y=grid,
                log=True,
                high=5.0,
                marks=[(float(tau), 0.01, "lowest"), (1e9, 1.0, "theory")],
                references=[(1.0, 1.0, "uniform")],
                contours=8,
                z_label="loss",
            )
        )
    return Figure("landscape", "Loss landscape", "Four landscapes, dark where the loss is low.", panels, columns=4)


def curves_figure() -> Figure:
    steps = [float(step) for step in range(0, 1000, 20)]
    grouped = [
        Series(
            f"{part}, seed {seed}",
            steps,
            [(1 + 0.1 * seed) * 6 / (1 + math.exp((middle - step) / 60)) for step in steps],
            group=part,
        )
        for part, middle in (("key", 600), ("query", 550), ("value", 120))
        for seed in range(3)
    ]
    x = [1.0, 10.0, 100.0, 1000.0]
    y = [1.0, 0.3, 0.1, 0.04]
    with_interval = Series(EVIL, x, y, [v * 0.7 for v in y], [v * 1.4 for v in y], markers=True)
    plain = Series("plain", x, [0.5, 0.2, 0.2, 0.1], markers=True)
    bands = [(0.0, 300.0, "first stage"), (300.0, math.inf, "second stage")]
    panels: list[Panel] = [
        Lines(
            "Norms: which part moves first?", grouped, "step", "Frobenius norm", bands=bands, levels=[(5.0, "theory")]
        ),
        Lines(
            EVIL,
            [with_interval, plain],
            "documents",
            EVIL,
            log_x=True,
            log_y=True,
            bands=[(0.0, 10.0, "few")],
            levels=[(0.02, "floor"), (0.2, "chance")],
        ),
    ]
    return Figure("curves", EVIL, EVIL, panels, colours={"key": "#0072B2", "query": "#56B4E9", "value": "#D55E00"})


def points_figure() -> Figure:
    categories = ["SGD", "Adam & friends", "a rather long name of a method"]
    series = [
        Series("same topic", [0.0, 1.0, 2.0], [0.1, 0.12, 0.3], [0.09, 0.1, 0.2], [0.11, 0.15, 0.42]),
        Series("different topic", [0.0, 1.0, 2.0], [-0.01, -0.02, 0.0], [-0.03, -0.03, -0.1], [0.01, 0.0, 0.1]),
        Series("without interval", [0.0, 2.0], [0.05, 0.06]),
    ]
    return Figure(
        "points",
        "Means by optimiser",
        "Same-topic means lie above the others.",
        [Points("Means", categories, series, "mean entry", [(0.0, "zero")])],
        1,
    )


def plain_figure() -> Figure:
    heat = Heat("Not square, no topics", [[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]], "column", "row", low=-1.0)
    columns = Heat("Columns at places", [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], "place", "row", x=[1.0, 4.0])
    single = Lines("One curve", [Series("loss", [0.0, 1.0, 2.0], [3.0, 2.0, 1.5])], "step", "loss")
    return Figure("plain", "Everything left to its default", "Three small panels.", [heat, columns, single], columns=2)


def map_figure() -> Figure:
    words = {"early": "#0072B2", "late": "#D55E00"}
    named = Map("Phase", [[0.0, 1.0, None], [1.0, 1.0, 0.0]], ["0.1", "1", "10"], ["2", "4"], "rate", "depth", words)
    return Figure("map", "Where is it early?", "A map with two colours and a gap.", [named], columns=1)


def figures() -> list[Figure]:
    return [word_figure(), landscape_figure(), curves_figure(), points_figure(), map_figure(), plain_figure()]


def sections() -> list[Section]:
    table = TableData(
        "Means by word relation",
        ["loss", "same topic", EVIL],
        [["squared", "0.108", "-0.0120"], ["cross-entropy", "0.31 ± 0.02", EVIL]],
    )
    wide = TableData("A wide table", [f"column {i}" for i in range(20)], [[f"{i / 7:.6f}" for i in range(20)]])
    shown = figures()
    return [
        Section(
            "figure-2",
            command="topicscope paper figure-2",
            figures=shown[:2],
            tables=[table],
            verdict=Judgement(
                "The value matrix has blocks of the topics.",
                "Same-topic mean above different-topic mean in all four.",
                "blocks in all four panels",
                "0.1081",
                "0.1079 ± 0.0003",
                "reproduced",
                "All four panels show the blocks.",
                63.2,
            ),
            config={"topics": 10, "optimiser": {"name": "sgd", "lr": 0.01}},
        ),
        Section(
            "figure 4",
            EVIL,
            EVIL,
            shown[2:5],
            [wide],
            Judgement(f"Two stages. {EVIL}", EVIL, EVIL, EVIL, EVIL, "not reproduced", EVIL, 1234.5),
            {"note": EVIL},
        ),
        Section(
            "figure 4",
            command="topicscope paper wiki",
            figures=shown[5:],
            verdict=Judgement("On Wikipedia.", "", "", "", "", "skipped", "No data on this machine.", 0.0),
        ),
    ]


@dataclass(frozen=True, repr=False)
class Sample(Result):
    """A result with sections of its own."""

    kind: ClassVar[str] = "sample"
    parts: list[Section] = field(default_factory=list)

    def summary(self) -> list[str]:
        return ["Two things were measured.", EVIL]

    def table(self) -> Any:
        return pyarrow.table({"a": [1, 2]})

    def sections(self) -> list[Section]:
        return self.parts

    def _about(self) -> str:
        return f"{len(self.parts)} parts"


def table(rows: int) -> TableData:
    return TableData(EVIL, ["name", "value"], [[EVIL, f"{i}.5"] for i in range(rows)])
