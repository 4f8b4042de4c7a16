"""Heads against shuffled topics: corrected p by a plain loop, what cannot be judged, and planted heads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from topicscope.language.attention import ELSEWHERE, TOO_FEW, PartTally, corrected, head_rows, remarks
from topicscope.language.probe_rows import topical_heads


def tally(
    rng: np.random.Generator, heads: list[int], shuffles: int = 99, planted: dict[int, float] | None = None
) -> PartTally:
    """10,000 pairs of positions without any preference, but for planted heads with so much more inside topics."""
    relation: Any = SimpleNamespace(relations=3, strata=1, shuffles=shuffles)
    made, count = PartTally(relation, heads, 5), sum(heads)
    spread = rng.uniform(0.5, 2, count) * 1e-4  # heads differ in how much their attention varies
    made.pairs += torch.tensor([500.0, 2000.0, 8000.0])
    drawn = spread * rng.standard_normal(count)
    means = 0.01 + np.stack([0 * drawn, drawn, -drawn / 4])  # what is more inside topics is less between them
    for head, more in (planted or {}).items():
        means[1, head] += more
    made.sums += torch.tensor(means * made.pairs.numpy()[:, None])
    made.null_pairs += 2000
    made.other_pairs += 10_000
    made.other_sums += made.sums[1:].sum(0)
    made.null_sums += torch.tensor(2000 * (0.01 + spread * rng.standard_normal((shuffles, count))))
    return made


def by_loop(parts: dict[str, PartTally]) -> dict[str, list[float]]:
    """The correction as it is defined, head by head and shuffle by shuffle."""
    scores, nulls = {}, {}
    for name, part in parts.items():
        for head in range(sum(part.heads)):
            difference = float(part.sums[1, head] / part.pairs[1] - part.sums[2, head] / part.pairs[2])
            shuffled = [
                float(same / number - (part.other_sums[head] - same) / (part.other_pairs[0] - number))
                for same, number in zip(part.null_sums[:, head], part.null_pairs, strict=True)
            ]
            middle, spread = np.mean(shuffled), np.std(shuffled)
            scores[name, head] = (difference - middle) / spread
            nulls[name, head] = [(one - middle) / spread for one in shuffled]
    largest = [max(null[i] for null in nulls.values()) for i in range(len(next(iter(nulls.values()))))]
    return {
        name: [
            (1 + sum(one >= scores[name, head] for one in largest)) / (1 + len(largest))
            for head in range(sum(part.heads))
        ]
        for name, part in parts.items()
    }


def test_p_is_corrected_for_all_heads_of_all_parts() -> None:
    rng = np.random.default_rng(0)
    parts = {"encoder": tally(rng, [4, 4], planted={3: 5e-4}), "decoder": tally(rng, [3, 2])}
    expected, found = by_loop(parts), corrected(parts)
    assert list(found) == ["encoder", "decoder"]
    for name in parts:
        assert found[name] == pytest.approx(expected[name], abs=1e-12)
    assert found["encoder"][3] == 0.01
    alone = corrected({"decoder": parts["decoder"]})["decoder"]
    assert all(a is not None and b is not None and a <= b for a, b in zip(alone, found["decoder"], strict=True))


def test_without_topics_a_head_passes_in_one_model_of_twenty() -> None:
    """144 heads without any preference: uncorrected, seven of them would pass in every model."""
    passed = [
        min(p for p in corrected({"encoder": tally(np.random.default_rng(seed), [12] * 12)})["encoder"] if p) <= 0.05
        for seed in range(100)
    ]
    assert 1 <= sum(passed) <= 12  # 5 expected


def test_heads_that_cannot_be_judged_say_why() -> None:
    rng = np.random.default_rng(1)
    part = tally(rng, [3], planted={0: 5e-4})
    part.sums[:, 1] *= 0.05  # looks elsewhere: .0005 where no preference is .01
    assert remarks(part) == ["", ELSEWHERE, ""]
    assert [p is None for p in corrected({"encoder": part})["encoder"]] == [False, True, False]
    part.pairs[1] = 99
    assert remarks(part) == [TOO_FEW] * 3
    assert corrected({"encoder": part})["encoder"] == [None] * 3
    assert corrected({"encoder": tally(rng, [3], shuffles=0)})["encoder"] == [None] * 3


def test_rows_come_by_difference_and_those_without_judgement_last() -> None:
    part = tally(np.random.default_rng(2), [2, 2], planted={1: 2e-3, 2: 1e-3})
    part.sums[1, 3], part.sums[2, 3] = 0.3 * 2000 / 1e6, 1e-9  # a large ratio of next to nothing
    rows = head_rows({"encoder": part}, "m", 0.1, "one")
    assert [(row.layer, row.head, row.remark) for row in rows] == [
        (0, 1, ""),
        (1, 0, ""),
        (0, 0, ""),
        (1, 1, ELSEWHERE),
    ]
    assert [row.corrected_p for row in rows[:2]] == [0.01, 0.01]
    assert rows[0].effect.pairs == 2000
    assert [(row.layer, row.head) for row in topical_heads(rows, "encoder")] == [(0, 1), (1, 0)]
    assert rows[0].as_dict() | {"corrected_p": 0.01, "pairs": 2000.0} == rows[0].as_dict()
