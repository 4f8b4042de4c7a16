"""A world: topics, the prior of documents and masking. It is what theory, training and the explorer share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import model_validator

from topicscope.ground import Config, section
from topicscope.world.masking import Masking
from topicscope.world.prior import DocumentPrior, Length
from topicscope.world.priors import Dirichlet, Prior
from topicscope.world.topics import TopicModel


@section
class WorldSettings(Config):
    """A world by the names that the settings of a run have."""

    topic_model: TopicModel = TopicModel()
    documents: Prior = Dirichlet()
    masking: Masking = Masking()

    @model_validator(mode="after")
    def _check(self) -> WorldSettings:
        self.documents.check(self.topic_model.topics)
        return self


@dataclass(frozen=True)
class World:
    """Topics, the prior of documents (mixtures and lengths) and masking: all that theory needs to know of a run.

    Attributes:
        topic_model: Which word has which probability in which topic.
        prior: How topic proportions and lengths of documents are drawn.
        masking: Which positions are masked, and what they show.

    Raises:
        InputError: The prior does not fit the number of topics.

    Example:
        >>> from topicscope.world import Fixed
        >>> world = World(TopicModel(4, 3), Fixed(topics_per_document=2, length=20))
        >>> world.length, world.endless().length
        (20, 'infinite')
        >>> World.of(documents={"kind": "fixed", "topics_per_document": 2, "length": 20}).prior == world.prior
        True
    """

    topic_model: TopicModel
    prior: DocumentPrior
    masking: Masking = field(default_factory=Masking)

    def __post_init__(self) -> None:
        self.prior.check(self.topic_model.topics)

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None = None, /, **more: Any) -> World:
        """From nested settings, by the names that a run has: topic_model, documents and masking."""
        given = WorldSettings.of(settings, **more)
        return cls(given.topic_model, given.documents, given.masking)

    @property
    def length(self) -> Length:
        """Words of a document: a number, a range or 'infinite'."""
        return self.prior.length

    def endless(self) -> World:
        """The same world with infinite documents (Assumption 1)."""
        return replace(self, prior=replace(self.prior, length="infinite"))  # type: ignore[type-var]  # a dataclass
