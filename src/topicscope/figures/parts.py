"""What a report is made of, as data: figures, tables, judgements, texts, sections. `topicscope.report` draws them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from topicscope.figures.panels import Panel

Verdict = Literal["reproduced", "not reproduced", "undecided", "skipped"]
VERDICT_WORDS = ("reproduced", "as predicted", "not reproduced", "not as predicted", "undecided", "skipped")
"""What tables and pages say; claims that are not the paper's are as predicted, or not."""


def counted(words: Iterable[str]) -> str:
    """How many verdicts of each kind there are.

    Args:
        words: The verdicts.

    Returns:
        The text.

    Example:
        >>> counted(["reproduced", "undecided", "reproduced"])
        '2 reproduced, 1 undecided'
    """
    counts = Counter(words)
    return ", ".join(f"{counts[kind]} {kind}" for kind in VERDICT_WORDS if counts[kind])


@dataclass
class Figure:
    """Panels in rows.

    Attributes:
        name: Of the files: letters, digits, '-'.
        title: Above the panels.
        alt: What is to be seen, in words.
        panels: The panels.
        columns: Panels per row.
        colours: Of curves, by their name or group; the others take the colours that are left.

    Example:
        >>> from topicscope.figures import Lines
        >>> Figure("loss", "Loss", "Loss by step.", [Lines("loss", [])]).columns
        2
    """

    name: str
    title: str
    alt: str
    panels: Sequence[Panel]
    columns: int = 2
    colours: dict[str, str] = field(default_factory=dict)


@dataclass
class TableData:
    """A table, cells as text.

    Attributes:
        title: Above the table.
        columns: Names of the columns.
        rows: The cells.
        folded: On a page it opens with a click.

    Example:
        >>> TableData("Losses", ["step", "loss"], [["0", "2.0"]]).rows[0]
        ['0', '2.0']
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    folded: bool = False


@dataclass(frozen=True)
class Compared:
    """The one number of a claim that stands for it in short tables.

    Attributes:
        name: Of the number.
        what: What it is, with its unit.
        paper: The paper's; '-' where it prints none.
        ours: As measured here.

    Example:
        >>> Compared("alpha", "attention to the same topic", "-", "7.67").ours
        '7.67'
    """

    name: str
    what: str
    paper: str
    ours: str


@dataclass(frozen=True)
class Judgement:
    """A claim of the paper and what came of it.

    Attributes:
        claim: The paper's.
        rule: Decides the verdict.
        paper: What the paper shows.
        theory: What theory says.
        measured: What was measured.
        verdict: 'reproduced', 'not reproduced', 'undecided' or 'skipped'.
        reason: Why it came out so.
        seconds: That the measurement took; None: not known.
        number: The number that stands for the claim.
        sizes: A sentence where the paper's number and ours are not close.
        shown: The verdict in other words.

    Example:
        >>> Judgement("c", "r", "p", "t", "m", "reproduced", "within 5%", None, shown="as predicted").words
        'as predicted'
    """

    claim: str
    rule: str
    paper: str
    theory: str
    measured: str
    verdict: Verdict
    reason: str
    seconds: float | None
    number: Compared | None = None
    sizes: str = ""
    shown: str = ""

    @property
    def words(self) -> str:
        return self.shown or self.verdict


@dataclass(frozen=True)
class TextPiece:
    """A word or mark of a text.

    Attributes:
        before: What stands before it.
        text: The piece.
        group: Place among the groups of the text, or None.

    Example:
        >>> TextPiece(" ", "frog", group=0).text
        'frog'
    """

    before: str
    text: str
    group: int | None = None


@dataclass(frozen=True)
class TextLinks:
    """Where each piece of a text leads to, and how much.

    Attributes:
        outer: First name of the table of links.
        inner: Second name.
        data: base64 of the numbers of pieces (two bytes each, the low one first), then of their weights w (one byte
            each, 255 times the square root of w).

    Example:
        >>> TextLinks("layer 0", "head 1", data="").inner
        'head 1'
    """

    outer: str
    inner: str
    data: str


@dataclass(frozen=True)
class MarkedText:
    """A text whose pieces are coloured by group, with links from piece to piece.

    Attributes:
        title: Above the text.
        note: Below the title.
        pieces: The text.
        groups: Name of each group, and what is shown where the reader points at one of its pieces.
        links: Tables of links.
        keys: Links per piece.
        link_names: What the names of links are names of.
        first: Number of the table that is shown first.
        map: Name by which a heat map finds the text: see `Heat.shown_in`.

    Example:
        >>> MarkedText("Document 1", "", [TextPiece("", "frog", 0)], [("water", "frog toad")]).keys
        0
    """

    title: str
    note: str
    pieces: list[TextPiece]
    groups: list[tuple[str, str]]
    links: list[TextLinks] = field(default_factory=list)
    keys: int = 0
    link_names: tuple[str, str] = ("", "")
    first: int = 0
    map: str = ""


@dataclass(frozen=True)
class PointMap:
    """All points of a grid, to be drawn over any two of its axes; the reader chooses them, and the measure.

    Attributes:
        axes: Values by axis.
        rows: Place on every axis, state and measures of each point.
        curve_panels: Panels of a point's curves: by title, how the names of curves start.
        first: The measure that the map opens with.
        colours: Words and their colours, by measure.
        meanings: Words and what they mean, by measure.

    Example:
        >>> PointMap({"seed": [0]}, [{"seed": 0, "state": "done", "loss": 1.5}], {"loss": "loss"}).rows[0]["loss"]
        1.5
    """

    axes: dict[str, list[Any]]
    rows: list[dict[str, Any]]
    curve_panels: Mapping[str, str]
    first: str | None = None
    colours: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One part of a report. All text is plain text.

    Attributes:
        title: Of the section.
        note: What it shows.
        command: Makes it again, with the settings in `config`.
        figures: Its figures.
        tables: Its tables.
        verdict: The judgement on a claim, or None.
        config: Settings.
        texts: Texts with marks.

    Example:
        >>> Section("Loss", tables=[TableData("Losses", ["step"], [["0"]])]).tables[0].title
        'Losses'
    """

    title: str
    note: str = ""
    command: str = ""
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    verdict: Judgement | None = None
    config: dict[str, Any] = field(default_factory=dict)
    texts: list[MarkedText] = field(default_factory=list)
