"""What a report is made of, as data: figures, tables, judgements, texts, sections. `topicscope.pages` draws them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from topicscope.pages.panels import Panel

Verdict = Literal["reproduced", "not reproduced", "undecided", "skipped"]
VERDICT_WORDS = ("reproduced", "as predicted", "not reproduced", "not as predicted", "undecided", "skipped")
"""What tables and pages say; claims that are not the paper's are as predicted, or not."""


def counted(words: Iterable[str]) -> str:
    """How many verdicts of each kind there are.

    Args:
        words: The verdicts, in any order.

    Returns:
        The text: kinds in the order in which pages name them, without those that do not occur.

    Example:
        >>> counted(["reproduced", "undecided", "reproduced"])
        '2 reproduced, 1 undecided'
    """
    counts = Counter(words)
    return ", ".join(f"{counts[kind]} {kind}" for kind in VERDICT_WORDS if counts[kind])


@dataclass
class Figure:
    """A figure: panels in rows, with a title and a description for those who cannot see it.

    Attributes:
        name: Name of its files: letters, digits and '-'.
        title: Above the panels.
        alt: What the figure shows, in words.
        panels: The panels, row by row.
        columns: Panels per row.
        colours: Of curves, by their name or group; the others take the colours that are left.

    Example:
        >>> from topicscope.pages import Lines, Series
        >>> from topicscope.pages import canvas
        >>> loss, norm = Series("dev", [0, 9], [2.0, 1.0]), Series("W_V", [0, 9], [0.1, 3.0])
        >>> panels = [Lines("loss", [loss]), Lines("norm", [norm])]
        >>> picture = canvas(Figure("run", "A run", "Loss and norm by step.", panels))  # matplotlib: .savefig, .axes
        >>> picture.get_suptitle(), [axes.get_title() for axes in picture.axes]
        ('A run', ['loss', 'norm'])
    """

    name: str
    title: str
    alt: str
    panels: Sequence[Panel]
    columns: int = 2
    colours: dict[str, str] = field(default_factory=dict)


@dataclass
class TableData:
    """A table of a report. Its cells are text, rounded as the page shows them.

    Attributes:
        title: Above the table.
        columns: Names of the columns.
        rows: The cells, one list per row, as long as `columns`.
        folded: Whether a page shows only its title until the reader clicks it.

    Example:
        >>> from topicscope.pages import sections
        >>> from topicscope.theory import Setting, theorem2
        >>> [table] = sections(theorem2(Setting.of(4, 3)))[0].tables
        >>> table.columns, table.rows[0][:2]
        (['entry', 'value', 'meaning'], ['same topic', '0.3664385'])
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    folded: bool = False


@dataclass(frozen=True)
class Compared:
    """The number that stands for a claim in short tables, as the paper has it and as measured here.

    Attributes:
        name: Short name of the number.
        what: What it is, with its unit.
        paper: The paper's number as text; '-' where it prints none.
        ours: The number as measured here, as text.

    Example:
        >>> from topicscope.theory import Setting, best_attention
        >>> alpha = best_attention(Setting.of(), "blocks").alpha
        >>> number = Compared("alpha", "attention to another word of the same topic", paper="-", ours=f"{alpha:.2f}")
        >>> f"{number.name}: paper {number.paper}, ours {number.ours}"
        'alpha: paper -, ours 7.67'
    """

    name: str
    what: str
    paper: str
    ours: str


@dataclass(frozen=True)
class Judgement:
    """A claim, the rule that decides on it, and the verdict.

    Attributes:
        claim: What is claimed.
        rule: How the verdict follows from the numbers; fixed before the run.
        paper: What the paper shows.
        theory: What theory says.
        measured: What was measured.
        verdict: 'reproduced', 'not reproduced', 'undecided' or 'skipped'.
        reason: Why the rule gives this verdict.
        seconds: How long the measurement took; None: not known.
        number: The number that stands for the claim.
        sizes: A sentence where the paper's number and ours are not close; else empty.
        shown: What pages say in place of `verdict`; empty: the verdict itself. `words` is the one that is shown.

    Example:
        >>> judged = Judgement(
        ...     claim="The best attention prefers words of the same topic.",
        ...     rule="Reproduced if the best alpha is above 1.",
        ...     **{"paper": "alpha > 1", "theory": "7.67", "measured": "7.67", "seconds": 0.2},
        ...     **{"verdict": "reproduced", "reason": "7.67 is above 1", "shown": "as predicted"},
        ... )
        >>> judged.verdict, judged.words  # claims that are not the paper's are 'as predicted'
        ('reproduced', 'as predicted')
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
        before: What stands between the piece before and this one: a space, or nothing.
        text: The word or mark.
        group: Its group, as a place in `MarkedText.groups` from 0; None: it has no colour.

    Example:
        >>> pieces = [TextPiece("", "A"), TextPiece(" ", "frog", group=0), TextPiece("", ".")]
        >>> "".join(piece.before + piece.text for piece in pieces)
        'A frog.'
    """

    before: str
    text: str
    group: int | None = None


@dataclass(frozen=True)
class TextLinks:
    """Links from each piece of a text to others, with weights: such as the attention of one head.

    Attributes:
        outer: First part of the name, such as the layer.
        inner: Second part of the name, such as the head.
        data: Two tables in base64, each with one row per piece and `MarkedText.keys` columns. First the pieces that it
            leads to (two bytes each, the low one first), then the weights w (one byte: 255 times the square root).

    Example:
        >>> import base64
        >>> to, weights = bytes([1, 0, 0, 0]), bytes([255, 51])  # piece 0 leads to 1 with weight 1; 1 to 0 with .04
        >>> TextLinks("layer 0", "head 1", base64.b64encode(to + weights).decode()).data
        'AQAAAP8z'
    """

    outer: str
    inner: str
    data: str


@dataclass(frozen=True)
class MarkedText:
    """A text whose words are coloured by group (topic), with links from word to word (attention).

    Attributes:
        title: Above the text.
        note: Below the title.
        pieces: Its words and marks, in order.
        groups: Of each group its name, and what is shown when the reader points at one of its words.
        links: One table of links per head.
        keys: Number of links per piece.
        link_names: What `TextLinks.outer` and `inner` are, such as ('layer', 'head').
        first: Place in `links` of the table that is shown first.
        map: Name by which a heat map finds the text: see `Heat.shown_in`.

    Example:
        >>> pieces = [TextPiece("", "a"), TextPiece(" ", "frog", group=0), TextPiece(" ", "sings", group=1)]
        >>> text = MarkedText("Document 1", "", pieces, groups=[("water", "frog toad"), ("music", "sing opera")])
        >>> [(piece.text, text.groups[piece.group][0]) for piece in text.pieces if piece.group is not None]
        [('frog', 'water'), ('sings', 'music')]
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
    """All points of a sweep as data for a map; the reader of the page chooses axes and measure.

    Attributes:
        axes: Of each axis its values.
        rows: Of each point its name, its value on every axis, its state and its measures.
        curve_panels: Panels of a point's curves: title, and how the names of its curves begin.
        first: The measure that the map opens with; None: any.
        colours: Of measures that are words: each word and its colour.
        meanings: Of measures that are words: each word and what it means.

    Example:
        >>> from topicscope.pages import map_figure
        >>> rows = [{"point": "a", "lr": 0.1, "state": "done", "loss": 1.5}]
        >>> rows += [{"point": "b", "lr": 1.0, "state": "failed"}]
        >>> points = PointMap({"lr": [0.1, 1.0]}, rows, curve_panels={"loss": "loss"}, first="loss")
        >>> map_figure(points.rows, points.axes, points.first, "map", "Loss").panels[0].z  # a failed point has no loss
        [[1.5, None]]
    """

    axes: dict[str, list[Any]]
    rows: list[dict[str, Any]]
    curve_panels: Mapping[str, str]
    first: str | None = None
    colours: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One part of a report: figures, tables, texts and what they show. All text is plain text.

    Attributes:
        title: Title of the section.
        note: What it shows.
        command: The command that makes it again, with the settings in `config`.
        figures: Its figures.
        tables: Its tables.
        verdict: The judgement on a claim, or None.
        config: The settings, as the page lists them.
        texts: Documents with coloured words.

    Example:
        >>> from topicscope.pages import sections
        >>> from topicscope.theory import Setting, theorem2
        >>> [section] = sections(theorem2(Setting.of(4, 3)))
        >>> section.title, section.command.split(" --p-mask")[0], len(section.figures), len(section.tables)
        ('Theorem 2', 'topicscope theory theorem2 --topics 4 --words-per-topic 3', 1, 1)
    """

    title: str
    note: str = ""
    command: str = ""
    figures: list[Figure] = field(default_factory=list)
    tables: list[TableData] = field(default_factory=list)
    verdict: Judgement | None = None
    config: dict[str, Any] = field(default_factory=dict)
    texts: list[MarkedText] = field(default_factory=list)
