"""Norms predicted for a run from its own start, against a short run, and the runs to which theory does not apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topicscope import RunConfig, train
from topicscope.ground import InputError, merged
from topicscope.laws import predicted_norms, prediction_or_none
from topicscope.pages import Lines, sections
from topicscope.theory import dynamics, optimum

SETTINGS: dict[str, Any] = {
    "topic_model": {"topics": 4, "words_per_topic": 3},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "objective": {"loss": "squared"},
    "optimizer": {"name": "sgd", "lr": 8.0},
    "model": {"prediction_bias": "none", "init_scale": 0.01},
    "data": {"documents": 6000, "dev_documents": 20},
    "dtype": "float64",
    "steps": 1900,
    "batch_size": 200,
    "evaluate_every": None,
    "floors": False,
}


def changed(**settings: Any) -> RunConfig:
    return RunConfig.of(merged(SETTINGS, settings))


def test_the_curves_start_where_the_run_does() -> None:
    config = changed()
    start, predicted = config.model.initial(13, config.seed), predicted_norms(config)
    assert predicted.steps[0] == 0
    for part in ("key", "query"):
        assert predicted.norms[part][0] == pytest.approx(np.linalg.norm(start[part]), rel=1e-6)
    assert predicted.norms["value"][0] == pytest.approx(np.linalg.norm(start["value"]), rel=1e-3)
    later = optimum(config).value_at(8 * predicted.steps[20], start["value"])
    assert predicted.norms["value"][20] == pytest.approx(np.linalg.norm(later), rel=1e-3)


def test_a_run_follows_them() -> None:
    """Key and query within 4% of the step at which they are half-way, within 3% at the end; value within 1%."""
    run = train(changed())
    predicted = predicted_norms(run.config)
    half, plateau = predicted.half_way["key"], dynamics(run.config).attention.plateau_norm or 0
    for part in ("key", "query"):
        reached = run.metrics["step"][np.argmax(run.metrics[f"norm_{part}"] >= plateau / 2)]
        assert reached == pytest.approx(half, rel=0.04)
        assert run.metrics[f"norm_{part}"][-1] == pytest.approx(predicted.norms[part][-1], rel=0.03)
    early = predicted.steps < half / 2  # later the next act begins, in which W_V grows further
    measured = np.interp(predicted.steps, run.metrics["step"], run.metrics["norm_value"])[early][-10:]
    assert measured == pytest.approx(predicted.norms["value"][early][-10:], rel=0.01)
    assert f"value {predicted.half_way['value']:,.0f}, key {half:,.0f}, query {half:,.0f}." in run.summary()[-1]
    drawn = [panel for panel in sections(run)[0].figures[0].panels if isinstance(panel, Lines)]
    names = [one.name for panel in drawn for one in panel.series]
    assert [f"W_{x} ({y}), predicted" in names for x, y in (("V", "value"), ("K", "key"), ("Q", "query"))] == [True] * 3


def test_they_have_points_where_key_rises_and_where_value_does() -> None:
    predicted = predicted_norms(changed())
    for part in ("value", "key"):
        norm = predicted.norms[part]
        rising = (norm > norm[0] + 0.1 * np.ptp(norm)) & (norm < norm[0] + 0.9 * np.ptp(norm))
        assert rising.sum() >= 10


def test_uniform_attention_has_the_value_matrix_alone() -> None:
    predicted = predicted_norms(changed(model={"key": "zero", "query": "zero"}))
    assert set(predicted.norms) == set(predicted.half_way) == {"value"}


def test_averaged_outputs_are_slower() -> None:
    whole, averaged = (predicted_norms(changed(objective={"loss": loss})) for loss in ("squared", "squared-mean"))
    for part, half in whole.half_way.items():
        assert averaged.half_way[part] == pytest.approx(13 * half)


def test_a_run_that_is_not_covered_has_none() -> None:
    """The table says which (tests/laws/test_coverage.py)."""
    with pytest.raises(InputError) as error:
        predicted_norms(changed(model={"key": "zero"}))
    assert error.value.code == "key-or-query"
    assert prediction_or_none(changed(model={"key": "zero"})) is None


@pytest.mark.parametrize("sizes", [(5, 4, 2), (3, 2, 2), (4, 3, 2)])
def test_value_is_half_way_where_its_predicted_norm_is(sizes: tuple[int, int, int]) -> None:
    """Not where half of the topic contrasts is learnt, which is later: the mean comes first."""
    topics, words, tau = sizes
    config = RunConfig.of(
        topic_model={"topics": topics, "words_per_topic": words},
        documents={"kind": "fixed", "topics_per_document": tau, "length": "infinite"},
        model={"init_scale": 1e-3, "prediction_bias": "none"},
        objective={"loss": "squared"},
        optimizer={"name": "sgd", "lr": 0.01},
        steps=200_000,
    )
    predicted = predicted_norms(config)
    norm = predicted.norms["value"]
    first = int(np.argmax(norm >= (norm[0] + norm[-1]) / 2))
    low, high = predicted.steps[first - 1], predicted.steps[first]
    assert 0.9 * low <= predicted.half_way["value"] <= 1.1 * high
    assert predicted.half_way["value"] < 0.9 * dynamics(config).value.half_time / 0.01  # type: ignore[operator]
