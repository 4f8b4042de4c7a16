"""What a probe writes, as data: a class for each kind of row. results.json and the CSV tables have their fields.

An effect, a mean or an interval is None where there is too little to measure. `threshold` (theta) is the share of the
vocabulary that each topic keeps, None where the topics were given word by word; `variant` is 'trained' or 'random'
(the same architecture with random weights); layers and heads count from 0.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from jaxtyping import Float, Int
from pydantic import model_serializer, model_validator

from topicscope.language.configs import FEWEST_SHUFFLES, SIGNIFICANT
from topicscope.measure import BareEffect, Effect, Interval, Row, interval

Grade = Literal["yes", "unsure", "no", "off"]
SettingOf = tuple[float | None, str]  # threshold and topics per word


@dataclass(frozen=True, kw_only=True)
class ModelRow(Row):
    model: str


@dataclass(frozen=True, kw_only=True)
class VariantRow(ModelRow):
    variant: str


@dataclass(frozen=True, kw_only=True)
class Setting:
    threshold: float | None
    topics_per_word: str

    @property
    def setting(self) -> SettingOf:
        return self.threshold, self.topics_per_word


# Table 1: effects by model and threshold, by head, by topic; Table 2: pairs that stand together


@dataclass(frozen=True)
class PairContrast:
    """Mean over pairs of one topic, and over the pairs of words that stand together most often (Table 2)."""

    same_topic: float | None
    cooccurring: float | None
    interval: Interval | None  # of `cooccurring`
    margin_interval: Interval | None = None  # of how much more the pairs of one topic show; both means are resampled
    pairs: int = 0  # that stand together

    @classmethod
    def of(cls, effect: Effect | None, mean: float | None, resampled: Float[np.ndarray, " R"], pairs: int) -> Self:
        """`resampled` is drawn as the means of the effect are."""
        if effect is None or effect.same_resamples is None:
            return cls(None, mean, interval(resampled), None, pairs)
        return cls(effect.same, mean, interval(resampled), interval(effect.same_resamples - resampled), pairs)


@dataclass(frozen=True, kw_only=True)
class MeasuredRow(Setting, VariantRow):
    words: int
    topics: int
    embedding: str
    window: int  # longest input, in tokens

    def about(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(MeasuredRow)}


@dataclass(frozen=True, kw_only=True)
class ProbeRow(MeasuredRow):
    FLAT = "embeddings"

    embeddings: dict[str, Effect | None]  # by measure on word vectors: 'cosine', 'dot', ...
    attention: Effect | None  # of the encoder where there is one, else of the only part
    topical: Effect | None = None  # mean over the heads that carry topics at all thresholds
    parts: dict[str, Effect | None]  # attention of every part

    @property
    def cosine(self) -> Effect | None:
        return self.embeddings["cosine"]

    @property
    def dot(self) -> Effect | None:
        return self.embeddings["dot"]

    @property
    def effects(self) -> dict[str, Effect | None]:
        first = {"cosine": self.cosine, "dot": self.dot, "attention": self.attention, "topical": self.topical}
        return first | self.embeddings


@dataclass(frozen=True, kw_only=True)
class HeadRow(Setting, ModelRow):
    FLAT = "effect"

    part: str
    layer: int
    head: int
    corrected_p: float | None = None  # chance of as large a difference in any head; None: not judged
    remark: str = ""  # why it was not judged
    effect: BareEffect


@dataclass(frozen=True, kw_only=True)
class TopicRow(Setting, ModelRow):
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
    """Table 2: pairs of one topic against as many pairs that stand together most often."""

    pairs: int
    cosine: PairContrast
    attention: PairContrast
    topical: PairContrast | None = None  # attention in the heads that carry topics
    commonest: list[list[str]] = field(default_factory=list)  # the first pairs of words
    of_one_topic: int | None = None  # pairs that stand together with both words in one topic; None: an older probe


def topical_heads(heads: Sequence[HeadRow], part: str | None = None) -> list[HeadRow]:
    """Heads (at the first threshold) with more same-topic attention than chance gives any head, at every threshold."""
    settings = list(dict.fromkeys(head.setting for head in heads))
    judged = [head for head in heads if part in (None, head.part) and head.corrected_p is not None]
    passed = Counter(place(head) for head in judged if (head.corrected_p or 0.0) <= SIGNIFICANT)
    return [head for head in heads if head.setting == settings[0] and passed[place(head)] == len(settings)]


def place(head: HeadRow) -> tuple[str, int, int]:
    return head.part, head.layer, head.head


def short(model: str) -> str:
    return model.rstrip("/").rsplit("/", 1)[-1]


def interval_text(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{interval[0]:.4g}, {interval[1]:.4g}]"


def ratio_text(effect: Effect | None) -> str:
    if effect is None:
        return "-"
    return "undefined" if effect.ratio is None else f"{effect.ratio:.4g} {interval_text(effect.ratio_interval)}"


# Without the topical heads: the rise of the loss

DRAWS = FEWEST_SHUFFLES  # sets of random heads: the topical one is the largest in 5% of models by chance
LENGTH = 128  # tokens at the start of each predicted document
PASSES = 21  # over these documents: where there are fewer draws, more words are masked


def ablated_documents(documents: int) -> int:
    return min(documents, max(50, min(documents // 5, 1000)))


@dataclass(frozen=True, kw_only=True)
class AblationRow(ModelRow):
    """Rise of the mean loss (nats) at one kind of position where heads put out their mean. None: not measured."""

    heads: int  # topical heads, and heads of each random draw
    draws: int
    at: str  # 'topic words' or 'other words'
    positions: int = 0
    documents: int = 0
    loss: float | None = None  # of the whole model
    topical_rise: float | None = None
    topical_interval: Interval | None = None
    random_rise: float | None = None  # mean over the draws
    random_interval: Interval | None = None  # of one draw
    difference: float | None = None
    interval: Interval | None = None  # of the difference from one draw
    mean_interval: Interval | None = None  # of the difference from the mean over draws
    answer: Grade = "off"
    why: str = ""
    remark: str = ""  # how heads were drawn
    which: str = ""  # the topical heads, as layer.head


# Hidden states, layer by layer: cosines by topic, topics of documents, labels of documents

TREATMENTS = ("raw", "centred", "all_but_top")  # as they are; less the mean state; less the main directions too
HALVES = 2  # of the documents, whose states are compared with each other
SPOTS = 4  # places of a document whose single states are kept: after a quarter of the words of its first window, ...
MOST_WORDS, WORD_BYTES = 2000, 2**29  # of the sums by word
MOST_DOCUMENTS, DOCUMENT_BYTES = 1000, 2**28  # of the states by document


@dataclass(frozen=True)
class CooccurringMean:
    mean: float
    interval: Interval | None
    pairs: int
    margin_interval: Interval | None = None  # of the mean of pairs of one topic minus this mean


@dataclass(frozen=True, kw_only=True)
class MixtureScore:
    """R^2 of a linear (ridge) map from states to the topic mixture of the document, cross-validated over documents."""

    mixture_r2: float | None = None  # from the mean state
    mixture_interval: Interval | None = None
    bag_of_words_r2: float | None = None
    bag_of_words_interval: Interval | None = None
    half_document_r2: float | None = None  # of the mixture of half of the words, as it is
    half_document_interval: Interval | None = None
    shuffled_r2: float | None = None  # mean where mixtures are shuffled among documents
    documents: int = 0
    by_position: dict[str, float | None] = field(default_factory=dict)  # from a single state: '1/4' of the words, ...


@dataclass(frozen=True, kw_only=True)
class StateRow(Setting, VariantRow):
    """One layer of one part of a model at one threshold. Layer 0 is the embedding layer's output.

    Effects are of the cosine of states of two different words in different documents, mean over pairs of words, by
    treatment. `words` are those that both halves of the documents have.
    """

    part: str
    layer: int
    words: int
    effects: dict[str, Effect | None]
    cooccurring: dict[str, CooccurringMean]  # by treatment
    mixture: MixtureScore | None  # the same at every threshold; None where there are too few documents

    @property
    def raw(self) -> Effect | None:
        return self.effects["raw"]

    @property
    def at(self) -> tuple[SettingOf, str, int]:
        return self.setting, self.part, self.layer

    @model_serializer(mode="wrap")
    def _flattened(self, nested: Callable[[Self], dict[str, Any]]) -> dict[str, object]:
        """The raw effect and the mixture stand beside the layer, the other treatments below their names."""
        record = nested(self)
        mixture = record.pop("mixture") or asdict(MixtureScore())
        cooccurring, effects = record.pop("cooccurring"), record.pop("effects")
        for effect in filter(None, effects.values()):
            del effect["same_word"]
        return record | (effects.pop("raw") or NO_EFFECT) | effects | {"cooccurring": cooccurring} | mixture

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, data: object) -> object:
        if not isinstance(data, dict) or "effects" in data:
            return data
        effects = {"raw": None if data["same"] is None else data} | {name: data[name] for name in TREATMENTS[1:]}
        return data | {"effects": effects, "mixture": data if data["documents"] else None}


NO_EFFECT = {
    name: None
    for name in Effect(same=0.0, different=0.0, difference=0.0, ratio=None, interval=None).as_dict()
    if name != "same_word"
}


@dataclass(frozen=True, kw_only=True)
class LabelRow(VariantRow):
    """The label of a document from its mean state in one layer, by ridge regression, in documents held out of the fit.

    `chosen_*` are of the model as a whole: every fold takes the layer that does best on the other folds. So they are
    fair where the largest accuracy of all layers is not.
    """

    part: str
    layer: int
    documents: int
    classes: int
    accuracy: float
    interval: Interval | None
    macro_f1: float
    macro_f1_interval: Interval | None
    majority: float  # share of the most common label
    bag_of_words: float  # accuracy of the same classifier on log word counts
    bag_of_words_interval: Interval | None
    bag_of_words_macro_f1: float
    chosen_accuracy: float
    chosen_interval: Interval | None
    chosen_macro_f1: float
    chosen_folds: int  # that took this layer


# Documents: a row for each, and some of them to look at, with their words, topics and attention

MAIN_TOPICS = 3  # of a document that its row names
LEVELS = 255  # of a stored weight
LOSS_TOKENS, MOST_LOSSES = 128, 1000  # of a document whose loss is taken, and documents


@dataclass(frozen=True)
class TopicShare:
    topic: int
    name: str
    share: float


@dataclass(frozen=True, kw_only=True)
class DocumentRow(ModelRow):
    """One document as the trained model reads it.

    Attention is debiased (.01 without preference) and averaged over all heads of `part`, at `threshold`.
    """

    document: int  # number in the sample, from 0
    place: int | None  # number in the corpus, from 1; None where the caller gave the texts
    words: int  # of the whole text, between spaces
    tokens: int  # that the model read, without special tokens
    topic_words: int  # places of words of topics among them
    topics: list[TopicShare]  # the largest ones; empty where it has no word of a topic
    threshold: float | None
    part: str
    same: float | None
    different: float | None
    contrast: float | None
    same_pairs: int
    different_pairs: int
    loss: float | None = None  # mean over predicted tokens, in nats; None where the model has no output head

    @property
    def named(self) -> str:
        return str(self.document) if self.place is None else f"{self.place} of the corpus"

    def columns(self) -> dict[str, object]:
        row = {name: value for name, value in vars(self).items() if name != "topics"}
        for number, topic in zip_longest(range(1, 1 + MAIN_TOPICS), self.topics[:MAIN_TOPICS]):
            row |= {f"topic_{number}": topic and topic.name, f"share_{number}": topic and topic.share}
        return row


class Piece(NamedTuple):
    """A word, a mark or a special token of a text; `topic` is its place in `ShownDocument.topics`."""

    before: str  # what stands between it and the piece before: a space, or nothing
    text: str
    topic: int | None = None


@dataclass(frozen=True)
class ShownTopic:
    name: str
    words: list[str]


@dataclass(frozen=True)
class ShownHead:
    """Attention of one head, or the mean over a layer (`head` None): from each piece to those that it attends most.

    `links` are two tables in base64, each with one row per piece and `ShownDocument.keys` columns: the pieces that it
    attends (two bytes each, the low one first), then the weights w (one byte: 255 times the square root).
    """

    layer: int
    head: int | None
    topical: bool
    links: str


@dataclass(frozen=True, kw_only=True)
class ShownDocument(ModelRow):
    document: int
    why: str  # it was chosen
    pieces: list[Piece]
    topics: list[ShownTopic]
    part: str
    keys: int  # pieces kept for each piece: those with the largest weights
    heads: list[ShownHead]
    all_heads: int  # of the part
    cut: bool  # whether the text goes on

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if any(piece.topic is not None and not 0 <= piece.topic < len(self.topics) for piece in self.pieces):
            raise ValueError("a piece has a topic that the document has not")
        for head in self.heads:
            decoded_links(head.links, len(self.pieces), self.keys)
        return self


def encoded_links(weights: Float[np.ndarray, "U U"], keys: int) -> str:
    """See `ShownHead`. Of equal weights the first come first."""
    order = np.argsort(-weights, 1, kind="stable")[:, :keys]
    levels = np.rint(LEVELS * np.sqrt(np.clip(np.take_along_axis(weights, order, 1), 0, 1)))
    return base64.b64encode(order.astype("<u2").tobytes() + levels.astype(np.uint8).tobytes()).decode()


def decoded_links(links: str, pieces: int, keys: int) -> tuple[Int[np.ndarray, "U k"], Float[np.ndarray, "U k"]]:
    data = base64.b64decode(links, validate=True)
    if not 0 < keys <= pieces or len(data) != 3 * pieces * keys:
        raise ValueError(f"links of {len(data)} bytes do not fit {pieces} pieces")
    order = np.frombuffer(data[: 2 * pieces * keys], "<u2").reshape(pieces, keys).astype(np.int64)
    if order.max() >= pieces:
        raise ValueError("a link leads to a piece that is not there")
    return order, (np.frombuffer(data[2 * pieces * keys :], np.uint8).reshape(pieces, keys) / LEVELS) ** 2
