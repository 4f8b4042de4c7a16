"""The table of laws: every condition can fail, and what a row does not list is refused."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from topicscope import InputError, RunConfig
from topicscope.ground import merged
from topicscope.laws import LAWS, TABLE, Law, predicted_norms, predicted_phase, training_optimum, world_optimum
from topicscope.laws.coverage import CONDITIONS, UNLISTED, Stage
from topicscope.theory import LIMITS, dynamics, optimum
from topicscope.training import OPTIMISERS
from topicscope.world import Moments, Own, World

DOCS = Path(__file__).parents[2] / "docs"
UNIFORM = {"key": "zero", "query": "zero"}
COVERED: dict[str, Any] = {
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "objective": {"loss": "squared"},
    "optimizer": {"name": "sgd"},
    "model": {"prediction_bias": "none"},
    "steps": 10,
}
OF_LAW: dict[str, dict[str, Any]] = {"end": {"model": UNIFORM}, "course": {"model": UNIFORM}}
# For each code a run that is covered but for this one condition.
BROKEN: dict[str, dict[str, Any]] = {
    "unknown-documents": {"data": {"train_file": "text"}, "documents": {"length": 120}},
    "hidden-masks": {"model": {"hide_masked": True}}, "value-penalty": {"objective": {"l2": {"value": 0.1}}},
    "penalty": {"objective": {"l2": {"key": 0.1}}}, "attention": {"model": {"key": "trained"}},
    "cross-entropy": {"objective": {"loss": "cross-entropy"}}, "momentum": {"optimizer": {"momentum": 0.5}},
    "embedding": {"model": {"embedding": "trained"}}, "untied-head": {"model": {"head": "untied"}},
    "head": {"model": {"head": "untied"}}, "frozen-value": {"model": {"value": "identity"}},
    "frozen-parts": {"model": {"value": "identity"}}, "other-parts": {"model": {"prediction_bias": "trained"}},
    "key-or-query": {"model": {"query": "zero"}}, "biases": {"model": {"prediction_bias": "trained"}},
    "inner-biases": {"model": {"value_bias": "trained"}}, "fixed-output-bias": {"model": {"prediction_bias": 0.1}},
    "schedule": {"schedule": {"phases": [{"parts": ["value"]}]}}, "one-mask": {"masking": {"fresh": False}},
    "finite-documents": {"documents": {"length": 120}}, "short-documents": {"documents": {"length": [20, 200]}},
    "unequal-topics": {"topic_model": {"zipf": 1.0}}, "topics-not-alike": {"documents": {"weights": [1, 2, 3, 4]}},
    "adam-embedding": {"optimizer": {"name": "adam"}, "model": {"embedding": "trained"}},
    "adam-cross-entropy": {"optimizer": {"name": "adam"}, "objective": {"loss": "cross-entropy"}},
    "many-words": {"topic_model": {"topics": 10, "words_per_topic": 60}},
    "many-words-uneven": {"topic_model": {"topics": 10, "words_per_topic": 31}, "model": {"init_scale": 1.0},
                          "objective": {"loss": "cross-entropy"}},
    "many-topics": {"topic_model": {"topics": 1001},
                    "documents": {"kind": "logistic-normal", "covariance": 1.0, "topics_per_document": None}},
    "optimizer": {"optimizer": {"name": "adam"}},
}  # fmt: skip


def covered(law: Law, more: dict[str, Any]) -> RunConfig:
    settings = merged(merged(COVERED, OF_LAW.get(law.name, {})), more)
    kind = settings["documents"]["kind"]
    if kind != "fixed":
        settings["documents"] = {name: value for name, value in settings["documents"].items() if value is not None}
    return RunConfig.of(settings)


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_every_condition_of_a_row_can_fail(law: Law) -> None:
    assert law.refusal(covered(law, {})) is None
    codes = [code for code in law.reasons if code != "optimizer" or law.optimizers == ("sgd",)]
    refused = {code: law.refusal(covered(law, BROKEN[code])) for code in codes}
    assert {code: refusal and refusal.code for code, refusal in refused.items()} == {code: code for code in codes}
    assert all(refusal and len(refusal.reason) > 5 for refusal in refused.values())


def test_every_condition_belongs_to_a_row() -> None:
    assert set(CONDITIONS) == {code for law in LAWS.values() for code in law.reasons} - set(UNLISTED)
    assert all(condition.covers for condition in CONDITIONS.values())


@dataclass(frozen=True)
class Lion:
    """An optimiser that no law knows."""

    name: str = "lion"
    lr: float = 0.1
    momentum: float = 0.0
    eps: float = 0.0
    NAME: ClassVar[str] = "lion"


class Halves:
    def sample(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.full((count, topics), 1 / topics)

    def moments(self, topics: int) -> Moments:
        return Moments(np.full(topics, 1 / topics), np.full((topics, topics), 1 / topics**2))


def other(run: RunConfig, **parts: Any) -> RunConfig:
    """A run with parts that no configuration can name yet."""
    changed = replace(run)
    changed.__dict__.pop("world", None)
    for name, part in parts.items():
        object.__setattr__(changed, name, part)
    return changed


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_what_is_not_listed_is_refused(law: Law) -> None:
    """An optimiser, a prior and an architecture that the table does not know, by default."""
    run = covered(law, {})
    for code, changed, listed in (
        ("optimizer", other(run, optimizer=Lion()), law.optimizers),
        ("prior", other(run, documents=Own(Halves(), length="infinite")), law.priors),
        ("architecture", other(run, model=Lion()), ()),
    ):
        refusal = law.refusal(changed)
        assert (refusal and refusal.code) == (None if listed is None else code)


def test_nothing_is_predicted_for_parts_that_no_law_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another optimiser was predicted as SGD, silently."""
    monkeypatch.setitem(OPTIMISERS, "lion", OPTIMISERS["sgd"])
    run, built = covered(LAWS["phase"], {"optimizer": {"name": "lion"}}), other(covered(LAWS["end"], {}), model=Lion())
    phase = predicted_phase(run)
    assert (phase.phase, phase.code) == (None, "optimizer")
    assert training_optimum(built) == (None, None, "")
    predictions: list[Any] = [predicted_norms, optimum, world_optimum]
    for predict, one, code in zip(predictions, (run, built, built), ("optimizer", *["architecture"] * 2), strict=True):
        with pytest.raises(InputError) as error:
            predict(one)
        assert error.value.code == code


def test_each_row_is_derived_on_a_page_of_the_documentation() -> None:
    for law in TABLE:
        page, anchor = law.derived.split("#")
        titles = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w ]", "", title).lower().replace(" ", "-") for title in titles}
        assert law.covers
        assert law.error


FOUR = {"topic_model": {"topics": 4, "words_per_topic": 3}}
TWO = {"documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"}}
ALL = {"documents": {"kind": "fixed", "topics_per_document": 4, "length": "infinite"}}
FINITE = {"documents": {"length": 9}}
ENTROPY, EMBEDDED, ADAM = {"loss": "cross-entropy"}, {"embedding": "trained"}, {"optimizer": "adam", "lr": 1e-3}
# For each limit of a stage a world and a training that pass it.
PASSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "finite-documents": (FINITE, {}), "topics-not-alike": ({"topic_model": {"zipf": 1.0}}, {}),
    "no-force": ({"documents": {"topics_per_document": 1}}, {}), "few-dimensions": ({}, {"attention_dim": 2}),
    "zero-start": ({}, {"init_scale": 0.0}), "large-start": ({}, {"init_scale": 0.05}),
    "above-plateau": ({"topic_model": {"words_per_topic": 1}}, {"init_scale": 0.03, "attention_dim": 10**6}),
    "slow-value": ({"topic_model": {"topics": 3, "words_per_topic": 1}}, {"init_scale": 1e-6}),
    "overtaken": ({"topic_model": {"topics": 100_000, "words_per_topic": 1000}}, {}),
    "early-third-act": ({}, {"init_scale": 0.02}), "entropy-half-times": ({}, ENTROPY),
    "entropy-topics": (FINITE, ENTROPY), "entropy-same-topics": (ALL, ENTROPY),
    "entropy-no-mask": ({"masking": {"p_correct": 0.5, "p_random": 0.5}}, ENTROPY),
    "entropy-start": ({}, ENTROPY | {"init_scale": 0.05}), "embedding-topics": (FINITE, EMBEDDED),
    "embedding-same-topics": (ALL, EMBEDDED), "embedding-adam": ({}, EMBEDDED | ADAM),
    "embedding-start": ({}, EMBEDDED | {"init_scale": 0.1}), "embedding-entropy": ({}, EMBEDDED | ENTROPY),
    "adam-setting": (FINITE, ADAM), "adam-fast": ({}, ADAM | {"lr": 0.05}),
    "sgd-diverges": ({}, {"optimizer": "sgd", "lr": 100.0}),
}  # fmt: skip


def test_every_limit_of_a_stage_can_be_passed() -> None:
    assert {code for row in TABLE if isinstance(row, Stage) for code in row.limits} == set(LIMITS) == set(PASSED)
    for code, (world, training) in PASSED.items():
        reasons = dynamics(World.of(merged(merged(FOUR, TWO), world)), **training).not_covered
        pattern = re.sub(r"\\\{.*?\\\}", ".*", re.escape(LIMITS[code].reason))
        assert any(re.fullmatch(pattern, reason) for reason in reasons), (code, reasons)
