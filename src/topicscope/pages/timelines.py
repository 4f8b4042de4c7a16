"""Pretraining runs (Figure 5: norms and rotation of every layer), timelines, and one moment of training."""

import colorsys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from topicscope.measure import Interval, Timeline, TimelineRow, layer_metrics, layer_names, measure_title, risen
from topicscope.model import Reading
from topicscope.pages.panels import Circles, Figure, Lines, Section, Series, TableData, banded, pen_key
from topicscope.pages.runs import COLOURS, loss_panel, norm_panel, trained_parts
from topicscope.pretraining import PretrainRun, PretrainRuns, stages_by_layer
from topicscope.training import Run, RunConfig

POINTS = 500  # of a curve, at most

Metrics = dict[str, Float[np.ndarray, " S"]]


def pretrain_sections(result: PretrainRun | PretrainRuns) -> list[Section]:
    runs = [result] if isinstance(result, PretrainRun) else list(result)
    folder, config = runs[0].folder, runs[0].config.as_dict()
    several = f" --runs {len(runs)}" if len(runs) > 1 else ""
    return [
        Section(
            "Do key and query start later than value?",
            f"Masked language modelling; W_K, W_Q and W_V start at scale {config['model']['init_scale']}. A norm has "
            "started when it has made a tenth of its rise from start to plateau (the mean of the run's last tenth). "
            "t50 is the step at half of the rise. Separation: the earlier t50 of key and query over that of value. "
            "Rotation: (1 - cos) / 2 between W_V now and ten steps before. Held out: documents that the run is not "
            "trained on.",
            "" if folder is None else f"topicscope pretrain --config {folder / 'config.yaml'}{several}",
            [dynamics_figure(runs), loss_figure(runs), gradient_figure(runs)],
            [stage_table(runs)],
            config=config,
        )
    ]


def dynamics_figure(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> Figure:
    layers = layer_names(runs[0].metrics)
    rows = [(f"||W_{part[0].upper()}||_F", f"norm_{part}", "Frobenius norm") for part in ("key", "query", "value")]
    panels = []
    for title, column, y_label in [*rows, ("rotation of W_V over 10 steps", "rotation", "(1 - cos) / 2")]:
        row = [
            Lines(f"{title} ({layer_title(layer)})", curves(runs, labels, f"{column}_{layer}"), "step", y_label)
            for layer in layers
        ]
        if any(series.x for panel in row for series in panel.series):  # fewer than ten steps: no rotation
            panels += row
    alt = "Norms of key, query and value and the rotation of value against steps, one panel per layer."
    return Figure("figure5", "Norms and rotation, layer by layer", alt, panels, columns=len(layers))


def loss_figure(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> Figure:
    held_out = [
        replace(series, name=f"{series.name}, held out", markers=True)
        for series in curves(runs, labels, "held_out_loss")
        if series.x
    ]
    panel = Lines("masked language modelling", [*curves(runs, labels, "loss"), *held_out], "step", "loss")
    points = " Points: on documents that are held out." if held_out else ""
    return Figure("figure5-loss", "Loss", f"Masked-word loss against steps.{points}", [panel], columns=1)


def gradient_figure(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> Figure:
    panel = Lines("norm of the gradient, before clipping", curves(runs, labels, "gradient_norm"), "step", "norm")
    return Figure("gradient-norm", "Gradient norm", "Norm of the whole gradient against steps.", [panel], columns=1)


def curves(runs: Sequence[PretrainRun], labels: Sequence[str], column: str) -> list[Series]:
    return [
        Series(
            f"{setting}, seed {run.config.seed}" if labels else setting, *thinned(run.metrics[column]), group=setting
        )
        for run, setting in zip(runs, settings(runs, labels), strict=True)
    ]


def thinned(values: Float[np.ndarray, " S"]) -> tuple[list[float], list[float]]:
    """Steps and values, where there are some; of a long curve evenly spread ones."""
    steps = np.flatnonzero(np.isfinite(values))
    pick = steps[np.unique(np.linspace(0, len(steps) - 1, min(len(steps), POINTS)).round().astype(int))]
    return [float(step) for step in pick], [float(f"{value:.5g}") for value in values[pick]]


def settings(runs: Sequence[PretrainRun], labels: Sequence[str]) -> Sequence[str]:
    return labels or [f"seed {run.config.seed}" for run in runs]


def layer_title(name: str) -> str:
    part, _, number = name.rpartition("_")
    return f"{part} layer {number}".strip()


def starts(metrics: Metrics, layer: str) -> dict[str, float]:
    """The step at which each norm of a layer has made a tenth of its rise."""
    return {name.removeprefix("norm_"): risen(norm, 0.1) for name, norm in layer_metrics(metrics, layer).items()}


def stage_table(runs: Sequence[PretrainRun], labels: Sequence[str] = ()) -> TableData:
    parts = ("value", "key", "query")
    rows = []
    for run, setting in zip(runs, settings(runs, labels), strict=True):
        for layer, stages in stages_by_layer(run.metrics).items():
            started = starts(run.metrics, layer)
            steps = [started[part] for part in parts] + [getattr(stages, part) for part in parts]
            rows.append(
                [
                    *(setting, str(run.config.seed), layer_title(layer)),
                    *(f"{step:.0f}" if np.isfinite(step) else "never" for step in steps),
                    f"{stages.separation:.3g}{'' if levelled(run.metrics, layer) else ' *'}"
                    if np.isfinite(stages.separation)
                    else "-",
                ]
            )
    title = "Starts (a tenth of the rise), half-way points and stage separation"
    if any(row[-1].endswith("*") for row in rows):
        title += " (*: a norm still rises at the end, so that t50 depends on the length of the run)"
    columns = [*(f"{part} starts" for part in parts), *(f"t50 {part}" for part in parts)]
    return TableData(title, ["setting", "seed", "layer", *columns, "separation"], rows)


def levelled(metrics: Metrics, layer: str) -> bool:
    """Whether the norms have reached a plateau: the last tenth of the run adds less than a twentieth of the rise."""

    def rises(norm: Float[np.ndarray, " S"]) -> bool:
        tenth = max(1, len(norm) // 10)
        last, before = norm[-tenth:].mean(), norm[-2 * tenth : -tenth].mean() if len(norm) > tenth else norm[0]
        return bool(last - before > 0.05 * abs(last - norm[0]))

    return not any(map(rises, layer_metrics(metrics, layer).values()))


def timeline_sections(timeline: Timeline) -> list[Section]:
    return [
        Section(
            "When does topic structure appear?",
            "Difference: same-topic mean minus different-topic mean. A measure appears at the first measured step "
            "after which its 95% interval stays above zero. Half of its rise: half of the way from the first to the "
            "last step, with an interval from the same resamples. Step 0 is drawn at 1/2.",
            figures=timeline_figures(timeline),
            tables=[moment_table(timeline)],
        )
    ]


def timeline_figures(timeline: Timeline, name: str = "timeline") -> list[Figure]:
    shown: dict[str, list[Series]] = {}
    shares = []
    for measure in dict.fromkeys(row.measure for row in timeline.rows):
        course = [row for row in timeline.rows if row.measure == measure]
        main, _, layer = measure.partition(".")
        plain = main.removesuffix("_matched")
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
    return banded(name, [(on_axis(row.step), row.effect.difference, row.effect.interval) for row in course])


def on_axis(step: int) -> float:
    """Where a step stands: step 0 at 1/2 on the logarithmic axis."""
    return max(0.5, float(step))


def share(curve: Series) -> Series:
    y, low, high = ([value / curve.y[-1] for value in values or []] for values in (curve.y, curve.low, curve.high))
    return Series(curve.name, curve.x, y, low, high, markers=True)


def moment_table(timeline: Timeline) -> TableData:
    return TableData(
        "When topic structure appears",
        ["measure", "appears at step", "half of its rise at step", "difference at the start", "at the end", "95%"],
        [
            [
                measure_title(moment.measure),
                "never" if moment.appears is None else str(moment.appears),
                "-" if moment.half is None else f"{moment.half:.0f} {span(moment.half_interval, '.0f')}".strip(),
                f"{moment.first:.3g}",
                f"{moment.last:.3g}",
                span(moment.last_interval, ".3g") or "-",
            ]
            for moment in timeline.moments
        ],
    )


def span(ends: Interval | None, digits: str) -> str:
    return "" if ends is None else f"[{ends[0]:{digits}}, {ends[1]:{digits}}]"


MOST_POINTS = 1000  # words of a plane
MARGIN = 0.06  # of the plane, around all places of all steps


@dataclass(frozen=True)
class WordPlane:
    """Words at several steps, in the plane of the first two principal components of the last step."""

    what: str  # which vectors the words have, such as 'rows of W_V'
    places: dict[int, Float[np.ndarray, "W 2"]]  # of each step the places of all words in the plane (W x 2)
    topic: Int[np.ndarray, " W"]  # topic of each word, from 1 (W)
    words: list[int]  # number of each word in the vocabulary (W)
    shown: float  # share of the variance at the last step that the plane keeps, from 0 to 1
    ends: tuple[float, float, float, float]  # left, right, bottom and top end of the axes, the same for all steps


def word_vectors(reading: Reading) -> tuple[str, Float[np.ndarray, "V d"]] | None:
    """Of each word its column of W_E; where words are one-hot, its row of the first table, such as W_V."""
    # Columns of a table would not do: under cross entropy their means over rows change nothing, and differ most.
    if reading.embedding is not None:
        return "columns of W_E", reading.embedding.T.astype(float)
    table = next(iter(reading.tables.values()), None)
    return None if table is None else (f"rows of {table.symbol}", table.matrix.astype(float))


def word_plane(config: RunConfig, snapshots: Mapping[int, Mapping[str, np.ndarray]]) -> WordPlane | None:
    """Words in a plane whose axes stay the same from step to step: words of one topic move together. Without [MASK]."""
    vectors = {step: word_vectors(config.model.read(weights)) for step, weights in snapshots.items()}
    topic = config.topic_model.main_topic
    last = vectors[max(vectors)] if vectors else None
    finite = {step: pair[1] for step, pair in vectors.items() if pair is not None and np.isfinite(pair[1]).all()}
    if last is None or len(last[1]) != len(topic) or not finite:
        return None
    words = np.flatnonzero(topic > 0)[:MOST_POINTS]
    end = finite[max(finite)][words]
    centre = end.mean(0)
    _, sizes, axes = np.linalg.svd(end - centre, full_matrices=False)
    places = {step: (one[words] - centre) @ axes[:2].T for step, one in finite.items()}
    every = np.concatenate(list(places.values()))
    low, high = every.min(0), every.max(0)
    edge = MARGIN * np.maximum(high - low, 1e-12)
    left, right, bottom, top = np.stack([low - edge, high + edge], 1).ravel().tolist()
    total = float((sizes**2).sum())
    shown = float((sizes[:2] ** 2).sum() / total) if total > 0 else 1.0
    return WordPlane(last[0], places, topic[words], words.tolist(), shown, (left, right, bottom, top))


def plane_figure(plane: WordPlane, step: int) -> Figure:
    at, topics = plane.places[step], plane.topic.tolist()
    named = {topic: place for place, topic in reversed(list(enumerate(topics)))}  # the first word of each topic
    panel = Circles(
        "",
        at[:, 0].tolist(),
        at[:, 1].tolist(),
        [1.0] * len(at),
        [float(topic) for topic in topics],
        [str(topic) if named[topic] == place else "" for place, topic in enumerate(topics)],
        [[f"word {word}, topic {topic}"] for word, topic in zip(plane.words, topics, strict=True)],
        "first principal component of the last step",
        "second principal component",
        colours=[hue(topic, max(topics)) for topic in topics],
        diameter=14.0,
        ends=plane.ends,
    )
    alt = (
        f"Words as {plane.what}, in the plane of the first two principal components at the last step "
        f"({100 * plane.shown:.0f}% of the variance there). Colours: topics; one word of each has the topic's number."
    )
    return Figure("words", f"Words at step {step:,}", alt, [panel], columns=1)


def hue(topic: int, topics: int) -> str:
    """Colours around the wheel; the number in the circle says the same without colour."""
    colour = colorsys.hls_to_rgb((topic - 1) / max(1, topics), 0.42 if topic % 2 else 0.58, 0.7)
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def figure_until(figure: Figure, step: float) -> Figure:
    return replace(figure, panels=[until(panel, step) for panel in figure.panels if isinstance(panel, Lines)])


def until(panel: Lines, step: float) -> Lines:
    series: list[Series] = []
    for one in panel.series:
        count = sum(x <= step for x in one.x)
        low, high = (None if ends is None else ends[:count] for ends in (one.low, one.high))
        first = replace(one, x=one.x[:count], y=one.y[:count], low=low, high=high, group=pen_key(one))
        whole = replace(first, name=f"{one.name}, all steps", x=one.x, y=one.y, low=None, high=None)
        series += [first, replace(whole, markers=False, thin=True)]
    return replace(panel, series=series, bands=[])


def run_moment(run: Run, plane: WordPlane | None, timeline: Timeline | None, step: int) -> list[Section]:
    curves = Figure(
        "moment-curves",
        f"Up to step {step:,}",
        "Frobenius norms and loss up to this step; faint: all steps.",
        [panel for panel in (norm_panel(run), loss_panel(run)) if panel.series],
        colours=COLOURS,
    )
    words = [plane_figure(plane, step)] if plane is not None and step in plane.places else []
    row = int(np.searchsorted(run.metrics["step"], step).clip(0, len(run.metrics["step"]) - 1))
    norms = [[name, f"{run.metrics[f'norm_{part}'][row]:.4g}"] for part, name in trained_parts(run).items()]
    tables = [TableData(f"Norms at step {step:,}", ["part", "Frobenius norm"], norms)] if norms else []
    section = Section(f"Step {step:,}", figures=[*words, figure_until(curves, step)], tables=tables)
    return [section, *(timeline_moment(timeline, step) if timeline is not None else [])]


def timeline_moment(timeline: Timeline, step: int) -> list[Section]:
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
    title = f"Same topic against different topic at step {step:,}"
    table = TableData(title, ["measure", "same topic", "different topic", "difference", "95%"], rows)
    curves = figure_until(timeline_figures(timeline)[0], on_axis(step))
    return [Section("Topic structure", figures=[curves], tables=[table] if rows else [])]


def pretrain_moment(runs: Sequence[PretrainRun], step: int) -> list[Section]:
    rows = [
        [
            str(run.config.seed),
            layer_title(layer),
            *(f"{run.metrics[f'norm_{part}_{layer}'][: step + 1][-1]:.4g}" for part in ("key", "query", "value")),
        ]
        for run in runs
        for layer in layer_names(run.metrics)
    ]
    table = TableData(f"Frobenius norms at step {step:,}", ["seed", "layer", "W_K", "W_Q", "W_V"], rows)
    figures = [figure_until(figure, step) for figure in (dynamics_figure(runs), loss_figure(runs))]
    return [Section(f"Step {step:,}", figures=figures, tables=[table])]
