import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from topicscope import InputError, RunConfig, Schedule, train
from topicscope.ground import gather, load_settings
from topicscope.training import Phase, cost_of, settings_that_cost

FROZEN = {"key": "zero", "query": "zero", "value": "identity", "prediction_bias": "none"}


def test_a_written_config_reads_back_the_same(tmp_path: Path) -> None:
    config = RunConfig.of(
        {"optimizer": {"lr": 0.3}, "objective": {"l2": {"value": 1e-3}}, "documents": {"kind": "infinite"}, "steps": 7},
        schedule="two-stage",
    )
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config.as_dict()))
    assert RunConfig.of(load_settings(tmp_path / "config.yaml")) == config
    assert config.documents.length == "infinite"


def test_assignments_reach_every_section() -> None:
    words = ("topic_model.word_probabilities=[0.5,0.5]", "topic_model.words_per_topic=2")
    config = RunConfig.of(gather(None, {"steps": 5}, ["optimizer.lr=1e-3", "documents.length=[3, 9]", *words]))
    assert (config.steps, config.optimizer.lr, config.documents.length) == (5, 0.001, (3, 9))
    assert config.topic_model.word_probabilities == [0.5, 0.5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimiser": {}}, "unknown key 'optimiser'; did you mean 'optimizer'"),
        ({"optimizer": {"learning_rate": 1}}, "unknown key 'optimizer.learning_rate'"),
        ({"topic_model": {"word_per_topic": 1}}, "did you mean 'words_per_topic'"),
        ({"masking": {"p_mask": 0}}, "masking.p_mask = 0"),
        ({"masking": {"p_correct": 0.6, "p_random": 0.6}}, "p_correct \\+ p_random = 1.2 is more than 1"),
        ({"topic_model": {"words_per_topic": 0}}, "words_per_topic = 0"),
        ({"documents": {"kind": "fixed", "topics_per_document": 11}}, "topics_per_document = 11 is more than topics"),
        ({"model": {"dim": 5}}, "needs dim = topics \\* words_per_topic \\+ 1 = 101"),
        ({"version": 1, "new_key": 1}, "version 1: this topicscope reads version 2"),
        ({"steps": 3, "epochs": 1}, "both given"),
        ({"objective": {"l2": {"embedding": 1}}}, "part 'embedding' is not trained"),
        ({"objective": {"loss": "hinge"}}, "objective.loss = 'hinge'"),
        ({"schedule": {"phases": [{"parts": ["values"]}]}}, "unknown part 'values'; did you mean 'value'"),
        ({"schedule": {"phases": [{"parts": ["value"]}, {"parts": ["key"], "steps": 2}]}}, "only the last phase"),
        ({"documents": {"kind": "given"}}, "proportions"),
        ({"documents": {"length": [5, 3]}}, "length"),
        ({"topic_model": {"word_probabilities": [0.5, 0.5]}}, "shape"),
        ({"model": FROZEN}, "every part of the model is frozen"),
        ({"device": "tpu"}, "device = 'tpu'"),
        ({"schedule": "sometimes"}, "unknown schedule 'sometimes'"),
        ({"schedule": {"repeat": True}}, "repeat needs phases to repeat"),
        ({"schedule": {"phases": [{"parts": ["value"], "steps": 2}, {"parts": []}]}}, "a phase without parts"),
        ({"schedule": {"phases": [{"parts": ["value"]}], "repeat": True}}, "only the last phase of a schedule"),
        ({"schedule": {"phases": [{"parts": ["key"]}]}, "model": {"key": "zero"}}, "part 'key' is not trained in this"),
        ({"patience": 3, "evaluate_every": None}, "patience counts evaluations on dev; set evaluate_every"),
        ({"data": {"train_file": "a.txt"}, "documents": {"kind": "infinite"}}, "data files hold finite documents"),
        ({"data": {"dev_file": "a.txt"}, "documents": {"kind": "infinite"}}, "data files hold finite documents"),
        ({"steps": 5, "snapshots": [6, 2]}, "snapshots: step 6 is after the last of 5 steps"),
        ({"optimizer": {"momentum": 1}}, "optimizer.momentum = 1"),
        ({"optimizer": {"betas": [-0.1, 0.9]}}, "optimizer.betas"),
        ({"objective": {"l2": -0.1}}, "objective.l2"),
    ],
)
def test_bad_settings_get_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        RunConfig.of(settings)
    assert "\n" not in str(error.value)


def test_schedules_are_data() -> None:
    trained = ("key", "query", "value")
    two = RunConfig.of({"steps": 10}, schedule="two-stage").schedule
    value, attention = ("value",), ("key", "query")
    assert [two.active(s, trained) for s in (0, 4, 5, 9, 99)] == [value, value, attention, attention, attention]
    turn = Schedule([Phase(["value"], 2), Phase(["key", "query"], 1)], repeat=True)
    assert [turn.active(s, trained) for s in range(5)] == [value, value, attention, value, value]
    assert turn.groups(trained) == [("key", "query"), ("value",)]
    assert Schedule().groups(trained) == [trained]
    assert Schedule().active(7, trained) == trained
    single = Schedule([Phase(["value"], 3), Phase(["key"])])  # the last phase goes on to the end
    assert [single.active(s, trained) for s in (2, 3, 10**9)] == [("value",), ("key",), ("key",)]


@pytest.mark.parametrize(
    ("model", "trained"),
    [({"key": "zero", "query": "zero"}, "value"), ({"value": "identity", "prediction_bias": "none"}, "key, query")],
)
@pytest.mark.parametrize("name", ["two-stage", "alternating"])
def test_a_schedule_in_turns_needs_attention_and_another_part(model: dict[str, Any], trained: str, name: str) -> None:
    with pytest.raises(InputError, match=f"needs a trained key or query and another trained part; .*{trained}"):
        RunConfig.of({"model": model}, schedule=name)
    assert RunConfig.of({"model": model}, schedule="joint").schedule == Schedule()


def test_schedules_by_name() -> None:
    """Two stages share the steps, the second has the odd one; the alternating one takes turns of 100 steps."""
    others, attention = ["value", "prediction_bias"], ["key", "query"]
    assert RunConfig.of({"steps": 9}, schedule="two-stage").schedule == Schedule([Phase(others, 4), Phase(attention)])
    assert RunConfig.of({"steps": 1}, schedule="two-stage").schedule == Schedule([Phase(others, 1), Phase(attention)])
    assert RunConfig.of(schedule="two-stage").schedule.phases[0].steps == 2500
    turns = RunConfig.of({"steps": 500}, schedule="alternating").schedule
    assert turns == Schedule([Phase(others, 100), Phase(attention, 100)], repeat=True)
    active = [turns.active(s, ("key", "value"))[0] for s in (0, 99, 100, 199, 200)]
    assert active == ["value", "value", "key", "key", "value"]


def test_settings_at_the_edge_of_what_is_possible_are_taken() -> None:
    for settings in (
        {"optimizer": {"momentum": 0, "betas": [0, 0], "eps": 0}},
        {"steps": 5, "snapshots": [5]},
        {"steps": 1, "snapshots": []},
        {"patience": 1, "evaluate_every": 1},
        {"evaluate_every": None},
        {"data": {"train_file": "a.txt"}},
        {"documents": {"kind": "infinite"}},
        {"objective": {"l2": {"value": 0}}},
        {"schedule": {"phases": [{"parts": ["value"], "steps": 1}, {"parts": ["key"], "steps": 1}], "repeat": True}},
    ):
        RunConfig.of(settings)


def test_the_default_is_the_papers_run() -> None:
    """Section 6.1: T = v = 10, 10,000 documents, batches of 40, 5,000 steps, cross entropy, Adam with .01."""
    config = RunConfig()
    assert (config.version, config.seed, config.batch_size) == (2, 0, 40)
    assert (config.data.documents, config.data.dev_documents) == (10_000, 10_000)
    assert (config.topic_model.topics, config.topic_model.words_per_topic) == (10, 10)
    assert (config.objective.loss, config.objective.l2) == ("cross-entropy", 0.0)
    assert (config.model.init_scale, config.model.hide_masked, config.model.value_matrix) == (0.02, False, None)
    optimizer = config.optimizer
    assert (optimizer.name, optimizer.lr, optimizer.momentum) == ("adam", 0.01, 0.0)
    assert (optimizer.betas, optimizer.eps) == ((0.9, 0.999), 1e-8)
    assert (config.evaluate_every, config.checkpoint_every, config.floors, config.patience) == (500, 500, True, None)
    assert not config.schedule.repeat
    assert RunConfig.of() == config


def test_snapshot_steps() -> None:
    assert RunConfig.of(steps=9).snapshot_steps == []
    assert RunConfig.of(steps=9, snapshots=[7, 0, 7, 3]).snapshot_steps == [0, 3, 7]
    log = RunConfig.of(steps=900, snapshots="log").snapshot_steps
    assert (log[:2], log[-1]) == ([0, 1], 900)
    assert log == sorted(set(log))


def test_steps_and_epochs() -> None:
    assert RunConfig().total_steps == 5000
    assert dataclasses.replace(RunConfig(), epochs=2).total_steps == 500
    assert dataclasses.replace(RunConfig(), steps=3).total_steps == 3
    assert dataclasses.replace(RunConfig(), epochs=1e-9).total_steps == 1
    assert RunConfig.of(data={"documents": 100}, batch_size=30, epochs=1.5).total_steps == 5
    assert RunConfig.of(data={"documents": 100}, batch_size=30).total_steps == 67  # 20 epochs


def test_nothing_is_written_where_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of memory"):
        train(RunConfig.of(data={"documents": 10**9}), tmp_path / "run")
    with pytest.raises(InputError, match="no folder is given: it needs out"):
        train(RunConfig.of(steps=1), force=True)
    with pytest.raises(InputError, match=r"\(--resume\) needs out \(--out\)"):
        train(RunConfig.of(steps=1), resume=True)
    assert list(tmp_path.iterdir()) == []


def test_a_batch_is_no_larger_than_the_documents() -> None:
    few = {"documents": 40, "dev_documents": 10}
    large, whole = (
        train(RunConfig.of(steps=2, batch_size=batch, floors=False, device="cpu", data=few)) for batch in (10**5, 40)
    )
    assert large.results["dev_loss"] == whole.results["dev_loss"]
    assert cost_of([RunConfig.of(batch_size=10**5, data=few)]).memory < 1e8
    assert RunConfig.of(batch_size=10**5, data=few).total_steps == 20


def test_the_optimum_at_the_end_is_part_of_the_estimate() -> None:
    """Four numbers where topics are alike; else a matrix of 1,501 words is decomposed, unless it is not given."""
    world = {
        "topic_model": {"topics": 30, "words_per_topic": 50},
        "model": {"key": "zero", "query": "zero"},
        "steps": 9,
    }
    groups = {"kind": "groups", "groups": 3, "rho": 0.5, "topics_per_document": 3}
    squared = {"objective": {"loss": "squared"}, "documents": groups}
    alike, solved, penalised, entropy = (
        cost_of([RunConfig.of(world | more)])
        for more in (
            {"objective": {"loss": "squared"}},
            squared,
            squared | {"objective": {"loss": "squared", "l2": 0.1}},
            {"documents": groups},
        )
    )
    assert solved.seconds - alike.seconds == pytest.approx(25 * 1501**3 / 4e10)
    assert penalised.seconds == pytest.approx(alike.seconds) == pytest.approx(entropy.seconds)
    larger = world | {"topic_model": {"topics": 30, "words_per_topic": 70}}
    one, other = (cost_of([RunConfig.of(larger | more)]).seconds for more in (squared, {"documents": groups}))
    assert one == other  # 2,100 words: a note takes its place
    of_the_end = {"data": {"documents": 10, "dev_documents": 10}, "batch_size": 10}
    few, many = (cost_of([RunConfig.of(world | one | of_the_end)]).memory for one in ({}, squared))
    assert many - few > 7 * 8 * 1501**2


def test_more_of_anything_costs_more() -> None:
    base = cost_of([RunConfig(steps=5000)])
    for settings in (
        {"steps": 50_000},
        {"data": {"documents": 50_000}},
        {"data": {"dev_documents": 50_000}},
        {"batch_size": 5000},
        {"model": {"attention_dim": 1000}},
        {"topic_model": {"topics": 50}},
        {"dtype": "float64"},
        {"documents": {"length": 1000}},
    ):
        more = cost_of([RunConfig.of({"steps": 5000} | settings)])
        assert more.memory > base.memory, settings
    eight, sixteen = (cost_of(RunConfig().with_seeds(count)) for count in (8, 16))
    assert eight.memory < sixteen.memory < 1.1 * eight.memory  # eight at a time
    assert sixteen.seconds == pytest.approx(2 * eight.seconds)
    assert "number of runs 100" in settings_that_cost(RunConfig.of(steps=10**8).with_seeds(100))


@pytest.mark.parametrize(
    "settings", [{"model": {"init_scale": 1e6}}, {"optimizer": {"lr": 1e6}}, {"objective": {"l2": 1e6}}]
)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_largest_numbers_end_in_a_status(settings: dict[str, Any], optimizer: str) -> None:
    config = RunConfig.of(
        {"steps": 60, "device": "cpu", "floors": False, "data": {"documents": 200, "dev_documents": 50}, **settings}
    ).changed({"optimizer.name": optimizer})
    assert train(config).status in ("done", "diverged")
