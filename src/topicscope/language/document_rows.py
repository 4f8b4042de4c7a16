"""The documents of a probe: one row for each, and some of them to look at, with their words, topics and attention."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

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
