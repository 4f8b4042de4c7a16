"""W* and the value matrix in words, norms from a run's own start, phases: against loops and short runs."""

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.training.settings import SMALL as RUN
from topicscope import Run, RunConfig, train
from topicscope.ground import InputError, merged
from topicscope.laws import (
    contributions,
    coverage,
    predicted_norms,
    predicted_phase,
    predicted_phases,
    prediction_or_none,
    predictions,
    topic_relations,
    training_optimum,
    world_optimum,
)
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
from topicscope.pages import Lines, sections
from topicscope.theory import SymmetricOptimum, adam_clock, dynamics, optimum, topics_alike
from topicscope.world import DocumentPrior, TopicModel

UNIFORM = {"model": {"key": "zero", "query": "zero"}, "objective": {"loss": "squared"}, "floors": False}
GROUPS = {
    "topic_model": {"topics": 4, "words_per_topic": 2},
    "documents": {"kind": "groups", "groups": 2, "rho": 0.9, "length": 9},
}
OVERLAP = {"topic_model": {"topics": 4, "words_per_topic": 4, "overlap": 0.25}}


def config(*more: dict[str, Any]) -> RunConfig:
    whole: dict[str, Any] = dict(RUN)
    for one in more:
        whole = merged(whole, one)
    return RunConfig.of(whole)


def law(run: RunConfig) -> tuple[TopicModel, DocumentPrior]:
    return run.world.topic_model, run.world.prior


def map_by_loop(run: RunConfig, matrix: np.ndarray) -> np.ndarray:
    topics = run.topic_model.word_topics
    found = np.zeros((topics.shape[1],) * 2)
    for t, u in np.ndindex(*found.shape):
        total = pairs = 0.0
        for i, j in itertools.permutations(range(len(topics)), 2):
            weight = topics[i, t] / sum(topics[i]) * topics[j, u] / sum(topics[j])
            total, pairs = total + weight * matrix[i + 1, j + 1], pairs + weight
        found[t, u] = total / pairs
    return found


WORLDS: dict[str, dict[str, Any]] = {
    "groups": GROUPS, "overlap": OVERLAP, "zipf": {"topic_model": {"words_per_topic": [2, 3, 4], "zipf": 1.0}}
}  # fmt: skip


@cache
def trained(world: str) -> Run:
    return train(config(UNIFORM, WORLDS[world]))


@pytest.mark.parametrize("world", WORLDS)
def test_a_run_has_the_map_of_its_value_matrix_and_of_the_optimum(world: str) -> None:
    run = trained(world)
    relations, value = run.results["relations"], run.weights["value"].astype(float)
    np.testing.assert_allclose(relations["value"]["topics"], map_by_loop(run.config, value), rtol=0, atol=1e-10)
    bias = contributions(run.config, run.weights) - value
    expected = map_by_loop(run.config, world_optimum(run.config).matrix() - bias)
    np.testing.assert_allclose(relations["optimum"]["topics"], expected, rtol=0, atol=1e-10)
    assert ("shared" in relations["value"]) == (world == "overlap")
    assert ("partners" in relations["value"]) == (world == "groups")


def test_partners_are_other_topics_of_one_group() -> None:
    run = trained("groups")
    matrix, topic = run.weights["value"].astype(float), run.config.topic_model.topic_of_word
    sums: dict[str, list[float]] = {"same": [], "partner": [], "other": []}
    for i, j in itertools.permutations(range(1, 9), 2):
        together = (topic[i] - 1) // 2 == (topic[j] - 1) // 2
        sums["same" if topic[i] == topic[j] else "partner" if together else "other"].append(matrix[i, j])
    found = run.results["relations"]["value"]["partners"]
    assert found == {name: pytest.approx(np.mean(values), abs=1e-10) for name, values in sums.items()}
    assert run.facts()["W_V, topics of one group"] == found["partner"]
    best = run.results["relations"]["optimum"]["partners"]
    assert best["same"] > best["partner"] > best["other"]  # what 'same / different' hides


def test_words_by_topics_in_common() -> None:
    run = trained("overlap")
    found, means = run.results["relations"]["value"]["shared"], run.results["value"]
    assert found == {"0": pytest.approx(means["different"]), "1": pytest.approx(means["same"])}
    wide = config(
        {"topic_model": {"topics": 3, "words_per_topic": 4, "overlap": 0.25, "common_words": 2}},
        {"topic_model": {"common_share": 0.2}},
    )
    assert list(topic_relations(wide, np.eye(wide.topic_model.vocabulary))["shared"]) == ["0", "1", "2", "3"]


def test_worlds_whose_topics_are_alike_have_no_relations() -> None:
    """The paper's worlds: same and different say everything, and results are what they were."""
    assert topics_alike(*law(RunConfig()))
    assert topics_alike(*law(config({"documents": {"kind": "fixed", "topics_per_document": 2}})))
    assert "relations" not in train(config()).results
    for unlike in ({"documents": {"alpha": [0.1, 0.2, 0.3]}}, {"topic_model": {"zipf": 1.0}}):
        assert not topics_alike(*law(config(unlike)))


@pytest.mark.parametrize(
    ("documents", "alike"),
    [
        ({"alpha": [0.2, 0.2, 0.2]}, True),
        ({"alpha": [0.2, 0.2, 0.3]}, False),
        ({"kind": "fixed", "topics_per_document": 2, "weights": [3, 3, 3]}, True),
        ({"kind": "fixed", "topics_per_document": 3, "weights": [1, 2, 3]}, True),  # all topics in every document
        ({"kind": "fixed", "topics_per_document": 2, "weights": [1, 2, 3]}, False),
        ({"kind": "given", "proportions": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}, True),
        ({"kind": "given", "proportions": [[1, 0, 0], [0, 1, 0], [0.5, 0, 0.5]]}, False),
        ({"kind": "logistic-normal", "covariance": 1.0}, True),
        ({"kind": "logistic-normal", "covariance": 1.0, "mean": [0, 0, 1]}, False),
        ({"kind": "groups", "groups": 3, "topics_per_document": 1}, True),  # one topic per document: no group shows
    ],
)
def test_topics_are_alike_where_the_optimum_is_a_handful_of_numbers(documents: dict[str, Any], alike: bool) -> None:
    one = config({"documents": documents | {"length": 9}})
    assert topics_alike(*law(one)) == alike
    assert isinstance(world_optimum(one), SymmetricOptimum) == alike
    assert (topic_relations(one, np.zeros((one.topic_model.vocabulary,) * 2)) == {}) == alike


def test_numbers_that_are_not_finite_and_large_worlds() -> None:
    one = config({"topic_model": {"words_per_topic": [1, 2, 3]}})
    assert topic_relations(one, np.zeros((7, 7)))["topics"][0] == [None, 0.0, 0.0]  # one word has no pair
    assert topic_relations(one, np.full((7, 7), np.inf)) == {}  # a run that diverged
    many = config({"topic_model": {"words_per_topic": [1] * 100 + [2], "topics": 101}})
    assert topic_relations(many, np.zeros((103, 103))) == {}


def test_contributions_are_what_the_model_adds_up() -> None:
    """U x of the model's own tables, biases and embedding included."""
    import torch

    from topicscope.model.passes import tables

    for model in (
        {"value_bias": "trained", "prediction_bias": "trained"},
        {"embedding": "trained", "dim": 4, "prediction_bias": 0.5},
        {"embedding": "trained", "dim": 4, "head": "untied", "value_bias": "trained"},
        {"embedding": "trained", "value": "identity"},
    ):
        run = train(config(UNIFORM, {"dtype": "float64", "model": model}), with_floors=False)
        parts = {name: torch.from_numpy(part)[None] for name, part in run.weights.items()}
        exact = tables(run.config.model, parts, 7).contributions[0].numpy()
        assert contributions(run.config, run.weights) == pytest.approx(exact, abs=1e-12)


def test_only_symmetry_makes_a_large_optimum_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal topics alone are not enough: with groups, or unequal weights, W* is a matrix that has to be solved for."""
    monkeypatch.setattr(predictions, "MOST_WORDS", 5)
    monkeypatch.setattr(coverage, "MOST_TOPICS", 3)
    equal = {"topics": 4, "words_per_topic": 2}
    groups = {"kind": "groups", "groups": 2, "rho": 0.5, "topics_per_document": 2, "length": 9}
    no_groups = groups | {"rho": 0.0}
    fixed = {"kind": "fixed", "weights": [1, 2, 3, 4], "topics_per_document": 2, "length": 9}
    normal = {"kind": "logistic-normal", "covariance": 1.0, "length": 9}
    for documents, why in (
        (groups, "8 words: without symmetry at most 5 are taken"),
        (fixed, "8 words: without symmetry at most 5 are taken"),
        (normal, "4 topics: the moments of a logistic normal take seconds above 3"),
        (no_groups, ""),  # by its moments the world is symmetric, whatever the prior is called
        ({"length": 9}, ""),
    ):
        matrix, _, said = training_optimum(config(UNIFORM, {"topic_model": equal, "documents": documents}))
        assert said.startswith(why)
        assert (matrix is None) == bool(said) == bool(why)


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
LARGER = {"model": {"init_scale": 0.01}, "data": {"documents": 6000}, "dtype": "float64", "batch_size": 200}


def small(**settings: Any) -> RunConfig:
    return RunConfig.of(merged(SMALL, settings))


def changed(**settings: Any) -> RunConfig:
    return small(**merged(LARGER | {"steps": 1900}, settings))


def test_the_curves_start_where_the_run_does() -> None:
    config = changed()
    start, predicted = config.model.initial(13, config.seed), predicted_norms(config)
    assert predicted.steps[0] == 0
    for part in ("value", "key"):  # points where they rise
        norm = predicted.norms[part]
        rising = (norm > norm[0] + 0.1 * np.ptp(norm)) & (norm < norm[0] + 0.9 * np.ptp(norm))
        assert rising.sum() >= 10
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


def test_averaged_outputs_are_slower_and_value_may_be_alone() -> None:
    whole, averaged = (predicted_norms(changed(objective={"loss": loss})) for loss in ("squared", "squared-mean"))
    for part, half in whole.half_way.items():
        assert averaged.half_way[part] == pytest.approx(13 * half)
    uniform = predicted_norms(changed(model={"key": "zero", "query": "zero"}))
    assert set(uniform.norms) == set(uniform.half_way) == {"value"}
    with pytest.raises(InputError) as error:
        predicted_norms(changed(model={"key": "zero"}))
    assert error.value.code == "key-or-query"
    assert prediction_or_none(changed(model={"key": "zero"})) is None


@pytest.mark.parametrize("sizes", [(5, 4, 2), (3, 2, 2), (4, 3, 2)])
def test_value_is_half_way_where_its_predicted_norm_is(sizes: tuple[int, int, int]) -> None:
    """Not where half of the topic contrasts is learnt, which is later: the mean comes first."""
    topics, words, tau = sizes
    world = {"topic_model": {"topics": topics, "words_per_topic": words}, "documents": {"topics_per_document": tau}}
    config = small(**world, optimizer={"lr": 0.01}, steps=200_000)
    predicted = predicted_norms(config)
    norm = predicted.norms["value"]
    first = int(np.argmax(norm >= (norm[0] + norm[-1]) / 2))
    low, high = predicted.steps[first - 1], predicted.steps[first]
    assert 0.9 * low <= predicted.half_way["value"] <= 1.1 * high
    assert predicted.half_way["value"] < 0.9 * dynamics(config).value.half_time / 0.01  # type: ignore[operator]


BY_ENTROPY = {"loss": "cross-entropy"}
ENTROPY: dict[str, Any] = {"objective": BY_ENTROPY, "steps": 100}
EMBEDDED: dict[str, Any] = {"model": {"embedding": "trained", "init_scale": 0.05}, "optimizer": {"lr": 2.0}}


def entropy(lr: float, steps: int, **model: Any) -> dict[str, Any]:
    return {"objective": BY_ENTROPY, "model": model, "optimizer": {"lr": lr}, "steps": steps}


@pytest.mark.parametrize(
    ("settings", "phase", "law"),
    [
        ({"optimizer": {"lr": 12.0}, "steps": 1400}, "two-stage", CLOSED),
        ({"steps": 100}, "first stage only", CLOSED),
        ({"model": {"init_scale": 0.5}, "steps": 100}, "never", CLOSED),
        ({"optimizer": {"lr": 100.0}, "steps": 100}, "diverged", UNSTABLE),
        (ENTROPY | {"steps": 20}, "first stage only", REDUCED),
        (ENTROPY, "two-stage", REDUCED),
        (EMBEDDED | {"steps": 1250}, "two-stage", REDUCED),
        (EMBEDDED | {"steps": 200}, "first stage only", REDUCED),
        ({"model": {"embedding": "trained"}, "optimizer": {"lr": 1.0}, "steps": 300}, "never", REDUCED),
        (entropy(2.0, 1600, init_scale=0.1), "staggered", REDUCED),
        (entropy(1.0, 350, init_scale=0.5), "at once", WORDS),
        (entropy(1.0, 250, init_scale=0.5, embedding="trained"), "first stage only", DESCENT),
        (entropy(0.3, 1000, init_scale=1.0, embedding="trained"), "diverged", DESCENT),
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
        halves, measured = found.course.halves, course.halves
        assert halves is not None
        assert measured is not None
        assert halves.value == pytest.approx(measured.value, rel=0.05, abs=1)
        assert halves.key == pytest.approx(measured.key, rel=0.05)


def adam(**settings: Any) -> RunConfig:
    return small(**{"optimizer": {"name": "adam", "lr": 1e-3, "eps": 1e-6}, "steps": 4000} | settings)


def test_adam_s_curves_are_half_way_at_its_clock() -> None:
    """From a start that is nearly zero, half of the plateau is half of the rise."""
    config = adam(model={"init_scale": 1e-5})
    found = law_of(config)
    assert found.growth is not None
    adam_settings: dict[str, Any] = {"attention_dim": 13, "init_scale": 1e-5, "lr": 1e-3, "eps": 1e-6}
    clock = adam_clock(found.growth, (found.value.rate or 0) / 2, batch_noise=0.5, **adam_settings)
    value, key = adam_norms(config, found, 0.5)
    assert risen(value) == pytest.approx(clock.value, abs=1)
    assert risen(key) == pytest.approx(clock.attention, rel=0.01)
    assert key[-1] == pytest.approx(found.attention.plateau_norm, rel=1e-3)
    assert predicted_phase(config, batch_noise=0.5).phase == "staggered"


def test_a_rate_may_become_unstable_along_the_flow() -> None:
    """Cross entropy is flat at zero and bends more once embeddings have grown; descent says which such runs diverge."""
    model = {"embedding": "trained", "init_scale": 0.1}
    runs = [small(**entropy(lr, steps, **model)) for lr, steps in ((20.0, 400), (1.0, 400), (1.0, 50))]
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
    configs = [small(**ENTROPY | {"steps": 20}, optimizer={"lr": lr}) for lr in (1.0, 8.0)]
    together = predicted_phases([*configs, small(**ENTROPY | {"steps": 20}, seed=1), small()])
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
