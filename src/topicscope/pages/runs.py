"""A training run as figures: curves, matrices over words and topics, attention; also while it goes on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import folders
from topicscope.laws import prediction_or_none
from topicscope.measure import Act, act, bands_so_far, stage_bands, thinned
from topicscope.pages.panels import MATRIX_COLOURS, Figure, Heat, Lines, Section, Series, TableData, drawn
from topicscope.training import Run

POSITIONS = 40  # of a document whose attention is drawn
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


NORM_TITLE = "Norms: which part moves first?"


def many_runs(runs: Sequence[Run]) -> Section:
    losses = [Series(f"seed {run.config.seed}", *curve(run, "dev_loss"), group=DEV, markers=True) for run in runs]
    norms = [
        Series(f"{name}, seed {run.config.seed}", *curve(run, f"norm_{part}"), group=name)
        for part, name in trained_parts(runs[0]).items()
        for run in runs
    ]
    figure = Figure(
        "figure",
        f"{len(runs)} training runs",
        "Dev loss and Frobenius norms of the trained parts against steps, one curve per run.",
        [Lines("Dev loss", losses, "step", "loss"), Lines(NORM_TITLE, norms, "step", "Frobenius norm")],
        colours=COLOURS,
    )
    facts = [(str(run.config.seed), run.facts()) for run in runs]
    names = list(dict.fromkeys(name for _, row in facts for name in row))
    rows = [[seed, *(cell(row.get(name)) for name in names)] for seed, row in facts]
    return Section(figure.title, HOW_TO_READ, "", [figure], [TableData("Results", ["seed", *names], rows)])


def run_figure(run: Run) -> Figure:
    return Figure(
        "figure",
        f"Training run: seed {run.config.seed}, {run.results['steps']:,} steps, {run.results['status']}",
        "Loss with its floors, Frobenius norms of the trained parts with their stages, means of the matrix by word "
        "relation, all against steps; and the matrix at the end, words ordered by topic.",
        [loss_panel(run), norm_panel(run), *mean_panels(run), *matrix_panels(run)],
        colours=COLOURS,
    )


def loss_panel(run: Run) -> Lines:
    series = [Series(TRAINING, *curve(run, "loss"), thin=True), Series(DEV, *curve(run, "dev_loss"), markers=True)]
    floors = []
    for name, floor in run.results.get("floors", {}).items():
        some = "floor_dev_loss" in run.results and name != "least_squares"  # not of all documents of the curve
        floors.append((floor["loss"], FLOORS[name] + (f", first {floor['documents']:,} documents" if some else "")))
    return Lines("Loss and its floors", drawn(series), "step", "loss", levels=floors)


def norm_panel(run: Run) -> Lines:
    staged = run.course is not None and run.course.phase in ("two-stage", "staggered")
    parts = trained_parts(run)
    law = prediction_or_none(run.config)
    series = [Series(name, *curve(run, f"norm_{part}")) for part, name in parts.items()]
    if law is not None:
        series += [
            Series(f"{name}, predicted", law.steps.tolist(), law.norms[part].tolist(), group=PREDICTED, thin=True)
            for part, name in parts.items()
            if part in law.norms
        ]
    return Lines(NORM_TITLE, series, "step", "Frobenius norm", bands=stage_bands(run.metrics) if staged else [])


def mean_panels(run: Run) -> list[Lines]:
    measured = {
        symbol: drawn(
            Series(name, *curve(run, f"{what}_{key}"))
            for key, name in RELATIONS.items()
            if f"{what}_{key}" in run.metrics
        )
        for what, symbol in run.config.model.table_symbols().items()
    }
    return [
        Lines(f"{symbol}: means by word relation", series, "step", "mean entry")
        for symbol, series in measured.items()
        if series
    ]


def matrix_panels(run: Run) -> list[Heat]:
    return [
        heat
        for table in run.reading.tables.values()
        for heat in word_heat(f"{table.symbol} {when(run)}", table.matrix, run, *reversed(table.sides))
    ]


def word_heat(title: str, matrix: Float[np.ndarray, "m m"], run: Run, across: str, down: str) -> list[Heat]:
    """None without numbers; of many words the first of each topic. Extreme entries do not set the colour scale."""
    model = run.config.topic_model
    matrix = np.asarray(matrix, dtype=float)
    finite = matrix[np.isfinite(matrix)]
    if not finite.size:
        return []
    topics = words = None
    if model.blocks:
        topics = min(model.topics, MOST_WORDS)
        words = min(model.block_size, MOST_WORDS // topics)
        pick = np.append(0, 1 + model.block_size * np.arange(topics)[:, None] + np.arange(words))
        some = f", {words} words per topic" + (f", {topics} topics" if topics < model.topics else "")
        label = "topic of the {}"
    else:  # in the order of the words' main topics, which differ in size
        order = np.argsort(model.main_topic, kind="stable")
        pick = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_WORDS)).astype(int))]
        some = f", {len(pick)} of {len(order)} words"
        label = "{}, by main topic"
    low, high = np.quantile(finite, [0.002, 0.998]).tolist()
    title += some if len(pick) < len(matrix) else ""
    axes = label.format(across), label.format(down)
    return [Heat(title, digits(matrix[np.ix_(pick, pick)]), *axes, topics, words, low=low, high=high)]


def score_panels(run: Run) -> list[Heat]:
    table = run.reading.scores
    return [] if table is None else word_heat("", table, run, "key's word", "query's word")


def attention_figures(run: Run) -> list[Figure]:
    scores = run.reading.scores
    if scores is None:
        return []
    documents = [words for name, words in run.shown.items() if name.startswith("document.")]
    figures = [
        Figure(
            "scores",
            f"Attention scores {when(run)}",
            "Attention scores between words, ordered by topic: the query's word in rows, the key's word in columns.",
            score_panels(run),
        ),
        Figure(
            "attention",
            "Attention of some documents",
            "Heat maps of attention between positions: query in rows, key in columns.",
            [attention_map(scores, number, document) for number, document in enumerate(documents, start=1)],
        ),
    ]
    return [figure for figure in figures if figure.panels]


def attention_map(scores: Float[np.ndarray, "V V"], number: int, document: Int[np.ndarray, " N"]) -> Heat:
    present = np.sort(document)
    logits = scores[np.ix_(present, present)]
    weight = np.exp(logits - logits.max(1, keepdims=True))
    shown = np.unique(np.linspace(0, len(present) - 1, POSITIONS).astype(int))  # spread over the whole document
    z = (weight / weight.sum(1, keepdims=True))[np.ix_(shown, shown)]
    title = f"dev document {number}, {len(shown)} of {len(present)} positions, ordered by word"
    return Heat(title, digits(z), "key position", "query position")


def when(run: Run) -> str:
    return "at the end" if run.shown_step is None else f"at step {run.shown_step:,}"


def trained_parts(run: Run) -> dict[str, str]:
    return {
        part: f"{symbol} ({part})" for part, symbol in run.config.model.SYMBOLS.items() if f"norm_{part}" in run.metrics
    }


def curve(run: Run, name: str) -> tuple[list[float], list[float]]:
    """Steps and values of a metric, where it was measured; of a long curve its ends, extremes, and some between."""
    values, steps = run.metrics[name], run.metrics["step"]
    there = np.flatnonzero(np.isfinite(values))
    there = there[thinned(values[there], MOST_POINTS)]
    return steps[there].tolist(), values[there].tolist()


def digits(matrix: Float[np.ndarray, "m n"]) -> list[list[float]]:
    return [[float(f"{value:.5g}") for value in row] for row in matrix]


def brief(settings: Any) -> Any:
    """Settings for the page: of long lists, which config.yaml has, the length alone."""
    if isinstance(settings, dict):
        return {name: brief(value) for name, value in settings.items()}
    rows = settings if isinstance(settings, list) else []
    count = sum(len(row) if isinstance(row, list) else 1 for row in rows)
    return f"{len(rows):,} entries, in config.yaml" if count > MOST_LISTED else settings


def cell(value: object) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


PARTNERS = {
    "same": "a topic in common",
    "partner": "topics of one group, none in common",
    "other": "no group in common",
}


def matrix_names(run: Run) -> dict[str, str]:
    compared = "optimum" in run.results.get("relations", {})
    return run.config.model.table_symbols() | ({"optimum": optimum_name(run)} if compared else {})


def relation_figures(run: Run) -> list[Figure]:
    relations, titles, names = run.results.get("relations", {}), matrix_names(run), topic_names(run)
    maps = {titles[name]: np.array(one["topics"], float) for name, one in relations.items() if "topics" in one}
    finite = [value for array in maps.values() for value in array[np.isfinite(array)].tolist()]  # None is NaN
    if not finite:
        return []
    axes = "topic of the input word", "topic of the output word"
    panels = [
        Heat(name, array.tolist(), *axes, low=min(finite), high=max(finite), labels=names)
        for name, array in maps.items()
    ]
    alt = "Heat maps over pairs of topics: the mean entry between words of one and of the other, without the diagonal."
    return [Figure("topics", "Mean entry by pair of topics", alt, panels)]


def relation_tables(run: Run) -> list[TableData]:
    names = matrix_names(run)
    means = {
        names[matrix]: {f"{count} topics in common": mean for count, mean in one.get("shared", {}).items()}
        | {PARTNERS[name]: mean for name, mean in one.get("partners", {}).items()}
        for matrix, one in run.results.get("relations", {}).items()
    }
    relations = dict.fromkeys(relation for of in means.values() for relation in of)
    cells = [[relation, *(cell(of.get(relation)) for of in means.values())] for relation in relations]
    return [TableData("Means by relation of two words", ["two words have", *means], cells)] if cells else []


MOST_NAMED = 30  # words along the side of a matrix that have room for their names


def topic_names(run: Run) -> list[str]:
    """The number of each topic, from 1 on; with its most probable word, where words have names."""
    model = run.config.topic_model
    if model.word_names is None:
        return [f"{t + 1}" for t in range(model.topics)]
    return [f"{t + 1} {model.word_names[word]}" for t, word in enumerate(model.word_topics.argmax(0))]


def named_words(run: Run) -> tuple[Int[np.ndarray, " n"], list[str]] | None:
    """[MASK] and the most probable words of each main topic, topic by topic, with their names; None without names."""
    model = run.config.topic_model
    if model.word_names is None:
        return None
    each = max(1, MOST_NAMED // model.topics)
    picked = [0]
    for topic in range(model.topics):
        words = np.flatnonzero(model.main_topic[1:] - 1 == topic)
        picked += (1 + words[np.argsort(-model.word_topics[words, topic], kind="stable")][:each]).tolist()
    picked = picked[: 1 + MOST_NAMED]
    return np.array(picked), ["[MASK]", *(model.word_names[word - 1] for word in picked[1:])]


def optimum_name(run: Run) -> str:
    """Of W* as W_V should be: less what biases add to it, where there are any."""
    biases = run.config.model.value_bias, run.config.model.prediction_bias
    return "W*" if biases == ("none", "none") else "W* (minus the run's bias)"


def word_figures(run: Run) -> list[Figure]:
    if (named := named_words(run)) is None:
        return []
    places, names = named
    matrices = {table.symbol: table.matrix for name, table in run.reading.tables.items() if name in run.results}
    if "optimum" in run.shown:  # W* less the run's bias is what W_V should be
        matrices[optimum_name(run)] = run.shown["optimum"]
    shown = {name: np.asarray(matrix, dtype=float)[np.ix_(places, places)] for name, matrix in matrices.items()}
    panels = [
        Heat(name, np.round(z, 6).tolist(), "input word", "output word", labels=names)
        for name, z in shown.items()
        if np.isfinite(z).all()
    ]
    title = f"The most probable words of each main topic ({len(places) - 1} of {run.config.topic_model.words})"
    alt = "Heat maps over words with their names, [MASK] first, topic by topic."
    return [Figure("words", title, alt, panels, columns=1)] if panels else []


NORMS = {"norm_key", "norm_query", "norm_value"}
FROZEN = "Key, query and value are not all trained: there is one stage to see, that of the parts that are."
SENTENCES: dict[Act, str] = {
    "start": "Nothing has risen yet: all weights are still near their start.",
    "stage 1": "Stage 1: the value matrix learns which words share a topic, while attention is still uniform "
    "(Section 5, Theorem 2).",
    "between": "Between the stages: the value matrix has settled, and attention has not formed yet",
    "stage 2": "Stage 2: key and query grow, and words attend to words of their topic (Section 5, Theorems 3 and 5).",
    "at once": "Value and attention are learnt at the same time: here the two stages are not separate (in Figure 4 "
    "they are).",
    "third act": "After the two stages: attention has formed, and the value matrix rises again, now inside topics. The "
    "paper stops before this; docs/dynamics.md calls it the third act.",
    "ended": "Nothing changes any more: value and attention have reached their plateaus.",
}


def happening(run: Run) -> str:
    """Which stage of the paper a run is in, in a sentence; of a finished run, which course it took."""
    if not set(run.metrics) >= NORMS:
        return FROZEN if run.metrics else SENTENCES["start"]
    if run.status not in folders.UNFINISHED and "course" in run.results:
        return f"Over all {run.results['steps']:,} steps. {run.results['course']['sentence']}{to_come(run)}"
    now = act(run.metrics)
    if now != "between":
        return SENTENCES[now]
    grown = max(run.metrics[name][-1] / run.metrics[name][0] for name in ("norm_key", "norm_query"))
    return f"{SENTENCES[now]}: key and query are {grown:.3g} times their start.{to_come(run)}"


def to_come(run: Run) -> str:
    """When attention is predicted to form, where theory covers the run and that moment has not come."""
    predicted = prediction_or_none(run.config)
    half = None if predicted is None else predicted.half_way.get("key")
    if half is None or half <= run.results["steps"]:
        return ""
    late = ", after the end of this run" if half > run.config.total_steps else ""
    return f" Theory predicts that key and query are half-way near step {half:,.0f}{late}."


def live_curves(run: Run) -> list[Section]:
    if not run.metrics:
        return [Section("Curves", "The first steps have not been written yet.")]
    norms = norm_panel(run)
    if run.status in folders.UNFINISHED and set(run.metrics) >= NORMS:
        norms.bands = bands_so_far(run.metrics)
    figure = Figure(
        "curves",
        f"Up to step {run.results['steps']:,} of {run.config.total_steps:,}",
        "Loss, Frobenius norms with their predictions, and means by word relation, against steps.",
        [loss_panel(run), norms, *mean_panels(run)],
        columns=3,
        colours=COLOURS,
    )
    return [Section("Curves", figures=[figure])]


def live_matrices(run: Run) -> list[Section]:
    if not run.weights:
        return [Section("Matrices", "No weights have been saved yet.")]
    scores = [replace(panel, title=f"attention scores {when(run)}") for panel in score_panels(run)]
    alt = "Heat maps over words, ordered by topic: the value matrix, and the scores of attention between words."
    figure = Figure("matrices", f"Matrices {when(run)}", alt, [*matrix_panels(run), *scores])
    return [Section("Matrices", figures=[figure])]
