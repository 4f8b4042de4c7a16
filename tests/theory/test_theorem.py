"""What all theorems have in common, and the assumptions of Theorems 3 and 5."""

from __future__ import annotations

import html
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

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
    assert "than to any other, by 0.115607 per entry" in theorem1(s).summary()[1]
    assert "for all words of its topic, 0.115607 (= c3 / v) more than for others" in theorem2(s).summary()[1]
    assert theorem3(s).sentence == "Theorem 3: gamma lies in (1.1547, 58667)."
    assert theorem5(s).sentence == "Theorem 5: beta lies in (0.264, 4471.1) and alpha < 0.1285 beta."
    assert theorem3(s).says_of(1.0, 1.0)[0].endswith("The best gamma 1 is OUTSIDE.")
    assert theorem3(s).says_of(8.0, 8.0)[0].endswith("The best gamma 8 is inside.")
    assert theorem5(s).says_of(0.0, 35.0)[0].endswith("The best attention is inside.")
    assert theorem5(s).says_of(35.0, 35.0)[0].endswith("The best attention is OUTSIDE.")


def test_the_name_gives_the_function_even_after_the_module_is_imported() -> None:
    code = (
        "import topicscope.theory.theorem2, topicscope.theory.theorem2, topicscope.theory.theorem3\n"
        "import topicscope.theory.theorem3\n"
        "from topicscope.theory import Setting, theorem1, theorem2, theorem3, theorem5\n"
        "print([type(f(Setting.of())).__name__ for f in (theorem1, theorem2, theorem3, theorem5)])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['Theorem1', 'Theorem2', 'Theorem3', 'Theorem5']"


def test_a_setting_that_meets_the_assumptions_strains_nothing() -> None:
    assert assumptions(Setting.of(**LARGE)) == []
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


@pytest.mark.parametrize("change", [{"p_mask": 0.499}, {"words_per_topic": 6}, {"topics_per_document": 10}])
def test_an_assumption_just_met_is_not_named(change: dict[str, Any]) -> None:
    assert assumptions(Setting.of(**LARGE | change)) == []
    assert assumptions(Setting.of(**LARGE | {"topics_per_document": 100})) == []


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


def test_a_small_v_has_a_best_attention_but_no_bounds() -> None:
    stage = second_stage(Setting.of(10, 3, 2), "diagonal")
    assert stage.inside is None
    assert stage.as_dict()["bounds"] is None
    assert "Theorem 5's bounds are not defined for so small a v." in stage.summary()


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
