"""The numbers of E models side by side: trained parts in flat blocks, frozen parts apart.

Parts that are always trained together lie in one block of shape (E, numbers), so that the optimiser makes one pass over
it; `parts` are views into the blocks. Gradients lie beside the weights, so that one call takes the norms of both.
A single model is an ensemble of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import Stream, generator
from topicscope.model.parts import PARTS, ModelConfig
from topicscope.world import Masking, TopicModel

Parts = Mapping[str, Tensor]


def initial(config: ModelConfig, vocabulary: int, seed: int) -> dict[str, Float[np.ndarray, ...]]:
    """Initial values of the trained parts. Each part has its own random stream: freezing one changes no other.

    Args:
        config: Says which parts are trained, and from which scale they start.
        vocabulary: V.
        seed: Seed of the random streams.

    Returns:
        Arrays by the name of the part.

    Example:
        >>> start = initial(ModelConfig(init_scale=0.0), vocabulary=3, seed=0)
        >>> sorted(start), float(abs(start["value"]).max())
        (['key', 'prediction_bias', 'query', 'value'], 0.0)
    """
    values, scale = {}, config.start_scale(vocabulary)
    for name, shape in config.trained_shapes(vocabulary).items():
        rng = generator(seed, Stream.INITIAL_WEIGHTS, PARTS.index(name))
        values[name] = np.zeros(shape) if name.endswith("_bias") else scale * rng.standard_normal(shape)
    return values


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
        members: Sequence[Mapping[str, Float[np.ndarray, ...]]],
        frozen: Mapping[str, Float[np.ndarray, ...]],
        groups: Sequence[Sequence[str]] | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        shapes = {name: value.shape for name, value in members[0].items()}
        self.groups = [tuple(group) for group in (groups or ([list(shapes)] if shapes else []))]
        self.models = len(members)
        self.blocks: list[Float[Tensor, "E n"]] = []
        self.gradient_blocks: list[Float[Tensor, "E n"]] = []
        self.parts: dict[str, Tensor] = {}
        self.gradients: dict[str, Tensor] = {}
        self.pairs: dict[str, Float[Tensor, "2 E n"]] = {}  # a trained part and its gradient, flat
        for group in self.groups:
            stacked = [np.concatenate([np.ravel(member[name]) for name in group]) for member in members]
            both = torch.tensor(np.stack([stacked, np.zeros_like(stacked)]), dtype=dtype, device=device)
            self.blocks.append(both[0])
            self.gradient_blocks.append(both[1])
            sizes = [math.prod(shapes[name]) for name in group]
            for name, pair in zip(group, torch.split(both, sizes, dim=2), strict=True):
                self.pairs[name] = pair
                self.parts[name], self.gradients[name] = pair.view(2, self.models, *shapes[name])
        self.trained = tuple(name for name in PARTS if name in self.parts)
        self.parts |= {name: torch.tensor(value, dtype=dtype, device=device)[None] for name, value in frozen.items()}

    @classmethod
    def from_config(
        cls,
        config: ModelConfig,
        topic_model: TopicModel,
        masking: Masking,
        seed: int = 0,
        *,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
    ) -> Weights:
        """One freshly initialised model."""
        config.check(topic_model, masking)
        values, frozen = initial(config, topic_model.vocabulary, seed), config.frozen(topic_model, masking)
        return cls([values], frozen, dtype=dtype, device=device)

    def member(self, index: int) -> dict[str, Tensor]:
        """All parts of one model without the leading axis; trained parts are views."""
        return {name: part[index if name in self.trained else 0] for name, part in self.parts.items()}
