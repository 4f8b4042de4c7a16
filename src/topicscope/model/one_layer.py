"""The one-layer transformer of Section 3.3: its parts, which of them are trained, and what it is at the level of words.

passes.py has its pass as eq 6 is written, and the one that runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PlainSerializer, PlainValidator

from topicscope.ground import Entry, Matrix, Rate, Text, Width, refuse, refuse_if, section
from topicscope.model.architecture import (
    DEFAULT,
    Architecture,
    Arrays,
    Followed,
    Gradient,
    Layout,
    Objective,
    Reading,
    WordTable,
    architecture_of,
    register_architecture,
    settings_of,
)
from topicscope.theory import Setting, diagonal_value_matrix, prediction_bias, prediction_bias_at, theorem2
from topicscope.world import Masking, TopicModel, matrix_of

if TYPE_CHECKING:
    from torch import Tensor

    from topicscope.model.passes import Weights
    from topicscope.world import Batch

Bias = Literal["none", "trained"] | Entry


@register_architecture
@section
class ModelConfig(Architecture):
    """The one-layer transformer (eq 6), and which of its parts are trained.

    f(X) = W_pred (W_V Z A + b_V) + b_pred with Z = W_E X and A = softmax((W_K Z + b_K)'(W_Q Z + b_Q) / sqrt(d_a)). A
    part is 'trained', or frozen at the value named. A bias is 'none', 'trained', or a number that all its entries have.

    Attributes:
        embedding: W_E (d x V).
        key: W_K (d_a x d); 'zero' makes attention uniform.
        query: W_Q (d_a x d).
        value: W_V (d x d). 'blocks' is Theorem 2's matrix, 'diagonal' that of Definition 2, 'given' is `value_matrix`.
        value_matrix: The matrix, or the path of one, where `value` is 'given'.
        head: W_pred (V x d): 'tied' is W_E'.
        key_bias: b_K.
        query_bias: b_Q.
        value_bias: b_V.
        prediction_bias: b_pred; it may also be 'theorem1', the bias that Theorem 1 fixes.
        dim: d; None: the size of the vocabulary.
        attention_dim: d_a; None: `dim`.
        init_scale: Standard deviation of the normal entries from which trained matrices start; 'usual': 1 /
            sqrt(inputs). Trained biases start at zero.
        hide_masked: Hide masked positions from attention, as the authors' code does.

    Example:
        >>> from topicscope import ModelConfig
        >>> model = ModelConfig(key="zero", query="zero", prediction_bias="none")
        >>> model.trained_shapes(vocabulary=7), model.uniform_attention
        ({'value': (7, 7)}, True)
    """

    NAME: ClassVar = DEFAULT
    STREAMS: ClassVar = {
        "embedding": 0,
        "key": 1,
        "query": 2,
        "value": 3,
        "head": 4,
        "key_bias": 5,
        "query_bias": 6,
        "value_bias": 7,
        "prediction_bias": 8,
    }
    ATTENTION: ClassVar = ("key", "query", "key_bias", "query_bias")
    SYMBOLS: ClassVar = {"key": "W_K", "query": "W_Q", "value": "W_V", "embedding": "W_E", "head": "W_pred"}
    FILES: ClassVar = ("value_matrix",)

    embedding: Literal["trained", "one-hot"] = "one-hot"
    key: Literal["trained", "zero"] = "trained"
    query: Literal["trained", "zero"] = "trained"
    value: Literal["trained", "identity", "blocks", "diagonal", "given"] = "trained"
    value_matrix: Matrix | Text | None = None
    head: Literal["tied", "untied", "identity"] = "tied"
    key_bias: Bias = "none"
    query_bias: Bias = "none"
    value_bias: Bias = "none"
    prediction_bias: Literal["none", "trained", "theorem1"] | Entry = "trained"
    dim: Width | None = None
    attention_dim: Width | None = None
    init_scale: Literal["usual"] | Rate = 0.02
    hide_masked: bool = False

    def check(self, topic_model: TopicModel, masking: Masking) -> None:
        vocabulary = topic_model.vocabulary
        chosen = {f"{self.embedding} embedding", f"{self.head} head", f"value matrix {self.value!r}"}
        needing = ("one-hot embedding", "identity head", "value matrix 'blocks'", "value matrix 'diagonal'")
        needs = next((what for what in needing if what in chosen), None)
        given, matrix = self.value == "given", self.value_matrix is not None
        needed = f"dim = {self.dim}: {needs} needs dim = topics * words_per_topic + 1 = {vocabulary}"
        absent = "model.value = 'given' needs model.value_matrix"
        unused = f"model.value_matrix is given, but model.value is {self.value!r}"
        refuse(
            (needs and self.width(vocabulary) != vocabulary, f"{needed}; set model.dim to that or leave it out"),
            (given and not matrix, f"{absent}: a matrix, or the path of a .npy or .csv file"),
            (matrix and not given, f"{unused}; set model.value to 'given' or leave the matrix out"),
        )
        # what the frozen parts refuse, without making them: matrices of a vocabulary may be larger than the memory
        if self.value in ("blocks", "diagonal"):
            Setting(topic_model, 1, masking)
        if given:
            self._given_matrix(vocabulary)
        if self.prediction_bias == "theorem1":
            prediction_bias_at(topic_model, masking)

    def _given_matrix(self, vocabulary: int) -> Float[np.ndarray, "d d"]:
        matrix, wanted = matrix_of(self.value_matrix or [], "model.value_matrix"), self.shapes(vocabulary)["value"]
        refuse_if(matrix.shape != wanted, f"model.value_matrix has shape {matrix.shape}; expected {wanted}")
        return matrix

    def width(self, vocabulary: int) -> int:
        return self.dim or vocabulary

    def attention_width(self, vocabulary: int) -> int:
        return self.attention_dim or self.width(vocabulary)

    def start_scale(self, vocabulary: int) -> float:
        return 1 / math.sqrt(self.width(vocabulary)) if self.init_scale == "usual" else self.init_scale

    def same_start(self) -> Self:
        return replace(self, init_scale=1.0)

    @property
    def uniform_attention(self) -> bool:
        """W_K = 0 gives every key the same score whatever the query: attention is uniform."""
        return self.key == "zero"

    @property
    def layout(self) -> Layout:
        return Layout(self.uniform_attention, self.hide_masked)

    @property
    def one_hot(self) -> bool:
        """Words are one-hot on both sides, so that W_V is a table over words."""
        return self.embedding == "one-hot" and self.head != "untied"

    def shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        d, d_a = self.width(vocabulary), self.attention_width(vocabulary)
        return {
            "embedding": (d, vocabulary),
            "key": (d_a, d),
            "query": (d_a, d),
            "value": (d, d),
            "head": (vocabulary, d),
            "key_bias": (d_a,),
            "query_bias": (d_a,),
            "value_bias": (d,),
            "prediction_bias": (vocabulary,),
        }

    def trained_shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """Of the trained parts; a head is trained where it is untied."""
        shapes = self.shapes(vocabulary).items()
        return {name: shape for name, shape in shapes if getattr(self, name) in ("trained", "untied")}

    def frozen(self, topic_model: TopicModel, masking: Masking) -> dict[str, Float[np.ndarray, ...]]:
        """The parts that are frozen at a matrix or vector; an identity, a zero and an absent bias are left out."""
        shapes = self.shapes(topic_model.vocabulary)
        parts: dict[str, Float[np.ndarray, ...]] = {}
        if self.value == "blocks":
            parts["value"] = theorem2(Setting(topic_model, 1, masking)).matrix()
        elif self.value == "diagonal":
            parts["value"] = diagonal_value_matrix(topic_model, masking)
        elif self.value == "given":
            parts["value"] = self._given_matrix(topic_model.vocabulary)
        if self.prediction_bias == "theorem1":
            parts["prediction_bias"] = prediction_bias(topic_model, masking)
        numbers = {name: at for name in self.STREAMS if not isinstance(at := getattr(self, name), str)}  # biases
        return parts | {name: np.full(shapes[name], float(number)) for name, number in numbers.items()}

    def followed(self) -> Followed:
        value = "value" if self.value == "trained" else None
        grams = {"gram": "embedding"} if self.embedding == "trained" else {}
        return Followed(value, {"value": value} if value and self.one_hot else {}, grams)

    def outputs(self, weights: Weights, batch: Batch) -> Float[Tensor, "E R V"]:
        from topicscope.model.passes import outputs

        return outputs(self, weights, batch)

    def loss_and_gradient(
        self, weights: Weights, objective: Objective, batch: Batch, wanted: Collection[str] | None = None
    ) -> Float[Tensor, " E"]:
        from topicscope.model.passes import loss_and_gradient

        return loss_and_gradient(self, weights, objective, batch, wanted)

    def fast_pass(self, weights: Weights, objective: Objective) -> Gradient:
        from topicscope.model.passes import CompiledPass

        return CompiledPass(self, weights, objective) if self.one_hot else super().fast_pass(weights, objective)

    def read(self, weights: Arrays) -> OneLayerReading:
        return OneLayerReading(weights)

    def mean_outputs(self, parts: Arrays, counts: Float[np.ndarray, "D V"]) -> Float[np.ndarray, "D d"]:
        """W_V Z A + b_V (eq 6). Positions that show the same word share an output: one row of attention is enough."""
        scores = np.zeros((counts.shape[1],) * 2) if self.uniform_attention else word_scores(parts)
        attended = np.zeros(counts.shape)  # how much each word is attended to
        for document, count in enumerate(counts.astype(float)):
            if len(present := np.flatnonzero(count)):
                here = scores[np.ix_(present, present)]
                weight = np.exp(here - here.max(1, keepdims=True)) * count[present]
                share = count[present] / count.sum()
                attended[document, present] = share @ (weight / weight.sum(1, keepdims=True))
        output = attended if self.embedding == "one-hot" else attended @ parts["embedding"].T.astype(float)
        output = output @ parts["value"].T.astype(float) if "value" in parts else output
        return output + parts["value_bias"] if "value_bias" in parts else output

    def operations(self, vocabulary: int, rows: float) -> float:
        parameters = sum(map(math.prod, self.trained_shapes(vocabulary).values()))
        return super().operations(vocabulary, rows) + 6 * parameters * vocabulary


@dataclass
class OneLayerReading(Reading):
    """Tables of a model whose parts are given; parts may be missing."""

    weights: Arrays

    @cached_property
    def tables(self) -> dict[str, WordTable]:
        """The value matrix where words are one-hot, with an untied head's product; else the embedding's Gram matrix."""
        embedding, value, head = (self.weights.get(name) for name in ("embedding", "value", "head"))
        if embedding is not None:
            return {"gram": WordTable("W_E'W_E", embedding.T @ embedding, ("word", "word"))}
        if head is not None:
            return {"value": WordTable("W_pred W_V", head if value is None else head @ value)}
        return {} if value is None else {"value": WordTable("W_V", value)}

    @cached_property
    def embedding(self) -> Float[np.ndarray, "d V"] | None:
        return self.weights.get("embedding")

    @cached_property
    def scores(self) -> Float[np.ndarray, "V V"] | None:
        return word_scores(self.weights) if {"key", "query"} <= set(self.weights) else None


def word_scores(weights: Arrays) -> Float[np.ndarray, "V V"]:
    """Attention scores between words (eq 5), query word in rows; a missing query matrix counts as zero."""
    key = weights["key"].astype(float)
    query = weights["query"].astype(float) if "query" in weights else np.zeros_like(key)
    if "embedding" in weights:
        key, query = key @ weights["embedding"], query @ weights["embedding"]
    key = key + weights.get("key_bias", np.zeros(1))[:, None]
    query = query + weights.get("query_bias", np.zeros(1))[:, None]
    return query.T @ key / np.sqrt(len(key))


# An `Architecture` as a field of a configuration: the one-layer transformer where it is not named. It is not typed as
# one, since theorems and laws, which are about the one-layer transformer, ask for its own settings.
AnyModel = Annotated[
    Any, PlainValidator(architecture_of, json_schema_input_type=ModelConfig), PlainSerializer(settings_of)
]
