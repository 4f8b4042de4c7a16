"""What training, tracking, floors and figures need to know of a model: a protocol, and the architectures by name.

An architecture is a section of the configuration (`model`) and does what it says. `ModelConfig` is the paper's; a new
one is one file with a class that has `check`, `trained_shapes`, `outputs` and `read`, with `register_architecture`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from jaxtyping import Float
from pydantic import Field

from topicscope.ground import Rate, Stream, Text, adapter_of, generator, nearest, refuse_if, section
from topicscope.world import Masking, TopicModel

if TYPE_CHECKING:
    from torch import Tensor

    from topicscope.model.passes import Weights
    from topicscope.world import Batch

Arrays = Mapping[str, np.ndarray]
# takes a batch and the parts whose gradient is wanted, and returns the loss of every model
Gradient = Callable[["Batch", Collection[str]], "Tensor"]

MOST_PARTS = 100
DEFAULT = "one-layer"

Loss = Literal["cross-entropy", "squared", "squared-mean"]


@section
class Objective:
    """The loss (eqs 1 to 4) and the L2 penalty.

    Attributes:
        loss: 'cross-entropy' (eq 4), 'squared' summed over the V outputs (eq 3), or 'squared-mean' averaged over them
            (the authors' code).
        l2: lambda of eq 2: a number for all trained parts, or {part: number} for those named.

    Example:
        >>> from topicscope import Objective
        >>> Objective(loss="squared", l2={"value": 0.001}).penalties(trained=("key", "value"))
        {'value': 0.001}
    """

    loss: Loss = "cross-entropy"
    l2: Rate | Annotated[dict[Text, Rate], Field(max_length=MOST_PARTS)] = 0.0

    def penalties(self, trained: tuple[str, ...]) -> dict[str, float]:
        """lambda of each trained part that has one."""
        named = self.l2 if isinstance(self.l2, dict) else dict.fromkeys(trained, self.l2)
        return {part: rate for part, rate in named.items() if rate > 0}

    def scale(self, vocabulary: int) -> float:
        """The factor of the loss: 'squared-mean' is 1 / V of the sum over the outputs."""
        return 1 / vocabulary if self.loss == "squared-mean" else 1.0


class Layout(NamedTuple):
    """How an architecture reads documents: its rows are those of attention, uniform or by query word."""

    uniform: bool = False  # one row per document, its words' shares, instead of one row per query word
    hide_masked: bool = False  # masked positions are hidden from attention


class Followed(NamedTuple):
    """Which parts are followed at every step, beside the norms of all of them."""

    rotating: str | None = None  # the part whose rotation is measured
    tables: Mapping[str, str] = {}  # parts that are V x V, by the name of the table whose means are measured
    grams: Mapping[str, str] = {}  # parts that are d x V, by the name of the table of their columns' products


class WordTable(NamedTuple):
    symbol: str  # such as "W_V"
    matrix: Float[np.ndarray, "V V"]
    sides: tuple[str, str] = ("output word", "input word")  # what a row and a column stand for


class Reading:
    """A model at the level of words, for measures and figures. Each architecture fills in what it has."""

    @cached_property
    def tables(self) -> Mapping[str, WordTable]:
        """By the name that metrics and results use, such as 'value' or 'gram'."""
        return {}

    @cached_property
    def embedding(self) -> Float[np.ndarray, "d V"] | None:
        """A trained vector for each word, in columns."""
        return None

    @cached_property
    def scores(self) -> Float[np.ndarray, "V V"] | None:
        """Attention scores: query word in rows, key word in columns."""
        return None


class Architecture(ABC):
    """A model that can be trained: its parts, its pass and what can be read from it."""

    NAME: ClassVar[str]  # in configuration files
    STREAMS: ClassVar[Mapping[str, int]]  # the stream of each part's initial values; a number is part of the results
    ATTENTION: ClassVar[tuple[str, ...]] = ()  # the parts that schedules train as attention
    SYMBOLS: ClassVar[Mapping[str, str]] = {}  # of the parts whose norms are drawn
    FILES: ClassVar[tuple[str, ...]] = ()  # settings that may name files

    @abstractmethod
    def check(self, topic_model: TopicModel, masking: Masking) -> None:
        """What can only be said once the vocabulary is known; raises InputError."""

    @abstractmethod
    def trained_shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]: ...

    @abstractmethod
    def outputs(self, weights: Weights, batch: Batch) -> Float[Tensor, "E R V"]:
        """The prediction of every row of a batch: logits, or numbers under squared loss."""

    @abstractmethod
    def read(self, weights: Arrays) -> Reading: ...

    @property
    def layout(self) -> Layout:
        return Layout()

    def start_scale(self, vocabulary: int) -> float:
        """Standard deviation of the entries of trained matrices at the start."""
        return 0.02

    def initial(self, vocabulary: int, seed: int) -> dict[str, Float[np.ndarray, ...]]:
        """Trained parts at the start. Each part has a stream of its own: freezing one changes no other."""
        values, scale = {}, self.start_scale(vocabulary)
        for name, shape in self.trained_shapes(vocabulary).items():
            rng = generator(seed, Stream.INITIAL_WEIGHTS, self.STREAMS[name])
            values[name] = np.zeros(shape) if len(shape) == 1 else scale * rng.standard_normal(shape)
        return values

    def frozen(self, topic_model: TopicModel, masking: Masking) -> dict[str, Float[np.ndarray, ...]]:
        return {}

    def same_start(self) -> Self:
        """Without the settings that only decide the start: models that are equal in the rest may train together."""
        return self

    def followed(self) -> Followed:
        return Followed()

    def table_symbols(self) -> dict[str, str]:
        _, tables, grams = self.followed()
        products = {name: f"{self.SYMBOLS[part]}'{self.SYMBOLS[part]}" for name, part in grams.items()}
        return {name: self.SYMBOLS[part] for name, part in tables.items()} | products

    def loss(self, weights: Weights, objective: Objective, batch: Batch) -> Float[Tensor, " E"]:
        """The loss of every model on a batch, without the L2 penalty."""
        from topicscope.model.passes import loss_of

        return loss_of(self, weights, objective, batch)

    def document_losses(self, weights: Weights, objective: Objective, batch: Batch) -> Float[Tensor, " B"]:
        """The loss of a single model on each document of its batch; their mean is `loss`."""
        from topicscope.model.passes import losses_of_documents

        return losses_of_documents(self, weights, objective, batch)

    def loss_and_gradient(
        self, weights: Weights, objective: Objective, batch: Batch, wanted: Collection[str] | None = None
    ) -> Float[Tensor, " E"]:
        """The loss of every model without the L2 penalty; the gradient, penalty included, goes to `weights.gradients`.

        `wanted`: parts whose gradient is needed; None: all trained parts. Other gradients are not touched.
        """
        from topicscope.model.passes import gradient_by_autograd

        return gradient_by_autograd(self, weights, objective, batch, wanted)

    def fast_pass(self, weights: Weights, objective: Objective) -> Gradient:
        """The quickest way to `loss_and_gradient` on a CPU."""
        return partial(self.loss_and_gradient, weights, objective)

    def mean_outputs(self, parts: Arrays, counts: Float[np.ndarray, "D V"]) -> Float[np.ndarray, "D d"] | None:
        """The mean state of each document's positions after attention, from the counts of the words it shows."""
        return None

    def operations(self, vocabulary: int, rows: float) -> float:
        return 6 * rows * vocabulary**2


ARCHITECTURES: dict[str, type[Architecture]] = {}  # by name

Kind = TypeVar("Kind", bound=type[Architecture])


def register_architecture(cls: Kind) -> Kind:
    if cls.NAME in ARCHITECTURES:
        raise ValueError(f"an architecture {cls.NAME!r} exists already")
    ARCHITECTURES[cls.NAME] = cls
    return cls


def architecture_of(settings: object) -> Architecture:
    """The architecture that settings describe. An architecture passes as it is."""
    if isinstance(settings, Architecture):
        return settings
    others = {str(name): value for name, value in settings.items()} if isinstance(settings, Mapping) else {}
    named = others.pop("architecture", DEFAULT)
    known = isinstance(named, str) and named in ARCHITECTURES
    refuse_if(not known, f"model.architecture = {named!r}: {nearest(str(named), ARCHITECTURES)}")
    if named != DEFAULT:
        return ARCHITECTURES[named](**others)
    given = others if isinstance(settings, Mapping) else settings
    model: Architecture = adapter_of(ARCHITECTURES[DEFAULT]).validate_python(given)
    return model


def settings_of(model: Architecture) -> dict[str, object]:
    name = {} if model.NAME == DEFAULT else {"architecture": model.NAME}
    return name | adapter_of(type(model)).dump_python(model, mode="json")
