"""A world: topics, the prior of documents and masking. It is what theory, training and the explorer share."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import GetPydanticSchema, PlainSerializer, PlainValidator, model_validator
from pydantic_core import PydanticKnownError

from topicscope.ground import Config, adapter_of, nearest, refuse_if, section
from topicscope.world.batches import Masking
from topicscope.world.exact import Dirichlet
from topicscope.world.priors import KINDS, DocumentPrior, Length
from topicscope.world.topics import TopicModel


def prior_of(settings: object) -> DocumentPrior:
    """The prior that flat settings describe, for example {'kind': 'fixed', 'topics_per_document': 2}.

    Without a kind it is dirichlet. Kind 'infinite' means kind 'fixed' with length 'infinite'. A prior passes as it is.
    """
    if isinstance(settings, DocumentPrior):
        refuse_if(
            type(settings) not in KINDS.values(),
            f"documents: a configuration cannot hold {type(settings).__name__}; choose {', '.join(KINDS)}",
        )
        return settings
    if not isinstance(settings, Mapping):
        raise PydanticKnownError("model_attributes_type")
    named = settings.get("kind", "dirichlet")
    fields = {str(key): value for key, value in settings.items()} | {"kind": named}
    if named == "infinite":
        length = fields.get("length", "infinite")
        if length != "infinite":
            raise ValueError(f"documents.length = {length!r}: kind infinite has no length; choose kind fixed for that")
        fields |= {"kind": "fixed", "length": "infinite"}
    if not isinstance(named, str) or fields["kind"] not in KINDS:
        raise ValueError(f"documents.kind = {named!r}: expected {', '.join(KINDS)} or infinite")
    _check_names(fields, fields["kind"], named)
    prior: DocumentPrior = adapter_of(KINDS[fields["kind"]]).validate_python(fields)
    return prior


def _check_names(fields: Collection[str], kind: str, named: str) -> None:
    """Every field belongs to the kind, and none that it needs is missing."""
    parameters = {kind: inspect.signature(prior).parameters for kind, prior in KINDS.items()}
    own = parameters[kind]
    for key in fields:
        owners = [kind for kind, names in parameters.items() if key in names]
        if not owners:
            raise ValueError(f"unknown key 'documents.{key}'; {nearest(key, own)}")
        if key not in own:
            raise ValueError(
                f"documents.{key} belongs to kind {' or '.join(owners)}, but the kind is {named}; "
                f"set documents.kind to {owners[0]}, or leave documents.{key} out"
            )
    for name, parameter in own.items():
        if parameter.default is parameter.empty and name not in fields:
            raise ValueError(f"documents.{name} is missing; kind {named} needs it")


Prior = Annotated[
    DocumentPrior,
    PlainValidator(prior_of),
    PlainSerializer(lambda prior: adapter_of(type(prior)).dump_python(prior, mode="json")),
    GetPydanticSchema(
        get_pydantic_json_schema=lambda *_: {"oneOf": [adapter_of(one).json_schema() for one in KINDS.values()]}
    ),
]
"""Any prior, as a field of a configuration: built from flat settings by `prior_of`."""


@section
class WorldSettings(Config):
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
    def of(cls, settings: Mapping[str, object] | None = None, /, **more: object) -> World:
        """From nested settings, by the names that a run has: topic_model, documents and masking."""
        given = WorldSettings.of(settings, **more)
        return cls(given.topic_model, given.documents, given.masking)

    @property
    def length(self) -> Length:
        return self.prior.length

    def endless(self) -> World:
        """The same world with infinite documents (Assumption 1)."""
        return replace(self, prior=replace(self.prior, length="infinite"))  # type: ignore[type-var]  # a dataclass
