"""The estimate of a training run against its measured peak, and the refusal of absurd settings before allocation."""

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
from tests.training.test_memory import peak
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
