"""Costs: what does not fit is refused with the estimate and its settings; what takes long is announced."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from topicscope import InputError, RunConfig
from topicscope.ground import Cost, afford, affordable, check_gpu, driving, machine, machine_memory, size


@pytest.fixture(autouse=True)
def a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_memory", lambda: 8 * 10**9)
    monkeypatch.setattr(machine, "free_disk", lambda _path: 10**9)


def test_what_fits_passes_in_silence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    afford(Cost(1e9, 1e8, 599), "steps", tmp_path)
    assert capsys.readouterr() == ("", "")


def test_memory_that_is_not_there_is_refused_with_the_estimate_and_the_settings() -> None:
    with pytest.raises(InputError) as error:
        afford(Cost(2e10, 0, 0), lambda: "attention_dim 65536")
    assert str(error.value) == (
        "this would take about 20.4 GB of memory, and the machine has 8 GB; make it smaller (attention_dim 65536), "
        "or go ahead anyway (--yes)"
    )
    afford(Cost(2e10, 0, 0), "attention_dim 65536", yes=True)
    afford(Cost(8e9 - machine.PROCESS, 0, 0), "just fits")


def test_disk_counts_where_something_is_written(tmp_path: Path) -> None:
    afford(Cost(0, 2e9, 0), "snapshots")
    afford(Cost(0, 2e9, 0), "snapshots", tmp_path, yes=True)
    with pytest.raises(InputError, match=r"would write about 2 GB, and .* has room for 1 GB; .*snapshots"):
        afford(Cost(0, 2e9, 0), "snapshots", tmp_path)


def test_long_work_is_announced_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    afford(Cost(1e9, 2e6, 7200), "steps")
    afford(Cost(seconds=7200), "experiments", yes=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "topicscope: this will take a long time: about 2.0 h, 1 GB of memory, 2 MB on disk",
        "topicscope: this will take a long time: about 2.0 h",
    ]


def test_a_part_of_what_was_checked_is_not_checked_again(capsys: pytest.CaptureFixture[str]) -> None:
    with affordable():
        afford(Cost(1e20, 1e20, 1e20), "everything")
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError):
        afford(Cost(1e20, 1e20, 1e20), "everything")


def test_costs_add_up_to_the_larger_peak() -> None:
    assert Cost(5, 1, 2) + Cost(3, 1, 2) == Cost(5, 2, 4)
    assert [size(x) for x in (0, 1e6, 1e9)] == ["0 kB", "1 MB", "1 GB"]


def test_the_settings_that_drive_a_cost_are_found() -> None:
    config = RunConfig.of(steps=10**6, batch_size=400, data={"documents": 10**7}, snapshots=[1])
    assert driving(config, RunConfig(), lambda one: Cost(1e4 * one.data.documents)) == "data.documents 10000000"
    assert driving(config, RunConfig(), lambda one: Cost(1.0, one.total_steps)) == "steps 1000000"
    assert driving(config, RunConfig(), lambda one: Cost(1e12)) == "sizes"
    both = driving(config, RunConfig(), lambda one: Cost(1e4 * one.batch_size * one.data.documents))
    assert both == "data.documents 10000000, batch_size 400"


def test_a_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine_memory()
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (10**9, 10**9))
    assert (machine_memory(), whole > 10**9) == (10**9, True)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, 0))
    assert 10**8 < machine_memory() < sys.maxsize


def test_a_gpu_with_too_little_memory_is_refused_unless_one_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (1e9, 12e9))
    check_gpu(Cost(memory=11e9), lambda: "runs 512")
    with pytest.raises(InputError, match=r"about 13 GB of memory on the GPU, which has 12 GB; .*\(runs 512\).*--yes"):
        check_gpu(Cost(memory=13e9), lambda: "runs 512")
    check_gpu(Cost(memory=13e9), lambda: "runs 512", yes=True)
    with affordable():
        check_gpu(Cost(memory=13e9), lambda: "runs 512")
