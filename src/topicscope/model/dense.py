"""The dense pass: every position of every document, as eq 6 is written. The collapsed pass is tested against it.

One model, autograd, no tricks. Columns of the paper are the last axis but one here: Z is (documents, d, positions).
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from topicscope.model.architecture import Objective
from topicscope.model.one_layer import ModelConfig
from topicscope.model.weights import Parts


def embed(config: ModelConfig, parts: Parts, shown: Int[Tensor, "B N"], vocabulary: int) -> Float[Tensor, "B d N"]:
    """Z = W_E X; padding (-1) is embedded as [MASK] and hidden from attention by the caller."""
    one_hot = functional.one_hot(shown.clamp(min=0), vocabulary).to(next(iter(parts.values())).dtype).mT
    return one_hot if config.embedding == "one-hot" else parts["embedding"] @ one_hot


def plus_bias(matrix: Float[Tensor, "B m N"], parts: Parts, name: str) -> Float[Tensor, "B m N"]:
    return matrix + parts[name][:, None] if name in parts else matrix


def attention(
    config: ModelConfig, parts: Parts, z: Float[Tensor, "B d N"], visible: Bool[Tensor, "B N"]
) -> Float[Tensor, "B N N"]:
    """A = softmax over keys of (W_K Z + b_K)'(W_Q Z + b_Q) / sqrt(d_a) (eq 5)."""
    if config.key == "zero":
        scores = z.new_zeros(z.shape[0], z.shape[2], z.shape[2])
    else:
        key = parts["key"] @ z
        query = parts["query"] @ z if "query" in parts else torch.zeros_like(key)
        key, query = plus_bias(key, parts, "key_bias"), plus_bias(query, parts, "query_bias")
        scores = key.mT @ query / math.sqrt(key.shape[1])
    return torch.softmax(scores.masked_fill(~visible[:, :, None], -math.inf), dim=1)


def dense_forward(
    config: ModelConfig, parts: Parts, shown: Int[Tensor, "B N"], visible: Bool[Tensor, "B N"], vocabulary: int
) -> Float[Tensor, "B V N"]:
    """f(X) = W_pred (W_V Z A + b_V) + b_pred at every position (eq 6)."""
    z = embed(config, parts, shown, vocabulary)
    attended = z @ attention(config, parts, z, visible)
    output = plus_bias(parts["value"] @ attended if "value" in parts else attended, parts, "value_bias")
    if config.head == "untied":
        output = parts["head"] @ output
    elif config.head == "tied" and config.embedding == "trained":
        output = parts["embedding"].mT @ output
    return plus_bias(output, parts, "prediction_bias")


def visible_positions(
    config: ModelConfig, words: Int[Tensor, "B N"], selected: Bool[Tensor, "B N"]
) -> Bool[Tensor, "B N"]:
    """All positions of the document; with `hide_masked` the unmasked ones, where there is any."""
    there = words >= 0
    unmasked = there & ~selected if config.hide_masked else there
    return torch.where(unmasked.any(1, keepdim=True), unmasked, there)


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
    output = dense_forward(config, parts, shown, visible_positions(config, words, selected), vocabulary).mT  # B N V
    truth = words.clamp(min=0).long()
    if objective.loss == "cross-entropy":
        cost = -torch.log_softmax(output, -1).gather(2, truth[:, :, None])[:, :, 0]
    else:
        cost = (output - functional.one_hot(truth, vocabulary)).square().sum(-1)
        if objective.loss == "squared-mean":
            cost = cost / vocabulary
    return ((cost * selected).sum(1) / selected.sum(1)).mean()
