"""The collapsed pass: the same loss from word counts, with its gradient by hand.

At the level of words the model is two V x V tables: scores L (query word, key word) and contributions U (output word,
key word). A query word j of document b attends word i with weight C[b,i] exp(L[j,i]) / sum_l C[b,l] exp(L[j,l]) and
predicts U A; biases fold into the tables because attention sums to 1. So: parts -> tables -> loss, and the gradient
back the same way. E models run side by side (leading axis). Exact, and tested against the dense pass in float64.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.model.parts import ATTENTION_PARTS, Loss, ModelConfig, Objective
from topicscope.model.weights import Parts, Weights
from topicscope.world import Batch


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
    """The columns of the query words."""
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


def forward(
    config: ModelConfig, weights: Weights, objective: Objective, batch: Batch
) -> tuple[Tables, Float[Tensor, "E R V"], Float[Tensor, " E"], Float[Tensor, "E R V"]]:
    """Tables, attention, the loss of every model, and its derivative by the outputs."""
    word = tables(config, weights.parts, batch.context.shape[-1], batch.queries)
    attention = attend(word.scores, batch, weights.models)
    output = product(attention, word.contributions.mT)
    return word, attention, *value_and_slope(objective.loss, output, batch)


def value_and_slope(
    loss: Loss, output: Float[Tensor, "E R V"], batch: Batch
) -> tuple[Float[Tensor, " E"], Float[Tensor, "E R V"]]:
    """Loss of each model, and its derivative by the outputs. The targets are sparse: a row wants a few words out of V.

    Overwrites `output`.
    """
    models, _, vocabulary = output.shape
    if loss == "cross-entropy":
        output = output.log_softmax(-1)
        wanted = output.view(-1).index_select(0, batch.target)
        value = -(wanted * batch.target_weight).view(models, -1).sum(1)
        slope = output.exp_().mul_(batch.row_weight)
        slope.view(-1).index_add_(0, batch.target, batch.target_weight, alpha=-1)
        return value, slope
    scale = 1 / vocabulary if loss == "squared-mean" else 1.0
    wanted = output.view(-1).index_select(0, batch.target)
    slope = output * batch.row_weight
    # sum_w y_w |f - e_w|^2 = (sum_w y_w) |f|^2 - 2 sum_w y_w f_w + sum_w y_w
    value = (slope * output).sum((1, 2)) + (batch.target_weight * (1 - 2 * wanted)).view(models, -1).sum(1)
    slope.view(-1).index_add_(0, batch.target, batch.target_weight, alpha=-1)
    return value.mul_(scale), slope.mul_(2 * scale)


@torch.inference_mode()
def collapsed_loss(config: ModelConfig, weights: Weights, objective: Objective, batch: Batch) -> Float[Tensor, " E"]:
    """The loss of every model on a batch, without the L2 penalty, computed from word counts.

    Args:
        config: The model.
        weights: Weights of E models.
        objective: Which loss.
        batch: Batch of the same E models.

    Returns:
        One loss per model (E).

    Example:
        >>> import torch
        >>> from topicscope.world import InfiniteDocuments, Masking, TopicModel, stack
        >>> config = ModelConfig(init_scale=0.0)
        >>> weights = Weights.from_config(config, TopicModel(2, 1), Masking(), dtype=torch.float64)
        >>> [rows] = InfiniteDocuments(torch.tensor([[0.5, 0.5]]).numpy()).batches(TopicModel(2, 1), Masking())
        >>> round(float(collapsed_loss(config, weights, Objective(), stack([rows], torch.float64))), 9)  # ln 3
        1.098612289
    """
    return forward(config, weights, objective, batch)[2]


@torch.inference_mode()
def document_losses(config: ModelConfig, weights: Weights, objective: Objective, batch: Batch) -> Float[Tensor, " B"]:
    """The loss of a single model on each document of its batch; their mean is `collapsed_loss`.

    Args:
        config: The model.
        weights: Weights of one model.
        objective: Which loss.
        batch: Batch of one model.

    Returns:
        One loss per document (B).

    Example:
        >>> import torch
        >>> from topicscope.world import InfiniteDocuments, Masking, TopicModel, stack
        >>> config = ModelConfig(init_scale=0.0)
        >>> weights = Weights.from_config(config, TopicModel(2, 1), Masking(), dtype=torch.float64)
        >>> [rows] = InfiniteDocuments(torch.eye(2).numpy()).batches(TopicModel(2, 1), Masking())
        >>> document_losses(config, weights, Objective(loss="squared"), stack([rows], torch.float64)).tolist()
        [1.0, 1.0]
    """
    documents, vocabulary = batch.context.shape[1:]
    word = tables(config, weights.parts, vocabulary, batch.queries)
    output = product(attend(word.scores, batch, 1), word.contributions.mT)[0]
    row = batch.target // vocabulary
    if objective.loss == "cross-entropy":
        cost = -output.log_softmax(-1).view(-1)[batch.target]
    else:
        cost = (output**2).sum(1)[row] - 2 * output.reshape(-1)[batch.target] + 1
    cost = cost * objective.scale(vocabulary)
    total = torch.zeros(documents, dtype=cost.dtype, device=cost.device)
    return total.index_add_(0, batch.row_document[row], batch.target_weight * cost).mul_(documents)


@torch.inference_mode()
def loss_and_gradient(
    config: ModelConfig, weights: Weights, objective: Objective, batch: Batch, wanted: Collection[str] | None = None
) -> Float[Tensor, " E"]:
    """The loss of every model, and the gradient of the objective, penalty included, in `weights.gradients`.

    Args:
        config: The model.
        weights: Weights of E models.
        objective: Loss and L2 penalty.
        batch: Batch of the same E models.
        wanted: Parts whose gradient is needed; None: all trained parts. Gradients of other parts are not touched.

    Returns:
        One loss per model (E), without the L2 penalty.

    Example:
        >>> import torch
        >>> from topicscope.world import InfiniteDocuments, Masking, TopicModel, stack
        >>> config = ModelConfig(init_scale=0.0)
        >>> weights = Weights.from_config(config, TopicModel(2, 1), Masking(), dtype=torch.float64)
        >>> [rows] = InfiniteDocuments(torch.eye(2).numpy()).batches(TopicModel(2, 1), Masking())
        >>> loss = loss_and_gradient(config, weights, Objective(loss="squared"), stack([rows], torch.float64))
        >>> gradient = weights.gradients["prediction_bias"][0]
        >>> loss.tolist(), gradient.round(decimals=9).tolist()  # each word is wanted half of the time
        ([1.0], [0.0, -1.0, -1.0])
    """
    wanted = weights.trained if wanted is None else wanted
    parts, gradients = weights.parts, weights.gradients
    word, attention, loss, slope = forward(config, weights, objective, batch)
    d_embedding = torch.zeros_like(word.embedding) if word.embedding is not None and "embedding" in wanted else None
    if word.scores is not None and (d_embedding is not None or any(part in wanted for part in ATTENTION_PARTS)):
        d_scores = scores_slope(attention, slope, word, batch)
        back_through_attention(word, parts, gradients, d_scores, wanted, d_embedding, batch.queries)
    for part in set(ATTENTION_PARTS).intersection(wanted) if word.scores is None else ():
        gradients[part].zero_()  # a query without a key has no influence
    direct = gradients["value"] if "value" in wanted and word.head is None and word.embedding is None else None
    d_contributions = torch.bmm(slope.mT, attention, out=direct)
    back_through_value(config, word, parts, gradients, d_contributions, wanted, d_embedding)
    if d_embedding is not None:
        gradients["embedding"].copy_(d_embedding)
    for part, rate in objective.penalties(weights.trained).items():
        if part in wanted:
            gradients[part].add_(parts[part], alpha=2 * rate)
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
