"""The rows of a probe: the effects of a model as in Table 1, its heads, its topics, the co-occurrence control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from topicscope.language.configs import SIGNIFICANT
from topicscope.language.controls import PairContrast
from topicscope.measure import Effect, Interval, with_intervals


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
