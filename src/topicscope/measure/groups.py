"""Do groups of things separate: are things of one group more alike than things of different groups?

separation(cosine, groups).p_value      # over the ways to deal the things out to groups of these sizes
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Stream, generator

LEVEL = 0.05  # a difference that so few of all dealings reach is one of the groups
MOST_DEALINGS = 20_000  # that are all tried; of more, as many are drawn
Answer = Literal["yes", "some", "no", "undecided"]


@dataclass(frozen=True)
class Separation:
    """Whether groups of things separate.

    Attributes:
        inside: Mean similarity inside groups; None where there is no such pair.
        between: Mean similarity between groups; None where there is no such pair.
        p_value: Share of ways to deal the things out to the groups whose difference is at least as large.
        smallest: The least that p could be with so few things.
        apart: Of each group of two things or more, whether its mean inside is above its mean to other groups.

    Example:
        See `separation`.
    """

    inside: float | None
    between: float | None
    p_value: float | None
    smallest: float | None
    apart: dict[int, bool]

    @property
    def answer(self) -> Answer:
        """Yes: p is at most .05, and every group is apart. Some: p is, but not every group is apart.

        Undecided: there are too few things for p to be .05, or there is nothing to compare.
        """
        if self.p_value is None or self.smallest is None or self.smallest > LEVEL:
            return "undecided"
        if self.p_value > LEVEL:
            return "no"
        return "yes" if all(self.apart.values()) else "some"


def separation(similarity: Float[np.ndarray, "n n"], groups: Int[np.ndarray, " n"]) -> Separation:
    """Are things of one group more alike than things of different groups?

    Mean inside less mean between is compared with the same difference for all ways to deal the things out to the
    groups.

    Args:
        similarity: (n x n).
        groups: Number of each thing's group (n).

    Returns:
        Means, p value and answer.

    Example:
        >>> groups = np.repeat([0, 1], 4)
        >>> found = separation((groups[:, None] == groups).astype(float), groups)
        >>> found.inside, found.between, round(float(found.p_value), 4), found.answer
        (1.0, 0.0, 0.0286, 'yes')
    """
    groups = np.asarray(groups)
    pairs = np.triu_indices(len(groups), 1)
    values = similarity[pairs]
    same = groups[pairs[0]] == groups[pairs[1]]
    inside, between = (float(values[some].mean()) if some.any() else None for some in (same, ~same))
    if inside is None or between is None or not math.isfinite(inside - between):
        return Separation(inside, between, None, None, {})
    apart = {}
    for group in dict.fromkeys(groups.tolist()):
        ours = [groups[side] == group for side in pairs]
        if (ours[0] & ours[1]).any():
            apart[group] = bool(values[ours[0] & ours[1]].mean() > values[ours[0] ^ ours[1]].mean())
    sizes = list(Counter(groups.tolist()).values())
    ways = math.factorial(len(groups)) // math.prod(map(math.factorial, sizes))
    alike = math.prod(map(math.factorial, Counter(sizes).values()))  # dealings that only exchange groups of one size
    observed = inside - between
    dealt = dealings(len(groups), tuple(sizes)) if ways <= MOST_DEALINGS else drawn_dealings(groups)
    tolerance = 1e-12 * max(1.0, abs(observed))
    reached = count = 0
    for labels in dealt:
        together = labels[pairs[0]] == labels[pairs[1]]
        reached += values[together].mean() - values[~together].mean() >= observed - tolerance
        count += 1
    if ways <= MOST_DEALINGS:
        return Separation(inside, between, reached / ways, alike / ways, apart)
    return Separation(inside, between, (1 + reached) / (1 + count), 1 / (1 + count), apart)


def dealings(count: int, sizes: tuple[int, ...]) -> Iterator[Int[np.ndarray, " n"]]:
    """Every way to give `count` things labels, each label as often as its size."""

    def deal(free: tuple[int, ...], label: int) -> Iterator[list[tuple[int, int]]]:
        if label == len(sizes):
            yield []
            return
        for chosen in combinations(free, sizes[label]):
            left = tuple(thing for thing in free if thing not in chosen)
            for rest in deal(left, label + 1):
                yield [*((thing, label) for thing in chosen), *rest]

    for pairs in deal(tuple(range(count)), 0):
        labels = np.empty(count, dtype=np.int64)
        for thing, label in pairs:
            labels[thing] = label
        yield labels


def drawn_dealings(groups: Int[np.ndarray, " n"]) -> Iterator[Int[np.ndarray, " n"]]:
    rng = generator(0, Stream.DEALT_GROUPS)
    for _ in range(MOST_DEALINGS - 1):
        yield rng.permutation(groups)
