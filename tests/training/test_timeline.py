"""A run against the truth: its topics, its mixtures, and W*."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.calling import topicscope
from tests.training import settings
from topicscope import RunConfig, read, train
from topicscope.ground import Stream
from topicscope.ground.errors import InputError
from topicscope.laws import training_optimum, world_optimum
from topicscope.measure import direct_scores, read_timeline
from topicscope.model import ModelConfig, dense_forward, word_scores
from topicscope.model.passes import attention
from topicscope.theory import given_moments, relative_distance, uniform_optimum
from topicscope.training import RunData, TopicCeiling, compare_with_optimum, own_optimum, timeline, topic_ceiling
from topicscope.training.timeline import is_sandbox, read_snapshots, sandbox_effects, sandbox_timeline
from topicscope.world import MASK, MaskedDocuments, mask_keys, word_counts

SETTINGS = {
    "steps": 120,
    "data": {"documents": 400, "dev_documents": 60},
    "topic_model": {"topics": 4, "words_per_topic": 5},
    "documents": {"length": 30},
    "optimizer": {"lr": 0.02},
    "snapshots": [0, 3, 50, 120],
    "evaluate_every": None,
    "floors": False,
    "checkpoint_every": 50,
    "device": "cpu",
}
SMALL = SETTINGS | {"steps": 2, "snapshots": [0, 2]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline") / "run"
    train(RunConfig.of(SETTINGS), path)
    return path


def test_snapshots_are_the_weights_at_those_steps(folder: Path, tmp_path: Path) -> None:
    run = train(RunConfig.of(SETTINGS))
    assert list(run.snapshots) == [0, 3, 50, 120]
    short = train(RunConfig.of(SETTINGS | {"steps": 50, "snapshots": "none"}))
    for name, weights in short.weights.items():
        np.testing.assert_array_equal(run.snapshots[50][name], weights)
        np.testing.assert_array_equal(run.snapshots[120][name], run.weights[name])
    assert short.snapshots == {}
    _, stored = read_snapshots(folder)
    assert list(stored) == list(run.snapshots)
    for step, parts in stored.items():
        for name, weights in parts.items():
            np.testing.assert_array_equal(weights, run.snapshots[step][name])
    train(RunConfig.of(SETTINGS | {"snapshots": "none", "steps": 2}), tmp_path / "run")
    with pytest.raises(InputError, match="has no snapshots; train with --snapshots log"):
        read_snapshots(tmp_path / "run")


def test_word_scores_are_those_of_the_dense_pass() -> None:
    """Embedding and biases included."""
    model = dict.fromkeys(("embedding", "key_bias", "query_bias"), "trained")
    weights = train(RunConfig.of(SMALL | {"model": model, "dtype": "float64"})).weights
    words = np.array([[3, 7, 7, 12, 20, 1]])
    z = torch.from_numpy(weights["embedding"][:, words[0]])[None]
    parts = {name: torch.from_numpy(value) for name, value in weights.items()}
    dense = attention(ModelConfig(embedding="trained"), parts, z, torch.ones(1, 6, dtype=torch.bool))[0]  # keys in rows
    table = word_scores(weights)[np.ix_(words[0], words[0])]
    ours = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    np.testing.assert_allclose(ours, dense.numpy().T, rtol=1e-10)


def test_effects_are_means_over_the_true_topics(folder: Path) -> None:
    run = read(folder)
    found = sandbox_effects(run.config, run.snapshots, 100)
    assert set(found) == {"value", "attention"}  # words are one-hot
    value, topic = run.weights["value"].astype(float), run.config.topic_model.topic_of_word
    pairs = [(i, j) for i in range(1, 21) for j in range(1, 21) if i != j]
    same = np.mean([value[i, j] for i, j in pairs if topic[i] == topic[j]])
    different = np.mean([value[i, j] for i, j in pairs if topic[i] != topic[j]])
    end, start = found["value"][120], found["value"][0]
    assert end is not None
    assert start is not None
    assert end.same == pytest.approx(same, rel=1e-9)
    assert end.different == pytest.approx(different, rel=1e-9)
    assert end.same == pytest.approx(run.results["value"]["same"], rel=1e-4)
    assert end.interval is not None
    assert end.interval[0] > 0  # it has learnt
    assert abs(start.difference) < 0.1 * end.difference


@pytest.mark.parametrize(
    ("more", "measures"),
    [
        ({"model": {"value": "identity", "prediction_bias": "none"}}, {"attention"}),
        ({"model": {"key": "zero"}}, {"value"}),
        ({"model": {"query": "zero"}}, {"value"}),
        ({"documents": {"kind": "infinite", "topics_per_document": 2}}, {"value"}),
        ({"model": {"embedding": "trained", "dim": 3, "key": "zero"}}, {"embedding"}),
        ({"model": {"embedding": "trained"}}, {"embedding", "attention"}),
        ({"model": {"value": "diagonal", "key": "zero"}}, {"value"}),
    ],
)
def test_what_is_followed_depends_on_what_is_there(more: dict[str, Any], measures: set[str]) -> None:
    run = train(RunConfig.of(SMALL | more), with_floors=False)
    found = sandbox_effects(run.config, run.snapshots, 10)
    assert set(found) == measures
    assert all(list(effects) == [0, 2] for effects in found.values())


def test_nothing_to_follow_is_said() -> None:
    """Key alone, or a value matrix that is not over words."""
    config = RunConfig.of(SMALL)
    for weights in ({"key": np.eye(21)}, {"value": np.eye(3)}, {"prediction_bias": np.zeros(21)}):
        with pytest.raises(InputError, match="there is nothing to follow"):
            sandbox_effects(config, {0: weights}, 10)


def test_embeddings_are_compared_by_their_cosines() -> None:
    """Against a double loop; a word whose embedding is zero is like no other."""
    config = RunConfig.of(SMALL)
    topic, vectors = config.topic_model.topic_of_word, np.random.default_rng(0).normal(size=(4, 21))
    vectors[:, 5] = 0
    units = [vector / (np.linalg.norm(vector) or 1.0) for vector in vectors.T]
    pairs = [(i, j) for i in range(1, 21) for j in range(1, 21) if i != j]
    effect = sandbox_effects(config, {0: {"embedding": vectors}}, 10)["embedding"][0]
    assert effect is not None
    assert effect.same == pytest.approx(np.mean([units[i] @ units[j] for i, j in pairs if topic[i] == topic[j]]))
    assert effect.different == pytest.approx(np.mean([units[i] @ units[j] for i, j in pairs if topic[i] != topic[j]]))


def test_attention_is_averaged_over_the_first_dev_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(RunConfig.of(SMALL), with_floors=False)

    def attention(documents: int) -> Any:
        monkeypatch.setattr(timeline, "DOCUMENTS", documents)
        return sandbox_effects(run.config, run.snapshots, 10)["attention"][2]

    assert attention(59) != attention(60)
    assert attention(60) == attention(61)  # there are 60


def test_resamples_and_seed_reach_the_bootstrap(tmp_path: Path) -> None:
    """Unless told otherwise: 1000 resamples of seed 0."""
    run = train(RunConfig.of(SMALL), tmp_path / "run", with_floors=False)
    plain = sandbox_effects(run.config, run.snapshots)
    assert plain == sandbox_effects(run.config, run.snapshots, 1000, 0)
    assert plain != sandbox_effects(run.config, run.snapshots, 1000, 1)
    whole = sandbox_timeline(tmp_path / "run")
    assert whole == sandbox_timeline(tmp_path / "run", bootstrap=1000, seed=0)
    assert [note.split(":")[0] for note in whole.notes[1:3]] == ["step 0", f"step {max(run.snapshots)}"]
    assert all("at best" in note for note in whole.notes[1:3])
    assert whole != sandbox_timeline(tmp_path / "run", bootstrap=3)
    assert whole != sandbox_timeline(tmp_path / "run", seed=1)
    for _ in range(2):  # a timeline that is there is replaced
        assert sandbox_timeline(tmp_path / "run", tmp_path / "out") == whole
    assert read_timeline(tmp_path / "out") == whole


def test_folders_of_other_kinds_are_no_sandbox(tmp_path: Path) -> None:
    train(RunConfig.of(SMALL), tmp_path / "run", with_floors=False)
    assert is_sandbox(tmp_path / "run")
    assert not is_sandbox(tmp_path)
    (tmp_path / "config.yaml").write_text("corpus: a.txt\n")
    assert not is_sandbox(tmp_path)
    train(RunConfig.of(SMALL).with_seeds(2), tmp_path / "runs", with_floors=False)
    with pytest.raises(InputError, match=r"holds several runs; give one of them, such as .*run-000"):
        read_snapshots(tmp_path / "runs")
    (tmp_path / "run" / "config.yaml").unlink()
    with pytest.raises(InputError, match=r"config\.yaml is missing; make"):
        read_snapshots(tmp_path / "run")


def test_the_command_draws_a_sandbox_timeline(folder: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "timeline")
    found = json.loads(topicscope("timeline", str(folder), "--json", "--bootstrap", "50", "--out", out).stdout)
    assert {row["measure"] for row in found["timeline"]} == {"value", "attention"}
    assert [row["step"] for row in found["timeline"] if row["measure"] == "value"] == [0, 3, 50, 120]
    assert found["moments"][0]["appears"] is not None
    header = (tmp_path / "timeline" / "timeline.csv").read_text().splitlines()[0]
    assert header.startswith("measure,step,same,different,difference,ratio,interval_low,interval_high")
    assert "When does topic structure appear?" in (tmp_path / "timeline" / "report.html").read_text()
    assert (tmp_path / "timeline" / "figures" / "timeline.png").exists()
    assert "its own topics and texts" in topicscope("timeline", str(folder), "--corpus", "x.txt", code=2).stderr
    assert read_timeline(out) == sandbox_timeline(folder, bootstrap=50)
    assert json.loads(json.dumps(read_timeline(out).as_dict())) == found


def test_snapshots_that_were_exchanged_are_refused(tmp_path: Path) -> None:
    train(RunConfig.of(SMALL), tmp_path / "run", with_floors=False)
    first, last = sorted((tmp_path / "run" / "snapshots").iterdir())
    first.rename(tmp_path / "kept")
    last.rename(first)
    (tmp_path / "kept").rename(last)
    with pytest.raises(InputError, match="is the snapshot of another step"):
        read_snapshots(tmp_path / "run")


MIXED: dict[str, Any] = {
    "steps": 200,
    "data": {"documents": 2000, "dev_documents": 600},
    "topic_model": {"topics": 5, "words_per_topic": 4},
    "documents": {"kind": "dirichlet", "alpha": 0.3, "length": 12},
    "optimizer": {"lr": 0.02},
    "evaluate_every": None,
    "floors": False,
    "checkpoint_every": None,
    "device": "cpu",
}


def masked(config: RunConfig) -> MaskedDocuments:
    dev = RunData(config).task.dev
    assert isinstance(dev, MaskedDocuments)
    return dev


@pytest.mark.parametrize(
    "model",
    [
        {"init_scale": 0.8, "prediction_bias": "none"},
        {"key": "zero", "value": "diagonal", "prediction_bias": "none"},
        {"embedding": "trained", "dim": 7, "init_scale": 0.8, "key_bias": "trained", "value_bias": 0.3},
        {"query": "zero", "query_bias": 0.7, "init_scale": 0.8},
    ],
)
def test_mean_outputs_are_those_of_the_dense_pass(model: dict[str, Any]) -> None:
    """The dense pass with an identity for a head: the mean of its output over positions."""
    config = RunConfig.of(MIXED, model=model, data={"documents": 5, "dev_documents": 20}, dtype="float64")
    dev, vocabulary = masked(config), config.topic_model.vocabulary
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape) for name, shape in config.model.trained_shapes(vocabulary).items()}
    parts = {**config.model.frozen(config.topic_model, config.masking), **weights}
    shown = torch.from_numpy(dev.masks.shown_words(dev.documents.words).astype(np.int64))
    tensors = {name: torch.from_numpy(part) for name, part in parts.items() if name != "prediction_bias"}
    tensors["head"] = torch.eye(config.model.width(vocabulary), dtype=torch.float64)
    bare = RunConfig.of(MIXED, model={**model, "head": "untied", "prediction_bias": "none"}).model
    output = dense_forward(bare, tensors, shown, shown >= 0, vocabulary).mean(2).numpy()
    found = config.model.mean_outputs(parts, dev.shown_counts(vocabulary))
    np.testing.assert_allclose(found, output, atol=1e-10, rtol=1e-10)


def test_the_ceiling_is_that_of_all_hypotheses_enumerated() -> None:
    """Two of four topics with equal shares: six hypotheses, and the likelihood of every position under each."""
    settings = MIXED | {
        "topic_model": {"topics": 4, "words_per_topic": 2},
        "documents": {"kind": "fixed", "topics_per_document": 2, "length": [3, 6]},
        "data": {"documents": 10, "dev_documents": 40},
    }
    config = RunConfig.of(settings)
    dev, masking, words = masked(config), config.masking, config.topic_model.words
    hypotheses = [np.isin(np.arange(4), pair) / 2 for pair in itertools.combinations(range(4), 2)]
    posterior = []
    for row in dev.masks.shown_words(dev.documents.words):
        likelihoods = []
        for theta in hypotheses:
            likelihood = 1.0
            for word in row[row >= 0]:
                if word == MASK:
                    likelihood *= masking.p_mask * masking.p_mask_word
                else:
                    own = theta[(word - 1) // 2] / 2
                    kept = (1 - masking.p_mask) * own + masking.p_mask * masking.p_correct * own
                    likelihood *= kept + masking.p_mask * masking.p_random / words
            likelihoods.append(likelihood)
        posterior.append(sum(p * theta for p, theta in zip(likelihoods, hypotheses, strict=True)) / sum(likelihoods))
    shares = dev.documents.proportions
    assert shares is not None
    weights = {"value": np.eye(config.topic_model.vocabulary)}
    found = topic_ceiling(RunConfig.of(settings, model={"key": "zero", "query": "zero"}), weights)
    assert found is not None
    assert found.posterior.r2 == pytest.approx(direct_scores(np.array(posterior), shares, seed=0).r2, abs=1e-10)


def scores(ceiling: TopicCeiling | None) -> list[float]:
    """R2 of the model, of the words, and at best."""
    assert ceiling is not None
    return [float(one.r2 or 0) for one in (ceiling.model, ceiling.bag_of_words, ceiling.posterior)]


def test_no_probe_does_better_than_the_posterior() -> None:
    """Of short documents much cannot be known."""
    config = RunConfig.of(MIXED)
    run = train(config)
    trained = topic_ceiling(config, run.weights)
    assert trained is not None
    assert trained.posterior.interval is not None
    model, words, best = scores(trained)
    assert trained.documents == 600
    assert 0.5 < model < best < 0.97
    assert words < best
    assert trained.posterior.interval[0] < best < trained.posterior.interval[1]
    assert f"at best {best:.3f} [" in trained.sentence


@pytest.mark.parametrize("hide_masked", [False, True])
def test_random_weights_and_words_stay_below_the_posterior(hide_masked: bool) -> None:
    for seed in range(5):
        config = RunConfig.of(MIXED, seed=seed, model={"hide_masked": hide_masked})
        rng, vocabulary = np.random.default_rng(seed), config.topic_model.vocabulary
        shapes = config.model.trained_shapes(vocabulary)
        weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        *others, best = scores(topic_ceiling(config, weights))
        assert max(others) < best


def test_where_mixtures_are_not_known_nothing_is_said(tmp_path: Any) -> None:
    (tmp_path / "dev.txt").write_text("1 2 3 END\n" * 20)
    infinite, few, file = {"length": "infinite"}, {"dev_documents": 9}, {"dev_file": str(tmp_path / "dev.txt")}
    for more in ({"documents": infinite}, {"data": few}, {"data": file}):
        assert topic_ceiling(RunConfig.of(MIXED | more), {}) is None


UNIFORM: dict[str, Any] = {
    **settings.SMALL,
    "dtype": "float64",
    "objective": {"loss": "squared"},
    "model": {"key": "zero", "query": "zero", "prediction_bias": "none"},
}


def uniform(**more: Any) -> RunConfig:
    return RunConfig.of(UNIFORM, **more)


def test_a_run_says_how_far_it_is_from_the_optimum() -> None:
    run = train(uniform(), with_floors=False)
    expected = relative_distance(run.weights["value"], world_optimum(run.config).matrix())
    assert run.results["distance_to_optimum"] == pytest.approx(expected, rel=1e-12)
    assert any("from W*" in sentence for sentence in run.summary())
    assert run.facts()["W_V, distance to W* (relative)"] == run.results["distance_to_optimum"]
    assert run.facts()["exact loss of W* (all documents)"] == world_optimum(run.config).loss
    mean = train(uniform(objective={"loss": "squared-mean"}), with_floors=False)
    assert mean.results["optimum_loss"] == pytest.approx(run.results["optimum_loss"] / 7, rel=1e-12)


@pytest.mark.parametrize(
    "settings", [{"objective": {"loss": "cross-entropy"}}, {"model": {"key": "trained", "query": "trained"}}]
)
def test_a_run_that_does_not_end_in_the_optimum_says_nothing_of_it(settings: dict[str, Any]) -> None:
    run = train(RunConfig.of(UNIFORM | settings))
    assert training_optimum(run.config) == (None, None, "")
    assert not {"distance_to_optimum", "no_optimum", "optimum_loss"} & set(run.results)
    assert not any("W*" in sentence for sentence in run.summary())


def test_a_run_that_has_no_optimum_says_why() -> None:
    run = train(uniform(objective={"loss": "squared", "l2": 0.1}))
    assert "distance_to_optimum" not in run.results
    (sentence,) = (sentence for sentence in run.summary() if "W*" in sentence)
    assert sentence == f"No distance to W*: {run.results['no_optimum']}."
    assert run.results["no_optimum"].startswith("the L2 penalty (objective.l2) moves the optimum")


def test_own_documents_have_an_optimum_of_their_own() -> None:
    """No other matrix has a lower expected loss on the run's documents; one draw of masks is another problem."""
    fresh, once = uniform(data={"documents": 60}), uniform(data={"documents": 60}, masking={"fresh": False})
    exact, documents = own_optimum(fresh), RunData(fresh).train.finite()
    moments = given_moments(word_counts(documents.words, 7), fresh.masking)
    assert np.abs(exact @ moments.shown - moments.joint).max() < 1e-14  # the gradient vanishes
    masked = documents.masked(once.masking, once.topic_model, mask_keys(Stream.TRAIN_MASKS, once.seed))
    rows = masked.batches(once.topic_model, once.masking, np.dtype("float64"), uniform=True)
    drawn = own_optimum(once)
    assert drawn == pytest.approx(uniform_optimum(rows).matrix)
    assert relative_distance(drawn, exact) > 0.1


PROPORTIONS = [[1, 0, 0], [0.5, 0.5, 0], [0, 0.3, 0.7]]
WHOLE_LAW: dict[str, Any] = {
    "documents": {"kind": "given", "proportions": PROPORTIONS, "length": "infinite"},
    "data": {"documents": 3},
    "batch_size": 3,
}


def test_gradient_descent_ends_in_the_optimum_of_its_own_documents() -> None:
    descent: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": 3.0}, "model": {"init_scale": 0.0}}
    run = train(uniform(**WHOLE_LAW, **descent, steps=2000), with_floors=False)
    distances = compare_with_optimum(run).distances
    assert distances["own_documents"] < 1e-4
    assert distances["optimum"] < 1e-4  # every document of the law is there, once
    assert distances["theorem2"] < 1e-4
    assert distances["limit"] > 0.1


@pytest.mark.parametrize("loss", ["squared", "squared-mean"])
def test_a_run_of_sgd_is_compared_with_where_flow_would_be(loss: str) -> None:
    """A start that is not zero, a frozen bias, and the whole law in every step: only the size of a step is left."""
    model, rate = {"init_scale": 0.3, "prediction_bias": 0.2}, 0.07 if loss == "squared-mean" else 0.01
    descent: dict[str, Any] = {"optimizer": {"name": "sgd", "lr": rate}, "objective": {"loss": loss}, "model": model}
    compared = compare_with_optimum(train(uniform(**WHOLE_LAW, **descent, steps=400), with_floors=False))
    assert compared.distances["predicted"] < 0.002
    assert compared.distances["optimum"] > 0.3
    assert compared.notes == ()


def test_where_flow_predicts_nothing_the_comparison_says_why() -> None:
    """The table of laws has the other reasons (tests/laws/test_coverage.py)."""
    compared = compare_with_optimum(train(uniform(optimizer={"name": "adam"}), with_floors=False))
    assert "predicted" not in compared.distances
    assert compared.notes == ("No predicted W(t): it holds for SGD without momentum.",)


def test_a_run_that_diverged_is_compared_with_a_warning() -> None:
    run = train(uniform(optimizer={"name": "sgd", "lr": 1e3}, steps=40, evaluate_every=20), with_floors=False)
    assert run.status == "diverged"
    warned, unpredicted = compare_with_optimum(run).notes
    assert warned == f"The run diverged at step {run.results['steps']}: its matrix is the last one that was sound."
    assert unpredicted == "No predicted W(t): the run diverged."
    assert run.results["steps"] == 2
    assert run.results["dev_step"] == 0  # step 20 was taken, but behind the end of the run
    assert "dev loss" not in run.facts()
    assert run.facts()["dev loss at step 0, before it diverged"] == run.results["dev_loss"]


def test_documents_from_a_file_have_no_law(tmp_path: Any) -> None:
    (tmp_path / "text").write_text("0 1 2 3 END\n4 5 5 1 END\n2 2 3 0 END\n")
    run = train(uniform(data={"train_file": str(tmp_path / "text"), "documents": 3}), with_floors=False)
    comparison = compare_with_optimum(run)
    assert comparison.best is None
    assert list(comparison.distances) == ["own_documents"]
    assert "documents come from a file" in comparison.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("world", range(3))
def test_sgd_is_where_flow_is_predicted_to_be(world: int) -> None:
    """Within 2% of W(t) at the last step, when the slowest topic contrast is half learnt."""
    rng = np.random.default_rng(world)
    topics = int(rng.integers(2, 5))
    settings = {
        "topic_model": {"topics": topics, "words_per_topic": 3, "word_probabilities": rng.dirichlet([3] * 3).tolist()},
        "documents": {
            "kind": "given",
            "proportions": rng.dirichlet([0.4] * topics, 5).tolist(),
            "length": "infinite" if world % 2 else 12,
        },
        "masking": {"p_mask": float(rng.uniform(0.1, 0.5)), "p_correct": 0.2},
        "data": {"documents": 100_000},
        "batch_size": 500 if world % 2 else 4000,  # infinite documents repeat the five of the law
        "steps": 600,
    }
    best = world_optimum(uniform(**settings))
    time = max(mode.half_time or 0 for mode in best.modes if mode.name.startswith("topic"))
    run = train(uniform(**settings, optimizer={"name": "sgd", "lr": time / 600}, snapshots=[0]), with_floors=False)
    predicted = best.value_at(time, run.snapshots[0]["value"])
    assert relative_distance(run.weights["value"], predicted) < 0.02
    assert relative_distance(run.weights["value"], best.matrix()) > 0.1  # slow modes are not learnt yet
