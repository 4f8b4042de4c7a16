"""What a probe says of an effect, for effects that must give each answer."""

from __future__ import annotations

import pytest

from tests.language.samples import an_effect
from topicscope.language import answer, verdict
from topicscope.language.probes import HeadRow, ProbeRow
from topicscope.measure import Effect


@pytest.mark.parametrize(
    ("effect", "expected", "reasons"),
    [
        (an_effect(0.1), "yes", ["above zero"]),
        (an_effect(0.1, 0.05, 0.1), "yes", ["above zero", "beyond shuffled topics", "at equal frequencies"]),
        (an_effect(0.1, 0.06, 0.1), "unsure", ["above zero", "at equal frequencies", "not beyond shuffled topics"]),
        (an_effect(0.1, 0.01, 0.0), "unsure", ["above zero", "beyond shuffled topics", "not at equal frequencies"]),
        (
            an_effect(0.1, 0.5, -0.1),
            "unsure",
            ["above zero", "not beyond shuffled topics", "not at equal frequencies"],
        ),
        (an_effect(0.0), "no", ["not above zero"]),
        (an_effect(-0.1, 0.01, 0.1), "no", ["beyond shuffled topics", "at equal frequencies", "not above zero"]),
        (Effect(same=1.0, different=0.5, difference=0.5, ratio=None, interval=None), "too few pairs", []),
        (None, "too few pairs", []),
    ],
)
def test_verdicts(effect: Effect | None, expected: str, reasons: list[str]) -> None:
    assert verdict(effect) == (expected, reasons)


def test_the_sentence_names_model_verdicts_and_the_strongest_head() -> None:
    row = ProbeRow(
        model="owner/name/",
        variant="trained",
        threshold=0.1,
        topics_per_word="one",
        words=10,
        topics=2,
        embedding="matrix",
        window=8,
        embeddings={"cosine": an_effect(0.1), "dot": None},
        attention=an_effect(-0.1),
        parts={},
    )
    heads = [
        HeadRow(
            model="owner/name/",
            threshold=0.1,
            topics_per_word="one",
            part="encoder",
            layer=layer,
            head=3,
            effect=Effect(same=ratio, different=1.0, difference=ratio - 1, ratio=ratio, interval=None),
        )
        for layer, ratio in enumerate((1.5, 2.5, 2.0))
    ]
    said = answer([row], heads, "owner/name/")
    assert said == (
        "name encodes topics? embeddings: yes (above zero); attention: no (not above zero); "
        "strongest head: encoder layer 1, head 3 (ratio 2.5 -)."
    )
