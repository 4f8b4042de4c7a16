"""The numbers of E models side by side, trained parts in flat blocks and frozen parts apart; and their losses.

Parts that are always trained together lie in one block of shape (E, numbers), so that the optimiser makes one pass over
it; `parts` are views into the blocks. Gradients lie beside the weights, so that one call takes the norms of both.
A single model is an ensemble of one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.model.architecture import Architecture, Arrays, Objective
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
    """Add the gradient of the L2 penalty."""
    for part, rate in penalties.items():
        if part in wanted:
            weights.gradients[part].add_(weights.parts[part], alpha=2 * rate)


def gradient_by_autograd(
    model: Architecture, weights: Weights, objective: Objective, batch: Batch, wanted: Collection[str] | None
) -> Float[Tensor, " E"]:
    """For architectures without a gradient of their own."""
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
