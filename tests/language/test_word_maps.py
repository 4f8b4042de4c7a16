"""A map of words, made by hand: its means, sentences and table."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from topicscope.language import WordMap

COSINE = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]])
MAP = WordMap("owner/model", ("frog", "toad", "mozart"), (0, 0, 1), (1, 2, 1), COSINE)


def test_means_are_over_pairs_inside_and_between_groups() -> None:
    assert MAP.means() == pytest.approx((0.5, 0.2))
    assert MAP.summary() == [
        "* not one token: the mean of its pieces",
        "mean cosine inside groups 0.500, between groups 0.200",
    ]
    assert MAP.labels == ["frog", "toad*", "mozart"]
    whole = dataclasses.replace(MAP, pieces=(1, 1, 1))
    assert whole.summary() == MAP.summary()[1:]


@pytest.mark.parametrize(
    ("groups", "said", "stored"),
    [
        ((0, 1, 2), "mean cosine inside groups -, between groups 0.300", (None, 0.3)),
        ((0, 0, 0), "mean cosine inside groups 0.300, between groups -", (0.3, None)),
    ],
)
def test_a_mean_over_no_pairs_is_none(groups: Any, said: str, stored: tuple[float | None, float | None]) -> None:
    found = dataclasses.replace(MAP, groups=groups)
    assert found.summary()[-1] == said
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert (data["same_group"], data["different_group"]) == pytest.approx(stored)
    again = WordMap.from_dict(data)
    assert (again.words, again.groups, again.pieces) == (found.words, found.groups, found.pieces)
    assert np.array_equal(again.cosine, COSINE)


def test_the_table_has_a_row_and_a_column_for_every_word() -> None:
    table = MAP.table().to_pylist()
    assert [(row["word"], row["group"]) for row in table] == [("frog", 0), ("toad", 0), ("mozart", 1)]
    assert [[row[word] for word in MAP.words] for row in table] == COSINE.tolist()
    assert repr(MAP) == "WordMap(owner/model, 3 words)"
