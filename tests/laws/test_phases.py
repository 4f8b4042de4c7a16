"""The predicted phase: by which law, against short runs, and the runs that no law covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topicscope import RunConfig, train
from topicscope.ground import merged
from topicscope.laws import predicted_phase, predicted_phases
from topicscope.laws.predictions import (
    CLOSED,
    DESCENT,
    REDUCED,
    UNSTABLE,
    WORDS,
    FlowStart,
    adam_norms,
    flow_course,
    law_of,
    sgd_norms,
)
from topicscope.measure import NOT_COVERED, risen
from topicscope.theory import adam_clock

SMALL: dict[str, Any] = {
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "objective": {"loss": "squared"},
    "optimizer": {"name": "sgd", "lr": 8.0},
    "model": {"prediction_bias": "none", "init_scale": 0.001},
    "data": {"documents": 2000, "dev_documents": 20},
    "steps": 2500,
    "evaluate_every": None,
    "floors": False,
}


ENTROPY: dict[str, Any] = {"objective": {"loss": "cross-entropy"}, "steps": 100}
EMBEDDED: dict[str, Any] = {"model": {"embedding": "trained", "init_scale": 0.05}, "optimizer": {"lr": 2.0}}


def small(**settings: Any) -> RunConfig:
    return RunConfig.of(merged(SMALL, settings))


@pytest.mark.parametrize(
    ("settings", "phase", "law"),
    [
        ({"optimizer": {"lr": 12.0}, "steps": 1400}, "two-stage", CLOSED),
        ({"steps": 100}, "first stage only", CLOSED),
        ({"model": {"init_scale": 0.5}, "steps": 100}, "never", CLOSED),
        ({"optimizer": {"lr": 100.0}, "steps": 100}, "diverged", UNSTABLE),
        ({"objective": {"loss": "cross-entropy"}, "steps": 20}, "first stage only", REDUCED),
        (ENTROPY, "two-stage", REDUCED),
        (
            {"objective": {"loss": "cross-entropy"}, "model": {"init_scale": 0.1}, "optimizer": {"lr": 2.0}}
            | {"steps": 1600},
            "staggered",
            REDUCED,
        ),
        (EMBEDDED | {"steps": 1250}, "two-stage", REDUCED),
        (EMBEDDED | {"steps": 200}, "first stage only", REDUCED),
        ({"model": {"embedding": "trained"}, "optimizer": {"lr": 1.0}, "steps": 300}, "never", REDUCED),
        (
            {"objective": {"loss": "cross-entropy"}, "model": {"init_scale": 0.5}, "optimizer": {"lr": 1.0}}
            | {"steps": 350},
            "at once",
            WORDS,
        ),
        (
            {"objective": {"loss": "cross-entropy"}, "model": {"init_scale": 0.5, "embedding": "trained"}}
            | {"optimizer": {"lr": 1.0}, "steps": 250},
            "first stage only",
            DESCENT,
        ),
        (
            {"objective": {"loss": "cross-entropy"}, "model": {"init_scale": 1.0, "embedding": "trained"}}
            | {"optimizer": {"lr": 0.3}, "steps": 1000},
            "diverged",
            DESCENT,
        ),
    ],
)
def test_a_run_takes_the_phase_that_its_law_predicts(settings: dict[str, Any], phase: str, law: str) -> None:
    config = small(**settings)
    found = predicted_phase(config)
    assert (found.phase, found.why) == (phase, law)
    course = train(config).course
    assert course is not None
    assert course.phase == phase
    if phase in ("two-stage", "at once"):  # in others key and query are late, or still on their way
        assert found.course is not None
        assert found.course.halves is not None
        assert course.halves is not None
        assert found.course.halves.value == pytest.approx(course.halves.value, rel=0.05, abs=1)
        assert found.course.halves.key == pytest.approx(course.halves.key, rel=0.05)


def adam(**settings: Any) -> RunConfig:
    return small(**{"optimizer": {"name": "adam", "lr": 1e-3, "eps": 1e-6}, "steps": 4000} | settings)


def test_adam_s_curves_are_half_way_at_its_clock() -> None:
    """From a start that is nearly zero, half of the plateau is half of the rise."""
    config = adam(model={"init_scale": 1e-5})
    found = law_of(config)
    assert found.growth is not None
    clock = adam_clock(
        found.growth, (found.value.rate or 0) / 2, attention_dim=13, init_scale=1e-5, lr=1e-3, eps=1e-6, batch_noise=0.5
    )
    value, key = adam_norms(config, found, 0.5)
    assert risen(value) == pytest.approx(clock.value, abs=1)
    assert risen(key) == pytest.approx(clock.attention, rel=0.01)
    assert key[-1] == pytest.approx(found.attention.plateau_norm, rel=1e-3)
    assert predicted_phase(config, batch_noise=0.5).phase == "staggered"


def test_a_rate_may_become_unstable_along_the_flow() -> None:
    """Cross entropy is flat at zero and bends more once embeddings have grown; descent says which such runs diverge."""
    settings = {"objective": {"loss": "cross-entropy"}, "model": {"embedding": "trained", "init_scale": 0.1}}
    runs = [small(**settings, optimizer={"lr": lr}, steps=steps) for lr, steps in ((20.0, 400), (1.0, 400), (1.0, 50))]
    found = predicted_phases(runs)
    assert [one.why for one in found] == [DESCENT, DESCENT, REDUCED]
    courses = [train(run).course for run in runs]
    assert [one and one.phase for one in courses] == [one.phase for one in found]
    assert [one.phase for one in found[:2]] == ["diverged", "at once"]


def test_key_grows_at_one_rate_at_first_where_its_half_time_is_not_known() -> None:
    config = small(model={"init_scale": 0.05}, steps=100)
    found = law_of(config)
    assert found.attention.half_time is None
    _, key = sgd_norms(config, found)
    known = law_of(small(model={"init_scale": 0.03})).norms(np.arange(101) * 8.0)
    assert key == pytest.approx(known["key"] * 5 / 3, rel=2e-3)
    late = predicted_phase(small(model={"init_scale": 0.05}, steps=1000))
    assert late.phase is None
    assert "larger starts mix the stages" in late.why


def test_runs_that_differ_in_rate_share_a_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def once(start: FlowStart, until: float) -> Any:
        asked.append(until)
        return flow_course(start, until)

    monkeypatch.setattr("topicscope.laws.predictions.flow_course", once)
    entropy = {"objective": {"loss": "cross-entropy"}, "steps": 20}
    configs = [small(**entropy, optimizer={"lr": lr}) for lr in (1.0, 8.0)]
    together = predicted_phases([*configs, small(**entropy, seed=1), small()])
    assert asked == [160.0, 160.0]  # two seeds
    assert together[0].phase == predicted_phase(configs[0]).phase
    assert asked[2] == 20.0


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"documents": {"length": 50}}, "documents of 50 words"),
        ({"optimizer": {"name": "adam", "lr": 1.0}}, "before 10 steps"),
        ({"optimizer": {"name": "adam", "lr": 0.01}, "model": {"init_scale": 10.0}}, "below their plateau"),
        ({"masking": {"p_correct": 0.0, "p_random": 0.1}}, "uniform attention is optimal"),
    ],
)
def test_other_runs_are_not_covered(settings: dict[str, Any], reason: str) -> None:
    found = predicted_phase(small(**settings))
    assert found.phase is None
    assert reason in found.why
    assert found.as_dict()["predicted_phase"] == NOT_COVERED


def test_without_a_bias_larger_rates_are_stable() -> None:
    """Its eigenvalue, 1, is the largest by far where words are many."""
    settings: dict[str, Any] = {"steps": 30, "optimizer": {"lr": 1.5}}
    free, bound = (small(**settings, model={"prediction_bias": bias}) for bias in ("none", "trained"))
    assert predicted_phase(free).phase == "first stage only"
    assert predicted_phase(bound).phase == "diverged"
    run = train(bound)
    assert run.course is not None
    assert run.course.phase == "diverged"
