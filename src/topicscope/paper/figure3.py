"""Figure 3: cosines of nine words of three topics."""

from __future__ import annotations

from topicscope.figures import Figure, TableData, short, word_figure
from topicscope.language import load_model, word_map
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.language_tables import skipped
from topicscope.paper.outcome import Outcome

GROUPS = [["frog", "toad", "lizard"], ["mozart", "beethoven", "schubert"], ["algebra", "arithmetic", "calculus"]]


def figure3(context: Context) -> Outcome:
    if not context.models:
        return skipped("figure3", "blocks of three words each (Bert)")
    found = {model: word_map(load_model(model), GROUPS) for model in context.models}
    panels = [panel for model, words in found.items() for panel in word_figure(words).panels]
    means = {model: words.means() for model, words in found.items()}
    ok = all(same > different for same, different in means.values())
    rows = [
        [short(model), f"{same:.3f}", f"{different:.3f}", str(sum(n == 1 for n in found[model].pieces))]
        for model, (same, different) in means.items()
    ]
    return Outcome(
        "blocks of three words each (Bert)",
        "-",
        "; ".join(
            f"{short(model)}: inside {same:.3f}, between {different:.3f}" for model, (same, different) in means.items()
        ),
        "reproduced" if ok else "not reproduced",
        "mean cosine inside the groups is above that between them"
        if ok
        else "mean cosine inside the groups is not above that between them for every model",
        [
            Figure(
                "figure3",
                "Cosine of word embeddings",
                "Heat maps of cosines between nine words of three topics; * averaged over pieces.",
                panels,
            )
        ],
        [TableData("Mean cosine", ["model", "inside groups", "between groups", "words of one token"], rows)],
        {"means": {model: list(pair) for model, pair in means.items()}},
        {"models": list(context.models)},
    )


EXPERIMENT = Experiment(
    "figure3",
    "Words of a topic have near embeddings (nine words of three topics).",
    "For every model the mean cosine of two words of a group is above that of two groups.",
    figure3,
    1,
    needs_models=True,
)
