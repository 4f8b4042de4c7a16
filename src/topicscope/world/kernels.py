"""A batch of masked documents in compiled loops: what `Masking.draw_at` and `masked_batches` make, bit for bit.

Those are the specification, and what a GPU runs. On a CPU their calls take six times as long as these loops. Nothing
here is computed in another order than there: integers, and single operations of floating-point numbers.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from topicscope.ground import compiled
from topicscope.world.topics import MASK

STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Source(NamedTuple):
    """Documents of D data sets, and how they are masked. `selected` and `shown` are empty where masks are fresh."""

    words: Int[np.ndarray, "D n N"]
    lengths: Int[np.ndarray, "D n"]
    selected: Bool[np.ndarray, "D n N"]
    shown: Int[np.ndarray, "D n N"]
    keys: Int[np.ndarray, "D 4"]  # see `mask_keys`; without a sign
    p_mask: float
    p_correct: float
    p_random: float
    logs: Float[np.ndarray, " N+1"]  # of the numbers from 0 on
    vocabulary: int
    uniform: bool
    hide_masked: bool


# the masked positions of the batch of one data set, in order of document: a row each for document, true and shown word
Positions = Int[np.ndarray, "3 B*N"]
DOCUMENT, TRUE, SHOWN = 0, 1, 2


# the same bits and numbers as those of `streams`
@compiled
def bits(key: np.uint64, place: np.uint64) -> np.uint64:
    mixed = place * STEP + key + STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    return mixed ^ (mixed >> np.uint64(31))


@compiled
def uniform(key: np.uint64, place: int) -> float:
    return np.int64(bits(key, np.uint64(place)) >> np.uint64(11)) * 2.0**-53


@compiled
def draw(
    text: Int[np.ndarray, " N"], place: int, keys: Int[np.ndarray, " 4"], p_mask: float, at: Int[np.ndarray, " N+1"]
) -> int:
    """The masked positions of one document go to `at`; how many they are."""
    longest, some, threshold = len(text), 0, int(256 * p_mask)
    eights = np.empty(longest // 8, np.uint64)
    for i in range(len(eights)):
        eights[i] = bits(keys[0], np.uint64(place * len(eights) + i))
    byte = eights.view(np.uint8)
    for i in range(longest):  # without a branch, which would be guessed wrong too often
        at[some] = i
        some += (byte[i] <= threshold) & (text[i] > 0)
    count, rest = 0, 256 * p_mask - threshold
    for i in at[:some]:
        at[count] = i
        # in one case of 256 another number decides
        count += byte[i] < threshold or uniform(keys[1], place * longest + i) < rest
    return count


@compiled
def shown_for(true: int, kind: float, p_correct: float, p_random: float, words: int) -> int:
    """What a masked position shows; the random number `kind` decides."""
    if kind >= p_correct + p_random:
        return MASK
    if p_random > 0 and kind >= p_correct:
        return min(1 + int((kind - p_correct) / p_random * words), words)
    return true


@compiled
def see(
    counts: Int[np.ndarray, " V"],
    true: Int[np.ndarray, " P"],
    shown: Int[np.ndarray, " P"],
    hide_masked: bool,
    share: bool,
    logs: Float[np.ndarray, " N+1"],
    seen: Float[np.ndarray, " V"],  # log counts, or shares; `counts`, of the words before masking, are overwritten
) -> None:
    for p in range(len(true)):
        counts[true[p]] -= 1
    if not hide_masked or counts.sum() == 0:
        for p in range(len(true)):
            counts[shown[p]] += 1
    if share:
        total = seen.dtype.type(counts.sum())
        for i in range(len(counts)):
            seen[i] = seen.dtype.type(counts[i]) / total
    else:
        for i in range(len(counts)):
            seen[i] = logs[counts[i]]


@compiled
def mask(source: Source, data: int, rows: np.ndarray, first: int, positions: Positions, context: np.ndarray) -> int:
    """Mask the documents of one data set that a step sees; how many positions are masked."""
    (size, vocabulary), longest = context.shape, source.words.shape[2]
    text = np.empty((size, longest), source.words.dtype)
    for b in range(size):  # at first, so that the memory is read at many places at once
        for i in range(longest):
            text[b, i] = source.words[data, rows[b], i]
    document, true, shown, end = positions[DOCUMENT], positions[TRUE], positions[SHOWN], 0
    keys, at, counts = source.keys[data], np.empty(longest + 1, np.int64), np.empty(vocabulary, np.int32)
    for b in range(size):
        start, place = end, first + b
        if source.selected.size:
            for i in range(longest):
                if source.selected[data, rows[b], i]:
                    true[end], shown[end] = text[b, i], source.shown[data, rows[b], i]
                    end += 1
        else:
            masked = draw(text[b], place, keys, source.p_mask, at)
            if masked == 0:
                at[0], masked = int(uniform(keys[2], place) * source.lengths[data, rows[b]]), 1
            for i in at[:masked]:
                kind, true[end] = uniform(keys[3], place * longest + i), text[b, i]
                shown[end] = shown_for(text[b, i], kind, source.p_correct, source.p_random, vocabulary - 1)
                end += 1
        document[start:end] = b
        counts.fill(0)
        for i in range(longest):
            if text[b, i] > 0:
                counts[text[b, i]] += 1
        see(counts, true[start:end], shown[start:end], source.hide_masked, source.uniform, source.logs, context[b])
    return end


@compiled
def number_rows(uniform: bool, positions: Positions, count: int, number: Int[np.ndarray, "V B"]) -> int:
    """Number the pairs of shown word and document that occur, in this order, from 1 on; how many they are."""
    number.fill(0)
    for p in range(count):
        number[0 if uniform else positions[SHOWN, p], positions[DOCUMENT, p]] = 1
    rows = 0
    for word in range(number.shape[0]):
        for document in range(number.shape[1]):
            if number[word, document]:
                rows += 1
                number[word, document] = rows
    return rows


@compiled
def weigh(masked: Positions, count: int, size: int, weight: Float[np.ndarray, " P"]) -> None:
    first = 0
    while first < count:
        last = first
        while last < count and masked[DOCUMENT, last] == masked[DOCUMENT, first]:
            last += 1
        weight[first:last] = weight.dtype.type(1) / weight.dtype.type(size * (last - first))
        first = last


@compiled
def batch_of(
    source: Source, seen: Int[np.ndarray, "D B"], first: int, of: Int[np.ndarray, " E"]
) -> tuple[np.ndarray, ...]:
    """The parts of the `Batch` of a step that sees these documents; `first` documents were seen before."""
    (sets, size), vocabulary, models, real = seen.shape, source.vocabulary, len(of), source.logs.dtype
    context, number = np.empty((sets, size, vocabulary), real), np.empty((sets, vocabulary, size), np.int32)
    places = np.empty((sets, 3, size * source.words.shape[2]), np.int32)
    positions, rows = np.empty(sets, np.int64), np.empty(sets, np.int64)
    for data in range(sets):
        positions[data] = mask(source, data, seen[data], first, places[data], context[data])
        rows[data] = number_rows(source.uniform, places[data], positions[data], number[data])
    most, targets = rows.max(), positions.max()
    row_document, row_query = np.empty((models, most), np.int64), np.empty((models, most), np.int64)
    row_weight = np.zeros((models, most, 1), real)
    target, target_weight = np.empty((models, targets), np.int64), np.zeros((models, targets), real)
    for model in range(models):
        data, masked = of[model], places[of[model]]
        # what only fills up has weight zero and is the first document, [MASK], the first row's [MASK]
        row_document[model, rows[data] :] = data * size
        row_query[model, rows[data] :] = model * vocabulary
        target[model, positions[data] :] = model * most * vocabulary
        weigh(masked, positions[data], size, target_weight[model])
        for p in range(positions[data]):
            word, document = 0 if source.uniform else masked[SHOWN, p], masked[DOCUMENT, p]
            row = number[data, word, document] - 1
            row_document[model, row] = data * size + document
            row_query[model, row] = model * vocabulary + word
            row_weight[model, row, 0] += target_weight[model, p]
            target[model, p] = (model * most + row) * vocabulary + masked[TRUE, p]
    return (
        context,
        row_document.reshape(-1),
        row_query.reshape(-1),
        row_weight,
        target.reshape(-1),
        target_weight.reshape(-1),
    )
