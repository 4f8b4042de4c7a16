"""The values along an axis of a grid: a list, a range, a logarithmic range, or seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topicscope.ground import InputError, number

WIDEST_END = 1e100
SPACES: dict[str, Callable[..., np.ndarray]] = {"range": np.linspace, "log": np.geomspace}


@dataclass(frozen=True)
class Spaced(Sequence[float]):
    """The numbers of a range: as many as `points`, and computed when they are asked for.

    They are rounded to 12 digits, so that 1e-3 is 0.001 on every machine.
    """

    space: Callable[..., np.ndarray]
    ends: list[float]
    points: int

    def __len__(self) -> int:
        return self.points

    def __iter__(self) -> Iterator[float]:
        return (float(f"{value:.12g}") for value in self.space(*self.ends, self.points))

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]


def axis_values(name: str, given: Any) -> Sequence[Any]:
    """The values along an axis: a list as it is; ranges and seeds, however long, as what they stand for."""
    if isinstance(given, list):
        if not given:
            raise InputError(f"axis {name!r} is empty; give at least one value")
        return [number(value) for value in given]
    keys = set(given) if isinstance(given, dict) else set()
    if keys in ({"seeds"}, {"seeds", "first"}):
        first, count = given.get("first", 0), given["seeds"]
        if _whole(first) and _whole(count) and 0 <= first < 2**63 and 0 < count < 2**62:
            return range(first, first + count)
    for space, spaced in SPACES.items():
        if keys == {space, "points"}:
            ends, points = given[space], given["points"]
            numbers = [number(end) for end in ends] if isinstance(ends, list) and len(ends) == 2 else []
            if not (_whole(points) and 0 < points < 2**62 and numbers and all(map(_real, numbers))):
                raise InputError(f"axis {name!r}: expected {{{space}: [FROM, TO], points: HOW MANY}} with numbers")
            if not all(abs(end) <= WIDEST_END for end in numbers):  # NaN too
                raise InputError(f"axis {name!r}: the ends of a range are at most {WIDEST_END:g}")
            if space == "log" and min(numbers) <= 0:
                raise InputError(f"axis {name!r}: a logarithmic range needs ends above zero")
            return Spaced(spaced, numbers, points)
    raise InputError(
        f"axis {name!r}: expected a list, {{range: [A, B], points: N}}, "
        f"{{log: [A, B], points: N}} or {{seeds: N}}; got {given!r:.80}"
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
