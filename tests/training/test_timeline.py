"""When topic structure appears in a run, and how much of the mixtures its attention holds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.command import topicscope
from topicscope import RunConfig, train
from topicscope.ground.errors import InputError
from topicscope.measure import direct_scores, read_timeline
from topicscope.model import ModelConfig, dense_forward, word_scores
from topicscope.model.passes import attention
from topicscope.training import RunData, timeline, topic_ceiling
from topicscope.training.timeline import is_sandbox, read_snapshots, sandbox_effects, sandbox_timeline
from topicscope.world import MASK, MaskedDocuments

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


def test_snapshots_are_the_weights_at_those_steps(tmp_path: Path) -> None:
    config = RunConfig.of(SETTINGS)
    run = train(config)
    assert list(run.snapshots) == [0, 3, 50, 120]
    short = train(RunConfig.of(SETTINGS | {"steps": 50, "snapshots": "none"}))
    for name, weights in short.weights.items():
        np.testing.assert_array_equal(run.snapshots[50][name], weights)
        np.testing.assert_array_equal(run.snapshots[120][name], run.weights[name])
    assert short.snapshots == {}
    train(config, tmp_path / "run")
    _, stored = read_snapshots(tmp_path / "run")
    assert list(stored) == list(run.snapshots)
    for step, parts in stored.items():
        for name, weights in parts.items():
            np.testing.assert_array_equal(weights, run.snapshots[step][name])
    train(RunConfig.of(SETTINGS | {"snapshots": "none"}), tmp_path / "run", force=True)
    with pytest.raises(InputError, match="step 121 is after the last of 120 steps"):
        RunConfig.of(SETTINGS | {"snapshots": [0, 121]})
    with pytest.raises(InputError, match="has no snapshots; train with --snapshots log"):
        read_snapshots(tmp_path / "run")


def test_word_scores_are_those_of_the_dense_pass() -> None:
    """Embedding and biases included."""
    config = RunConfig.of(
        SETTINGS
        | {"model": {"embedding": "trained", "key_bias": "trained", "query_bias": "trained"}, "dtype": "float64"}
    )
    weights = train(config).weights
    words = np.array([[3, 7, 7, 12, 20, 1]])
    z = torch.from_numpy(weights["embedding"][:, words[0]])[None]
    parts = {name: torch.from_numpy(value) for name, value in weights.items()}
    dense = attention(ModelConfig(embedding="trained"), parts, z, torch.ones(1, 6, dtype=torch.bool))[0]  # keys in rows
    table = word_scores(weights)[np.ix_(words[0], words[0])]
    ours = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    np.testing.assert_allclose(ours, dense.numpy().T, rtol=1e-10)


def test_effects_are_means_over_the_true_topics() -> None:
    config = RunConfig.of(SETTINGS)
    run = train(config)
    found = sandbox_effects(run.config, run.snapshots, 100)
    assert set(found) == {"value", "attention"}  # words are one-hot
    value, topic = run.weights["value"].astype(float), config.topic_model.topic_of_word
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
    trained = train(RunConfig.of(SETTINGS | {"model": {"embedding": "trained"}, "snapshots": [0, 120]}))
    assert set(sandbox_effects(trained.config, trained.snapshots, 20)) == {"embedding", "attention"}


SMALL = SETTINGS | {"steps": 2, "snapshots": [0, 2]}


@pytest.mark.parametrize(
    ("more", "measures"),
    [
        ({"model": {"value": "identity", "prediction_bias": "none"}}, {"attention"}),
        ({"model": {"key": "zero"}}, {"value"}),
        ({"model": {"query": "zero"}}, {"value"}),
        ({"documents": {"kind": "infinite", "topics_per_document": 2}}, {"value"}),
        ({"model": {"embedding": "trained", "dim": 3, "key": "zero"}}, {"embedding"}),
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


def test_the_command_draws_a_sandbox_timeline(tmp_path: Path) -> None:
    train(RunConfig.of(SETTINGS), tmp_path / "run")
    out = str(tmp_path / "timeline")
    done = topicscope("timeline", str(tmp_path / "run"), "--json", "--bootstrap", "50", "--out", out)
    found = json.loads(done.stdout)
    assert {row["measure"] for row in found["timeline"]} == {"value", "attention"}
    assert [row["step"] for row in found["timeline"] if row["measure"] == "value"] == [0, 3, 50, 120]
    assert found["moments"][0]["appears"] is not None
    header = (tmp_path / "timeline" / "timeline.csv").read_text().splitlines()[0]
    assert header.startswith("measure,step,same,different,difference,ratio,interval_low,interval_high")
    assert "When does topic structure appear?" in (tmp_path / "timeline" / "report.html").read_text()
    assert (tmp_path / "timeline" / "figures" / "timeline.png").exists()
    assert (
        "its own topics and texts" in topicscope("timeline", str(tmp_path / "run"), "--corpus", "x.txt", code=2).stderr
    )
    assert read_timeline(out) == sandbox_timeline(tmp_path / "run", bootstrap=50)
    assert json.loads(json.dumps(read_timeline(out).as_dict())) == found


def test_snapshots_that_were_exchanged_are_refused(tmp_path: Path) -> None:
    train(RunConfig.of(SETTINGS), tmp_path / "run")
    first, *_, last = sorted((tmp_path / "run" / "snapshots").iterdir())
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
    np.testing.assert_allclose(
        config.model.mean_outputs(parts, dev.shown_counts(vocabulary)), output, atol=1e-10, rtol=1e-10
    )


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


def test_no_probe_does_better_than_the_posterior() -> None:
    """Of short documents much cannot be known."""
    config = RunConfig.of(MIXED)
    run = train(config)
    trained = topic_ceiling(config, run.weights)
    assert trained is not None
    assert trained.model.r2 is not None
    assert trained.bag_of_words.r2 is not None
    assert trained.posterior.r2 is not None
    assert trained.posterior.interval is not None
    assert trained.documents == 600
    assert 0.5 < trained.model.r2 < trained.posterior.r2 < 0.97
    assert trained.bag_of_words.r2 < trained.posterior.r2
    assert trained.posterior.interval[0] < trained.posterior.r2 < trained.posterior.interval[1]
    assert f"at best {trained.posterior.r2:.3f} [" in trained.sentence


@pytest.mark.parametrize("hide_masked", [False, True])
def test_random_weights_and_words_stay_below_the_posterior(hide_masked: bool) -> None:
    for seed in range(5):
        config = RunConfig.of(MIXED, seed=seed, model={"hide_masked": hide_masked})
        rng, vocabulary = np.random.default_rng(seed), config.topic_model.vocabulary
        shapes = config.model.trained_shapes(vocabulary)
        found = topic_ceiling(config, {name: rng.normal(size=shape) for name, shape in shapes.items()})
        assert found is not None
        assert found.model.r2 is not None
        assert found.bag_of_words.r2 is not None
        assert found.posterior.r2 is not None
        assert max(found.model.r2, found.bag_of_words.r2) < found.posterior.r2


def test_where_mixtures_are_not_known_nothing_is_said(tmp_path: Any) -> None:
    infinite = RunConfig.of(MIXED, documents={"length": "infinite"})
    assert topic_ceiling(infinite, {}) is None
    few = RunConfig.of(MIXED, data={"dev_documents": 9})
    assert topic_ceiling(few, {}) is None
    (tmp_path / "dev.txt").write_text("1 2 3 END\n" * 20)
    assert topic_ceiling(RunConfig.of(MIXED, data={"dev_file": str(tmp_path / "dev.txt")}), {}) is None
