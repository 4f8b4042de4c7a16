"""A map of words, made by hand: its means, sentences and table."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from topicscope.language import WordMap

COSINE = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]])
UNDECIDED = "Whether the groups separate cannot be decided with so few words; give more words per group"
MAP = WordMap("owner/model", ("frog", "toad", "mozart"), (0, 0, 1), (1, 2, 1), COSINE)


def test_means_are_over_pairs_inside_and_between_groups() -> None:
    assert MAP.means() == pytest.approx((0.5, 0.2))
    assert MAP.summary() == [
        "* 1 of 3 words are several tokens: toad (2); the mean of its pieces stands for each",
        f"{UNDECIDED} (mean cosine inside groups 0.500, between groups 0.200)",
    ]
    assert MAP.labels == ["frog", "toad*", "mozart"]
    whole = dataclasses.replace(MAP, pieces=(1, 1, 1))
    assert whole.summary() == MAP.summary()[1:]
    half = dataclasses.replace(MAP, pieces=(1, 2, 3))
    assert "2 of 3 words are several tokens: toad (2), mozart (3); at least half of the map" in half.summary()[0]
    assert half.as_dict()["several_tokens"] == ["toad", "mozart"]


@pytest.mark.parametrize(
    ("groups", "said", "stored"),
    [
        ((0, 1, 2), f"{UNDECIDED} (mean cosine inside groups -, between groups 0.300)", (None, 0.3)),
        ((0, 0, 0), f"{UNDECIDED} (mean cosine inside groups 0.300, between groups -)", (0.3, None)),
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


GROUPS = np.repeat(range(3), 3)
SAME = GROUPS[:, None] == GROUPS


@pytest.mark.parametrize(("inside", "answer", "said"), [(0.4, "yes", "The groups separate"), (0.0, "no", "do not")])
def test_a_map_says_whether_its_groups_separate(inside: float, answer: str, said: str) -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, (9, 9))
    found = WordMap("m", tuple("abcdefghi"), tuple(GROUPS.tolist()), (1,) * 9, (noise + noise.T) / 2 + inside * SAME)
    (sentence,) = found.summary()
    assert said in sentence
    assert "p = " in sentence
    assert (found.as_dict()["separated"], found.as_dict()["several_tokens"]) == (answer, [])


def test_a_map_names_the_groups_that_do_not_separate() -> None:
    cosine = np.where(SAME, GROUPS[:, None] / 2, 0.1)
    found = WordMap("m", tuple("abcdefghi"), tuple(GROUPS.tolist()), (1,) * 9, cosine)
    (sentence,) = found.summary()
    assert sentence.startswith("Some groups separate, others do not: the words of a/b/c are no more alike than")
    assert (found.as_dict()["separated"], found.as_dict()["groups_apart"]) == ("some", [False, True, True])


def test_the_table_has_a_row_and_a_column_for_every_word() -> None:
    table = MAP.table().to_pylist()
    assert [(row["word"], row["group"]) for row in table] == [("frog", 0), ("toad", 0), ("mozart", 1)]
    assert [[row[word] for word in MAP.words] for row in table] == COSINE.tolist()
    assert repr(MAP) == "WordMap(owner/model, 3 words)"
