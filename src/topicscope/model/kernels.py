"""The collapsed pass over one-hot words as compiled loops: loss and gradient of one model, in one call.

The same as passes.py, which is the specification, where some 60 calls of PyTorch cost as much as the products. One
model after another stays in the cache. Rows are softmaxed in place, and biases of the output are added to its rows,
not to the table: attention sums to 1. An array of size zero stands for a part that is absent, or not wanted.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import compiled

LANES = 8  # numbers that a CPU handles at once


class Arrays(NamedTuple):
    key: Float[np.ndarray, "d_a V"]
    query: Float[np.ndarray, "d_a V"]
    value: Float[np.ndarray, "V V"]
    key_bias: Float[np.ndarray, " d_a"]
    query_bias: Float[np.ndarray, " d_a"]
    value_bias: Float[np.ndarray, " V"]
    prediction_bias: Float[np.ndarray, " V"]


class Seen(NamedTuple):
    """A `Batch` of E models in numpy."""

    context: Float[np.ndarray, "D B V"]
    row_document: Int[np.ndarray, " E*R"]
    row_query: Int[np.ndarray, " E*R"]
    row_weight: Float[np.ndarray, "E R 1"]
    target: Int[np.ndarray, " E*P"]
    target_weight: Float[np.ndarray, " E*P"]


class Space(NamedTuple):
    """Room for what a pass computes, used again by every model."""

    attention: Float[np.ndarray, "R V"]
    output: Float[np.ndarray, "R V"]
    back: Float[np.ndarray, "R V"]
    scores: Float[np.ndarray, "V V"]
    key: Float[np.ndarray, "d_a V"]
    query: Float[np.ndarray, "d_a V"]
    ones: Float[np.ndarray, " V"]
    lanes: Float[np.ndarray, " 8"]


@compiled
def exp32(x: np.float32) -> np.float32:
    """exp of a number that is at most zero, of minus infinity or of NaN, to the last digit or two of float32.

    Without a branch or a call, so that eight are computed at once (Cephes' polynomial).
    """
    shifted = x * np.float32(1.44269504) + np.float32(12582912)  # x / log 2, rounded, stands in its last bits
    power = shifted - np.float32(12582912)
    rest = x - power * np.float32(0.693359375) - power * np.float32(-2.12194440e-4)
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    series = series * rest * rest + rest + np.float32(1)
    exponent = np.int32((np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23))
    return np.float32(0) if x < np.float32(-87.3) else series * np.int32(exponent).view(np.float32)


@compiled
def largest(row: Float[np.ndarray, " V"], lanes: Float[np.ndarray, " 8"]) -> float:
    """Eight maxima side by side, then the largest of them: a single one would wait for itself at every word."""
    top, whole = row.dtype.type(-np.inf), len(row) // LANES * LANES
    lanes.fill(top)
    for start in range(0, whole, LANES):
        for i in range(LANES):
            lanes[i] = max(lanes[i], row[start + i])
    for i in range(whole, len(row)):
        top = max(top, row[i])
    for i in range(LANES):
        top = max(top, lanes[i])
    return top


@compiled
def exponentials(row: Float[np.ndarray, " V"], top: np.floating | float, ones: Float[np.ndarray, " V"]) -> float:
    """Put exp(x - top) in place of every x, none of which is above the top, and return their sum."""
    if row.itemsize == 4:
        for i in range(len(row)):
            row[i] = exp32(np.float32(row[i] - top))
    else:
        for i in range(len(row)):
            row[i] = math.exp(row[i] - top)
    return np.dot(row, ones)


@compiled
def used(weight: Float[np.ndarray, " n"]) -> int:
    """How many rows or targets there are but for those at the end that only fill up: as many as a model has alone."""
    count = len(weight)
    while count > 1 and weight[count - 1] == 0:
        count -= 1
    return count


@compiled
def plus_column(matrix: np.ndarray, column: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """The matrix with a column added to all of its columns. One that is absent is zero."""
    if matrix.size and not column.size:
        return matrix
    for a in range(spare.shape[0]):
        added = column[a] if column.size else spare.dtype.type(0)
        for i in range(spare.shape[1]):
            spare[a, i] = (matrix[a, i] if matrix.size else spare.dtype.type(0)) + added
    return spare


@compiled
def attend(
    scores: np.ndarray,
    context: np.ndarray,
    document: np.ndarray,
    query: np.ndarray,
    first: int,
    scale: float,
    attention: np.ndarray,
    space: Space,
) -> None:
    """Attention of each row over the words of its document: a softmax of score + log count."""
    factor = attention.dtype.type(scale)
    for r in range(len(attention)):
        row, score, count = attention[r], scores[query[r] - first], context[document[r]]
        for i in range(len(row)):
            row[i] = score[i] * factor + count[i]
        row *= row.dtype.type(1) / exponentials(row, largest(row, space.lanes), space.ones)


@compiled
def cross_entropy(
    output: np.ndarray, weight: np.ndarray, target: np.ndarray, target_weight: np.ndarray, start: int, space: Space
) -> float:
    """The loss; its derivative by the outputs takes their place."""
    total, flat = 0.0, output.reshape(-1)
    for p in range(len(target)):
        total -= target_weight[p] * flat[target[p] - start]
    for r in range(len(output)):
        row = output[r]
        top = largest(row, space.lanes)
        norm = exponentials(row, top, space.ones)
        total += weight[r] * (top + math.log(norm))
        row *= weight[r] / norm
    for p in range(len(target)):
        flat[target[p] - start] -= target_weight[p]
    return total


@compiled
def squared(
    output: np.ndarray, weight: np.ndarray, target: np.ndarray, target_weight: np.ndarray, start: int, share: float
) -> float:
    """The same for sum_w y_w |f - e_w|^2 = (sum_w y_w) |f|^2 - 2 sum_w y_w f_w + sum_w y_w."""
    total, flat = 0.0, output.reshape(-1)
    for p in range(len(target)):
        total += target_weight[p] * (1 - 2 * flat[target[p] - start])
    factor = output.dtype.type(2 * share)
    for r in range(len(output)):
        row = output[r]
        total += weight[r] * np.dot(row, row)
        row *= factor * weight[r]
    for p in range(len(target)):
        flat[target[p] - start] -= factor * target_weight[p]
    return total * share


@compiled
def scores_slope(
    attention: np.ndarray, back: np.ndarray, query: np.ndarray, first: int, scale: float, scores: np.ndarray
) -> None:
    """Back through the softmax of each row, then rows with the same query word added up."""
    factor = attention.dtype.type(scale)
    scores.fill(0)
    for r in range(len(attention)):
        row, slope, score = attention[r], back[r], scores[query[r] - first]
        mean = np.dot(row, slope)
        for i in range(len(row)):
            score[i] += factor * row[i] * (slope[i] - mean)


@compiled
def through_product(
    other: np.ndarray, slope: np.ndarray, gradient: np.ndarray, bias: np.ndarray, ones: np.ndarray
) -> None:
    """Back through L = (W_Q Z + b_Q)'(W_K Z + b_K) / sqrt(d_a), to one of the two sides."""
    if gradient.size:
        np.dot(other, slope, gradient)
    if bias.size:
        np.dot(other, np.dot(slope, ones), bias)


@compiled
def loss_and_gradient(
    logits: bool, share: float, parts: Arrays, gradients: Arrays, seen: Seen, model: int, models: int, space: Space
) -> float:
    """The loss of one model of the batch, without the penalty; its gradient goes to `gradients`.

    `logits`: the loss is the cross-entropy; else it is `share` of the squared one.
    """
    vocabulary = seen.context.shape[2]
    weight, target_weight = seen.row_weight[model].reshape(-1), seen.target_weight.reshape(models, -1)[model]
    rows, targets = used(weight), used(target_weight)
    first = model * len(weight)
    document, query = seen.row_document[first : first + rows], seen.row_query[first : first + rows]
    target = seen.target.reshape(models, -1)[model, :targets]
    context = seen.context.reshape(-1, vocabulary)
    attention, output = space.attention[:rows], space.output[:rows]

    scale, key, queries = 1.0, parts.key, parts.query  # W_K Z + b_K, W_Q Z + b_Q
    if parts.key.size:
        key = plus_column(parts.key, parts.key_bias, space.key)
        queries = plus_column(parts.query, parts.query_bias, space.query)
        scale = 1 / math.sqrt(key.shape[0])
        np.dot(queries.T, key, space.scores)
        attend(space.scores, context, document, query, model * vocabulary, scale, attention, space)
    else:
        for r in range(rows):
            attention[r] = context[document[r]]

    if parts.value.size:
        np.dot(attention, parts.value.T, output)
    else:
        output[:] = attention
    for bias in (parts.value_bias, parts.prediction_bias):
        if bias.size:
            output += bias
    start = first * vocabulary  # of the model's rows, from which targets count
    if logits:
        total = cross_entropy(output, weight, target, target_weight, start, space)
    else:
        total = squared(output, weight, target, target_weight, start, share)

    slope = output  # by now
    if gradients.value.size:
        np.dot(slope.T, attention, gradients.value)
    for bias in (gradients.value_bias, gradients.prediction_bias):
        if bias.size:
            bias.fill(0)
            for r in range(rows):
                bias += slope[r]
    if gradients.key.size or gradients.query.size or gradients.key_bias.size or gradients.query_bias.size:
        if parts.key.size:
            back = space.back[:rows]
            if parts.value.size:
                np.dot(slope, parts.value, back)
            else:
                back[:] = slope
            scores_slope(attention, back, query, model * vocabulary, scale, space.scores)
            through_product(queries, space.scores, gradients.key, gradients.key_bias, space.ones)
            through_product(key, space.scores.T, gradients.query, gradients.query_bias, space.ones)
        else:  # a query without a key has no influence
            gradients.query.fill(0)
            gradients.key_bias.fill(0)
            gradients.query_bias.fill(0)
    return total
