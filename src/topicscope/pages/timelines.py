"""A timeline as tables and figures: same topic against different topic at every step, and when each measure appears."""

from collections.abc import Sequence

from topicscope.measure import Interval, Timeline, TimelineRow, measure_title
from topicscope.pages.panels import Lines, Series, banded
from topicscope.pages.parts import Figure, Section, TableData

MATCHED = "_matched"
NOTE = (
    "Difference: same-topic mean minus different-topic mean. A measure appears at the first measured step after which "
    "its 95% interval stays above zero. Half of its rise: half of the way from the first to the last step, with an "
    "interval from the same resamples. Step 0 is drawn at 1/2."
)


def timeline_sections(timeline: Timeline) -> list[Section]:
    return [
        Section(
            "When does topic structure appear?",
            NOTE,
            figures=timeline_figures(timeline),
            tables=[moment_table(timeline)],
        )
    ]


def timeline_figures(timeline: Timeline, name: str = "timeline") -> list[Figure]:
    """When topic structure appears: the difference of each measure against the step, with its 95% interval.

    Args:
        timeline: The timeline.
        name: Beginning of the names of the files.

    Returns:
        One figure; with several measures a second one, of each as a share of its last value.

    Example:
        >>> import numpy as np
        >>> from topicscope.pages import moment_table, timeline_moment
        >>> from topicscope.measure import effect
        >>> heights = {1: 0.0, 10: 0.1, 100: 0.4}
        >>> effects = {step: effect(y, 0.0, (np.full(9, y), np.zeros(9))) for step, y in heights.items()}
        >>> timeline = Timeline.of({"cosine": effects})
        >>> timeline_figures(timeline)[0].panels[0].series[0].y
        [0.0, 0.1, 0.4]
        >>> moment_table(timeline).rows[0][:3]  # it appears at step 10; half of its rise is made at step 40
        ['embeddings: cosine', '10', '40 [40, 40]']
        >>> timeline_moment(timeline, step=10)[0].tables[0].rows
        [['embeddings: cosine', '0.1', '0', '0.1', '[0.1, 0.1]']]
    """
    courses: dict[str, list[TimelineRow]] = {}
    for row in timeline.rows:
        courses.setdefault(row.measure, []).append(row)
    shown: dict[str, list[Series]] = {}
    shares = []
    for measure, course in courses.items():
        main, _, layer = measure.partition(".")
        plain = main.removesuffix(MATCHED)
        title = f"{measure_title(main)}, layer by layer" if layer else measure_title(plain)
        label = f"layer {layer}" if layer else "all pairs" if main == plain else "equal frequencies"
        shown.setdefault(title, []).append(band(course, label))
        if measure == plain and course[-1].effect.difference > 0:
            shares.append(share(band(course, measure_title(measure))))
    panels = [
        Lines(head, series, "step", "same minus different", log_x=True, levels=[(0.0, "no effect")])
        for head, series in shown.items()
    ]
    alt = "Same-topic mean minus different-topic mean against training step, with 95% bands."
    figures = [Figure(name, "Topic structure against training step", alt, panels)]
    if len(shares) > 1:
        both = Lines("each as a share of its end", shares, "step", "share of the final difference", log_x=True)
        alt = "Measures as shares of their final value against training step."
        figures.append(Figure(f"{name}-order", "Which comes first?", alt, [both], columns=1))
    return figures


def band(course: Sequence[TimelineRow], name: str) -> Series:
    """A curve with its interval. Step 0 stands at 1/2 on the logarithmic axis."""
    return banded(name, [(max(0.5, float(row.step)), row.effect.difference, row.effect.interval) for row in course])


def share(curve: Series) -> Series:
    """The curve divided by its last value."""
    y, low, high = ([value / curve.y[-1] for value in values or []] for values in (curve.y, curve.low, curve.high))
    return Series(curve.name, curve.x, y, low, high, markers=True)


def moment_table(timeline: Timeline) -> TableData:
    """When each measure of a timeline appears, when half of its rise is made, and where it starts and ends.

    Args:
        timeline: The timeline.

    Returns:
        One row per measure; steps, and differences with 95% intervals.

    Example:
        See `timeline_figures`.
    """
    columns = ["measure", "appears at step", "half of its rise at step", "difference at the start", "at the end", "95%"]
    cells = [
        [
            measure_title(moment.measure),
            "never" if moment.appears is None else str(moment.appears),
            "-" if moment.half is None else f"{moment.half:.0f} {span(moment.half_interval, '.0f')}".strip(),
            f"{moment.first:.3g}",
            f"{moment.last:.3g}",
            span(moment.last_interval, ".3g") or "-",
        ]
        for moment in timeline.moments
    ]
    return TableData("When topic structure appears", columns, cells)


def span(ends: Interval | None, digits: str) -> str:
    return "" if ends is None else f"[{ends[0]:{digits}}, {ends[1]:{digits}}]"
