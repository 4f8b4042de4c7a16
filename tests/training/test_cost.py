"""The estimate of a training run against its measured peak, and the refusal of absurd settings before allocation."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topicscope import InputError, RunConfig, train
from topicscope.training import cost_of
from topicscope.training.config import settings_that_cost

GIGABYTE = 10**9


def forked(work: Callable[[], Any], limit: int | None = None) -> tuple[Any, int]:
    """What `work` returns in a child process, and by how many bytes the child's peak grew."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = peak()
            result = work()
            os.write(writing, json.dumps([result, peak() - before]).encode())
        except BaseException as error:
            os.write(writing, json.dumps([f"{type(error).__name__}: {error}", 0]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        result, grown = json.loads(stream.read())
    os.waitpid(child, 0)
    return result, grown


def peak() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


GROWN = """
import json, sys
from tests.training.test_cost import peak
from topicscope import RunConfig, train
from pathlib import Path
train(RunConfig.of(steps=1, floors=False, device="cpu", data={"documents": 40, "dev_documents": 10}))
Path("/proc/self/clear_refs").write_text("5")
before = peak()
assert train(RunConfig.of(json.loads(sys.argv[1]))).status == "done"
print(peak() - before)
"""


def grown(config: RunConfig) -> int:
    """By how many bytes a run's peak is above that of a small one, in a process that has done nothing else."""
    done = subprocess.run([sys.executable, "-c", GROWN, json.dumps(config.as_dict())], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"data": {"documents": 200_000, "dev_documents": 500}},
        {"data": {"documents": 500, "dev_documents": 60_000}},
        {"batch_size": 20_000, "data": {"documents": 20_000, "dev_documents": 500}},
        {"model": {"attention_dim": 30_000}, "data": {"documents": 500, "dev_documents": 100}},
    ],
)
def test_the_estimate_is_near_the_measured_peak(settings: dict[str, Any]) -> None:
    config = RunConfig.of({"steps": 2, "floors": False, "device": "cpu", **settings})
    measured = grown(config)
    assert measured > 1e8
    assert 0.8 * measured < cost_of([config]).memory < 2.2 * measured


ABSURD: list[tuple[dict[str, Any], str]] = [
    ({"data": {"documents": 10**8}}, "data.documents 100000000"),
    ({"data": {"dev_documents": 10**9}}, "data.dev_documents 1000000000"),
    ({"topic_model": {"topics": 10**6}}, "topic_model.topics 1000000"),
    ({"topic_model": {"topics": 10**9, "words_per_topic": 10**9}, "model": {"value": "blocks"}}, "topics 1000000000"),
    (
        {"topic_model": {"topics": 10**5}, "model": {"value": "diagonal", "prediction_bias": "theorem1"}},
        "topics 100000",
    ),
    ({"batch_size": 10**6, "data": {"documents": 10**6}}, "batch_size 1000000"),
    ({"steps": 10**9}, "steps 1000000000"),
    ({"documents": {"length": 10**7}}, "documents.length 10000000"),
    ({"model": {"attention_dim": 65536, "embedding": "trained", "dim": 65536}}, "model.dim 65536"),
]


@pytest.mark.parametrize(("settings", "driver"), ABSURD)
def test_absurd_settings_are_refused_before_anything_is_allocated(settings: dict[str, Any], driver: str) -> None:
    train(RunConfig.of(steps=1, floors=False, device="cpu", data={"documents": 40, "dev_documents": 10}))  # imports

    def refused() -> str:
        try:
            train(RunConfig.of({"device": "cpu", **settings}))
        except InputError as error:
            return str(error)
        return "not refused"

    said, grown = forked(refused, GIGABYTE)
    assert said.startswith("this would take about ")
    assert driver in said
    assert grown < 1e8


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
