"""Which parts the model has, and for each whether it is trained or frozen, and at what; and what it is trained for.

Everything here is data: what is frozen is decided by the configuration alone, and initialisation never touches it.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from topicscope.ground import Entry, InputError, Matrix, Rate, Text, Width, section
from topicscope.theory import Setting, diagonal_value_matrix, prediction_bias, prediction_bias_at, theorem2
from topicscope.world import Masking, TopicModel, matrix_of

PARTS = ("embedding", "key", "query", "value", "head", "key_bias", "query_bias", "value_bias", "prediction_bias")
"""W_E, W_K, W_Q, W_V, W_pred (where it is not tied to W_E), b_K, b_Q, b_V, b_pred."""

ATTENTION_PARTS = ("key", "query", "key_bias", "query_bias")

Bias = Literal["none", "trained"] | Entry
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
    l2: Rate | Annotated[dict[Text, Rate], Field(max_length=len(PARTS))] = 0.0

    def penalties(self, trained: tuple[str, ...]) -> dict[str, float]:
        """lambda of each trained part that has one."""
        named = self.l2 if isinstance(self.l2, dict) else dict.fromkeys(trained, self.l2)
        return {part: rate for part, rate in named.items() if rate > 0}

    def scale(self, vocabulary: int) -> float:
        """By which the loss is multiplied: 'squared-mean' is 1 / V of the sum over the outputs."""
        return 1 / vocabulary if self.loss == "squared-mean" else 1.0


@section
class ModelConfig:
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
        """What can only be said once the vocabulary is known; raises InputError."""
        vocabulary = topic_model.vocabulary
        chosen = {f"{self.embedding} embedding", f"{self.head} head", f"value matrix {self.value!r}"}
        needing = ("one-hot embedding", "identity head", "value matrix 'blocks'", "value matrix 'diagonal'")
        needs = next((what for what in needing if what in chosen), None)
        given, matrix = self.value == "given", self.value_matrix is not None
        for wrong, message in (
            (
                needs is not None and self.width(vocabulary) != vocabulary,
                f"dim = {self.dim}: {needs} needs dim = topics * words_per_topic + 1 = {vocabulary}; "
                "set model.dim to that or leave it out",
            ),
            (
                given and not matrix,
                "model.value = 'given' needs model.value_matrix: a matrix, or the path of a .npy or .csv file",
            ),
            (
                matrix and not given,
                f"model.value_matrix is given, but model.value is {self.value!r}; "
                "set model.value to 'given' or leave the matrix out",
            ),
        ):
            if wrong:
                raise InputError(message)
        # what the frozen parts refuse, without making them: matrices of a vocabulary may be larger than the memory
        if self.value in ("blocks", "diagonal"):
            Setting(topic_model, 1, masking)
        if given:
            self._given_matrix(vocabulary)
        if self.prediction_bias == "theorem1":
            prediction_bias_at(topic_model, masking)

    def _given_matrix(self, vocabulary: int) -> Float[np.ndarray, "d d"]:
        matrix, wanted = matrix_of(self.value_matrix or [], "model.value_matrix"), self.shapes(vocabulary)["value"]
        if matrix.shape != wanted:
            raise InputError(f"model.value_matrix has shape {matrix.shape}; expected {wanted}")
        return matrix

    def width(self, vocabulary: int) -> int:
        return self.dim or vocabulary

    def attention_width(self, vocabulary: int) -> int:
        """d_a."""
        return self.attention_dim or self.width(vocabulary)

    def start_scale(self, vocabulary: int) -> float:
        """Standard deviation of the entries of trained matrices at the start: each of them has d inputs."""
        return 1 / math.sqrt(self.width(vocabulary)) if self.init_scale == "usual" else self.init_scale

    @property
    def uniform_attention(self) -> bool:
        """W_K = 0 gives every key the same score whatever the query: attention is uniform."""
        return self.key == "zero"

    def shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """Of all parts, in the order of PARTS."""
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
        numbers = {name: at for name in PARTS if not isinstance(at := getattr(self, name), str)}  # biases
        return parts | {name: np.full(shapes[name], float(number)) for name, number in numbers.items()}
