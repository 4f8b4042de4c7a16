"""Figures and optimisers in compiled loops: one pass over the weights where PyTorch makes a call for each operation.

The formulas are those of `Tracker` and of torch.optim, which a GPU runs; the tests hold one against the other.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import compiled


@compiled
def norms(
    block: Float[np.ndarray, "E n"],
    gradients: Float[np.ndarray, "E n"],
    places: Int[np.ndarray, "P 3"],
    row: Float[np.ndarray, "M E"],
) -> None:
    """Norms of the parts of a block and of their gradients; `places`: start and end of each, and its line in `row`."""
    for start, end, line in places:
        for e in range(len(block)):
            part, slope = block[e, start:end], gradients[e, start:end]
            row[line, e] = math.sqrt(np.dot(part, part))
            row[line + 1, e] = math.sqrt(np.dot(slope, slope))


@compiled
def rotations(
    block: Float[np.ndarray, "E n"], start: int, before: Float[np.ndarray, "E m"], row: Float[np.ndarray, " E"]
) -> None:
    """Products of W_V with that of ten steps before, whose place it then takes."""
    for e in range(len(block)):
        past = before[e]
        now = block[e, start : start + len(past)]
        row[e] = np.dot(past, now)
        past[:] = now


@compiled
def block_means(
    block: Float[np.ndarray, "E n"], start: int, topics: int, vocabulary: int, rows: Float[np.ndarray, "3 E"]
) -> None:
    """Means of W_V over pairs of words of the same topic, of different topics, and of a word with itself.

    The words 1..Tv lie topic by topic; [MASK] is in no relation.
    """
    words, column = vocabulary - 1, np.empty(vocabulary)
    size = words // topics
    for e in range(len(block)):
        matrix = block[e, start : start + vocabulary * vocabulary].reshape(vocabulary, vocabulary)
        same, different, diagonal = 0.0, 0.0, 0.0
        for topic in range(topics):
            first = 1 + topic * size
            column.fill(0)
            for word in range(first, first + size):
                diagonal += matrix[word, word]
                column += matrix[word]
            same += column[first : first + size].sum()
            different += column[1:first].sum() + column[first + size :].sum()
        rows[0, e] = (same - diagonal) / (words * (size - 1))
        rows[1, e] = different / (words * (words - size))
        rows[2, e] = diagonal / words


@compiled
def relation_means(
    block: Float[np.ndarray, "E n"], start: int, same: Float[np.ndarray, "V V"], rows: Float[np.ndarray, "3 E"]
) -> None:
    """The same means where words have several topics, or topics differ in size: `same` is 1 where two share one."""
    vocabulary, whole, inside = len(same), np.empty(len(same)), np.empty(len(same))
    words, mates = vocabulary - 1, same[1:, 1:].sum()
    for e in range(len(block)):
        matrix, diagonal = block[e, start : start + vocabulary * vocabulary].reshape(vocabulary, vocabulary), 0.0
        whole.fill(0)
        inside.fill(0)
        for word in range(1, vocabulary):
            line, shared = matrix[word], same[word]
            diagonal += line[word]
            for i in range(vocabulary):
                whole[i] += line[i]
                inside[i] += line[i] * shared[i]
        shared_sum = inside[1:].sum()
        rows[0, e] = (shared_sum - diagonal) / (mates - words)
        rows[1, e] = (whole[1:].sum() - shared_sum) / (words * words - mates)
        rows[2, e] = diagonal / words


@compiled
def adam(
    weights: Float[np.ndarray, "E n"],
    gradients: Float[np.ndarray, "E n"],
    moment1: Float[np.ndarray, "E n"],
    moment2: Float[np.ndarray, "E n"],
    step: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """Step number `step` of Adam, from 1 on."""
    real = weights.dtype.type
    keep2, new1, new2, least = real(beta2), real(1 - beta1), real(1 - beta2), real(eps)
    root, rate = real(math.sqrt(1 - beta2**step)), real(lr / (1 - beta1**step))
    for e in range(len(weights)):
        weight, gradient, first, second = weights[e], gradients[e], moment1[e], moment2[e]
        for i in range(len(weight)):
            slope = gradient[i]
            first[i] += new1 * (slope - first[i])
            second[i] = keep2 * second[i] + new2 * slope * slope
            weight[i] -= rate * first[i] / (np.sqrt(second[i]) / root + least)


@compiled
def sgd(
    weights: Float[np.ndarray, "E n"],
    gradients: Float[np.ndarray, "E n"],
    momentum: Float[np.ndarray, "M n"],
    lr: float,
    keep: float,
) -> None:
    """`momentum` is empty where nothing is remembered."""
    rate, share, remembered = weights.dtype.type(lr), weights.dtype.type(keep), len(momentum) > 0
    for e in range(len(weights)):
        weight, gradient = weights[e], gradients[e]
        past = momentum[e] if remembered else gradient
        for i in range(len(weight)):
            if remembered:
                past[i] = share * past[i] + gradient[i]
            weight[i] -= rate * past[i]
