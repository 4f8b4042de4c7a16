"""What attention heads put out, seen or replaced while a model runs: the mean over a text, and ablation by that mean.

with changed_heads(model, means.add): ...            # a pass over the corpus
with changed_heads(model, replacing(means, {2: [5]})): ...   # head 5 of layer 2 says the same everywhere

The library computes attention of most architectures by one function for each, which gives a vector for each position
and head, ahead of the output projection. That function is wrapped. Layers are told apart by the order of its calls, so
that layers which share their weights (ALBERT) are still several.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground import InputError
from topicscope.language.forward import attention_of
from topicscope.language.models import TRIED, LoadedModel

EAGER = "eager_attention_forward"  # the library's name of that function, in the file of each architecture

Outputs = Float[Tensor, "B N H d"]
Change = Callable[[int, Outputs, Int[Tensor, "B N"] | None], Outputs]
"""From the number of an attention call, what its heads put out, and which positions are text: what goes on from there.

Of an encoder-decoder the encoder's calls come first, so a layer of the encoder has its own number.
"""


@contextmanager
def changed_heads(model: Any, change: Change) -> Iterator[None]:
    """Every forward pass of the model takes what `change` returns in place of what its heads put out."""
    files = {module for part in model.modules() if hasattr(module := sys.modules[type(part).__module__], EAGER)}
    calls, mask = 0, None

    def started(_model: Any, _args: Any, inputs: dict[str, Any]) -> None:
        nonlocal calls, mask
        calls, mask = 0, inputs.get("attention_mask")

    def wrapped(attend: Any) -> Any:
        def attention(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            outputs, *rest = attend(*args, **kwargs)
            calls += 1
            return (change(calls - 1, outputs, mask), *rest)

        return attention

    plain = {file: getattr(file, EAGER) for file in files}
    handle = model.register_forward_pre_hook(started, with_kwargs=True)
    for file, attend in plain.items():
        setattr(file, EAGER, wrapped(attend))
    try:
        yield
    finally:
        handle.remove()
        for file, attend in plain.items():
            setattr(file, EAGER, attend)


class HeadMeans:
    """The mean output of every head of the first layers, over all positions that are text. `heads`: of each layer."""

    def __init__(self, heads: Sequence[int]) -> None:
        self.heads = heads
        self.sums: dict[int, Float[Tensor, "H d"]] = {}
        self.positions = [0.0] * len(heads)

    def add(self, layer: int, outputs: Outputs, mask: Int[Tensor, "B N"] | None) -> Outputs:
        if layer < len(self.heads):
            text = torch.ones_like(outputs[:, :, 0, 0]) if mask is None else mask
            found = torch.einsum("bnhd,bn->hd", outputs.double(), text.double())
            self.sums[layer] = self.sums[layer] + found if layer in self.sums else found
            self.positions[layer] += float(text.sum())
        return outputs

    def mean(self, layer: int) -> Float[Tensor, "H d"]:
        return self.sums[layer] / self.positions[layer]


def replacing(means: HeadMeans, heads: Mapping[int, Sequence[int]]) -> Change:
    """Each of these heads (by layer) puts out its mean at every position."""

    def change(layer: int, outputs: Outputs, _mask: Int[Tensor, "B N"] | None) -> Outputs:
        chosen = list(heads.get(layer, ()))
        if chosen:
            outputs = outputs.clone()
            outputs[:, :, chosen] = means.mean(layer)[chosen].to(outputs.dtype)
        return outputs

    return change


@torch.inference_mode()
def heads_of_layers(model: Any, loaded: LoadedModel) -> list[int]:
    """How many heads each layer of the main part has; InputError where what they put out cannot be reached.

    A forward pass shows it: calls must come in the order of layers, one for each, with as many heads.
    """
    tokens = torch.as_tensor(loaded.tokenizer(TRIED, return_tensors="np")["input_ids"], device=loaded.device)
    seen: list[tuple[int, ...]] = []

    def watch(_layer: int, outputs: Outputs, _mask: Any) -> Outputs:
        seen.append(tuple(outputs.shape))
        return outputs

    with changed_heads(model, watch):
        parts = attention_of(model, tokens, torch.ones_like(tokens))
    main = next(iter(parts.values()))
    heads = [layer.shape[1] for layer in main]
    layers = sum(map(len, parts.values()))
    shapes = [(*tokens.shape, count) for count in heads]
    if len(seen) != layers or [shape[:3] for shape in seen[: len(heads)]] != shapes:
        raise InputError("the outputs of single heads cannot be read in this architecture")
    return heads
