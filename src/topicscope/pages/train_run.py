"""A training run as figures: loss, norms with stages, means by word relation, matrices, attention of documents."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.laws import prediction_or_none
from topicscope.measure import stage_bands, thinned
from topicscope.pages.matrices import MATRIX_COLOURS, NORM_CURVES
from topicscope.pages.panels import Heat, Lines, Series
from topicscope.pages.parts import Figure, Section, TableData
from topicscope.pages.topic_relations import relation_figures, relation_tables
from topicscope.pages.word_names import word_figures
from topicscope.training import Run, RunData, word_scores

DOCUMENTS, POSITIONS = 2, 40  # documents whose attention is drawn, and how many of their positions
MOST_POINTS, MOST_WORDS = 500, 400  # points of a curve, and words along the side of a matrix
MOST_LISTED = 1000  # numbers of a setting that the page shows

FLOORS = {
    "bayes": "Bayes-optimal",
    "bayes_topics": "Bayes, from topics alone",
    "least_squares": "best uniform-attention fit of dev",
}
RELATIONS = {"same": "same topic", "different": "different topic", "diagonal": "diagonal"}
TRAINING, DEV, PREDICTED = "training, each batch", "dev", "predicted (theory dynamics)"
COLOURS = MATRIX_COLOURS | {
    "same topic": "#D55E00",
    "different topic": "#0072B2",
    "diagonal": "#999999",
    TRAINING: "#AAAAAA",
    DEV: "#009E73",
    PREDICTED: "#000000",
}

HOW_TO_READ = (
    "A norm is half-way (t50) when it has made half of its rise from start to plateau. Separation: the earlier t50 of "
    "key and query over that of value. From 2 on, the value matrix settles first and attention forms later."
)


def run_sections(result: Run | Sequence[Run]) -> list[Section]:
    """The report of one run, or of several that were trained together."""
    return [one_run(result) if isinstance(result, Run) else many_runs(result)]


def one_run(run: Run) -> Section:
    return Section(
        "One training run",
        "" if run.course is None else HOW_TO_READ,
        "" if run.folder is None else f"topicscope train --config {run.folder / 'config.yaml'}",
        [run_figure(run), *relation_figures(run), *word_figures(run), *attention_figures(run)],
        [
            TableData("Results", ["number", "value"], [[name, cell(value)] for name, value in run.facts().items()]),
            *relation_tables(run),
        ],
        config=brief(run.config.as_dict()),
    )


def many_runs(runs: Sequence[Run]) -> Section:
    norms = [
        Series(f"{name}, seed {run.config.seed}", *curve(run, f"norm_{part}"), group=name)
        for part, name in trained_parts(runs[0]).items()
        for run in runs
    ]
    losses = [Series(f"seed {run.config.seed}", *curve(run, "dev_loss"), group=DEV, markers=True) for run in runs]
    panels = [
        Lines("Dev loss", losses, "step", "loss"),
        Lines("Norms: which part moves first?", norms, "step", "Frobenius norm"),
    ]
    figure = Figure(
        "figure",
        f"{len(runs)} training runs",
        "Dev loss and Frobenius norms of the trained parts against steps, one curve per run.",
        panels,
        colours=COLOURS,
    )
    facts = [(str(run.config.seed), run.facts()) for run in runs]
    names = list(dict.fromkeys(name for _, row in facts for name in row))
    rows = [[seed, *(cell(row.get(name)) for name in names)] for seed, row in facts]
    return Section(figure.title, HOW_TO_READ, "", [figure], [TableData("Results", ["seed", *names], rows)])


def run_figure(run: Run) -> Figure:
    """A run at a glance: loss with floors, norms with stages, means by word relation, the matrix at the end.

    Args:
        run: A finished run, from `train` or `read`.

    Returns:
        The figure; parts that were not trained have no panel.

    Example:
        >>> from topicscope.pages import happening, live_curves, live_matrices, run_moment
        >>> from topicscope.training import RunConfig, train
        >>> small = {"topic_model": {"topics": 3, "words_per_topic": 2}, "data": {"documents": 40, "dev_documents": 40}}
        >>> run = train(RunConfig.of(small, steps=30))
        >>> [panel.title for panel in run_figure(run).panels[:2]]
        ['Loss and its floors', 'Norms: which part moves first?']
        >>> happening(run).split(" (")[0]
        'Over all 30 steps. Phase: at once'
        >>> parts = (live_curves(run), live_matrices(run), run_moment(run, plane=None, timeline=None, step=10))
        >>> [section.figures[0].title for [section] in parts]
        ['Up to step 30 of 30', 'Matrices at the end', 'Up to step 10']
    """
    return Figure(
        "figure",
        f"Training run: seed {run.config.seed}, {run.results['steps']:,} steps, {run.results['status']}",
        "Loss with its floors, Frobenius norms of the trained parts with their stages, means of the matrix by word "
        "relation, all against steps; and the matrix at the end, words ordered by topic.",
        [loss_panel(run), norm_panel(run), *mean_panels(run), *matrix_panels(run)],
        colours=COLOURS,
    )


def loss_panel(run: Run) -> Lines:
    training = Series(TRAINING, *curve(run, "loss"), thin=True)
    dev = Series(DEV, *curve(run, "dev_loss"), markers=True)
    floors = [(floor["loss"], floor_name(run, name, floor)) for name, floor in run.results.get("floors", {}).items()]
    return Lines("Loss and its floors", [one for one in (training, dev) if one.x], "step", "loss", levels=floors)


def floor_name(run: Run, name: str, floor: Mapping[str, Any]) -> str:
    """Which floor it is, and of which documents where they are not those of the curve."""
    some = "floor_dev_loss" in run.results and name != "least_squares"
    return FLOORS[name] + (f", first {floor['documents']:,} documents" if some else "")


def norm_panel(run: Run) -> Lines:
    staged = run.course is not None and run.course.phase in ("two-stage", "staggered")
    bands = stage_bands(run.metrics) if staged else []
    series = [Series(name, *curve(run, f"norm_{part}")) for part, name in trained_parts(run).items()]
    predicted = prediction_or_none(run.config)
    if predicted is not None:
        x = predicted.steps.tolist()
        series += [
            Series(f"{name}, predicted", x, predicted.norms[part].tolist(), group=PREDICTED, thin=True)
            for part, name in trained_parts(run).items()
            if part in predicted.norms
        ]
    return Lines("Norms: which part moves first?", series, "step", "Frobenius norm", bands=bands)


def mean_panels(run: Run) -> list[Lines]:
    what, matrix = ("value", "W_V") if "value_same" in run.metrics else ("gram", "W_E'W_E")
    measured = {f"{what}_{key}": name for key, name in RELATIONS.items() if f"{what}_{key}" in run.metrics}
    series = [one for key, name in measured.items() if (one := Series(name, *curve(run, key))).x]  # or no such pair
    return [Lines(f"{matrix}: means by word relation", series, "step", "mean entry")] if series else []


def matrix_panels(run: Run) -> list[Heat]:
    """The value matrix (one-hot embedding) or the embedding's Gram matrix, words in the order of their topics."""
    weights = run.weights
    if run.config.model.embedding != "one-hot":
        gram = weights["embedding"].T @ weights["embedding"]
        return word_heat(f"W_E'W_E {when(run)}", gram, run, "topic of the word", "topic of the word")
    name, matrix = "W_V", weights.get("value")
    if "head" in weights:  # the outputs of W_V are no words then; those of the head are
        name, matrix = "W_pred W_V", weights["head"] if matrix is None else weights["head"] @ matrix
    if matrix is None:
        return []
    return word_heat(f"{name} {when(run)}", matrix, run, "topic of the input word", "topic of the output word")


def word_heat(title: str, matrix: Float[np.ndarray, "m m"], run: Run, x_label: str, y_label: str) -> list[Heat]:
    """A matrix over words, if it has numbers; of many words only the first of each topic.

    Extreme entries do not set the colour scale.
    """
    model = run.config.topic_model
    matrix = np.asarray(matrix, dtype=float)
    finite = matrix[np.isfinite(matrix)]
    if not finite.size:
        return []
    low, high = np.quantile(finite, [0.002, 0.998]).tolist()
    if not model.blocks:  # in the order of the words' main topics, which differ in size
        order = np.argsort(model.main_topic, kind="stable")
        pick = np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_WORDS)).astype(int))
        title += f", {len(pick)} of {len(order)} words" if len(pick) < len(order) else ""
        x_label, y_label = (f"{label.removeprefix('topic of the ')}, by main topic" for label in (x_label, y_label))
        return [Heat(title, digits(matrix[np.ix_(order[pick], order[pick])]), x_label, y_label, low=low, high=high)]
    topics = min(model.topics, MOST_WORDS)
    words = min(model.block_size, MOST_WORDS // topics)
    first = 1 + model.block_size * np.arange(topics)
    pick = np.concatenate([[0], (first[:, None] + np.arange(words)).ravel()])
    if len(pick) < len(matrix):
        title += f", {words} words per topic" + (f", {topics} topics" if topics < model.topics else "")
    return [
        Heat(
            title,
            digits(matrix[np.ix_(pick, pick)]),
            x_label,
            y_label,
            topics=topics,
            words_per_topic=words,
            low=low,
            high=high,
        )
    ]


def attention_figures(run: Run) -> list[Figure]:
    """Scores between words; and unmasked dev documents, positions ordered by word so that topics stand together."""
    if not {"key", "query"} <= set(run.weights):
        return []
    table = word_scores(run.weights)
    scores = word_heat("", table, run, "topic of the key's word", "topic of the query's word")
    maps: list[Heat] = []
    infinite = run.config.documents.length == "infinite"
    for document in () if infinite else RunData(run.config).dev.finite().words[:DOCUMENTS]:
        present = np.sort(document[document > 0])
        logits = table[np.ix_(present, present)]
        weight = np.exp(logits - logits.max(1, keepdims=True))
        shown = np.unique(np.linspace(0, len(present) - 1, POSITIONS).astype(int))  # spread over the whole document
        z = (weight / weight.sum(1, keepdims=True))[np.ix_(shown, shown)]
        title = f"dev document {len(maps) + 1}, {len(shown)} of {len(present)} positions, ordered by word"
        maps.append(Heat(title, digits(z), "key position", "query position"))
    figures = [
        Figure(
            "scores",
            f"Attention scores {when(run)}",
            "Attention scores between words, ordered by topic: the query's word in rows, the key's word in columns.",
            scores,
        ),
        Figure(
            "attention",
            "Attention of some documents",
            "Heat maps of attention between positions: query in rows, key in columns.",
            maps,
        ),
    ]
    return [figure for figure in figures if figure.panels]


def when(run: Run) -> str:
    return "at the end" if run.shown_step is None else f"at step {run.shown_step:,}"


def trained_parts(run: Run) -> dict[str, str]:
    """The matrices whose norms were followed, and their names in figures."""
    return {metric.removeprefix("norm_"): name for metric, name in NORM_CURVES.items() if metric in run.metrics}


def curve(run: Run, name: str) -> tuple[list[float], list[float]]:
    """Steps and values of a metric, where it was measured; of a long curve its ends, extremes, and some between."""
    values, steps = run.metrics[name], run.metrics["step"]
    there = np.flatnonzero(np.isfinite(values))
    there = there[thinned(values[there], MOST_POINTS)]
    return steps[there].tolist(), values[there].tolist()


def digits(matrix: Float[np.ndarray, "m n"]) -> list[list[float]]:
    """Five significant digits, which keep pages small."""
    return [[float(f"{value:.5g}") for value in row] for row in matrix]


def brief(settings: Any) -> Any:
    """Settings for the page: of long lists, which config.yaml has, the length alone."""
    if isinstance(settings, dict):
        return {name: brief(value) for name, value in settings.items()}
    rows = settings if isinstance(settings, list) else []
    count = sum(len(row) if isinstance(row, list) else 1 for row in rows)
    return f"{len(rows):,} entries, in config.yaml" if count > MOST_LISTED else settings


def cell(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
