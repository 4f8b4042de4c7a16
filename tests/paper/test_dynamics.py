"""Figure 5: starts of every layer, what is said of them, and the settings that are trained."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.paper.samples import BAD, judged
from tests.paper.samples_stages import curves, layer_starts, ramp
from tests.paper.settings import dotted, pretrained
from topicscope import language, pretraining
from topicscope.paper import EXPERIMENTS, Context, figure5


def test_the_outcome_counts_layers_and_names_those_that_fail() -> None:
    outcome = judged("figure5")
    assert outcome.measured == (
        "on made-up texts, layers of all runs in which key and query start after value: near zero, a: 4 of 4; "
        "near zero, b: 4 of 4; usual start: 4 of 4"
    )
    assert outcome.reason == (
        "near-zero runs start at step: value 2 to 2, key 42 to 42, query 48 to 48; "
        "norms end at 1001 to 1001 times their start from near zero, and at 1001 to 1001 times from the usual start"
    )
    assert outcome.numbers["near zero, b, seed 1"]["3"] == {"key": 42.0, "query": 48.0, "value": 2.0}
    assert list(outcome.numbers) == ["near zero, a, seed 0", "near zero, b, seed 1", "usual start, seed 0"]
    bad = judged("figure5", BAD["figure5"]["query of one layer of one run is first"])
    assert bad.reason.startswith("not in near zero, b, seed 1, layer 3; norms end at ")
    assert "near zero, b: 3 of 4; " in bad.measured
    two = layer_starts(norm_query_3=ramp(0, 15), norm_key_0=ramp(0, 15))
    assert judged("figure5", two).reason.startswith(
        "not in near zero, b, seed 1, layer 0, near zero, b, seed 1, layer 3;"
    )
    spread = judged("figure5", layer_starts(norm_value_1=ramp(10, 30), norm_key_2=ramp(50, 70)))
    assert "value 2 to 12, key 42 to 52, query 48 to 48" in spread.reason
    mine = figure5.Found(two.near, two.usual, True)
    assert judged("figure5", mine).measured.startswith("on the given text, ")


def test_growth_is_from_start_to_end() -> None:
    runs = [
        curves("a", layers=2, norm_key_1=np.linspace(2, 5, 11)),
        curves("b", layers=1, norm_value_0=np.linspace(1, 12.4, 11)),
    ]
    assert figure5.growth(runs) == "2.5 to 1001 times"
    ten = np.array([1.0, 9.0, 10.0])
    alike = curves("a", layers=1, norm_key_0=ten, norm_query_0=ten, norm_value_0=ten)
    assert figure5.growth([alike]) == "10 to 10 times"


@pytest.mark.parametrize("corpus", [(), ("x",)])
@pytest.mark.parametrize("scale", ["quick", "full"])
def test_settings_are_those_of_the_reference_runs(
    monkeypatch: pytest.MonkeyPatch, scale: Any, corpus: tuple[str, ...]
) -> None:
    asked: list[Any] = []

    def note(settings: Any) -> Any:
        asked.append(dotted(settings))
        return SimpleNamespace(as_dict=lambda: settings, seed=settings["seed"])

    def sample(count: int, seed: int) -> list[str]:
        asked.append(["sample", count, seed])
        return []

    def tokenizer(_texts: Any, *given: Any, **options: Any) -> None:
        asked.append(["tokenizer", *given, options])

    monkeypatch.setattr(pretraining.PretrainConfig, "of", note)
    monkeypatch.setattr(pretraining, "train_tokenizer", tokenizer)
    monkeypatch.setattr(language, "Corpus", lambda _: SimpleNamespace(sample=sample))
    monkeypatch.setattr(
        pretraining, "pretrain", lambda config, **_: SimpleNamespace(config=config, metrics={"loss": np.ones(2)})
    )
    found = figure5.measure(Context(scale, 2, (), corpus))
    count, length = (2000, 64) if scale == "quick" else (20_000, 128)
    text = [["sample", count, 2], ["tokenizer", "wordpiece", 8000, length, {"exact": False}]] if corpus else []
    assert asked == [*text, *pretrained(scale, given_text=bool(corpus))]
    assert found.given_text is bool(corpus)
    seeds = 1 if scale == "quick" else 3
    assert [run.label[-1] for run in found.near] == [*"012"[:seeds]] * 2
    assert [run.setting.split(",")[0] for run in found.near + found.usual] == ["near zero"] * (2 * seeds) + [
        "usual start"
    ] * seeds
    assert found.near[0].run.config.seed == 2000


def test_the_users_text_is_in_no_reference() -> None:
    mine, none = Context(corpus=("a.txt",)), Context()
    for name in ("figure5", "timeline"):
        assert EXPERIMENTS[name].judged(none)
        assert not EXPERIMENTS[name].judged(mine)
        assert EXPERIMENTS[name].key(mine) == {"scale": "quick", "seed": 0, "corpus": ["a.txt"]}
        assert EXPERIMENTS[name].key(mine) != EXPERIMENTS[name].key(none)
    assert EXPERIMENTS["figure4"].judged(mine)
    assert EXPERIMENTS["figure4"].key(mine) == EXPERIMENTS["figure4"].key(none) == {"scale": "quick", "seed": 0}
    assert EXPERIMENTS["table1"].judged(none)
    assert not EXPERIMENTS["table1"].judged(replace(mine, models=("a",)))
