"""The collapsed pass: the same loss from word counts, with its gradient by hand.

At the level of words the model is two V x V tables: scores L (query word, key word) and contributions U (output word,
key word). A query word j of document b attends word i with weight C[b,i] exp(L[j,i]) / sum_l C[b,l] exp(L[j,l]) and
predicts U A; biases fold into the tables because attention sums to 1. So: parts -> tables -> loss, and the gradient
back the same way. E models run side by side (leading axis). Exact, and tested against the dense pass in float64.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.model.architecture import Objective
from topicscope.model.one_layer import ModelConfig
from topicscope.model.weights import Parts, Weights, penalise, rows_loss
from topicscope.world import Batch

if TYPE_CHECKING:
    from topicscope.model.kernels import Arrays, Space


@dataclass
class Tables:
    """The model at the level of words, and the products that the gradient needs again. None stands for an identity."""

    embedding: Float[Tensor, "E d V"] | None
    head: Float[Tensor, "E V d"] | None
    projected: dict[str, Float[Tensor, "E d_a V"]]  # key: W_K Z + b_K, and query; empty: uniform attention
    scores: Float[Tensor, "E Q V"] | None  # L, of the query words that occur; None: uniform attention
    mixed: Float[Tensor, "E d V"]  # W_V Z + b_V, the same bias in every column
    contributions: Float[Tensor, "E V V"]  # U


def product(left: Tensor | None, right: Tensor | None) -> Tensor:
    """Matrix product where None is the identity, and a frozen matrix (leading axis 1) is shared by all models."""
    if left is None or right is None:
        return cast("Tensor", left if right is None else right)
    return left @ right


def tables(config: ModelConfig, parts: Parts, vocabulary: int, queries: Int[Tensor, "E Q"] | None = None) -> Tables:
    """`queries`: the words whose scores are needed as queries; None: all."""
    embedding, head, value = parts.get("embedding"), parts.get("head"), parts.get("value")
    if config.head == "tied" and embedding is not None:
        head = embedding.mT
    projected, scores = {}, None
    if not config.uniform_attention:
        key = plus_column(product(parts["key"], embedding), parts.get("key_bias"))
        if "query" not in parts:
            query = torch.zeros_like(key if queries is None else key[:, :, : queries.shape[1]])
        elif embedding is None:
            query = columns(parts["query"], queries)
        else:
            query = parts["query"] @ columns(embedding, queries)
        projected = {"key": key, "query": plus_column(query, parts.get("query_bias"))}
        scores = torch.bmm(projected["query"].mT, key).mul_(1 / math.sqrt(key.shape[1]))
    if value is None and embedding is None:  # an identity has to be written out once
        value = next(iter(parts.values())).new_ones(vocabulary).diag()[None]
    mixed = plus_column(product(value, embedding), parts.get("value_bias"))
    contributions = plus_column(product(head, mixed), parts.get("prediction_bias"))
    return Tables(embedding, head, projected, scores, mixed, contributions)


def columns(matrix: Float[Tensor, "E m V"], queries: Int[Tensor, "E Q"] | None) -> Float[Tensor, "E m Q"]:
    return matrix if queries is None else matrix.gather(2, queries[:, None].expand(-1, matrix.shape[1], -1))


def add_columns(matrix: Float[Tensor, "E m V"], queries: Int[Tensor, "E Q"], slope: Float[Tensor, "E m Q"]) -> None:
    """The way back of `columns`; words that stand twice among the queries, to fill up, have no slope."""
    matrix.scatter_add_(2, queries[:, None].expand(-1, matrix.shape[1], -1), slope)


def plus_column(matrix: Float[Tensor, "E m n"], column: Float[Tensor, "E m"] | None) -> Float[Tensor, "E m n"]:
    return matrix if column is None else matrix + column[:, :, None]


def attend(scores: Float[Tensor, "E Q V"] | None, batch: Batch, models: int) -> Float[Tensor, "E R V"]:
    """Attention of each row over the words of its document: a softmax of score + log count, stable for any scores."""
    vocabulary = batch.context.shape[-1]
    context = batch.context.view(-1, vocabulary).index_select(0, batch.row_document)
    if scores is not None:
        context += scores.view(-1, vocabulary).index_select(0, batch.row_query)
        context = torch.softmax(context, -1)
    return context.view(models, -1, vocabulary)


def outputs(config: ModelConfig, weights: Weights, batch: Batch) -> Float[Tensor, "E R V"]:
    word = tables(config, weights.parts, batch.context.shape[-1], batch.queries)
    return product(attend(word.scores, batch, weights.models), word.contributions.mT)


@torch.inference_mode()
def loss_and_gradient(
    config: ModelConfig, weights: Weights, objective: Objective, batch: Batch, wanted: Collection[str] | None = None
) -> Float[Tensor, " E"]:
    wanted = weights.trained if wanted is None else wanted
    parts, gradients = weights.parts, weights.gradients
    word = tables(config, parts, batch.context.shape[-1], batch.queries)
    attention = attend(word.scores, batch, weights.models)
    loss, slope = rows_loss(objective, product(attention, word.contributions.mT), batch)
    d_embedding = torch.zeros_like(word.embedding) if word.embedding is not None and "embedding" in wanted else None
    if word.scores is not None and (d_embedding is not None or any(part in wanted for part in config.ATTENTION)):
        d_scores = scores_slope(attention, slope, word, batch)
        back_through_attention(word, parts, gradients, d_scores, wanted, d_embedding, batch.queries)
    for part in set(config.ATTENTION).intersection(wanted) if word.scores is None else ():
        gradients[part].zero_()  # a query without a key has no influence
    direct = gradients["value"] if "value" in wanted and word.head is None and word.embedding is None else None
    d_contributions = torch.bmm(slope.mT, attention, out=direct)
    back_through_value(config, word, parts, gradients, d_contributions, wanted, d_embedding)
    if d_embedding is not None:
        gradients["embedding"].copy_(d_embedding)
    penalise(weights, objective.penalties(weights.trained), wanted)
    return loss


def scores_slope(attention: Tensor, slope: Tensor, word: Tables, batch: Batch) -> Float[Tensor, "E Q V"]:
    """dL: back through the softmax of each row, then rows with the same query word added up."""
    assert word.scores is not None
    models, queries, vocabulary = word.scores.shape
    d_logits = torch.ops.aten._softmax_backward_data(product(slope, word.contributions), attention, -1, attention.dtype)
    if attention.device.type == "cpu":
        d_scores = torch.zeros_like(word.scores)
        d_scores.view(-1, vocabulary).index_add_(0, batch.row_query, d_logits.view(-1, vocabulary))
        return d_scores
    # a GPU adds in any order, and so with other roundings every time; a product always adds in the same
    places = torch.arange(models * queries, device=attention.device).view(models, queries, 1)
    return (batch.row_query.view(models, 1, -1) == places).to(attention.dtype) @ d_logits


def back_through_attention(
    word: Tables,
    parts: Parts,
    gradients: Parts,
    d_scores: Float[Tensor, "E Q V"],
    wanted: Collection[str],
    d_embedding: Tensor | None,
    queries: Int[Tensor, "E Q"] | None,
) -> None:
    """L = (W_Q Z + b_Q)'(W_K Z + b_K) / sqrt(d_a), where only some columns of Z stand on the side of the query."""
    key, query = word.projected["key"], word.projected["query"]
    d_scores.mul_(1 / math.sqrt(key.shape[1]))
    for name, other, slope, listed in (("key", query, d_scores, None), ("query", key, d_scores.mT, queries)):
        if name not in parts and f"{name}_bias" not in wanted:
            continue
        direct = gradients[name] if word.embedding is None and name in wanted and listed is None else None
        d_projected = torch.bmm(other, slope, out=direct)  # d_a x V, or d_a x Q
        if name in wanted and word.embedding is not None:
            torch.bmm(d_projected, columns(word.embedding, listed).mT, out=gradients[name])
        elif name in wanted and listed is not None:
            add_columns(gradients[name].zero_(), listed, d_projected)
        if f"{name}_bias" in wanted:
            torch.sum(d_projected, -1, out=gradients[f"{name}_bias"])
        if d_embedding is not None and name in parts:
            back = parts[name].mT.expand(len(d_projected), -1, -1)
            if listed is None:
                d_embedding.baddbmm_(back, d_projected)
            else:
                add_columns(d_embedding, listed, back @ d_projected)


def back_through_value(
    config: ModelConfig,
    word: Tables,
    parts: Parts,
    gradients: Parts,
    d_contributions: Tensor,
    wanted: Collection[str],
    d_embedding: Tensor | None,
) -> None:
    """U = W_pred (W_V Z + b_V) + b_pred, with W_pred = W_E' where it is tied."""
    d_mixed = d_contributions if word.head is None else product(word.head.mT, d_contributions)
    for name, slope in (("prediction_bias", d_contributions), ("value_bias", d_mixed)):
        if name in wanted:
            torch.sum(slope, -1, out=gradients[name])
    if "head" in wanted:
        mixed = word.mixed.expand(len(d_contributions), -1, -1)  # models may share a frozen one
        torch.bmm(d_contributions, mixed.mT, out=gradients["head"])
    if "value" in wanted and word.embedding is not None:
        torch.bmm(d_mixed, word.embedding.mT, out=gradients["value"])
    elif "value" in wanted and word.head is not None:  # without either it was written there directly
        gradients["value"].copy_(d_mixed)
    if d_embedding is not None:
        d_embedding += product(parts["value"].mT if "value" in parts else None, d_mixed)
        if config.head == "tied":
            d_embedding += product(word.mixed, d_contributions.mT)


class CompiledPass:
    """The same loss and gradient by compiled loops, for one-hot words on a CPU.

    Weights and gradients stay where PyTorch has them.
    """

    def __init__(self, config: ModelConfig, weights: Weights, objective: Objective) -> None:
        from topicscope.model import kernels  # numba takes a third of a second, and a GPU does without

        self.kernels, self.config, self.weights, self.objective = kernels, config, weights, objective
        self.penalties = objective.penalties(weights.trained)
        self.real = weights.blocks[0].numpy().dtype
        self.parts = [self._arrays(weights.member(e)) for e in range(weights.models)]
        self._gradients: dict[tuple[str, ...], list[Arrays]] = {}
        self._space: Space | None = None

    def __call__(self, batch: Batch, wanted: Collection[str] | None = None) -> Float[Tensor, " E"]:
        """Loss of every model, without the penalty. The gradient goes to `weights.gradients`, penalty included."""
        weights = self.weights
        if batch.queries is not None:  # few of many words: products take the time
            return loss_and_gradient(self.config, weights, self.objective, batch, wanted)
        wanted = weights.trained if wanted is None else tuple(wanted)
        seen = self.kernels.Seen(*(np.ascontiguousarray(part.numpy()) for part in batch.parts()))
        vocabulary, gradients = seen.context.shape[2], self._wanted(wanted)
        space = self._space_for(seen.row_weight.shape[1], vocabulary)
        loss = self.objective.loss == "cross-entropy", self.objective.scale(vocabulary)
        losses = [
            self.kernels.loss_and_gradient(*loss, self.parts[e], gradients[e], seen, e, weights.models, space)
            for e in range(weights.models)
        ]
        if self.penalties:
            penalise(weights, self.penalties, wanted)
        return torch.from_numpy(np.array(losses, dtype=self.real))

    def _wanted(self, names: tuple[str, ...]) -> list[Arrays]:
        if names not in self._gradients:
            self._gradients[names] = [
                self._arrays({name: self.weights.gradients[name][e] for name in names})
                for e in range(self.weights.models)
            ]
        return self._gradients[names]

    def _arrays(self, parts: Mapping[str, Tensor]) -> Arrays:
        absent = {1: np.empty(0, self.real), 2: np.empty((0, 0), self.real)}
        return self.kernels.Arrays(
            *(
                parts[name].numpy() if name in parts else absent[1 if name.endswith("_bias") else 2]
                for name in self.kernels.Arrays._fields
            )
        )

    def _space_for(self, rows: int, vocabulary: int) -> Space:
        """Room for so many rows; more than is needed does no harm."""
        if self._space is None or len(self._space.attention) < rows:
            row, table = (rows, vocabulary), (vocabulary, vocabulary)
            projected = (len(self.parts[0].key), vocabulary)
            shapes = (row, row, row, table, projected, projected, vocabulary, self.kernels.LANES)
            self._space = self.kernels.Space(*(np.ones(shape, self.real) for shape in shapes))
        return self._space
