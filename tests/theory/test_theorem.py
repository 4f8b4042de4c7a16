"""What all theorems have in common: settings, the assumptions of Theorems 3 and 5, tables and pages."""

import dataclasses
import html
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicscope import InputError, Masking, TopicModel
from topicscope.ground import flat
from topicscope.theory import (
    ATTENTION_THEOREMS,
    OPTIMUM_THEOREMS,
    AttentionTheorem,
    Setting,
    Theorem,
    assumptions,
    second_stage,
    theorem1,
    theorem2,
    theorem3,
    theorem5,
)

LARGE = {"topics": 1000, "words_per_topic": 100, "topics_per_document": 20}
"""A setting that meets every assumption."""

MASKED = "--p-mask 0.15 --p-correct 0.1 --p-random 0.1"


@pytest.mark.parametrize("theorem", [*OPTIMUM_THEOREMS, *ATTENTION_THEOREMS])
def test_every_theorem_has_the_same_shape(theorem: Any) -> None:
    s = Setting.of(6, 7, 2)
    result = theorem(s)
    assert isinstance(result, Theorem)
    assert result.setting is s
    assert result.matrix().shape == (43, 43)
    if isinstance(result, AttentionTheorem):
        assert all(low < high for low, high in result.bounds.values())
    name = theorem.__name__.replace("theorem", "Theorem ")
    assert result.sentence.startswith(f"{name}: ")
    assert result.summary()[0] == result.sentence
    table = result.table()
    assert table.column_names == ["entry", "value", "meaning"]
    assert table.num_rows == len(result.entries()) >= 3
    assert table["value"].to_pylist() == [entry.value for entry in result.entries()]
    assert all(np.isfinite(number) for number in result.numbers().values())


def test_sentences_have_the_theorems_numbers() -> None:
    s = Setting.of(10, 10, 3)
    assert "sum to u_i v + 1.15607 over the word's own topic" in theorem1(s).sentence
    assert "0.10802 inside a topic and -0.00758671 between topics" in theorem2(s).sentence
    assert theorem3(s).sentence == "Theorem 3: gamma lies in (1.1547, 58667)."
    assert theorem5(s).sentence == "Theorem 5: beta lies in (0.264, 4471.1) and alpha < 0.1285 beta."
    third, fifth = theorem3(s), theorem5(s)
    said = [third.says_of(1, 1), third.says_of(8, 8), fifth.says_of(35, 35), fifth.says_of(0, 35)]
    assert [one[0].split()[-1] for one in said] == ["OUTSIDE.", "inside.", "OUTSIDE.", "inside."]


def test_the_name_gives_the_function_even_after_the_module_is_imported() -> None:
    code = (
        "import topicscope.theory.theorem2, topicscope.theory.theorem3\n"
        "from topicscope.theory import Setting, theorem1, theorem2, theorem3, theorem5\n"
        "print([type(f(Setting.of())).__name__ for f in (theorem1, theorem2, theorem3, theorem5)])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['Theorem1', 'Theorem2', 'Theorem3', 'Theorem5']"


def test_a_setting_that_meets_the_assumptions_strains_nothing() -> None:
    just_met = ({"p_mask": 0.499}, {"words_per_topic": 6}, {"topics_per_document": 10}, {"topics_per_document": 100})
    for change in ({}, *just_met):
        assert assumptions(Setting.of(**LARGE | change)) == []
    assert theorem3(Setting.of(**LARGE)).summary() == [theorem3(Setting.of(**LARGE)).sentence]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"p_mask": 0.5}, "p_mask = 0.5 is not below 1/2"),
        ({"p_correct": 0.2}, "p_correct = 0.2 and p_random = 0.1 are not equal and below 1/2"),
        ({"p_random": 0.3}, "p_correct = 0.1 and p_random = 0.3 are not equal and below 1/2"),
        ({"words_per_topic": 5}, "words_per_topic = 5 is not above 5.65"),
        ({"topics_per_document": 9}, "topics_per_document = 9 is not large"),
        ({"topics_per_document": 101}, "topics = 1000 is not much larger than topics_per_document = 101"),
    ],
)
def test_every_strained_assumption_is_named(change: dict[str, Any], sentence: str) -> None:
    s = Setting.of(**LARGE | change)
    assert assumptions(s) == [sentence]
    assert f"this setting strains it: {sentence}." in theorem3(s).summary()[-1]


def test_the_second_stage_puts_the_best_attention_beside_its_theorem() -> None:
    s = Setting.of(10, 10, 3)
    blocks, diagonal = second_stage(s, "blocks"), second_stage(s, "diagonal")
    assert blocks.uniform_loss == diagonal.uniform_loss == pytest.approx(1 - 1 / 30)
    assert blocks.optimum.loss < blocks.uniform_loss
    assert blocks.theorem == theorem3(s)
    assert diagonal.theorem == theorem5(s)
    assert blocks.inside is True
    assert blocks.cap is diagonal.cap is False
    assert second_stage(s, "diagonal", "paper").cap is True
    assert "Where the minimum lies: alpha -> 0." in diagonal.summary()
    assert any("Only gamma matters" in line for line in second_stage(s, "blocks", "paper").summary())
    small = second_stage(Setting.of(10, 3, 2), "diagonal")  # a best attention, but no bounds
    assert (small.inside, small.as_dict()["bounds"]) == (None, None)
    assert "Theorem 5's bounds are not defined for so small a v." in small.summary()


@pytest.mark.parametrize("theorem", [*OPTIMUM_THEOREMS, *ATTENTION_THEOREMS])
def test_a_theorem_shows_itself(theorem: Any) -> None:
    result = theorem(Setting.of(3, 6, 2))
    assert repr(result) == f"{type(result).__name__}(T = 3, v = 6, tau = 2)"
    (section,) = result.sections()
    assert section.note == result.sentence
    assert np.array(section.figures[0].panels[0].z) == pytest.approx(result.matrix(), abs=1e-6)
    assert [row[0] for row in section.tables[0].rows] == [entry.name for entry in result.entries()]
    assert result.sentence in html.unescape(result._repr_html_())
    sizes = "--topics 3 --words-per-topic 6"
    tau = "" if theorem in OPTIMUM_THEOREMS else " --topics-per-document 2"
    assert section.command == f"topicscope theory {theorem.__name__} {sizes}{tau} {MASKED}"
    large = theorem(Setting.of(100, 10, 2))
    assert large.sections()[0].figures == []


def test_the_plain_setting_is_the_papers() -> None:
    numbers: dict[str, Any] = {"topics": 10, "words_per_topic": 10, "topics_per_document": 3}
    numbers |= {"p_mask": 0.15, "p_correct": 0.1, "p_random": 0.1}
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
    ("name", "value", "expected"),
    [
        *(("topics_per_document", tau, "expected a number from 1 to topics = 10") for tau in (0, 11)),
        *((name, 0, "expected a number from 1 to 1,000,000,000") for name in ("topics", "words_per_topic")),
        *(
            (name, p, "expected a probability strictly between 0 and 1, at least 1e-09 away from both")
            for name, p in (("p_mask", 1.0), ("p_mask", 1e-300), ("p_correct", 0.0), ("p_random", 1.0))
        ),
    ],
)
def test_numbers_outside_the_theory_are_refused(name: str, value: float, expected: str) -> None:
    with pytest.raises(InputError) as error:
        Setting.of(**{name: value})  # type: ignore[arg-type]
    assert str(error.value) == f"{name} = {value:g}: {expected}"


def test_masks_and_words_outside_the_theory_are_refused() -> None:
    with pytest.raises(InputError, match=r"p_correct \+ p_random = 1: expected less than 1, so that"):
        Setting.of(p_correct=0.5, p_random=0.5)
    with pytest.raises(InputError, match=r"p_correct \+ p_random = 1 leaves no \[MASK\]"):
        Setting(TopicModel(), 3, Masking(0.15, 0.5, 0.5))
    with pytest.raises(InputError, match="k = 0 in the paper"):
        Setting(TopicModel(), 3, Masking(1.0, 0.0, 0.5))
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
