"""One moment of training: words in a plane whose axes stay, and curves up to a step, faint what comes later.

Through these a reader moves from step to step: axes do not change, so that what moves is what was learnt.
"""

import colorsys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from topicscope.measure import Timeline, layer_names, measure_title
from topicscope.pages.dynamics import dynamics_figure, layer_title, loss_figure
from topicscope.pages.panels import Circles, Lines, Series
from topicscope.pages.parts import Figure, Section, TableData
from topicscope.pages.timelines import span, timeline_figures
from topicscope.pages.train_run import COLOURS, loss_panel, norm_panel, trained_parts
from topicscope.pretraining import PretrainRun
from topicscope.training import Run, RunConfig

MOST_POINTS = 1000  # words of a plane
DIAMETER = 14.0  # of a word, in pixels
MARGIN = 0.06  # of the plane, around all places of all steps

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class WordPlane:
    """Words at several steps, in the plane of the first two principal components of the last step.

    Attributes:
        what: Which vectors the words have, such as 'rows of W_V'.
        places: Of each step the places of all words in the plane (W x 2).
        topic: Topic of each word, from 1 (W).
        words: Number of each word in the vocabulary (W).
        shown: Share of the variance at the last step that the plane keeps, from 0 to 1.
        ends: Left, right, bottom and top end of the axes, the same for all steps.

    Example:
        See `word_plane`.
    """

    what: str
    places: dict[int, Float[np.ndarray, "W 2"]]
    topic: Int[np.ndarray, " W"]
    words: list[int]
    shown: float
    ends: tuple[float, float, float, float]


def word_vectors(weights: Weights) -> tuple[str, Float[np.ndarray, "V d"]] | None:
    """What is learnt of each word: its column of W_E; where words are one-hot, its row of W_V (of W_pred W_V).

    A row says how much every word of a document speaks for it. Columns would not do: under cross entropy their means
    over rows change nothing, and differ from word to word more than anything else.
    """
    if "embedding" in weights:
        return "columns of W_E", weights["embedding"].T.astype(float)
    if "value" not in weights:
        return None
    if "head" in weights:
        return "rows of W_pred W_V", (weights["head"] @ weights["value"]).astype(float)
    return "rows of W_V", weights["value"].astype(float)


def word_plane(config: RunConfig, snapshots: Mapping[int, Weights]) -> WordPlane | None:
    """Words in a plane whose axes stay the same from step to step: words of one topic move together. Without [MASK].

    Args:
        config: Config of the run.
        snapshots: Of each step the trained parts by name.

    Returns:
        The plane; None where the run trains nothing that words have, or its numbers are not finite.

    Example:
        >>> from topicscope.training import RunConfig
        >>> config = RunConfig.of({"topic_model": {"topics": 3, "words_per_topic": 2}})
        >>> plane = word_plane(config, {10: {"value": config.topic_model.same_topic.astype(float)}})
        >>> apart = np.linalg.norm(plane.places[10] - plane.places[10][0], axis=1)  # of each word from word 1
        >>> plane.topic.tolist(), apart.round(6).tolist()
        ([1, 1, 2, 2, 3, 3], [0.0, 0.0, 2.0, 2.0, 2.0, 2.0])
    """
    vectors = {step: word_vectors(weights) for step, weights in snapshots.items()}
    topic = config.topic_model.main_topic
    last = vectors[max(vectors)] if vectors else None
    if last is None or len(last[1]) != len(topic):
        return None
    finite = {step: pair[1] for step, pair in vectors.items() if pair is not None and np.isfinite(pair[1]).all()}
    if not finite:
        return None
    words = np.flatnonzero(topic > 0)[:MOST_POINTS]
    end = finite[max(finite)][words]
    centre = end.mean(0)
    _, sizes, axes = np.linalg.svd(end - centre, full_matrices=False)
    places = {step: (one[words] - centre) @ axes[:2].T for step, one in finite.items()}
    every = np.concatenate(list(places.values()))
    low, high = every.min(0), every.max(0)
    edge = MARGIN * np.maximum(high - low, 1e-12)
    ends = np.stack([low - edge, high + edge], 1).ravel().tolist()
    total = float((sizes**2).sum())
    shown = float((sizes[:2] ** 2).sum() / total) if total > 0 else 1.0
    return WordPlane(last[0], places, topic[words], words.tolist(), shown, (ends[0], ends[1], ends[2], ends[3]))


def plane_figure(plane: WordPlane, step: int) -> Figure:
    at = plane.places[step]
    topics = int(plane.topic.max())
    panel = Circles(
        "",
        at[:, 0].tolist(),
        at[:, 1].tolist(),
        [1.0] * len(at),
        plane.topic.astype(float).tolist(),
        [str(topic) if first else "" for topic, first in zip(plane.topic.tolist(), firsts(plane.topic), strict=True)],
        [[f"word {word}, topic {topic}"] for word, topic in zip(plane.words, plane.topic.tolist(), strict=True)],
        "first principal component of the last step",
        "second principal component",
        colours=[hue(topic, topics) for topic in plane.topic.tolist()],
        diameter=DIAMETER,
        ends=plane.ends,
    )
    alt = (
        f"Words as {plane.what}, in the plane of the first two principal components at the last step "
        f"({100 * plane.shown:.0f}% of the variance there). Colours: topics; one word of each has the topic's number."
    )
    return Figure("words", f"Words at step {step:,}", alt, [panel], columns=1)


def firsts(topic: Int[np.ndarray, " W"]) -> list[bool]:
    """Of each topic the first word."""
    places = set(np.unique(topic, return_index=True)[1].tolist())
    return [place in places for place in range(len(topic))]


def hue(topic: int, topics: int) -> str:
    """Colours around the wheel; the number in the circle says the same without colour."""
    light = 0.42 if topic % 2 else 0.58
    red, green, blue = colorsys.hls_to_rgb((topic - 1) / max(1, topics), light, 0.7)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def until(panel: Lines, step: float) -> Lines:
    """The curves up to a step; behind them the whole ones, faint, which keep the axes as they are."""
    series: list[Series] = []
    for one in panel.series:
        count = sum(x <= step for x in one.x)
        cut = {name: values[:count] for name in ("x", "y", "low", "high") if (values := getattr(one, name)) is not None}
        group = one.name if one.group is None else one.group
        later = replace(one, name=f"{one.name}, all steps", low=None, high=None, markers=False, thin=True, group=group)
        series += [replace(one, group=group, **cut), later]
    return replace(panel, series=series, bands=[])


def run_moment(run: Run, plane: WordPlane | None, timeline: Timeline | None, step: int) -> list[Section]:
    """One step of a training run: where its words are, and how far norms, loss and topic contrasts have come.

    Args:
        run: The run.
        plane: Its words, from `word_plane`; None: they are not drawn.
        timeline: Timeline of the run, from `sandbox_timeline`; None: it is not drawn.
        step: The step.

    Returns:
        One section named after the step; with a timeline, a second one.

    Example:
        See `run_figure`.
    """
    panels = [norm_panel(run), loss_panel(run)]
    curves = [until(panel, step) for panel in panels if panel.series]
    alt = "Frobenius norms and loss up to this step; faint: all steps."
    figures = [Figure("moment-curves", f"Up to step {step:,}", alt, curves, colours=COLOURS)]
    if plane is not None and step in plane.places:
        figures.insert(0, plane_figure(plane, step))
    sections = [] if timeline is None else timeline_moment(timeline, step)
    tables = [norm_table(run, step)] if trained_parts(run) else []
    return [Section(f"Step {step:,}", figures=figures, tables=tables), *sections]


def norm_table(run: Run, step: int) -> TableData:
    row = int(np.searchsorted(run.metrics["step"], step).clip(0, len(run.metrics["step"]) - 1))
    rows = [[name, f"{run.metrics[f'norm_{part}'][row]:.4g}"] for part, name in trained_parts(run).items()]
    return TableData(f"Norms at step {step:,}", ["part", "Frobenius norm"], rows)


def timeline_moment(timeline: Timeline, step: int) -> list[Section]:
    """One step of a timeline: the curves up to there, and the numbers there.

    Args:
        timeline: The timeline.
        step: The step.

    Returns:
        One section; with a table where the timeline has this step.

    Example:
        See `timeline_figures`.
    """
    at = max(0.5, float(step))  # where step 0 stands on the logarithmic axis
    figures = [
        replace(figure, panels=[until(panel, at) for panel in figure.panels if isinstance(panel, Lines)])
        for figure in timeline_figures(timeline)[:1]
    ]
    rows = [
        [
            measure_title(row.measure),
            f"{row.effect.same:.4g}",
            f"{row.effect.different:.4g}",
            f"{row.effect.difference:.3g}",
            span(row.effect.interval, ".3g") or "-",
        ]
        for row in timeline.rows
        if row.step == step
    ]
    columns = ["measure", "same topic", "different topic", "difference", "95%"]
    tables = [TableData(f"Same topic against different topic at step {step:,}", columns, rows)] if rows else []
    return [Section("Topic structure", figures=figures, tables=tables)]


def pretrain_moment(runs: Sequence[PretrainRun], step: int) -> list[Section]:
    """One step of pretraining runs: norms, rotation and loss up to there, and the norms there.

    Args:
        runs: The runs.
        step: The step.

    Returns:
        One section named after the step.

    Example:
        See `stage_table`.
    """
    figures = [
        replace(figure, panels=[until(panel, step) for panel in figure.panels if isinstance(panel, Lines)])
        for figure in (dynamics_figure(runs), loss_figure(runs))
    ]
    rows = []
    for run in runs:
        row = min(step, len(run.metrics["step"]) - 1)
        for layer in layer_names(run.metrics):
            norms = [f"{run.metrics[f'norm_{part}_{layer}'][row]:.4g}" for part in ("key", "query", "value")]
            rows.append([str(run.config.seed), layer_title(layer), *norms])
    table = TableData(f"Frobenius norms at step {step:,}", ["seed", "layer", "W_K", "W_Q", "W_V"], rows)
    return [Section(f"Step {step:,}", figures=figures, tables=[table])]
