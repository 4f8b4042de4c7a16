"""Figure 3: cosines of nine words of three topics."""

from dataclasses import dataclass

from topicscope import figures, language
from topicscope.figures import Figure, TableData
from topicscope.paper.experiment import Context, Experiment, Outcome, verdict

GROUPS = [["frog", "toad", "lizard"], ["mozart", "beethoven", "schubert"], ["algebra", "arithmetic", "calculus"]]
PAPER = "blocks of three words each (Bert)"


@dataclass(frozen=True)
class Found:
    """The cosines by model."""

    maps: dict[str, language.WordMap]


def measure(context: Context) -> Found:
    return Found({model: language.word_map(language.load_model(model), GROUPS) for model in context.models})


def judge(found: Found) -> Outcome:
    means = {model: words.means() for model, words in found.maps.items()}
    holds = all(same > different for same, different in means.values())
    single = {model: sum(pieces == 1 for pieces in words.pieces) for model, words in found.maps.items()}
    rows = [
        [language.short(model), f"{same:.3f}", f"{different:.3f}", str(single[model])]
        for model, (same, different) in means.items()
    ]
    return Outcome(
        paper=PAPER,
        theory="-",
        measured="; ".join(
            f"{language.short(model)}: inside {same:.3f}, between {different:.3f}"
            for model, (same, different) in means.items()
        ),
        verdict=verdict(holds),
        reason=f"mean cosine inside the groups is {'' if holds else 'not '}above that between them"
        + ("" if holds else " for every model"),
        figures=[
            Figure(
                "figure3",
                "Cosine of word embeddings",
                "Heat maps of cosines between nine words of three topics; * averaged over pieces.",
                [panel for words in found.maps.values() for panel in figures.word_figure(words).panels],
            )
        ],
        tables=[TableData("Mean cosine", ["model", "inside groups", "between groups", "words of one token"], rows)],
        numbers={"means": {model: list(pair) for model, pair in means.items()}},
        config={"models": list(found.maps)},
    )


EXPERIMENT = Experiment(
    id="figure3",
    claim="Words of a topic have near embeddings (nine words of three topics).",
    rule="For every model the mean cosine of two words of a group is above that of two groups.",
    measure=measure,
    judge=judge,
    seconds=1,
    needs=("models",),
    paper=PAPER,
)
