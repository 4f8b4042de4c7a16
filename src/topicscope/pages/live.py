"""A run while it goes on: curves so far, matrices at a step, and which sentence of the paper is happening."""

from topicscope.ground import folders
from topicscope.laws import prediction_or_none
from topicscope.measure import Act, act, bands_so_far
from topicscope.pages.parts import Figure, Section
from topicscope.pages.train_run import COLOURS, attention_figures, loss_panel, matrix_panels, mean_panels, norm_panel
from topicscope.training import Run

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
    """Which stage of the paper a run is in, in a sentence; of a finished run, which course it took.

    Args:
        run: A run, finished or not.

    Returns:
        The sentence.

    Example:
        See `run_figure`.
    """
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
    """The curves of a run up to now: loss, norms with the predicted ones, and means by word relation.

    Args:
        run: A run, finished or not.

    Returns:
        One section with one figure; with a note only, where no step has been written yet.

    Example:
        See `run_figure`.
    """
    if not run.metrics:
        return [Section("Curves", "The first steps have not been written yet.")]
    title = f"Up to step {run.results['steps']:,} of {run.config.total_steps:,}"
    alt = "Loss, Frobenius norms with their predictions, and means by word relation, against steps."
    norms = norm_panel(run)
    if run.status in folders.UNFINISHED and set(run.metrics) >= NORMS:
        norms.bands = bands_so_far(run.metrics)
    panels = [loss_panel(run), norms, *mean_panels(run)]
    return [Section("Curves", "", "", [Figure("curves", title, alt, panels, columns=3, colours=COLOURS)])]


def live_matrices(run: Run) -> list[Section]:
    """The value matrix and the scores between words, at the step whose weights are shown.

    Args:
        run: A run, finished or not.

    Returns:
        One section with one figure; with a note only, where no weights have been saved yet.

    Example:
        See `run_figure`.
    """
    if not run.weights:
        return [Section("Matrices", "No weights have been saved yet.")]
    at = "at the end" if run.shown_step is None else f"at step {run.shown_step:,}"
    scores = [panel for figure in attention_figures(run)[:1] for panel in figure.panels]
    for panel in scores:
        panel.title = f"attention scores {at}"
    alt = "Heat maps over words, ordered by topic: the value matrix, and the scores of attention between words."
    return [Section("Matrices", "", "", [Figure("matrices", f"Matrices {at}", alt, [*matrix_panels(run), *scores])])]
