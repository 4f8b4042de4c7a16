"""What a probe measures on hidden states, layer by layer, as data.

row.effects["centred"].interval, row.cooccurring["raw"].mean, row.mixture.r2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from topicscope.measure import UNSTORED, Effect, Interval, with_intervals

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
            {name: getattr(self, name) for name in ABOUT}
            | (effects.pop("raw") or dict.fromkeys(EFFECT))
            | effects
            | {"cooccurring": {name: asdict(mean) for name, mean in self.cooccurring.items()}}
            | (asdict(self.mixture) if self.mixture else {**dict.fromkeys(MIXTURE), "documents": 0, "by_position": {}})
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        raw = None if data["same"] is None else Effect.from_dict(data)
        known = {*ABOUT, *EFFECT, *MIXTURE, "cooccurring"}
        others = {
            name: None if data[name] is None else Effect.from_dict(data[name]) for name in data if name not in known
        }
        means = {name: CooccurringMean(**with_intervals(mean)) for name, mean in data["cooccurring"].items()}
        mixture = MixtureScore(**with_intervals({name: data[name] for name in MIXTURE})) if data["documents"] else None
        return cls(
            **{name: data[name] for name in ABOUT}, effects={"raw": raw, **others}, cooccurring=means, mixture=mixture
        )


ABOUT = tuple(part.name for part in fields(StateRow) if part.name not in ("effects", "cooccurring", "mixture"))


def _without_same_word(effect: Effect) -> dict[str, Any]:
    return {name: value for name, value in effect.as_dict().items() if name in EFFECT}
