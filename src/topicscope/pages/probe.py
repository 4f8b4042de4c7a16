"""A probe: the paper's Tables 1, 2 and 5, verdicts and heads; then hidden states, labels and ablation by layer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from topicscope.language import (
    CONTROLS,
    TREATMENTS,
    AblationRow,
    CooccurrenceRow,
    HeadRow,
    LabelRow,
    Measurement,
    ModelVerdict,
    PairContrast,
    Probe,
    ProbeRow,
    StateRow,
    accuracy_text,
    interval_text,
    ratio_text,
    short,
    standing_heads,
)
from topicscope.measure import FOLDS, Effect, Interval
from topicscope.pages.panels import Figure, Heat, Lines, Points, Section, Series, TableData, banded, curve_of, drawn
from topicscope.pages.topics import (
    at_first,
    by_model,
    document_section,
    number,
    setting_name,
    setting_of,
    topic_figures,
    topic_table,
    with_interval,
)

Layered = TypeVar("Layered", LabelRow, StateRow)

MAIN_MEASURES = ("cosine", "dot", "attention")
# the verdict on attention is on one of the two: tables have both
HEADS = {"attention": "mean over all heads", "topical": "topical heads"}

PAPER = {
    "one": {
        "bert": ((1.21, 1.19, 1.32), (1.13, 1.15, 1.28), (1.11, 1.13, 1.22)),
        "albert": ((5.64, 6.29, 1.33), (4.18, 3.74, 1.28), (3.24, 2.93, 1.22)),
        "bart": ((2.80, 2.67, 1.35), (1.95, 1.92, 1.31), (1.63, 1.62, 1.23)),
        "electra": ((5.98, 5.37, 2.14), (7.70, 7.35, 2.09), (7.46, 8.08, 1.95)),
        "roberta": ((6.44, 6.81, 1.40), (5.73, 6.31, 1.31), (5.24, 5.30, 1.22)),
    },
    "many": {
        "bert": ((1.14, 1.04, 1.23), (0.97, 1.05, 1.17), (0.99, 0.93, 1.13)),
        "albert": ((4.15, 3.06, 1.23), (3.09, 3.04, 1.17), (1.54, 1.44, 1.11)),
        "bart": ((2.51, 1.76, 1.27), (1.63, 1.12, 1.20), (1.06, 0.85, 1.11)),
        "electra": ((5.28, 3.99, 1.70), (5.56, 5.57, 1.58), (6.39, 5.61, 1.48)),
        "roberta": ((4.39, 5.01, 1.19), (5.20, 4.25, 1.15), (4.71, 4.15, 1.12)),
    },
}  # ratios same / different of cosine, dot and attention at thresholds .0005, .001, .002: Tables 1 and 5


def measure_name(measure: str, what: str = "") -> str:
    """Of attention it says of which heads. `what`: of the measure, such as ' ratio'."""
    return f"attention{what}, {HEADS[measure]}" if measure in HEADS else f"{measure}{what}".replace("_", " ")


def family(model: str, kind: str) -> str:
    """The ratios that the paper prints for this kind of model (Tables 1 and 5)."""
    known = [name for name in ("roberta", "albert", "electra", "bart", "bert") if name in short(model.lower())]
    return " / ".join(" ".join(f"{x:g}" for x in row) for row in PAPER[kind][known[0]]) if known else "-"


def ratio_table(rows: Sequence[ProbeRow]) -> TableData:
    measures = [*MAIN_MEASURES, *(["topical"] if any(row.topical for row in rows) else [])]
    return TableData(
        "Same topic over different topic, with 95% intervals",
        [
            *("model", "weights", "threshold", "topics per word", "words"),
            *(measure_name(name, " ratio") for name in measures),
        ],
        [[*setting(row), str(row.words), *(ratio_text(row.effects[name]) for name in measures)] for row in rows],
    )


def setting(row: ProbeRow) -> list[str]:
    return [short(row.model), row.variant, number(row.threshold), row.topics_per_word]


def difference_table(rows: Sequence[ProbeRow]) -> TableData:
    return TableData(
        "Every effect, and the same by chance",
        [
            *("model", "weights", "threshold", "topics per word", "measure", "same", "different", "difference", "95%"),
            *("shuffled topics", "p", "matched frequencies"),
        ],
        [
            [
                *(*setting(row), measure_name(measure), number(effect.same, ".4g"), number(effect.different, ".4g")),
                *(number(effect.difference), interval_text(effect.interval), interval_text(effect.null_interval)),
                number(effect.p_value),
                "-" if effect.matched is None else with_interval(effect.matched.difference, effect.matched.interval),
            ]
            for row in rows
            for measure, effect in row.effects.items()
            if effect is not None
        ],
        folded=True,
    )


def head_table(heads: Sequence[HeadRow], count: int = 10) -> TableData:
    """Smallest p first, then largest difference, at the first threshold; heads that were not judged come last."""
    ranked = [pair for _, _, mine in by_model(heads) for pair in standing_heads(mine)[:count]]
    return TableData(
        f"Heads with the strongest evidence (smallest p first), {setting_name([head for head, _ in ranked])}",
        ["model", "part", "layer", "head", "difference (95%)", "same", "different", "pairs", "p, corrected", "remark"],
        [
            [
                *(short(head.model), head.part, str(head.layer), str(head.head)),
                with_interval(head.effect.difference, head.effect.interval),
                *(number(head.effect.same, ".4g"), number(head.effect.different, ".4g")),
                "-" if head.effect.pairs is None else f"{head.effect.pairs:,.0f}",
                number(head.corrected_p),
                head.remark or ("topical" if topical else "-"),
            ]
            for head, topical in ranked
        ],
    )


def cooccurrence_table(rows: Sequence[CooccurrenceRow]) -> TableData:
    measures = ["cosine", "attention", *(["topical"] if any(row.topical for row in rows) else [])]
    kinds = ("same topic", "co-occurring (95%)")
    return TableData(
        "Pairs of one topic against the pairs that co-occur most",
        [
            *("model", "threshold", "pairs", "of them of one topic"),
            *(f"{measure_name(name)}: {kind}" for name in measures for kind in kinds),
        ],
        [
            [
                *(short(row.model), number(row.threshold), str(row.pairs)),
                "-" if row.of_one_topic is None else str(row.of_one_topic),
                *(cell for name in measures for cell in both(row, name)),
            ]
            for row in rows
        ],
    )


def commonest_table(rows: Sequence[CooccurrenceRow]) -> TableData:
    """The pairs that the control begins with; those of all thresholds begin alike."""
    longest = {model: max((row.commonest for row in mine), key=len) for _, model, mine in by_model(rows)}
    return TableData(
        "The pairs that co-occur most",
        ["model", "place", "word", "word"],
        [[short(model), str(at), *pair] for model, pairs in longest.items() for at, pair in enumerate(pairs, start=1)],
    )


def both(row: CooccurrenceRow, measure: str) -> tuple[str, str]:
    pair: PairContrast | None = getattr(row, measure)
    if pair is None:
        return "-", "-"
    return number(pair.same_topic), f"{number(pair.cooccurring)} {interval_text(pair.interval)}"


NAMES = {
    "chance": "chance",
    "frequency": "frequency",
    "cooccurrence": "co-occurrence",
    "fresh_weights": "fresh weights",
}
CHANCE = "shuffled topics (95%)"
MEASURES = {
    "cosine": "cosine of word embeddings",
    "attention": "attention, mean over heads",
    "topical": "topical heads",
}


def verdict_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    return TableData(
        "Does the model encode topics, beyond each control?",
        ["model", "where", "encodes topics?", *(f"beyond {name}" for name in NAMES.values())],
        [
            [short(verdict.model), place, answer.answer, *(answer.controls[control] for control in CONTROLS)]
            for verdict in verdicts
            for place, answer in verdict.answers.items()
            if answer.checks
        ],
    )


def check_table(verdicts: Sequence[ModelVerdict]) -> TableData:
    return TableData(
        "What each control saw",
        ["model", "where", "control", "threshold", "answer", "words", "pairs", "number (95%)", "why"],
        [
            [
                *(short(verdict.model), place, NAMES[row.control], number(row.threshold, ".6g")),
                *(row.check.answer, str(row.words)),
                "-" if row.pairs is None else f"{row.pairs:,.0f}",
                with_interval(row.check.number, row.check.interval),
                row.check.why,
            ]
            for verdict in verdicts
            for place, answer in verdict.answers.items()
            for row in answer.checks
            if row.check.answer != "off"
        ],
        folded=True,
    )


def forest_figures(rows: Sequence[ProbeRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-forest-{place}",
            f"{short(model)}: is it more than chance?",
            "Same-topic mean minus different-topic mean, with 95% intervals, beside the middle 95% of the same "
            "difference with topics shuffled among words. Zero: no topics.",
            [forest(mine, name, title) for name, title in MEASURES.items() if any(row.effects[name] for row in mine)],
            len(MEASURES),
            {CHANCE: "#9aa0a6"},
        )
        for place, model, mine in by_model(rows)
    ]


def forest(rows: Sequence[ProbeRow], measure: str, title: str) -> Points:
    settings = list(dict.fromkeys(setting_of(row) for row in rows))
    effects = [(row.variant, float(settings.index(setting_of(row))), row.effects[measure]) for row in rows]
    return Points(
        title,
        ["given topics" if t is None else f"{t:g}" + ("" if w == "one" else f", {w}") for t, w in settings],
        against_chance(effects, {"trained": "trained", "random": "fresh weights"}, CHANCE),
        "difference",
        [(0.0, "no difference")],
    )


def probe_sections(probe: Probe) -> list[Section]:
    sections = [
        Section(
            "Does the model encode topics?",
            "Yes needs every control, at every threshold: more than topics shuffled among words (chance), than pairs "
            "of equal word frequencies, than the pairs of words that co-occur most, and than fresh weights. "
            "'Unsure' says what to raise.",
            figures=forest_figures(probe.rows),
            tables=[verdict_table(probe.verdicts), check_table(probe.verdicts)],
        ),
        Section(
            "Are words of a topic closer, and do they attend to each other more?",
            "Same-topic mean over different-topic mean; 'undefined' where the different-topic mean may be zero. "
            "Attention is that of the encoder where there is one: the mean over all heads, and that over the topical "
            "heads, if there are any. The answer on attention is on the better of the two; its sentence says which.",
            figures=[ratio_figure(probe.rows)] if not probe.rows or probe.rows[0].threshold is not None else [],
            tables=[ratio_table(probe.rows)],
        ),
        Section(
            "Is it more than chance, or word frequency?",
            "Difference: same-topic mean minus different-topic mean. 95%: bootstrap over topics (embeddings) or "
            "documents (attention). Shuffled topics: the middle 95% of the difference when topics are given to words "
            "at random; p: the share of shuffles with as large a difference."
            + smallest_p(probe.config)
            + " Matched frequencies: the difference when "
            "the different-topic pairs have the word frequencies of the same-topic pairs. Random weights: the mean of "
            "five models for embeddings, one model for attention.",
            tables=[difference_table(probe.rows)],
        ),
        Section(
            "Which heads carry topics?",
            "Difference: attention to words of the same topic minus that to words of other topics. Attention is "
            "debiased (weight x positions that can be attended / 100): without any preference every head has .01. "
            "p: how often some head of the model stands out as far when topics are shuffled among words. Layers and "
            "heads are counted from 0.",
            figures=head_figures(probe.heads),
            tables=[head_table(probe.heads)],
        ),
        Section(
            "Which topics are tight, and which are near each other?",
            "The tightest and the loosest topics, and the topics nearest to and farthest from them.",
            figures=topic_figures(probe.topics),
            tables=[topic_table(probe.topics)],
        ),
        Section(
            "Topics against co-occurrence (Table 2).",
            "As many pairs as a topic has: those that stand in the same fifty words of text most often, whatever their "
            "topics. Some of them may share a topic, so a 'no' of this control says that co-occurrence may explain an "
            "effect, not that it does.",
            tables=[cooccurrence_table(probe.cooccurrence), commonest_table(probe.cooccurrence)],
        ),
        state_section(probe),
        ablation_section(probe),
        label_section(probe),
        document_section(probe),
    ]
    measured = (
        *(probe.verdicts, True, True, probe.heads, probe.topics, probe.cooccurrence),
        *(probe.states, probe.ablation, probe.labels, probe.documents),
    )
    return [section for section, rows in zip(sections, measured, strict=True) if rows]


def smallest_p(settings: Measurement) -> str:
    if not settings.shuffles:
        return ""
    smallest = [f"{1 / (1 + number):.2g}" for number in (settings.shuffles, settings.attention_shuffles)]
    return (
        f" With {settings.shuffles} shuffles p cannot be below {smallest[0]}; of attention and hidden states, with "
        f"{settings.attention_shuffles}, not below {smallest[1]} (more shuffles: --shuffles)."
    )


def ratio_figure(rows: Sequence[ProbeRow]) -> Figure:
    shown = [row for row in rows if row.threshold is not None and row.topics_per_word == rows[0].topics_per_word]
    return Figure(
        "probe-ratios",
        "Same topic over different topic",
        "Ratios of cosine, dot product and attention against the threshold.",
        [
            Lines(
                measure_name(measure),
                drawn(ratio_curves(shown, measure)),
                "threshold",
                "same / different",
                log_x=True,
                levels=[(1.0, "no effect")],
            )
            for measure in MAIN_MEASURES
        ],
        columns=3,
    )


def ratio_curves(rows: Sequence[ProbeRow], measure: str) -> Iterator[Series]:
    for model, variant in dict.fromkeys((row.model, row.variant) for row in rows):
        points = [
            (row.threshold or 0.0, effect.ratio, effect.ratio_interval)
            for row in rows
            if (row.model, row.variant) == (model, variant) and (effect := row.effects[measure]) is not None
        ]
        if variant == "trained":
            yield banded(short(model), points)
        elif measure == "attention":  # of embeddings the different-topic mean may be zero: no ratio worth a curve
            yield banded(f"{short(model)}, random weights", points, "random weights, all models")


def head_figures(heads: Sequence[HeadRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-heads-{place}",
            f"{short(model)}: more attention to the same topic, head by head, {setting_name(mine)}",
            "Difference of attention inside and between topics (.01 is even attention), layers by heads.",
            [head_map(model, part, at_first(mine)) for part in dict.fromkeys(head.part for head in at_first(mine))],
        )
        for place, model, mine in by_model(heads)
    ]


def head_map(model: str, part: str, heads: Sequence[HeadRow]) -> Heat:
    here = {(head.layer, head.head): head.effect.difference for head in heads if head.part == part}
    z = np.full(np.max(list(here), axis=0) + 1, np.nan)
    for place, difference in here.items():
        z[place] = difference
    return Heat(f"{part} attention", z.tolist(), "head", "layer", shown_in=f"{model} {part}")


TITLES = {
    "raw": "cosine of states",
    "centred": "minus the mean state",
    "all_but_top": "minus the three main directions too",
}
FRESH = "random weights"
WEIGHTS = {"trained": "trained", "random": FRESH}
TOPICAL, RANDOM = "topical heads", "random heads of the same layers"


def state_section(probe: Probe) -> Section:
    return Section(
        "In which layers are topics?",
        "Layer 0 is the output of the embedding layer. Difference: mean cosine of the hidden states of two words "
        "of one topic minus that of two words of different topics. The two words stand in different documents, so "
        "a shared context does not make them alike. 95%: bootstrap over topics; the band of shuffled topics is "
        "the middle 95% when topics are given to words at random. R2: how much of a document's topic mixture a "
        "linear (ridge) map of its mean state at words predicts in documents that it was not fitted to, of all "
        "variance between documents. Bag of words: the same from log word counts. Half of the words: the mixture "
        "that the topic model infers from every second word, as it is. Shuffled: mixtures given to other "
        "documents. Random weights: the same architecture, untrained.",
        figures=state_figures(probe.states),
        tables=[state_table(probe.states)],
    )


def by_part(rows: Sequence[Layered]) -> Iterator[tuple[str, list[Layered]]]:
    """Short name and rows of each part (encoder, decoder) of each model."""
    for model, part in dict.fromkeys((row.model, row.part) for row in rows):
        yield f"{short(model)}, {part}", [row for row in rows if (row.model, row.part) == (model, part)]


def shown_states(rows: Sequence[StateRow]) -> list[StateRow]:
    """Of each model the rows at the threshold with most words."""
    most = {model: setting_of(max(mine, key=lambda row: row.words)) for _, model, mine in by_model(rows)}
    return [row for _, model, mine in by_model(rows) for row in mine if setting_of(row) == most[model]]


def state_figures(rows: Sequence[StateRow]) -> list[Figure]:
    def panels_of(mine: Sequence[StateRow]) -> list[Lines]:
        every = [*(difference_panel(mine, name) for name in TREATMENTS), mixture_panel(mine), position_panel(mine)]
        return [panel for panel in every if panel.series]

    known = [(part, mine, panels_of(mine)) for part, mine in by_part(shown_states(rows))]
    return [
        Figure(
            f"probe-states-{place}",
            f"{part}: hidden states by layer, {setting_name(mine)}",
            "Curves over layers: same-topic minus different-topic cosine, and R2 of the topic mixture.",
            panels,
            columns=3,
        )
        for place, (part, mine, panels) in enumerate((one for one in known if one[2]), start=1)
    ]


def against_chance(
    effects: Sequence[tuple[str, float, Effect | None]], weights: Mapping[str, str], shuffled: str
) -> list[Series]:
    """Differences of (variant, x, effect) for each kind of weights, and their middle 95% with shuffled topics."""
    known = [(variant, x, effect) for variant, x, effect in effects if effect is not None]
    series = [
        banded(name, [(x, effect.difference, effect.interval) for of, x, effect in known if of == variant])
        for variant, name in weights.items()
    ]
    null = [(x, effect.null_interval) for of, x, effect in known if of == "trained" and effect.null_interval]
    series.append(banded(shuffled, [(x, (low + high) / 2, (low, high)) for x, (low, high) in null]))
    return drawn(series)


def curves_by_layer(values: Sequence[tuple[StateRow | LabelRow, float | None, Interval | None]]) -> list[Series]:
    return [
        banded(name, [(float(row.layer), value, ends) for row, value, ends in values if row.variant == variant])
        for variant, name in WEIGHTS.items()
    ]


def layer_panel(title: str, series: list[Series], y_label: str, levels: Sequence[tuple[float, str]] = ()) -> Lines:
    return Lines(title, drawn(series), "layer", y_label, levels=list(levels))


def difference_panel(rows: Sequence[StateRow], treatment: str) -> Lines:
    effects = [(row.variant, float(row.layer), row.effects[treatment]) for row in rows]
    return layer_panel(
        TITLES[treatment], against_chance(effects, WEIGHTS, "shuffled topics"), "same minus different topic"
    )


def mixture_panel(rows: Sequence[StateRow]) -> Lines:
    scores = [(row, row.mixture) for row in rows if row.mixture is not None]
    series = curves_by_layer([(row, score.mixture_r2, score.mixture_interval) for row, score in scores])
    chance = [(float(row.layer), score.shuffled_r2, None) for row, score in scores if row.variant == "trained"]
    series.append(banded("shuffled mixtures", chance))
    levels = [
        (r2, label)
        for _, score in scores[:1]
        for r2, label in ((score.bag_of_words_r2, "bag of words"), (score.half_document_r2, "half of the words"))
        if r2 is not None
    ]
    return layer_panel("topic mixture from the mean state", series, "R2", levels)


def position_panel(rows: Sequence[StateRow]) -> Lines:
    trained = [row for row in rows if row.variant == "trained"]
    scores = [(row.layer, row.mixture.by_position) for row in trained if row.mixture is not None]
    series = [
        curve_of(f"after {place} of the words", [(layer, r2.get(place)) for layer, r2 in scores], markers=True)
        for place in dict.fromkeys(place for _, r2 in scores for place in r2)
    ]
    return layer_panel("topic mixture from a single state", series, "R2")


def state_table(rows: Sequence[StateRow]) -> TableData:
    shown = shown_states(rows)
    fresh = {
        (row.model, row.part, row.layer): row.mixture.mixture_r2
        for row in shown
        if row.variant == "random" and row.mixture is not None
    }
    return TableData(
        f"Hidden states by layer: same minus different topic (cosine), and R2 of the topic mixture, "
        f"{setting_name(shown)}",
        [
            *("model", "layer", "words", "difference (95%)", "without main directions (95%)", "p"),
            *("R2 (95%)", f"R2, {FRESH}", "R2, bag of words"),
        ],
        [
            [
                short(row.model),
                f"{row.part} {row.layer}{' (embedding output)' if row.layer == 0 else ''}",
                str(row.words),
                *(
                    "-" if effect is None else with_interval(effect.difference, effect.interval)
                    for effect in (row.raw, row.effects["all_but_top"])
                ),
                number(row.raw.p_value if row.raw else None),
                f"{number(row.mixture.mixture_r2)} {interval_text(row.mixture.mixture_interval)}"
                if row.mixture
                else "-",
                number(fresh.get((row.model, row.part, row.layer))),
                number(row.mixture.bag_of_words_r2 if row.mixture else None),
            ]
            for row in shown
            if row.variant == "trained"
        ],
    )


def ablation_section(probe: Probe) -> Section:
    return Section(
        "Does the model use its topical heads?",
        "Rise of the loss (nats per predicted token) when these heads output their mean at every position, "
        "so that nothing which they say about the text is left. Encoders predict masked tokens, decoders the next "
        "token. Topic words: the words of all topics; other words: all other tokens. Random heads: sets of as many "
        "other heads of the same layers. 95%: documents are drawn again, and of random heads one set each time, so "
        "the interval also shows how random sets differ. Difference: topical minus random. 'Yes' needs an interval "
        "of the difference above zero.",
        figures=ablation_figures(probe.ablation),
        tables=[ablation_table(probe.ablation)],
    )


def ablation_figures(rows: Sequence[AblationRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-ablation-{place}",
            f"{short(model)}: the loss without topical heads",
            "Rise of the loss without topical heads and without random heads, with 95% intervals.",
            [
                Points(
                    "heads output their mean",
                    [f"at {row.at}" for row in mine],
                    [
                        banded(TOPICAL, [(x, row.topical_rise, row.topical_interval) for x, row in enumerate(mine)]),
                        banded(RANDOM, [(x, row.random_rise, row.random_interval) for x, row in enumerate(mine)]),
                    ],
                    "rise of the loss (nats)",
                    [(0.0, "no rise")],
                )
            ],
            columns=1,
        )
        for place, model, mine in by_model([row for row in rows if row.topical_rise is not None])
    ]


def ablation_table(rows: Sequence[AblationRow]) -> TableData:
    return TableData(
        "Rise of the loss without topical heads, and without random ones",
        [
            *("model", "at", "matter more?", "heads", "random sets", "tokens in documents", "loss"),
            *("rise, topical (95%)", "rise, random (95%)", "difference (95%)", "why"),
        ],
        [
            [
                *(short(row.model), row.at, row.answer, str(row.heads), str(row.draws)),
                *(f"{row.positions:,} in {row.documents}", number(row.loss)),
                with_interval(row.topical_rise, row.topical_interval),
                with_interval(row.random_rise, row.random_interval),
                with_interval(row.difference, row.interval),
                "; ".join(text for text in (row.why, row.remark) if text),
            ]
            for row in rows
        ],
        folded=True,
    )


def label_section(probe: Probe) -> Section:
    return Section(
        "Do hidden states predict the label of a document?",
        "Accuracy: the share of documents whose label a linear classifier (ridge regression to the labels, the "
        "largest counts) guesses from the mean state at words, in documents that it was not fitted to. Macro F1: "
        "the mean over labels of 2 hits / (documents of the label + guesses of it). 95%: bootstrap over documents. "
        "Bag of words: the same classifier on log word counts. Most common label: the accuracy of always guessing "
        "it. The largest of many layers is large by chance too. So 'layer chosen' takes for every fifth of the "
        "documents the layer that does best on the others. Random weights: the same architecture, untrained.",
        figures=label_figures(probe.labels),
        tables=[label_table(probe.labels)],
    )


def label_figures(rows: Sequence[LabelRow]) -> list[Figure]:
    return [
        Figure(
            f"probe-labels-{place}",
            f"{part}: labels from the mean state",
            "Curves over layers: accuracy and macro F1 of the label, trained and random weights.",
            [
                layer_panel(
                    "accuracy",
                    curves_by_layer([(row, row.accuracy, row.interval) for row in mine]),
                    "accuracy",
                    [(mine[0].bag_of_words, "bag of words"), (mine[0].majority, "most common label")],
                ),
                layer_panel(
                    "macro F1",
                    curves_by_layer([(row, row.macro_f1, row.macro_f1_interval) for row in mine]),
                    "macro F1",
                    [(mine[0].bag_of_words_macro_f1, "bag of words")],
                ),
            ],
        )
        for place, (part, mine) in enumerate(by_part(rows), start=1)
    ]


def label_table(rows: Sequence[LabelRow]) -> TableData:
    fresh = {
        (row.model, row.part, row.layer): accuracy_text(row.accuracy, row.interval)
        for row in rows
        if row.variant == "random"
    }
    return TableData(
        "Labels from hidden states by layer",
        [
            *("model", "layer", "accuracy (95%)", "macro F1 (95%)"),
            *("random weights (95%)", "bag of words (95%)", "most common label", "layer chosen"),
        ],
        [
            [
                short(row.model),
                f"{row.part} {row.layer}",
                accuracy_text(row.accuracy, row.interval),
                accuracy_text(row.macro_f1, row.macro_f1_interval),
                fresh.get((row.model, row.part, row.layer), "-"),
                accuracy_text(row.bag_of_words, row.bag_of_words_interval),
                f"{row.majority:.2f}",
                f"{row.chosen_folds} of {FOLDS}",
            ]
            for row in rows
            if row.variant == "trained"
        ],
    )
