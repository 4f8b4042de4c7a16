"""Which parts the model has, and for each whether it is trained or frozen, and at what.

Everything here is data: what is frozen is decided by the configuration alone, and initialisation never touches it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt

from topicscope.ground import InputError, section
from topicscope.theory import Setting, diagonal_value_matrix, prediction_bias, theorem2
from topicscope.world import Masking, TopicModel, matrix_of

PARTS = ("embedding", "key", "query", "value", "head", "key_bias", "query_bias", "value_bias", "prediction_bias")
"""W_E, W_K, W_Q, W_V, W_pred (where it is not tied to W_E), b_K, b_Q, b_V, b_pred."""

ATTENTION_PARTS = ("key", "query", "key_bias", "query_bias")

Bias = Literal["none", "trained"] | float


@section
class ModelConfig:
    """f(X) = W_pred (W_V Z A + b_V) + b_pred with Z = W_E X, A = softmax((W_K Z + b_K)'(W_Q Z + b_Q) / sqrt(d_a)) (eq
    6).

    A part is 'trained' or frozen at the value named. A bias is 'none', 'trained', or a number at which all its
    entries are fixed; `prediction_bias` may also be 'theorem1'. `dim` (d) defaults to the vocabulary, `attention_dim`
    (d_a) to `dim`. `init_scale` is the standard deviation of the centred Gaussian from which trained matrices start,
    or 'usual': 1 / sqrt(inputs) each. Trained biases start at zero. `hide_masked` hides masked positions from
    attention, as the authors' code does.
    """

    embedding: Literal["trained", "one-hot"] = "one-hot"
    key: Literal["trained", "zero"] = "trained"
    query: Literal["trained", "zero"] = "trained"
    value: Literal["trained", "identity", "blocks", "diagonal", "given"] = "trained"
    value_matrix: list[list[float]] | str | None = None
    head: Literal["tied", "untied", "identity"] = "tied"
    key_bias: Bias = "none"
    query_bias: Bias = "none"
    value_bias: Bias = "none"
    prediction_bias: Literal["none", "trained", "theorem1"] | float = "trained"
    dim: PositiveInt | None = None
    attention_dim: PositiveInt | None = None
    init_scale: Literal["usual"] | float = 0.02
    hide_masked: bool = False

    def check(self, topic_model: TopicModel, masking: Masking) -> None:
        """What can only be said once the vocabulary is known; raises InputError."""
        vocabulary = topic_model.vocabulary
        for needs in ("one-hot embedding", "identity head", "value matrix 'blocks'", "value matrix 'diagonal'"):
            if self.width(vocabulary) != vocabulary and self._wants(needs):
                raise InputError(
                    f"dim = {self.dim}: {needs} needs dim = topics * words_per_topic + 1 = {vocabulary}; "
                    "set model.dim to that or leave it out"
                )
        if not isinstance(self.init_scale, str) and not self.init_scale >= 0:
            raise InputError(f"init_scale = {self.init_scale}: expected a number >= 0 or 'usual'")
        if self.value == "given" and self.value_matrix is None:
            raise InputError(
                "model.value = 'given' needs model.value_matrix: a matrix, or the path of a .npy or .csv file"
            )
        if self.value != "given" and self.value_matrix is not None:
            raise InputError(
                f"model.value_matrix is given, but model.value is {self.value!r}; "
                "set model.value to 'given' or leave the matrix out"
            )
        self.frozen(topic_model, masking)

    def _wants(self, needs: str) -> bool:
        return needs in {f"{self.embedding} embedding", f"{self.head} head", f"value matrix {self.value!r}"}

    def width(self, vocabulary: int) -> int:
        return vocabulary if self.dim is None else self.dim

    @property
    def uniform_attention(self) -> bool:
        """W_K = 0 gives every key the same score whatever the query: attention is uniform."""
        return self.key == "zero"

    def trained_shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """The trained parts in a fixed order, with their shapes."""
        d = self.width(vocabulary)
        d_a = d if self.attention_dim is None else self.attention_dim
        shapes: dict[str, tuple[int, ...]] = {
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
        states = {name: getattr(self, name) for name in PARTS} | {
            "head": "trained" if self.head == "untied" else "frozen"
        }
        return {name: shapes[name] for name in PARTS if states[name] == "trained"}

    def frozen(self, topic_model: TopicModel, masking: Masking) -> dict[str, Float[np.ndarray, ...]]:
        """The parts that are frozen at a matrix or vector; an identity, a zero and an absent bias are left out."""
        vocabulary = topic_model.vocabulary
        d = self.width(vocabulary)
        d_a = d if self.attention_dim is None else self.attention_dim
        parts: dict[str, Float[np.ndarray, ...]] = {}
        if self.value == "blocks":
            parts["value"] = theorem2(Setting(topic_model, 1, masking)).matrix()
        elif self.value == "diagonal":
            parts["value"] = diagonal_value_matrix(topic_model, masking)
        elif self.value == "given":
            given = matrix_of(self.value_matrix or [], "model.value_matrix")
            if given.shape != (d, d):
                raise InputError(f"model.value_matrix has shape {given.shape}; expected ({d}, {d})")
            parts["value"] = given
        if self.prediction_bias == "theorem1":
            parts["prediction_bias"] = prediction_bias(topic_model, masking)
        sizes = {"key_bias": d_a, "query_bias": d_a, "value_bias": d, "prediction_bias": vocabulary}
        for name, size in sizes.items():
            number = getattr(self, name)
            if not isinstance(number, str):
                parts[name] = np.full(size, float(number))
        return parts
