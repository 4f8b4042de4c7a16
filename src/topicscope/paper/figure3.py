"""Figure 3: cosines of nine words of three topics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from topicscope import figures, language
from topicscope.figures import Figure, TableData, Verdict
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, cell, verdict
from topicscope.paper.small_models import GROUP, small_models

GROUPS = [["frog", "toad", "lizard"], ["mozart", "beethoven", "schubert"], ["algebra", "arithmetic", "calculus"]]
KNOWN_TOPICS, LIKELIEST = ("kitchen", "music", "law"), 3
"""Of the made-up texts: three topics, of which the likeliest words are compared."""

WHOLE = 2
"""Words of a group that have to be one token each: else its vectors are means of pieces that other words share."""

PAPER = "blocks of three words each (Bert)"


@dataclass(frozen=True)
class Found:
    """The cosines by model, and with random weights where these were measured."""

    maps: dict[str, language.WordMap]
    random: dict[str, language.WordMap]


def measure(context: Context) -> Found:
    if context.models:
        return Found({model: language.word_map(language.load_model(model), GROUPS) for model in context.models}, {})
    small = small_models(context)
    words, names = small.made_up.words, small.made_up.names
    size = len(words) // len(names)
    groups = [list(words[k * size : k * size + LIKELIEST]) for k in map(names.index, KNOWN_TOPICS)]
    return Found(
        {model.name: language.word_map(model, groups) for model in small.models},
        {model.name: language.word_map(model.random(context.seed), groups) for model in small.models},
    )


def whole_means(words: language.WordMap) -> tuple[float, float]:
    """Mean cosine inside groups and between them, of the words that are one token; NaN where a group has too few."""
    at = np.flatnonzero(np.array(words.pieces) == 1)
    groups = [words.groups[i] for i in at]
    if any(groups.count(group) < WHOLE for group in set(words.groups)):
        return math.nan, math.nan
    kept = replace(
        words,
        words=tuple(words.words[i] for i in at),
        groups=tuple(groups),
        pieces=(1,) * len(at),
        cosine=words.cosine[np.ix_(at, at)],
    )
    return kept.means()


def judge(found: Found) -> Outcome:
    """A model whose tokenizer has too few of the words decides nothing, and all have to decide."""
    means = {model: whole_means(words) for model, words in found.maps.items()}
    gaps = {model: same - different for model, (same, different) in means.items()}
    fresh = {model: same - different for model, (same, different) in ((m, w.means()) for m, w in found.random.items())}
    open_ = [model for model, gap in gaps.items() if math.isnan(gap)]
    wrong = [model for model, gap in gaps.items() if gap <= max(0.0, fresh.get(model, 0.0))]
    seen: Verdict = "undecided" if open_ and not wrong else verdict(not wrong)
    pieces = {model: [w for w, n in zip(m.words, m.pieces, strict=True) if n > 1] for model, m in found.maps.items()}
    rows = [
        [
            language.short(model),
            *(f"{value:.3f}" for value in found.maps[model].means()),
            *("-" if math.isnan(value) else f"{value:.3f}" for value in means[model]),
            f"{len(found.maps[model].words) - len(pieces[model])} of {len(found.maps[model].words)}",
            cell(fresh.get(model)),
        ]
        for model in means
    ]
    shown = [panel for words in found.maps.values() for panel in figures.word_figure(words).panels]
    random = [
        replace(panel, title=f"{panel.title}, random weights")
        for words in found.random.values()
        for panel in figures.word_figure(words).panels
    ]
    return Outcome(
        paper=PAPER,
        theory="-",
        measured="mean cosine of two words, whole tokens only: "
        + "; ".join(
            f"{language.short(model)}: inside a group {cell(None if math.isnan(same) else same)}, "
            f"between groups {cell(None if math.isnan(different) else different)}"
            for model, (same, different) in means.items()
        ),
        verdict=seen,
        reason=reason(found, open_, wrong, pieces),
        figures=[
            Figure(
                "figure3",
                "Cosine of word embeddings",
                "Heat maps of cosines between nine words of three topics; * averaged over pieces.",
                [*shown, *random],
            )
        ],
        tables=[
            TableData(
                "Mean cosine of two words",
                [
                    *("model", "inside groups", "between groups", "inside, whole tokens", "between, whole tokens"),
                    *("words of one token", "inside minus between, random weights"),
                ],
                rows,
            )
        ],
        numbers={
            "means": {model: list(words.means()) for model, words in found.maps.items()},
            "whole_token_means": {model: list(pair) for model, pair in means.items()},
            "pieces": {model: list(words.pieces) for model, words in found.maps.items()},
            "random_gap": fresh,
        },
        config={"models": list(found.maps)},
        ours=None if len(open_) == len(gaps) else float(np.nanmean(list(gaps.values()))),
    )


def reason(found: Found, open_: list[str], wrong: list[str], pieces: dict[str, list[str]]) -> str:
    """Which models show it, which do not, and which cannot; and what would decide."""
    parts = []
    if wrong:
        parts.append(
            "mean cosine inside the groups is not above that between them"
            + (" and that of random weights" if found.random else "")
            + f" for {', '.join(map(language.short, wrong))}"
        )
    elif len(open_) < len(found.maps):
        parts.append("mean cosine inside the groups is above that between them")
    parts += [
        f"{language.short(model)} decides nothing: {len(pieces[model])} of {len(found.maps[model].words)} words are no "
        f"whole tokens of its tokenizer ({', '.join(pieces[model])}), and means of their pieces say little"
        for model in open_
    ]
    if open_:
        parts.append(
            f"a model whose tokenizer has {WHOLE} words of each group decides (the paper took bert-base-uncased); "
            "other words: topicscope words"
        )
    return "; ".join(parts)


EXPERIMENT = Experiment(
    id="figure3",
    claim="Words of a topic have near embeddings (nine words of three topics).",
    rule="For every model the mean cosine of two words of a group is above that of two groups, over the words that are "
    f"one token of its tokenizer. A model with fewer than {WHOLE} such words in a group decides nothing, and the "
    "verdict is then 'undecided' unless another model fails. Without --model: five small models, trained on made-up "
    f"texts, and the {LIKELIEST} likeliest words of three of their topics; the difference must be above that of random "
    "weights too.",
    measure=measure,
    judge=judge,
    seconds=2,
    number=Number(
        "cosine, inside-between",
        "mean cosine of the embeddings of two words of a group minus that of words of two groups, whole tokens only, "
        "mean over models; the paper prints a map and no number",
    ),
    needs=("models",),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
