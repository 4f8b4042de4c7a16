"""What runs a model on batches: the numbers of E models side by side, losses, and two passes with one meaning.

`dense_forward` is the one-layer transformer as eq 6 is written: one model, every position, autograd. `outputs` and
`loss_and_gradient` are what runs: at the level of words the model is two V x V tables, scores L (query word, key word)
and contributions U (output word, key word). A query word j of document b attends word i with weight
C[b,i] exp(L[j,i]) / sum_l C[b,l] exp(L[j,l]) and predicts U A; biases fold into the tables because attention sums to 1.
So: parts -> tables -> loss, and the gradient back the same way. Exact, and tested against the dense pass in float64.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from topicscope.model import kernels
    from topicscope.model.architecture import Architecture, Arrays, Objective
    from topicscope.model.one_layer import ModelConfig
    from topicscope.world import Batch, Masking, TopicModel

Parts = Mapping[str, Tensor]


class Weights:
    """The numbers of E models side by side: trained parts in flat blocks with their gradients, frozen parts apart.

    `parts[name]` has the shape (E, *shape) for a trained part and (1, *shape) for a frozen one that is not trivial.

    Args:
        members: For each model, its trained parts by name.
        frozen: Frozen parts by name, which all models share.
        groups: Names of parts that lie in one block, because they always train together; None: all of them.
        dtype: Floating-point type.
        device: Where the tensors lie.

    Example:
        >>> from topicscope import Masking, ModelConfig, TopicModel, Weights
        >>> weights = Weights.from_config(ModelConfig(), TopicModel(3, 2), Masking(), seed=0)
        >>> weights.trained, tuple(weights.parts["value"].shape)
        (('key', 'query', 'value', 'prediction_bias'), (1, 7, 7))
    """

    def __init__(
        self,
        members: Sequence[Arrays],
        frozen: Arrays,
        groups: Sequence[Sequence[str]] | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        shapes = {name: value.shape for name, value in members[0].items()}
        self.groups = [tuple(group) for group in (groups or ([list(shapes)] if shapes else []))]
        self.models = len(members)
        self.pairs: dict[str, Float[Tensor, "2 E n"]] = {}  # a trained part and its gradient, flat
        both_blocks: list[Float[Tensor, "2 E n"]] = []
        for group in self.groups:
            stacked = [np.concatenate([np.ravel(member[name]) for name in group]) for member in members]
            both = torch.tensor(np.stack([stacked, np.zeros_like(stacked)]), dtype=dtype, device=device)
            both_blocks.append(both)
            sizes = [math.prod(shapes[name]) for name in group]
            self.pairs |= zip(group, torch.split(both, sizes, dim=2), strict=True)
        self.blocks, self.gradient_blocks = [both[0] for both in both_blocks], [both[1] for both in both_blocks]
        views = {name: pair.view(2, self.models, *shapes[name]) for name, pair in self.pairs.items()}
        self.trained = tuple(shapes)
        self.gradients = {name: view[1] for name, view in views.items()}
        self.parts = {name: view[0] for name, view in views.items()}
        self.parts |= {name: torch.tensor(value, dtype=dtype, device=device)[None] for name, value in frozen.items()}

    @classmethod
    def from_config(
        cls,
        config: Architecture,
        topic_model: TopicModel,
        masking: Masking,
        seed: int = 0,
        *,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
    ) -> Weights:
        """One freshly initialised model."""
        config.check(topic_model, masking)
        start = [config.initial(topic_model.vocabulary, seed)]
        return cls(start, config.frozen(topic_model, masking), dtype=dtype, device=device)

    def member(self, index: int) -> dict[str, Tensor]:
        """All parts of one model without the leading axis; trained parts are views."""
        return {name: part[index if name in self.trained else 0] for name, part in self.parts.items()}


def rows_loss(
    objective: Objective, output: Float[Tensor, "E R V"], batch: Batch
) -> tuple[Float[Tensor, " E"], Float[Tensor, "E R V"]]:
    """Loss of each model, and its derivative by the outputs. The targets are sparse: a row wants a few words out of V.

    Overwrites `output`.
    """
    models, _, vocabulary = output.shape
    if objective.loss == "cross-entropy":
        output = output.log_softmax(-1)
        wanted = output.view(-1).index_select(0, batch.target)
        value = -(wanted * batch.target_weight).view(models, -1).sum(1)
        slope = output.exp_().mul_(batch.row_weight)
        slope.view(-1).index_add_(0, batch.target, batch.target_weight, alpha=-1)
        return value, slope
    scale = objective.scale(vocabulary)
    wanted = output.view(-1).index_select(0, batch.target)
    slope = output * batch.row_weight
    # sum_w y_w |f - e_w|^2 = (sum_w y_w) |f|^2 - 2 sum_w y_w f_w + sum_w y_w
    value = (slope * output).sum((1, 2)) + (batch.target_weight * (1 - 2 * wanted)).view(models, -1).sum(1)
    slope.view(-1).index_add_(0, batch.target, batch.target_weight, alpha=-1)
    return value.mul_(scale), slope.mul_(2 * scale)


@torch.inference_mode()
def loss_of(model: Architecture, weights: Weights, objective: Objective, batch: Batch) -> Float[Tensor, " E"]:
    return rows_loss(objective, model.outputs(weights, batch), batch)[0]


@torch.inference_mode()
def losses_of_documents(
    model: Architecture, weights: Weights, objective: Objective, batch: Batch
) -> Float[Tensor, " B"]:
    documents, vocabulary = batch.context.shape[1:]
    output = model.outputs(weights, batch)[0]
    row = batch.target // vocabulary
    if objective.loss == "cross-entropy":
        cost = -output.log_softmax(-1).view(-1)[batch.target]
    else:
        cost = (output**2).sum(1)[row] - 2 * output.reshape(-1)[batch.target] + 1
    share = batch.target_weight * (cost * objective.scale(vocabulary))
    return cost.new_zeros(documents).index_add_(0, batch.row_document[row], share).mul_(documents)


@torch.inference_mode()
def penalise(weights: Weights, penalties: Mapping[str, float], wanted: Collection[str]) -> None:
    for part, rate in penalties.items():
        if part in wanted:
            weights.gradients[part].add_(weights.parts[part], alpha=2 * rate)


def gradient_by_autograd(
    model: Architecture, weights: Weights, objective: Objective, batch: Batch, wanted: Collection[str] | None
) -> Float[Tensor, " E"]:
    names = [name for name in weights.trained if wanted is None or name in wanted]
    with torch.enable_grad():
        traced = copy(weights)
        traced.parts = weights.parts | {name: weights.parts[name].detach().requires_grad_() for name in names}
        output = model.outputs(traced, batch)
        with torch.no_grad():
            value, slope = rows_loss(objective, output.clone(), batch)
        gradients = torch.autograd.grad(output, [traced.parts[name] for name in names], slope)
    for name, gradient in zip(names, gradients, strict=True):
        weights.gradients[name].copy_(gradient)
    penalise(weights, objective.penalties(weights.trained), names)
    return value


def plus_column(matrix: Float[Tensor, "E m n"], column: Float[Tensor, "*E m"] | None) -> Float[Tensor, "E m n"]:
    return matrix if column is None else matrix + column[..., None]


def attention(
    config: ModelConfig, parts: Parts, z: Float[Tensor, "B d N"], visible: Bool[Tensor, "B N"]
) -> Float[Tensor, "B N N"]:
    """A = softmax over keys of (W_K Z + b_K)'(W_Q Z + b_Q) / sqrt(d_a) (eq 5)."""
    if config.key == "zero":
        scores = z.new_zeros(z.shape[0], z.shape[2], z.shape[2])
    else:
        key = parts["key"] @ z
        query = parts["query"] @ z if "query" in parts else torch.zeros_like(key)
        key, query = plus_column(key, parts.get("key_bias")), plus_column(query, parts.get("query_bias"))
        scores = key.mT @ query / math.sqrt(key.shape[1])
    return torch.softmax(scores.masked_fill(~visible[:, :, None], -math.inf), dim=1)


def dense_forward(
    config: ModelConfig, parts: Parts, shown: Int[Tensor, "B N"], visible: Bool[Tensor, "B N"], vocabulary: int
) -> Float[Tensor, "B V N"]:
    """f(X) = W_pred (W_V Z A + b_V) + b_pred at every position (eq 6), with Z = W_E X.

    Columns of the paper are the last axis but one here: Z is (documents, d, positions). Padding (-1) is embedded as
    [MASK], and not visible.
    """
    one_hot = functional.one_hot(shown.clamp(min=0), vocabulary).to(next(iter(parts.values())).dtype).mT
    z = one_hot if config.embedding == "one-hot" else parts["embedding"] @ one_hot
    attended = z @ attention(config, parts, z, visible)
    output = plus_column(parts["value"] @ attended if "value" in parts else attended, parts.get("value_bias"))
    if config.head == "untied":
        output = parts["head"] @ output
    elif config.head == "tied" and config.embedding == "trained":
        output = parts["embedding"].mT @ output
    return plus_column(output, parts.get("prediction_bias"))


def dense_loss(
    config: ModelConfig,
    parts: Parts,
    objective: Objective,
    words: Int[Tensor, "B N"],
    shown: Int[Tensor, "B N"],
    selected: Bool[Tensor, "B N"],
    vocabulary: int,
) -> Float[Tensor, ""]:
    """The loss (eq 1) position by position, without the L2 penalty: mean over documents and their masked positions."""
    there = words >= 0
    unmasked = there & ~selected if config.hide_masked else there
    visible = torch.where(unmasked.any(1, keepdim=True), unmasked, there)  # all of them, where all are masked
    output = dense_forward(config, parts, shown, visible, vocabulary).mT  # B N V
    truth = words.clamp(min=0).long()
    if objective.loss == "cross-entropy":
        cost = -torch.log_softmax(output, -1).gather(2, truth[:, :, None])[:, :, 0]
    else:
        cost = (output - functional.one_hot(truth, vocabulary)).square().sum(-1)
        if objective.loss == "squared-mean":
            cost = cost / vocabulary
    return ((cost * selected).sum(1) / selected.sum(1)).mean()


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
    """The same by compiled loops, for one-hot words on a CPU. Weights and gradients stay where PyTorch has them."""

    def __init__(self, config: ModelConfig, weights: Weights, objective: Objective) -> None:
        from topicscope.model import kernels  # numba takes a third of a second, and a GPU does without

        self.kernels, self.config, self.weights, self.objective = kernels, config, weights, objective
        self.penalties = objective.penalties(weights.trained)
        self.real = weights.blocks[0].numpy().dtype
        self.parts = [self._arrays(weights.member(e)) for e in range(weights.models)]
        self._gradients: dict[tuple[str, ...], list[kernels.Arrays]] = {}
        self._space: kernels.Space | None = None

    def __call__(self, batch: Batch, wanted: Collection[str] | None = None) -> Float[Tensor, " E"]:
        """Loss of every model, without the penalty. The gradient goes to `weights.gradients`, penalty included."""
        weights = self.weights
        if batch.queries is not None:  # few of many words: products take the time
            return loss_and_gradient(self.config, weights, self.objective, batch, wanted)
        wanted = weights.trained if wanted is None else tuple(wanted)
        seen = self.kernels.Seen(*(np.ascontiguousarray(part.numpy()) for part in batch.parts()))
        if wanted not in self._gradients:
            self._gradients[wanted] = [
                self._arrays({name: weights.gradients[name][e] for name in wanted}) for e in range(weights.models)
            ]
        vocabulary, gradients = seen.context.shape[2], self._gradients[wanted]
        space = self._space_for(seen.row_weight.shape[1], vocabulary)
        loss = self.objective.loss == "cross-entropy", self.objective.scale(vocabulary)
        losses = [
            self.kernels.loss_and_gradient(*loss, self.parts[e], gradients[e], seen, e, weights.models, space)
            for e in range(weights.models)
        ]
        if self.penalties:
            penalise(weights, self.penalties, wanted)
        return torch.from_numpy(np.array(losses, dtype=self.real))

    def _arrays(self, parts: Mapping[str, Tensor]) -> kernels.Arrays:
        absent = {1: np.empty(0, self.real), 2: np.empty((0, 0), self.real)}
        return self.kernels.Arrays(
            *(
                parts[name].numpy() if name in parts else absent[1 if name.endswith("_bias") else 2]
                for name in self.kernels.Arrays._fields
            )
        )

    def _space_for(self, rows: int, vocabulary: int) -> kernels.Space:
        if self._space is None or len(self._space.attention) < rows:
            row, table = (rows, vocabulary), (vocabulary, vocabulary)
            projected = (len(self.parts[0].key), vocabulary)
            shapes = (row, row, row, table, projected, projected, vocabulary, self.kernels.LANES)
            self._space = self.kernels.Space(*(np.ones(shape, self.real) for shape in shapes))
        return self._space
