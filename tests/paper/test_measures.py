"""What experiments measure: the settings that they train with, and the numbers that they take from the runs."""

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.paper.samples_sandbox import grids
from tests.paper.settings import RULES, dotted, settings_of
from tests.paper.short_training import measured
from topicscope import training
from topicscope.paper import EXPERIMENTS, Context, theorems
from topicscope.paper.matrices import blocks_of
from topicscope.theory import Setting, theorem1, theorem2
from topicscope.training import Run, RunData

SANDBOX = [*RULES, "adam-clocks"]


def test_every_experiment_of_the_sandbox_has_reference_settings() -> None:
    """Of the others nothing is trained, or no single runs of the sandbox."""
    others = {"figure7", "figure8", "stage-law", "rank", "no-correct-words", "one-topic", "mask-first", "small-start"}
    others |= {"figure3", "figure5", "table1", "table2", "table5", "pipeline", "two-stage"}
    assert {*SANDBOX, *others} == set(EXPERIMENTS)


@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("name", SANDBOX)
def test_settings_are_those_of_the_reference_runs(name: str, scale: Any) -> None:
    found, short = measured(name, scale)
    outcome = EXPERIMENTS[name].judge(found)
    assert list(map(dotted, short.settings)) == settings_of(name, scale)
    seeds = list(range(2000, 2003 if scale == "quick" else 2005))
    assert all([run.config.seed for run in runs] == seeds for runs in short.runs)
    assert outcome.verdict in ("reproduced", "not reproduced", "undecided")
    assert json.dumps(outcome.numbers)
    assert not any("floors" in run.results for runs in short.runs for run in runs)  # they take long
    if name != "figure6":  # which shows its best run
        shown = short.runs[-1 if name == "theorem2" else 0][0]
        assert outcome.config == shown.config.as_dict()


def loop_means(matrix: np.ndarray, topics: int, words: int) -> dict[str, float]:
    entries: dict[str, list[float]] = {"same": [], "different": [], "diagonal": []}
    for i, j in itertools.product(range(topics * words), repeat=2):
        relation = "diagonal" if i == j else "same" if i // words == j // words else "different"
        entries[relation].append(float(matrix[1 + i, 1 + j]))
    means = {name: sum(values) / len(values) for name, values in entries.items()}
    middle = means["different"]
    return means | {"spread": (sum((x - middle) ** 2 for x in entries["different"]) / len(entries["different"])) ** 0.5}


def test_blocks_of_value_matrices() -> None:
    panels, short = measured("figure2")
    assert [(panel.config.objective.loss, panel.config.optimizer.name) for panel in panels] == [
        ("cross-entropy", "sgd"),
        ("cross-entropy", "adam"),
        ("squared", "sgd"),
        ("squared", "adam"),
    ]
    for panel, runs in zip(panels, short.runs, strict=True):
        for blocks, run in zip(panel.runs, runs, strict=True):
            expected = loop_means(run.weights["value"], 10, 10)
            assert {name: getattr(blocks, name) for name in expected} == pytest.approx(expected, rel=1e-4, abs=1e-9)
            assert not blocks.diverged
        assert (panel.first == runs[0].weights["value"]).all()


def test_blocks_of_gram_matrices_and_their_paths() -> None:
    (panel, *_), short = measured("figure1")
    for blocks, path, run in zip(panel.runs, panel.paths, short.runs[0], strict=True):
        gram = run.weights["embedding"].T @ run.weights["embedding"]
        expected = loop_means(gram, 10, 10)
        assert {name: getattr(blocks, name) for name in expected} == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert blocks.diagonal_at_start == run.metrics["gram_diagonal"][0]
        assert (path["same"] == run.metrics["gram_same"]).all()
        assert (path["different"] == run.metrics["gram_different"]).all()
        assert (path["diagonal"] == run.metrics["gram_diagonal"]).all()


def test_a_run_that_diverged_is_marked() -> None:
    config = training.RunConfig.of({"steps": 1, "data": {"documents": 10, "dev_documents": 5}, "device": "cpu"})
    run = training.train(config, with_floors=False)
    assert blocks_of(run).diverged is False
    lost = replace(run, status="diverged", results=run.results | {"value": dict.fromkeys(run.results["value"])})
    assert blocks_of(lost).diverged is True
    assert np.isnan(blocks_of(lost).contrast)  # no means: no verdict is drawn from them


def test_attention_over_dev_documents() -> None:
    rows, short = measured("table3")
    row = rows[3]
    assert (row.config.objective.loss, row.config.optimizer.name, row.lr) == ("cross-entropy", "sgd", 0.01)
    for blocks, attention, run in zip(row.blocks, row.attention, short.runs[3], strict=True):
        assert attention == pytest.approx(attention_by_position(run), rel=1e-6)
        assert blocks.same == run.results["value"]["same"]


def attention_by_position(run: Run) -> list[float]:
    scores = run.weights["query"].astype(float).T @ run.weights["key"].astype(float) / np.sqrt(101)
    sums, pairs = np.zeros(3), np.zeros(3)
    words = RunData(run.config).dev.finite().words
    for document in words:
        shown = document[document > 0]
        weight = np.exp(scores[shown][:, shown])
        weight /= weight.sum(1, keepdims=True)
        same_topic = (shown[:, None] - 1) // 10 == (shown - 1) // 10
        same_word = shown[:, None] == shown
        for k, mask in enumerate((same_word, same_topic & ~same_word, ~same_topic)):
            sums[k] += weight[mask].sum()
            pairs[k] += mask.sum()
    return (sums / pairs).tolist()


def test_norms_losses_and_theorems() -> None:
    norms, short = measured("figure4")
    first = next(iter(norms.settings.values()))
    assert all((first[i]["norm_key"] == short.runs[0][i].metrics["norm_key"]).all() for i in range(3))
    assert set(first[0]) == {"norm_key", "norm_query", "norm_value"}

    (entropy, squared), short = measured("losses")
    assert list(squared.dev.values()) == [[run.results["dev_loss"] for run in runs] for runs in short.runs[3:]]
    assert (entropy.loss, squared.loss) == ("cross-entropy", "squared")
    assert 0 < squared.bayes < squared.bayes_topics < 0.99
    assert 0 < entropy.bayes < entropy.bayes_topics < np.log(100)

    found, short = measured("theorem1")
    losses = [run.results["dev_loss"] for run in short.runs[0]]
    assert found.numbers["excess_loss"] == pytest.approx([loss - (1 - 1 / 30) for loss in losses])
    embedding = short.runs[0][0].weights["embedding"]
    assert found.matrix == pytest.approx(embedding.T @ embedding)
    setting = Setting.of(10, 10, 3)
    fits = [theorem1(setting).examine(run.weights["embedding"]).numbers for run in short.runs[0]]
    violations = found.numbers["violation_over_c3"]
    assert violations == pytest.approx([fit["violation"] / setting.constants.c3 for fit in fits])
    assert all(0.5 < violation < 100 for violation in violations)  # one step is not enough


def test_distance_to_theorem_2() -> None:
    found, short = measured("theorem2")
    setting = Setting.of(10, 10, 3)
    exact = theorem2(setting).matrix()
    for values, runs in zip(found.numbers.values(), short.runs, strict=True):
        gaps = [run.weights["value"] - exact for run in runs]
        assert values == pytest.approx([(gap**2).sum() ** 0.5 / (exact**2).sum() ** 0.5 for gap in gaps])
    assert list(found.numbers) == ["100", "1000", "10000", "infinite"]
    assert (found.matrix == short.runs[3][0].weights["value"]).all()


@pytest.mark.parametrize("name", ["theorem3", "theorem5"])
def test_attention_of_the_second_stage(name: str) -> None:
    found, short = measured(name)
    assert found.numbers["loss"] == [run.results["dev_loss"] for run in short.runs[0]]
    for alpha, beta, run in zip(found.numbers["alpha"], found.numbers["beta"], short.runs[0], strict=True):
        scores = run.weights["query"].astype(float).T @ run.weights["key"].astype(float) / np.sqrt(101)
        assert (alpha, beta) == pytest.approx(ratios_by_word(np.exp(scores)), rel=1e-9)
    weights = short.runs[0][0].weights
    assert found.matrix == pytest.approx(weights["query"].T @ weights["key"] / 101**0.5, rel=1e-5, abs=1e-7)


def ratios_by_word(weight: np.ndarray) -> tuple[float, float]:
    alphas, betas = [], []
    for i in range(100):
        mates = [weight[1 + i, 1 + j] for j in range(100) if j // 10 == i // 10 and j != i]
        others = [weight[1 + i, 1 + j] for j in range(100) if j // 10 != i // 10]
        alphas.append(np.mean(mates) / np.mean(others))
        betas.append(weight[1 + i, 1 + i] / np.mean(others))
    return float(np.mean(alphas)), float(np.mean(betas))


def test_minima_of_the_landscapes_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real thing: minima of the grids, best gammas, and theorem 1 after training."""
    assert theorems.measure_landscapes(Context(), "diagonal").gammas == {}
    found = theorems.measure_landscapes(Context(), "blocks")
    assert found.gammas == pytest.approx(grids("blocks").gammas, rel=0.005)
    assert EXPERIMENTS["figure8"].judge(found).verdict == "reproduced"
    monkeypatch.setattr(Context, "runs", 1)
    outcome = EXPERIMENTS["theorem1"].run(Context("quick", 3))
    assert outcome.verdict == "reproduced"
    assert max(outcome.numbers["violation_over_c3"]) < 0.01
