"""Figure 3, Tables 1, 2 and 5, and pipeline: embeddings and attention of language models, yours or small ones."""

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from topicscope import language, pages, pretraining
from topicscope.ground import one_thread
from topicscope.measure import Effect
from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, cell, verdict
from topicscope.paper.made_up import (
    DECODED,
    DOCUMENTS,
    GROUP,
    LENGTH,
    build_tokenizer,
    probe_small,
    sample_texts,
    small_models,
    word_lists,
)

# Of Tables 1 and 5, where a model or a text is missing.
PAPER_RATIOS = "same topic above different topic for Bert, Albert, Bart, Electra, Roberta"
MADE_UP = "(made-up texts)"
STAND_INS = (
    "Without --model and --corpus: five small models of these architectures, trained on made-up texts with known "
    "topics; there is one threshold, at which each topic has all of its words, and the decoder's attention of BART is "
    "judged."
)
SMALL_DIFFERS = (
    "these are small models on made-up texts (known topics, one topic per sentence), the paper's are large ones on "
    "Wikipedia (fitted topics); --model and --corpus measure large ones"
)


@dataclass(frozen=True)
class Probed:
    probe: language.Probe
    config: dict[str, Any]
    known: bool = False  # the topics: there is one threshold

    @property
    def differs(self) -> str:
        if self.known:
            return ""
        return "models and texts are those that were given; topics, documents and thresholds need not be the paper's"


def measure_models(context: Context, words: int | None = None, **settings: Any) -> Probed:
    """The user's models on the user's text; else the small ones, `words` of each known topic (None: all)."""
    if not context.models:
        small = small_models(context)
        config = {"models": [model.name for model in small.models], "corpus": [MADE_UP], "losses": small.losses}
        return Probed(probe_small(context, words, **settings), config, known=True)
    wanted = language.ProbeConfig(
        context.models,
        context.corpus,
        documents=context.pick(250, 1000),
        seed=context.seed,
        device="cpu",
        ablation=False,
        **settings,
    )
    return Probed(language.probe(wanted), {"models": list(context.models), "corpus": list(context.corpus)})


def ratio_number(paper: tuple[float, float]) -> Number:
    return Number(
        "attention ratio",
        "attention of words to other words of their topic over that to words of other topics (a ratio of means), mean "
        "over models, at the smallest threshold; the paper's range is that of its five models",
        paper,
        SMALL_DIFFERS,
    )


def attention_ratio(effect: Effect | None) -> float:
    return math.nan if effect is None or effect.ratio is None else effect.ratio


def known(value: float) -> float | None:
    return None if math.isnan(value) else value


def above_zero(effect: Effect | None) -> bool:
    return effect is not None and effect.interval is not None and effect.interval[0] > 0


def p_value(effect: Effect | None) -> float:
    return math.nan if effect is None or effect.p_value is None else effect.p_value


def judge_ratios(found: Probed, kind: str, judged: tuple[str, ...]) -> Outcome:
    rows, models = found.probe.rows, found.config["models"]
    decoded = [{"attention": row.parts.get(DECODED, row.attention)} if found.known else {} for row in rows]
    effects = [(row, row.effects | own) for row, own in zip(rows, decoded, strict=True)]
    trained, fresh = ([pair for pair in effects if pair[0].variant == variant] for variant in ("trained", "random"))
    weak = [
        f"{name} of {language.short(row.model)} at {row.threshold:g}"
        for row, here in trained
        for name in judged
        if not above_zero(here[name]) or (found.known and not p_value(here[name]) <= 0.05)
    ]
    ratios = [[attention_ratio(here["attention"]) for row, here in trained if row.model == model] for model in models]
    falls = found.known or all(here and here[0] > here[-1] for here in ratios)
    course = "falls" if falls else "does not fall"
    silent = all(abs(attention_ratio(here["attention"]) - 1) < 0.01 for _, here in fresh)
    measures = [name for name in pages.MAIN_MEASURES if name in judged or not found.known]

    def text(name: str, effect: Effect | None) -> str:
        if not found.known:
            return language.ratio_text(effect)
        return f"{name} -" if effect is None else f"{name} {effect.same:.3g} against {effect.different:.3g}"

    measured = [
        f"{language.short(row.model)} {row.threshold:g}: "
        + (", " if found.known else " ").join(text(name, here[name]) for name in measures)
        for row, here in trained
    ]
    encoders = [
        f"{language.short(row.model)} {language.ratio_text(row.attention)}"
        for row, _ in trained
        if found.known and DECODED in row.parts
    ]
    return Outcome(
        paper="ratios of cosine, dot product and attention, at the three thresholds: "
        + "; ".join(f"{language.short(model)}: {pages.family(model, kind)}" for model in models),
        theory="-",
        measured=("same-topic against different-topic mean" if found.known else "ratios of cosine, dot, attention")
        + f", by model and threshold: {'; '.join(measured)}",
        verdict=verdict(not weak, falls, silent),
        reason=(f"no effect: {', '.join(weak)}" if weak else "every effect has a 95% interval above zero")
        + (" and is beyond shuffled topics" if found.known and not weak else "")
        + ("" if found.known else f"; the attention ratio {course} from the smallest threshold to the largest")
        + f"; with random weights attention shows {'none' if silent else 'an effect'}"
        + (f"; shown, not judged: attention ratio of the encoder: {', '.join(encoders)}" if encoders else ""),
        figures=[pages.ratio_figure(rows), *pages.head_figures(found.probe.heads)],
        tables=[pages.ratio_table(rows), pages.difference_table(rows), pages.head_table(found.probe.heads)],
        numbers={"rows": [row.as_dict() for row in rows]},
        config=found.config,
        ours=known(float(np.mean([here[0] if here else math.nan for here in ratios]))),
        differs=found.differs,
    )


TABLE1 = Experiment(
    id="table1",
    claim="In language models two words of the same topic have more similar embeddings, and attend to each other more, "
    "than words of different topics (one topic per word).",
    rule="For every model and threshold the same-topic minus different-topic means of cosine, dot product and "
    "attention have 95% intervals above zero; for every model the attention ratio is larger at the smallest threshold "
    f"than at the largest; with random weights the attention ratio is within .01 of 1. {STAND_INS} Then at most 5% of "
    "the shuffled topics may show as large an effect.",
    measure=partial(measure_models, topics_per_word=("one",), cooccurrence=False),
    judge=partial(judge_ratios, kind="one", judged=("cosine", "dot", "attention")),
    seconds=40,
    number=ratio_number((1.32, 2.14)),
    takes=("models", "corpus"),
    group=GROUP,
    paper=PAPER_RATIOS,
    uses=LANGUAGE,
)


# Words per known topic: it has as many pairs as fixed pairs of the made-up texts are among the commonest.
LIKELIEST_PAIRS = 7

PAPER_PAIRS = (
    "same-topic against co-occurring pairs of Bert at three thresholds: cosine .468 .461 .425 against .316 .311 .323; "
    "attention .00659 .00621 .00597 against .00751 .00695 .00677"
)


def judge_pairs(found: Probed) -> Outcome:
    rows = found.probe.cooccurrence
    nearer = [margin is not None and margin[0] > 0 for margin in (row.cosine.margin_interval for row in rows)]
    means = [(row.cosine.same_topic, row.cosine.cooccurring) for row in rows]
    gaps = [topic - pairs for topic, pairs in means if topic is not None and pairs is not None]
    return Outcome(
        paper=PAPER_PAIRS,
        theory="-",
        measured="mean cosine of same-topic against co-occurring pairs, by model and threshold: "
        + "; ".join(
            f"{language.short(row.model)} {row.threshold:g}: {cell(topic)} against {cell(pairs)}"
            for row, (topic, pairs) in zip(rows, means, strict=True)
        ),
        verdict=verdict(*nearer),
        reason="the mean cosine of same-topic pairs is above that of the pairs that co-occur most (95%) "
        f"in {sum(nearer)} of {len(rows)} rows",
        tables=[pages.cooccurrence_table(rows)],
        numbers={"rows": [asdict(row) for row in rows]},
        config=found.config,
        ours=float(np.mean(gaps)) if gaps else None,
        differs=found.differs,
    )


TABLE2 = Experiment(
    id="table2",
    claim="Embeddings encode topics beyond co-occurrence: pairs of words of one topic are more similar than the pairs "
    "that co-occur most.",
    rule="For every model and threshold the mean cosine of same-topic pairs minus that of the pairs that co-occur most "
    "has a 95% interval above zero. Without --model and --corpus: five small models, trained on made-up texts with "
    "known topics, in which some pairs of words of different topics often stand together; the "
    f"{LIKELIEST_PAIRS} likeliest words of each topic.",
    measure=partial(measure_models, words=LIKELIEST_PAIRS, random=False, shuffles=0, matched=False),
    judge=judge_pairs,
    seconds=2,
    number=Number(
        "cosine, topic - pairs",
        "mean cosine of the embeddings of two words of the same topic minus that of the pairs that co-occur most, "
        "mean over models and thresholds",
        (0.102, 0.152),
        SMALL_DIFFERS,
    ),
    takes=("models", "corpus"),
    group=GROUP,
    paper=PAPER_PAIRS,
    uses=LANGUAGE,
)


TABLE5 = Experiment(
    id="table5",
    claim="With several topics per word, words that share a topic still attend to each other more than words that "
    "share none.",
    rule="For every model and threshold the same-topic minus different-topic mean of attention has a 95% interval "
    "above zero; for every model the attention ratio is larger at the smallest threshold than at the largest; with "
    f"random weights it is within .01 of 1. {STAND_INS} Then at most 5% of the shuffled topics may show as large an "
    "effect.",
    measure=partial(measure_models, topics_per_word=("many",), cooccurrence=False),
    judge=partial(judge_ratios, kind="many", judged=("attention",)),
    seconds=6,
    number=ratio_number((1.19, 1.70)),
    takes=("models", "corpus"),
    group=GROUP,
    paper=PAPER_RATIOS,
    uses=LANGUAGE,
)


GROUPS = [["frog", "toad", "lizard"], ["mozart", "beethoven", "schubert"], ["algebra", "arithmetic", "calculus"]]
# Of the made-up texts: three topics, of which the likeliest words are compared.
KNOWN_TOPICS, LIKELIEST = ("kitchen", "music", "law"), 3
# Words of a group that have to be one token each: else its vectors are means of pieces that other words share.
WHOLE = 2
PAPER_MAP = "blocks of three words each (Bert)"


@dataclass(frozen=True)
class WordMaps:
    maps: dict[str, language.WordMap]
    random: dict[str, language.WordMap]


def measure_words(context: Context) -> WordMaps:
    if context.models:
        return WordMaps({model: language.word_map(language.load_model(model), GROUPS) for model in context.models}, {})
    small = small_models(context)
    words, names = small.made_up.words, small.made_up.names
    size = len(words) // len(names)
    groups = [list(words[k * size : k * size + LIKELIEST]) for k in map(names.index, KNOWN_TOPICS)]
    return WordMaps(
        {model.name: language.word_map(model, groups) for model in small.models},
        {model.name: language.word_map(model.random(context.seed), groups) for model in small.models},
    )


def whole_means(words: language.WordMap) -> tuple[float, float]:
    """Mean cosine inside groups and between them, of the words that are one token; NaN where a group has too few."""
    at = np.flatnonzero(np.array(words.pieces) == 1)
    groups = [words.groups[i] for i in at]
    if any(groups.count(group) < WHOLE for group in set(words.groups)):
        return math.nan, math.nan
    names = tuple(words.words[i] for i in at)
    cosine = words.cosine[np.ix_(at, at)]
    return replace(words, words=names, groups=tuple(groups), pieces=(1,) * len(at), cosine=cosine).means()


def judge_words(found: WordMaps) -> Outcome:
    means = {model: whole_means(words) for model, words in found.maps.items()}
    gaps = {model: same - different for model, (same, different) in means.items()}
    fresh = {model: same - different for model, (same, different) in ((m, w.means()) for m, w in found.random.items())}
    open_ = [model for model, gap in gaps.items() if math.isnan(gap)]
    wrong = [model for model, gap in gaps.items() if gap <= max(0.0, fresh.get(model, 0.0))]
    pieces = {model: [w for w, n in zip(m.words, m.pieces, strict=True) if n > 1] for model, m in found.maps.items()}
    return Outcome(
        paper=PAPER_MAP,
        theory="-",
        measured="mean cosine of two words that are one token each: "
        + "; ".join(
            f"{language.short(model)}: inside a group {cell(same)}, between groups {cell(different)}"
            for model, (same, different) in means.items()
        ),
        verdict=verdict(not wrong, None if open_ else True),
        reason=words_reason(found, open_, wrong, pieces),
        figures=[
            Figure(
                "figure3",
                "Cosine of word embeddings",
                "Heat maps of cosines between nine words of three topics; *: mean over the pieces of the word.",
                [
                    *(panel for words in found.maps.values() for panel in pages.word_figure(words).panels),
                    *(
                        replace(panel, title=f"{panel.title}, random weights")
                        for words in found.random.values()
                        for panel in pages.word_figure(words).panels
                    ),
                ],
            )
        ],
        tables=[
            TableData(
                "Mean cosine of two words",
                [
                    *("model", "inside groups", "between groups", "inside, whole tokens", "between, whole tokens"),
                    *("words of one token", "inside minus between, random weights"),
                ],
                [
                    [
                        language.short(model),
                        *(f"{value:.3f}" for value in words.means()),
                        *("-" if math.isnan(value) else f"{value:.3f}" for value in means[model]),
                        f"{len(words.words) - len(pieces[model])} of {len(words.words)}",
                        cell(fresh.get(model)),
                    ]
                    for model, words in found.maps.items()
                ],
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


def words_reason(found: WordMaps, open_: list[str], wrong: list[str], pieces: dict[str, list[str]]) -> str:
    above = "the mean cosine inside groups is {}above that between groups"
    shown = [above.format("")] if not wrong and len(open_) < len(found.maps) else []
    but = ", or the difference not above that of random weights," if found.random else ""
    failed = [f"{above.format('not ')}{but} for {', '.join(map(language.short, wrong))}"] if wrong else []
    silent = [
        f"{language.short(model)} decides nothing: its tokenizer splits {len(pieces[model])} of "
        f"{len(found.maps[model].words)} words into pieces ({', '.join(pieces[model])}), and means of pieces say little"
        for model in open_
    ]
    advice = (
        f"a model whose tokenizer has {WHOLE} words of each group as one token would decide (the paper took "
        "bert-base-uncased); for other words: topicscope words"
    )
    return "; ".join([*shown, *failed, *silent, *([advice] if open_ else [])])


FIGURE3 = Experiment(
    id="figure3",
    claim="Words of the same topic have similar embeddings (nine words of three topics).",
    rule="Three words of one topic form a group. For every model the mean cosine of two words of the same group is "
    "above that of two words of different groups, over the words that are one token of its tokenizer. A model with "
    f"fewer than {WHOLE} such words in a group decides nothing; the verdict is then 'undecided' unless another model "
    f"fails. Without --model: five small models, trained on made-up texts, and the {LIKELIEST} likeliest words of each "
    "of three of their topics; the difference must be above that of random weights too.",
    measure=measure_words,
    judge=judge_words,
    seconds=2,
    number=Number(
        "cosine, inside-between",
        "mean cosine of the embeddings of two words of one group minus that of words of two groups, for words of one "
        "token, mean over models; the paper prints a map and no number",
    ),
    takes=("models",),
    group=GROUP,
    paper=PAPER_MAP,
    uses=LANGUAGE,
)


# The usual masking: 15% of the words are predicted, of which 80% show [MASK] and 10% a random word.
BERT_SETTINGS = {
    "text": {"corpus": ["(texts from word lists)"]},
    "length": LENGTH + 3,  # a row is one document, between the special tokens
    "batch_size": 48,
    "micro_batch": 48,
    "snapshots": "none",
    "checkpoint_every": None,
    "held_out": {"share": 0.0},
    "model": {"layers": 2, "heads": 4, "dim": 64, "feedforward": 128, "dropout": 0.0, "init_scale": "usual"},
    "optimizer": {"lr": 0.003, "clip": None},
    "device": "cpu",
}


@dataclass(frozen=True)
class ProbedBert:
    """The probe of the small BERT and its losses in training; the share of words in their true topic, of `topics`."""

    probe: language.Probe
    accuracy: float
    losses: list[float]
    topics: int


def train_bert(tokenizer: Any, texts: list[str], steps: int, seed: int) -> tuple[Any, list[float]]:
    run = pretraining.pretrain(
        pretraining.PretrainConfig.of(BERT_SETTINGS, steps=steps, seed=seed), texts=texts, tokenizer=tokenizer
    )
    return run.model.base_model, run.metrics["loss"][:steps].tolist()


def matching(fitted: language.Assignment, lists: dict[str, list[str]]) -> tuple[float, list[str]]:
    """Share of words in the right fitted topic, and the topics' true names; matched one to one for the best share."""
    from scipy.optimize import linear_sum_assignment

    true = {word: k for k, topic in enumerate(lists.values()) for word in topic}
    table = np.zeros((len(fitted.names), len(lists)))
    for word, topic in zip(fitted.membership.word, fitted.membership.topic, strict=True):
        table[topic, true[fitted.words[word]]] += 1
    rows, columns = linear_sum_assignment(-table)  # the rows are sorted
    return float(table[rows, columns].sum() / len(true)), [list(lists)[k] for k in columns]


def measure_pipeline(context: Context) -> ProbedBert:
    lists = word_lists()
    texts, tokenizer = sample_texts(lists, context.seed), build_tokenizer(lists)
    threshold = (len(next(iter(lists.values()))) + 0.5) / len(tokenizer)
    with one_thread():
        model, losses = train_bert(tokenizer, texts, context.pick(900, 2500), context.seed)
        words = language.whole_words(tokenizer)
        topics = language.fit_topics(
            texts, words, len(lists), iterations=50, restarts=12, stability=False, seed=context.seed
        )
        accuracy, names = matching(language.assign(topics, threshold), lists)
        probe = language.probe_model(
            language.checked("small BERT", model, tokenizer),
            texts[:150],
            language.assign(topics, threshold, names=tuple(names)),
            language.Measurement(seed=context.seed, ablation=False),
        )
    return ProbedBert(probe, accuracy, losses, len(lists))


def judge_pipeline(found: ProbedBert) -> Outcome:
    rows, heads = found.probe.rows, found.probe.heads
    trained, fresh = rows
    effects = {name: trained.effects[name] for name in pages.MAIN_MEASURES}
    missing = [m for m, e in effects.items() if not above_zero(e) or not p_value(e) < 0.05]
    random = None if fresh.cosine is None else fresh.cosine.interval
    silent = abs(attention_ratio(fresh.attention) - 1) < 0.01 and random is not None and random[0] <= 0 <= random[1]
    share = f"{100 * found.accuracy:.0f}%"
    both = ", ".join(f"{m} {e.same:.3g}, {e.different:.3g}" for m, e in effects.items() if e is not None)
    probed = [*pages.head_figures(heads), *pages.topic_figures(found.probe.topics)]
    return Outcome(
        paper="same-topic words are more similar and attend to each other more (Table 1)",
        theory="the topics are known, so that fit and probe must find them",
        measured=f"{share} of the words are in their true topic; same-topic and different-topic means: {both}; "
        f"attention ratio {language.ratio_text(trained.attention)}, "
        f"random model {attention_ratio(fresh.attention):.4f}",
        verdict=verdict(found.accuracy >= 0.95, not missing, silent),
        reason=f"{share} of the words are in their true topic of {found.topics}; "
        + ("every effect is found" if not missing else f"not found: {', '.join(missing)}")
        + ("; the random model shows none" if silent else "; the random model shows an effect"),
        figures=[
            Figure(
                "pipeline-training",
                "A small BERT on texts from word lists",
                "Loss against steps.",
                [
                    Lines(
                        "training",
                        [Series("loss", np.arange(0.0, len(found.losses), 10).tolist(), found.losses[::10])],
                        "step",
                        "masked-word loss",
                    )
                ],
                columns=1,
            ),
            *(replace(figure, name=f"pipeline-{number}") for number, figure in enumerate(probed, start=1)),
        ],
        tables=[pages.ratio_table(rows), pages.difference_table(rows), pages.head_table(heads)],
        numbers={
            "accuracy": found.accuracy,
            "rows": [row.as_dict() for row in rows],
            "heads": [head.as_dict() for head in heads],
            "loss": [float(np.mean(found.losses[:20])), float(np.mean(found.losses[-50:]))],
        },
        config={"documents": DOCUMENTS, "length": LENGTH, "steps": len(found.losses), "topics": found.topics},
        ours=known(attention_ratio(trained.attention)),
    )


PIPELINE = Experiment(
    id="pipeline",
    claim="On texts with known topics pretraining, topic fit and probe work together: the fit finds the topics, a "
    "trained BERT encodes them, one with random weights does not.",
    rule="At least 95% of the words are in their true topic; for the trained model the same-topic minus "
    "different-topic means of cosine, dot product and attention have 95% intervals above zero, and less than 5% of the "
    "shuffled topics show as large an effect; with random weights the attention ratio is within .01 of 1, and the 95% "
    "interval of the cosine difference (over topics and five random models) covers zero.",
    measure=measure_pipeline,
    judge=judge_pipeline,
    seconds=60,
    beyond=True,
    number=Number(
        "attention ratio",
        "attention of words to other words of their topic over that to words of other topics (a ratio of means), of "
        "the trained model; in the paper that of five models at the smallest threshold (Table 1)",
        (1.32, 2.14),
        "a small model on texts of known topics stands for five large ones on Wikipedia with fitted topics",
    ),
    uses=LANGUAGE,
)
