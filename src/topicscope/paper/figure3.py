"""Figure 3: cosines of nine words of three topics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from topicscope import language, pages
from topicscope.pages import Figure, TableData, Verdict
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
    shown = [panel for words in found.maps.values() for panel in pages.word_figure(words).panels]
    random = [
        replace(panel, title=f"{panel.title}, random weights")
        for words in found.random.values()
        for panel in pages.word_figure(words).panels
    ]
    return Outcome(
        paper=PAPER,
        theory="-",
        measured="mean cosine of two words that are one token each: "
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
                "Heat maps of cosines between nine words of three topics; *: mean over the pieces of the word.",
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
            "the mean cosine inside groups is not above that between groups"
            + (", or the difference not above that of random weights," if found.random else "")
            + f" for {', '.join(map(language.short, wrong))}"
        )
    elif len(open_) < len(found.maps):
        parts.append("the mean cosine inside groups is above that between groups")
    parts += [
        f"{language.short(model)} decides nothing: its tokenizer splits {len(pieces[model])} of "
        f"{len(found.maps[model].words)} words into pieces ({', '.join(pieces[model])}), and means of pieces say little"
        for model in open_
    ]
    if open_:
        parts.append(
            f"a model whose tokenizer has {WHOLE} words of each group as one token would decide (the paper took "
            "bert-base-uncased); for other words: topicscope words"
        )
    return "; ".join(parts)


EXPERIMENT = Experiment(
    id="figure3",
    claim="Words of the same topic have similar embeddings (nine words of three topics).",
    rule="Three words of one topic form a group. For every model the mean cosine of two words of the same group is "
    "above that of two words of different groups, over the words that are one token of its tokenizer. A model with "
    f"fewer than {WHOLE} such words in a group decides nothing; the verdict is then 'undecided' unless another model "
    f"fails. Without --model: five small models, trained on made-up texts, and the {LIKELIEST} likeliest words of each "
    "of three of their topics; the difference must be above that of random weights too.",
    measure=measure,
    judge=judge,
    seconds=2,
    number=Number(
        "cosine, inside-between",
        "mean cosine of the embeddings of two words of one group minus that of words of two groups, for words of one "
        "token, mean over models; the paper prints a map and no number",
    ),
    needs=("models",),
    group=GROUP,
    paper=PAPER,
    uses=LANGUAGE,
)
