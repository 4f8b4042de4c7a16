from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from topicscope import InputError, Masking, TopicModel
from topicscope.ground import flat
from topicscope.theory import ATTENTION_THEOREMS, OPTIMUM_THEOREMS, Setting, second_stage


def test_the_plain_setting_is_the_papers() -> None:
    numbers: dict[str, Any] = {
        "topics": 10,
        "words_per_topic": 10,
        "topics_per_document": 3,
        "p_mask": 0.15,
        "p_correct": 0.1,
        "p_random": 0.1,
    }
    assert Setting.of().as_dict() == numbers
    assert Setting.of(**numbers) == Setting.of() == Setting(TopicModel(10, 10), 3, Masking(0.15, 0.1, 0.1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Setting.of().topics_per_document = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Setting.of().constants.c1 = 2  # type: ignore[misc]


def test_shares_add_up() -> None:
    """[MASK], the words of the document and the others are all that is shown; so are the kinds of masked positions."""
    s = Setting.of(7, 4, 3, p_mask=0.3, p_correct=0.2, p_random=0.25)
    assert s.p0 == pytest.approx(0.3 * 0.55)
    assert s.p2 == pytest.approx(0.3 * 0.25 / 28)
    assert s.p0 + 12 * s.p1 + 16 * s.p2 == pytest.approx(1)
    own, same, other, absent = s.shown_cases
    assert (own, same) == pytest.approx((0.2 + 0.25 / 28, 0.25 * 3 / 28))
    assert (other, absent) == pytest.approx((0.25 * 8 / 28, 0.25 * 16 / 28))
    assert own + same + other + absent + 0.55 == pytest.approx(1)
    assert s.gamma(2.0, 6.0) == pytest.approx((3 * 2 + 6) / 4)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"topics_per_document": 11}, "topics_per_document = 11: expected a number from 1 to topics = 10"),
        ({"p_mask": 1.0}, "p_mask = 1: expected a probability strictly between 0 and 1, at least 1e-09 away from both"),
        ({"topics_per_document": 0}, "topics_per_document = 0: expected a number from 1 to topics = 10"),
        ({"topics": 0}, "topics = 0: expected a number from 1 to 1,000,000,000"),
        ({"words_per_topic": 0}, "words_per_topic = 0: expected a number from 1 to 1,000,000,000"),
        (
            {"p_correct": 0.0},
            "p_correct = 0: expected a probability strictly between 0 and 1, at least 1e-09 away from both",
        ),
        (
            {"p_random": 1.0},
            "p_random = 1: expected a probability strictly between 0 and 1, at least 1e-09 away from both",
        ),
        (
            {"p_correct": 0.5, "p_random": 0.5},
            "p_correct + p_random = 1: expected less than 1, so that [MASK] is shown at all",
        ),
    ],
)
def test_numbers_outside_the_theory_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        Setting.of(**bad)
    assert str(error.value) == message


def test_masks_and_words_outside_the_theory_are_refused() -> None:
    with pytest.raises(InputError, match=r"p_correct \+ p_random = 1 leaves no \[MASK\]"):
        Setting(TopicModel(), 3, Masking(0.15, 0.5, 0.5))
    with pytest.raises(InputError, match="assume disjoint topics of equally many, equally probable words"):
        Setting(TopicModel(2, 2, [0.3, 0.7]), 1, Masking())
    assert Setting.of(1, 1, 1, p_correct=0.5, p_random=0.49).p0 == pytest.approx(0.15 * 0.01)


ENDS = (1e-9, 1e-3, 0.5, 1 - 1e-9)
COUNTS = (1, 2, 1000, 10**9)


@settings(max_examples=20, deadline=None)
@given(*[st.sampled_from(COUNTS)] * 3, *[st.sampled_from(ENDS)] * 3)
def test_all_closed_forms_are_finite_at_the_ends_of_their_ranges(
    topics: int, words: int, tau: int, p_mask: float, p_correct: float, p_random: float
) -> None:
    try:
        setting = Setting.of(topics, words, tau, p_mask=p_mask, p_correct=p_correct, p_random=p_random)
    except InputError:
        return
    forms: list[Any] = [lambda form=form: form(setting).numbers() for form in (*OPTIMUM_THEOREMS, *ATTENTION_THEOREMS)]
    forms += [lambda: second_stage(setting, "blocks").as_dict(), lambda: second_stage(setting, "diagonal").as_dict()]
    for form in forms:
        try:
            numbers = flat(form())
        except InputError:  # not defined for so small a v
            continue
        assert all(math.isfinite(x) for x in numbers.values() if isinstance(x, float)), numbers


def test_the_documented_example_works() -> None:
    stage = second_stage(Setting.of(1_000_000, 1_000, 100), "blocks")
    assert math.isfinite(stage.optimum.loss)
    with pytest.raises(InputError, match="p_mask = 1e-300"):
        Setting.of(p_mask=1e-300)
    with pytest.raises(InputError, match="k = 0 in the paper"):
        Setting(TopicModel(), 3, Masking(1.0, 0.0, 0.5))
