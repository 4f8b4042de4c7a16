"""The rows of a probe: the effects of a model as in Table 1, its heads, its topics, the co-occurrence control."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np
from jaxtyping import Float, Int

from topicscope.language.configs import FEWEST_SHUFFLES, SIGNIFICANT
from topicscope.measure import FOLDS, UNSTORED, Effect, Interval, with_intervals

Grade = Literal["yes", "unsure", "no", "off"]


@dataclass(frozen=True)
class PairContrast:
    """Mean over pairs of one topic, and over the pairs that stand together most often (Table 2).

    Attributes:
        same_topic: Mean over pairs of one topic.
        cooccurring: Mean over pairs that stand together most often.
        interval: 95% interval of `cooccurring`.
        margin_interval: 95% interval of how much more the pairs of one topic show; both means are resampled.
        pairs: Number of pairs of words that stand together.

    Example:
        See `Measured`.
    """

    same_topic: float | None
    cooccurring: float | None
    interval: Interval | None
    margin_interval: Interval | None = None
    pairs: int = 0


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """Which model was measured, and on which words. `threshold` is None where the topics were given word by word."""

    model: str
    variant: str  # trained, or random weights
    threshold: float | None
    topics_per_word: str
    words: int
    topics: int
    embedding: str
    window: int

    def about(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ABOUT}


ABOUT = tuple(MeasuredRow.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class ProbeRow(MeasuredRow):
    """The effects of a model at one threshold. An effect is None where there are too few pairs of words.

    Attributes:
        model: Name of the model.
        variant: 'trained' or random weights.
        threshold: Share of the vocabulary that each topic keeps (theta); None where the topics were given word by word.
        topics_per_word: 'one' or 'many'.
        words: Number of words.
        topics: Number of topics.
        embedding: 'matrix' or 'layer'.
        window: Longest input, in tokens.
        embeddings: One effect per measure on word vectors: 'cosine', 'dot', ...
        attention: That of the encoder where there is one, else of the only part.
        parts: Attention of every part.
        topical: Mean over the heads that carry topics at all thresholds.

    Example:
        See `probe_model`.
    """

    embeddings: dict[str, Effect | None]
    attention: Effect | None
    parts: dict[str, Effect | None]
    topical: Effect | None = None

    @property
    def cosine(self) -> Effect | None:
        return self.embeddings["cosine"]

    @property
    def dot(self) -> Effect | None:
        return self.embeddings["dot"]

    @property
    def effects(self) -> dict[str, Effect | None]:
        """By measure: cosine, dot, attention of all heads and of the topical ones, then the others."""
        attention = {"attention": self.attention, "topical": self.topical}
        return {"cosine": self.cosine, "dot": self.dot} | attention | self.embeddings

    def as_dict(self) -> dict[str, Any]:
        whole = {**self.embeddings, "attention": self.attention, "topical": self.topical}
        return self.about() | _dicts(whole) | {"parts": _dicts(self.parts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        effects = _effects({name: data[name] for name in data if name not in (*ABOUT, "parts")})
        attention, topical = effects.pop("attention"), effects.pop("topical")
        about = {name: data[name] for name in ABOUT}
        return cls(**about, embeddings=effects, attention=attention, parts=_effects(data["parts"]), topical=topical)


@dataclass(frozen=True, kw_only=True)
class HeadRow:
    """One head of the trained model.

    Attributes:
        model: Name of the model.
        threshold: Share of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one' or 'many'.
        part: Part of the model.
        layer: From 0.
        head: From 0.
        effect: Same topic against different topic.
        corrected_p: Chance of as large a difference in any head. None: no shuffles, or not judged (see `remark`).
        remark: Why it was not judged.

    Example:
        See `probe_model`.
    """

    model: str
    threshold: float | None
    topics_per_word: str
    part: str
    layer: int
    head: int
    effect: Effect
    corrected_p: float | None = None
    remark: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in HEAD} | self.effect.as_dict(controls=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{name: data[name] for name in HEAD}, effect=Effect.from_dict(data))


HEAD = tuple(name for name in HeadRow.__dataclass_fields__ if name != "effect")


@dataclass(frozen=True, kw_only=True)
class TopicRow:
    """One topic of the trained model.

    Attributes:
        model: Name of the model.
        threshold: Share of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one' or 'many'.
        topic: Its number.
        name: Its name.
        words: Number of its words.
        cosine: Mean cosine of two of its words.
        nearest: The nearest other topic.
        nearest_cosine: Mean cosine with it.
        farthest: The farthest other topic.
        farthest_cosine: Mean cosine with it.

    Example:
        See `probe_model`.
    """

    model: str
    threshold: float | None
    topics_per_word: str
    topic: int
    name: str
    words: int
    cosine: float
    nearest: str | None
    nearest_cosine: float | None
    farthest: str | None
    farthest_cosine: float | None


@dataclass(frozen=True, kw_only=True)
class CooccurrenceRow(MeasuredRow):
    """Table 2: pairs of one topic against as many pairs that stand together most often.

    Attributes:
        model: Name of the model.
        variant: 'trained' or random weights.
        threshold: Share of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one' or 'many'.
        words: Number of words.
        topics: Number of topics.
        embedding: 'matrix' or 'layer'.
        window: Longest input, in tokens.
        pairs: Number of pairs.
        of_one_topic: How many of the pairs that stand together have both words in one topic; None: an older probe.
        cosine: Cosines of both kinds of pairs.
        attention: Attention of both kinds of pairs.
        topical: The same in the heads that carry topics.
        commonest: The first pairs of words, the commonest first.

    Example:
        See `probe_model`.
    """

    pairs: int
    cosine: PairContrast
    attention: PairContrast
    topical: PairContrast | None = None
    commonest: list[list[str]] = field(default_factory=list)
    of_one_topic: int | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        contrasts = {
            name: None if data[name] is None else PairContrast(**with_intervals(data[name]))
            for name in ("cosine", "attention", "topical")
        }
        return cls(**{**data, **contrasts})


def topical_heads(heads: Sequence[HeadRow], part: str) -> list[HeadRow]:
    """Heads of a part with more same-topic attention than chance gives to any head, at every threshold.

    They are taken from the first threshold.
    """
    settings = list(dict.fromkeys((head.threshold, head.topics_per_word) for head in heads))
    passed = Counter(
        place(head)
        for head in heads
        if head.part == part and head.corrected_p is not None and head.corrected_p <= SIGNIFICANT
    )
    here = [head for head in heads if (head.threshold, head.topics_per_word) == settings[0]]
    return [head for head in here if passed[place(head)] == len(settings)]


def place(head: HeadRow) -> tuple[str, int, int]:
    return head.part, head.layer, head.head


def _dicts(effects: Mapping[str, Effect | None]) -> dict[str, dict[str, Any] | None]:
    return {name: None if effect is None else effect.as_dict() for name, effect in effects.items()}


def _effects(data: Mapping[str, Any]) -> dict[str, Effect | None]:
    return {name: None if effect is None else Effect.from_dict(effect) for name, effect in data.items()}


def short(model: str) -> str:
    """The last part of a model's name.

    Args:
        model: Folder or hub id.

    Returns:
        The short name.

    Example:
        >>> short("google-bert/bert-base-uncased"), short("runs/model/")
        ('bert-base-uncased', 'model')
    """
    return model.rstrip("/").rsplit("/", 1)[-1]


def interval_text(interval: Interval | None) -> str:
    """An interval, for tables.

    Args:
        interval: Its ends, or None.

    Returns:
        The text.

    Example:
        >>> interval_text((0.12345, 2.0)), interval_text(None)
        ('[0.1235, 2]', '-')
    """
    return "-" if interval is None else f"[{interval[0]:.4g}, {interval[1]:.4g}]"


def ratio_text(effect: Effect | None) -> str:
    """The ratio of an effect with its interval, for tables; 'undefined' where its denominator may be zero.

    Args:
        effect: The effect, or None.

    Returns:
        The text.

    Example:
        >>> twice = Effect(same=0.2, different=0.1, difference=0.1, ratio=2.0, interval=None, ratio_interval=(1.5, 2.5))
        >>> ratio_text(twice), ratio_text(Effect(same=0.2, different=0.0, difference=0.2, ratio=None, interval=None))
        ('2 [1.5, 2.5]', 'undefined')
    """
    if effect is None:
        return "-"
    return "undefined" if effect.ratio is None else f"{effect.ratio:.4g} {interval_text(effect.ratio_interval)}"


PLACES = ("topic words", "other words")
LOSS_WORTH = 0.01  # of the loss: the smallest rise worth naming
DRAWS = FEWEST_SHUFFLES  # sets of random heads: the topical one is the largest in 5% of models by chance
FEWEST_POSITIONS = 50  # with fewer there is no answer
DOCUMENTS, MOST_DOCUMENTS = 50, 1000  # that are predicted: a fifth of them, but within these
LENGTH = 128  # tokens at the start of each of them
PASSES = 21  # over these documents: where there are fewer draws, more words are masked


@dataclass(frozen=True, kw_only=True)
class AblationRow:
    """Rise of the mean loss (nats) at one kind of position where heads put out their mean. None: not measured.

    Attributes:
        model: Name of the model.
        heads: Number of topical heads, and of heads in each random draw.
        draws: Number of random sets of heads.
        at: 'topic words' or 'other words'.
        positions: Number of positions.
        documents: Number of documents.
        loss: Loss of the whole model.
        topical_rise: Rise without the topical heads.
        topical_interval: Its 95% interval.
        random_rise: Mean rise over the random draws.
        random_interval: 95% interval of one draw.
        difference: `topical_rise` less `random_rise`.
        interval: 95% interval of the difference from one draw.
        mean_interval: 95% interval of the difference from the mean over draws.
        answer: 'yes', 'unsure', 'no' or 'off'.
        why: The reason, in words.
        remark: How heads were drawn.
        which: The topical heads, as layer.head.

    Example:
        See `ablate`.
    """

    model: str
    heads: int
    draws: int
    at: str
    positions: int = 0
    documents: int = 0
    loss: float | None = None
    topical_rise: float | None = None
    topical_interval: Interval | None = None
    random_rise: float | None = None
    random_interval: Interval | None = None
    difference: float | None = None
    interval: Interval | None = None
    mean_interval: Interval | None = None
    answer: Grade = "off"
    why: str = ""
    remark: str = ""
    which: str = ""

    as_dict = asdict

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**with_intervals(data))


def ablated_documents(documents: int) -> int:
    """How many of the documents are predicted."""
    return min(documents, max(DOCUMENTS, min(documents // 5, MOST_DOCUMENTS)))


def ablation_sentences(rows: Sequence[AblationRow]) -> Iterator[str]:
    """One for each model: the answer at topic words, with the rise at other words beside it."""
    for model in dict.fromkeys(row.model for row in rows):
        at = {row.at: row for row in rows if row.model == model}
        row, other = at[PLACES[0]], at[PLACES[1]]
        name = f"{short(model)}: use of topical heads: {row.answer}."
        if row.topical_rise is None:
            yield f"{name} {row.why[:1].upper()}{row.why[1:]}."
            continue
        heads = f"{'the topical head' if row.heads == 1 else f'{row.heads} topical heads'} ({row.which} as layer.head)"
        beside = "" if other.topical_rise is None else f" At other words: {rises_text(other)}."
        why = f" Reason: {row.why}." if row.why else " They matter more than random heads."
        yield (
            f"{name} Rise of the loss at topic words ({row.loss:.3g} nats, {row.positions} words in {row.documents} "
            f"documents) without {heads}, and without as many random ones of the same layers ({sets_text(row.draws)}): "
            f"{rises_text(row)}.{beside}{why}{f' Note: {row.remark}.' if row.remark else ''}"
        )


def sets_text(count: int) -> str:
    return "1 set" if count == 1 else f"{count} sets"


def rises_text(row: AblationRow) -> str:
    topical = f"{row.topical_rise:.2g} {interval_text(row.topical_interval)}"
    return f"{topical} and {row.random_rise:.2g} {interval_text(row.random_interval)}"


TREATMENTS = ("raw", "centred", "all_but_top")  # as they are; less the mean state; less the main directions too
HALVES = 2  # of the documents, whose states are compared with each other
SPOTS = 4  # places of a document whose single states are kept: after a quarter of the words of its first window, ...
MOST_WORDS, WORD_BYTES = 2000, 2**29  # of the sums by word
MOST_DOCUMENTS, DOCUMENT_BYTES = 1000, 2**28  # of the states by document


@dataclass(frozen=True)
class CooccurringMean:
    """Mean cosine of the states of words that stand together most often.

    Attributes:
        mean: The mean.
        interval: Its 95% interval.
        pairs: Number of pairs of words.
        margin_interval: 95% interval of the mean of pairs of one topic minus this mean.

    Example:
        >>> often = CooccurringMean(mean=0.2, interval=(0.1, 0.3), pairs=40, margin_interval=(0.02, 0.12))
        >>> often.margin_interval[0] > 0  # pairs of one topic show more, so co-occurrence does not explain it
        True
    """

    mean: float
    interval: Interval | None
    pairs: int
    margin_interval: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class MixtureScore:
    """R^2 of a linear (ridge) map from states to the topic mixture of the document, cross-validated over documents.

    Attributes:
        mixture_r2: From the mean state.
        mixture_interval: Its 95% interval.
        bag_of_words_r2: From the bag of words, for the same documents and mixtures.
        bag_of_words_interval: Its 95% interval.
        half_document_r2: R^2 of the mixture of half of the words, as it is.
        half_document_interval: Its 95% interval.
        shuffled_r2: Mean where mixtures are shuffled among documents.
        documents: Number of documents.
        by_position: From the single state after a part of the words of the first window: '1/4', ...

    Example:
        See `probe_model`.
    """

    mixture_r2: float | None
    mixture_interval: Interval | None
    bag_of_words_r2: float | None
    bag_of_words_interval: Interval | None
    half_document_r2: float | None
    half_document_interval: Interval | None
    shuffled_r2: float | None
    documents: int
    by_position: dict[str, float | None] = field(default_factory=dict)


MIXTURE = tuple(part.name for part in fields(MixtureScore))
EFFECT = tuple(part.name for part in fields(Effect) if part.name not in (*UNSTORED, "same_word"))


@dataclass(frozen=True, kw_only=True)
class StateRow:
    """One layer of one part of a model at one threshold. Layer 0 is the embedding layer's output.

    Effects are of the cosine of states of two different words in different documents, mean over pairs of words.

    Attributes:
        model: Name of the model.
        variant: 'trained' or random weights.
        threshold: Share of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one' or 'many'.
        part: Part of the model.
        layer: From 0.
        words: Number of words that are compared: those that both halves of the documents have.
        effects: By treatment: 'raw' states, 'centred' (less the layer's mean state) and 'all_but_top' (less the
            directions of most variance too); None where there are too few pairs.
        cooccurring: The pairs that stand together most often, by treatment.
        mixture: The same at every threshold; None where there are too few documents.

    Example:
        See `probe_model`.
    """

    model: str
    variant: str
    threshold: float | None
    topics_per_word: str
    part: str
    layer: int
    words: int
    effects: dict[str, Effect | None]
    cooccurring: dict[str, CooccurringMean]
    mixture: MixtureScore | None

    @property
    def raw(self) -> Effect | None:
        return self.effects["raw"]

    def as_dict(self) -> dict[str, Any]:
        """The raw effect and the mixture stand beside the layer, the other treatments below their names."""
        effects = {name: None if e is None else _without_same_word(e) for name, e in self.effects.items()}
        return (
            {name: getattr(self, name) for name in LAYER}
            | (effects.pop("raw") or dict.fromkeys(EFFECT))
            | effects
            | {"cooccurring": {name: asdict(mean) for name, mean in self.cooccurring.items()}}
            | (asdict(self.mixture) if self.mixture else {**dict.fromkeys(MIXTURE), "documents": 0, "by_position": {}})
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        raw = None if data["same"] is None else Effect.from_dict(data)
        known = {*LAYER, *EFFECT, *MIXTURE, "cooccurring"}
        others = {
            name: None if data[name] is None else Effect.from_dict(data[name]) for name in data if name not in known
        }
        means = {name: CooccurringMean(**with_intervals(mean)) for name, mean in data["cooccurring"].items()}
        mixture = MixtureScore(**with_intervals({name: data[name] for name in MIXTURE})) if data["documents"] else None
        return cls(
            **{name: data[name] for name in LAYER}, effects={"raw": raw, **others}, cooccurring=means, mixture=mixture
        )


LAYER = tuple(part.name for part in fields(StateRow) if part.name not in ("effects", "cooccurring", "mixture"))


def _without_same_word(effect: Effect) -> dict[str, Any]:
    return {name: value for name, value in effect.as_dict().items() if name in EFFECT}


@dataclass(frozen=True, kw_only=True)
class LabelRow:
    """The label of a document from its mean state in one layer, by ridge regression, in documents held out of the fit.

    `chosen_*` are of the model as a whole: every fold takes the layer that does best on the other folds. So they are
    fair where the largest accuracy of all layers is not.

    Attributes:
        model: Name of the model.
        variant: 'trained' or random weights.
        part: Part of the model.
        layer: From 0, the embedding layer's output.
        documents: Number of documents.
        classes: Number of labels.
        accuracy: Share of documents whose label is right.
        interval: Its 95% interval.
        macro_f1: Mean F1 over labels.
        macro_f1_interval: Its 95% interval.
        majority: Share of the most common label.
        bag_of_words: Accuracy of the same classifier on log word counts.
        bag_of_words_interval: Its 95% interval.
        bag_of_words_macro_f1: Its mean F1.
        chosen_accuracy: Accuracy of the model as a whole.
        chosen_interval: Its 95% interval.
        chosen_macro_f1: Its mean F1.
        chosen_folds: Number of folds that took this layer.

    Example:
        See `accuracy_text`.
    """

    model: str
    variant: str
    part: str
    layer: int
    documents: int
    classes: int
    accuracy: float
    interval: Interval | None
    macro_f1: float
    macro_f1_interval: Interval | None
    majority: float
    bag_of_words: float
    bag_of_words_interval: Interval | None
    bag_of_words_macro_f1: float
    chosen_accuracy: float
    chosen_interval: Interval | None
    chosen_macro_f1: float
    chosen_folds: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**with_intervals(data))


def label_answer(rows: Sequence[LabelRow]) -> dict[str, Any]:
    """The answer for the first model, with the layer that most folds choose; and `rows`, of all models and layers."""
    mine = [row for row in rows if (row.model, row.variant) == (rows[0].model, "trained")]
    if not mine:
        return {}
    first, most = mine[0], max(mine, key=lambda row: row.chosen_folds)
    return {
        "model": first.model,
        "part": most.part,
        "layer": most.layer,
        "accuracy": first.chosen_accuracy,
        "interval": first.chosen_interval,
        "macro_f1": first.chosen_macro_f1,
        "majority": first.majority,
        "bag_of_words": first.bag_of_words,
        "rows": [row.as_dict() for row in rows],
    }


def label_sentences(rows: Sequence[LabelRow]) -> list[str]:
    """One for each model: the accuracy with the layer chosen inside the folds, beside what it is compared with."""
    sentences = []
    for model in dict.fromkeys(row.model for row in rows):
        mine = [row for row in rows if (row.model, row.variant) == (model, "trained")]
        fresh = [row for row in rows if (row.model, row.variant) == (model, "random")]
        if not mine:
            continue
        first, most = mine[0], max(mine, key=lambda row: row.chosen_folds)
        untrained = (
            f"; fresh weights {accuracy_text(fresh[0].chosen_accuracy, fresh[0].chosen_interval)}" if fresh else ""
        )
        sentences.append(
            f"{short(model)}, labels from hidden states: accuracy "
            f"{accuracy_text(first.chosen_accuracy, first.chosen_interval)}, macro F1 {first.chosen_macro_f1:.2f}; "
            f"bag of words {accuracy_text(first.bag_of_words, first.bag_of_words_interval)}; "
            f"most common label {first.majority:.2f}{untrained} ({first.classes} labels, {first.documents} documents; "
            f"the layer is chosen on the training folds, {most.part} {most.layer} in {most.chosen_folds} of "
            f"{FOLDS}). {what_it_shows(first, fresh[0] if fresh else None)}"
        )
    return sentences


def what_it_shows(ours: LabelRow, fresh: LabelRow | None) -> str:
    """Whether states tell more than what they are compared with; an interval has to lie above it."""
    compared = {"the most common label": ours.majority, "words alone": ours.bag_of_words}
    if fresh is not None:
        compared["fresh weights"] = fresh.chosen_accuracy
    low = -1.0 if ours.chosen_interval is None else ours.chosen_interval[0]
    below = [name for name, accuracy in compared.items() if low <= accuracy]
    return f"Not clearly more than {' or '.join(below)}." if below else f"More than {' and '.join(compared)}."


def accuracy_text(accuracy: float, interval: Interval | None) -> str:
    """An accuracy with its interval, for tables.

    Args:
        accuracy: From 0 to 1.
        interval: Its 95% interval, or None.

    Returns:
        The text.

    Example:
        >>> of = {"model": "bert", "variant": "trained", "part": "encoder", "layer": 1, "documents": 200, "classes": 4}
        >>> of |= {"accuracy": 0.91, "interval": (0.85, 0.95), "macro_f1": 0.9, "macro_f1_interval": (0.84, 0.94)}
        >>> of |= {"majority": 0.25, "bag_of_words": 0.88, "bag_of_words_interval": (0.82, 0.92)}
        >>> of |= {"bag_of_words_macro_f1": 0.87, "chosen_accuracy": 0.9, "chosen_interval": None}
        >>> row = LabelRow(**of, chosen_macro_f1=0.89, chosen_folds=5)
        >>> accuracy_text(row.accuracy, row.interval), accuracy_text(row.chosen_accuracy, row.chosen_interval)
        ('0.91 [0.85, 0.95]', '0.90 -')
    """
    return f"{accuracy:.2f} " + ("-" if interval is None else f"[{interval[0]:.2f}, {interval[1]:.2f}]")


MAIN_TOPICS = 3  # of a document that its row names
LEVELS = 255  # of a stored weight
LOSS_TOKENS, MOST_LOSSES = 128, 1000  # of a document whose loss is taken, and documents


@dataclass(frozen=True)
class TopicShare:
    """A topic of a document, with its share of the document's topic mixture.

    Attributes:
        topic: Its number.
        name: Its name.
        share: From 0 to 1.

    Example:
        >>> mixture = [TopicShare(topic=3, name="music", share=0.75), TopicShare(topic=0, name="water", share=0.25)]
        >>> ", ".join(f"{topic.name} {topic.share:.0%}" for topic in mixture)
        'music 75%, water 25%'
    """

    topic: int
    name: str
    share: float


@dataclass(frozen=True, kw_only=True)
class DocumentRow:
    """One document as the trained model reads it.

    Attention is debiased (.01 without preference) and averaged over all heads of `part`, at `threshold`.

    Attributes:
        model: Name of the model.
        document: Number in the sample, from 0.
        place: Number in the corpus, from 1; None where the caller gave the texts.
        words: Words of the whole text, between spaces.
        tokens: Tokens that the model read, without special tokens.
        topic_words: Places of words of topics among them.
        topics: The largest topics of its mixture; empty where it has no word of a topic.
        threshold: Share of the vocabulary that each topic keeps (theta).
        part: Part of the model.
        same: Attention to words of the same topic.
        different: Attention to words of other topics.
        contrast: `same` less `different`; None where the document has no such pairs.
        same_pairs: Number of pairs of the same topic.
        different_pairs: Number of pairs of different topics.
        loss: Mean over predicted tokens in its first 128 tokens, in nats; None where the model has no output head.

    Example:
        See `probe_model`.
    """

    model: str
    document: int
    place: int | None
    words: int
    tokens: int
    topic_words: int
    topics: list[TopicShare]
    threshold: float | None
    part: str
    same: float | None
    different: float | None
    contrast: float | None
    same_pairs: int
    different_pairs: int
    loss: float | None = None

    @property
    def named(self) -> str:
        """By its number in the corpus where it has one, else in the sample."""
        return str(self.document) if self.place is None else f"{self.place} of the corpus"

    def columns(self) -> dict[str, Any]:
        """For a table: each of the main topics has columns of its own."""
        row = {name: value for name, value in vars(self).items() if name != "topics"}
        for number in range(MAIN_TOPICS):
            one = self.topics[number] if number < len(self.topics) else None
            row |= {f"topic_{number + 1}": one and one.name, f"share_{number + 1}": one and one.share}
        return row

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "topics": [TopicShare(**topic) for topic in data["topics"]]})


@dataclass(frozen=True)
class Piece:
    """A word, a mark or a special token of a text.

    Attributes:
        before: What stands between it and the piece before: a space, or nothing.
        text: The piece.
        topic: Its topic, as a place in `ShownDocument.topics` from 0; None: it is no word of a topic.

    Example:
        >>> pieces = [Piece("", "A"), Piece(" ", "frog", topic=0), Piece("", ".")]
        >>> "".join(piece.before + piece.text for piece in pieces), [piece.text for piece in pieces if piece.topic == 0]
        ('A frog.', ['frog'])
    """

    before: str
    text: str
    topic: int | None = None


@dataclass(frozen=True)
class ShownTopic:
    """A topic in the legend of a shown document.

    Attributes:
        name: Its name.
        words: Its most likely words, a few.

    Example:
        >>> topic = ShownTopic("water", ["frog", "toad"])
        >>> f"{topic.name} ({', '.join(topic.words)})"
        'water (frog, toad)'
    """

    name: str
    words: list[str]


@dataclass(frozen=True)
class ShownHead:
    """Attention of one head, or the mean over a layer: from each piece to those that it attends most.

    Attributes:
        layer: From 0.
        head: From 0; None: the mean over the layer.
        topical: Whether the head carries topics.
        links: Two tables in base64, each with one row per piece and `ShownDocument.keys` columns: the pieces that it
            attends (two bytes each, the low one first), then the weights w (one byte: 255 times the square root).

    Example:
        >>> attention = np.array([[0.0, 1.0], [0.96, 0.04]])  # from each of two pieces to both
        >>> head = ShownHead(layer=0, head=1, topical=False, links=encoded_links(attention, keys=2))
        >>> to, weights = decoded_links(head.links, pieces=2, keys=2)
        >>> to.tolist(), weights.round(2).tolist()  # the largest weight first
        ([[1, 0], [0, 1]], [[1.0, 0.0], [0.96, 0.04]])
    """

    layer: int
    head: int | None
    topical: bool
    links: str


@dataclass(frozen=True, kw_only=True)
class ShownDocument:
    """A document to look at: as much of it as the model reads at once.

    Attributes:
        model: Name of the model.
        document: Number in the sample, from 0.
        why: Why it was chosen.
        pieces: Its words, marks and special tokens.
        topics: Topics in the legend.
        part: Part of the model.
        keys: Number of pieces kept per piece: those with the largest weights.
        heads: Attention by head.
        all_heads: Number of heads of the part.
        cut: Whether the text goes on.

    Example:
        See `probe_model`.
    """

    model: str
    document: int
    why: str
    pieces: list[Piece]
    topics: list[ShownTopic]
    part: str
    keys: int
    heads: list[ShownHead]
    all_heads: int
    cut: bool

    def as_dict(self) -> dict[str, Any]:
        """Pieces as short lists: there are hundreds."""
        pieces = [[piece.before, piece.text, piece.topic] for piece in self.pieces]
        return {
            **vars(self),
            "pieces": pieces,
            "topics": [asdict(one) for one in self.topics],
            "heads": [asdict(one) for one in self.heads],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """ValueError where parts do not fit together."""
        shown = cls(
            **{
                **data,
                "pieces": [Piece(*piece) for piece in data["pieces"]],
                "topics": [ShownTopic(**topic) for topic in data["topics"]],
                "heads": [ShownHead(**head) for head in data["heads"]],
            }
        )
        if any(piece.topic is not None and not 0 <= piece.topic < len(shown.topics) for piece in shown.pieces):
            raise ValueError("a piece has a topic that the document has not")
        for head in shown.heads:
            decoded_links(head.links, len(shown.pieces), shown.keys)
        return shown


def encoded_links(weights: Float[np.ndarray, "U U"], keys: int) -> str:
    """See `ShownHead`. Of equal weights the first come first."""
    order = np.argsort(-weights, 1, kind="stable")[:, :keys]
    largest = np.take_along_axis(weights, order, 1)
    levels = np.rint(LEVELS * np.sqrt(np.clip(largest, 0, 1)))
    return base64.b64encode(order.astype("<u2").tobytes() + levels.astype(np.uint8).tobytes()).decode()


def decoded_links(links: str, pieces: int, keys: int) -> tuple[Int[np.ndarray, "U k"], Float[np.ndarray, "U k"]]:
    """Numbers of pieces and weights; ValueError where they are not those of so many pieces."""
    data = base64.b64decode(links, validate=True)
    if not 0 < keys <= pieces or len(data) != 3 * pieces * keys:
        raise ValueError(f"links of {len(data)} bytes do not fit {pieces} pieces")
    order = np.frombuffer(data[: 2 * pieces * keys], "<u2").reshape(pieces, keys).astype(np.int64)
    if order.max() >= pieces:
        raise ValueError("a link leads to a piece that is not there")
    levels = np.frombuffer(data[2 * pieces * keys :], np.uint8).reshape(pieces, keys)
    return order, (levels / LEVELS) ** 2
