"""On which device; one thread inside, the caller's settings afterwards; workers that do not outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from threadpoolctl import threadpool_info

from tests.waiting import wait_until
from topicscope.ground import InputError, machine, one_thread, repeatable, usable_device, worker_pool


def test_devices() -> None:
    assert usable_device("cpu") == "cpu"
    with pytest.raises(InputError, match="expected auto, cpu or cuda"):
        usable_device("tpu")


@pytest.mark.parametrize(
    ("there", "worth_it", "chosen"), [(True, True, "cuda"), (True, False, "cpu"), (False, True, "cpu")]
)
def test_auto_takes_a_gpu_that_is_there_and_worth_it(
    monkeypatch: pytest.MonkeyPatch, there: bool, worth_it: bool, chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert usable_device("auto", worth_it=worth_it) == chosen
    assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) == (chosen == "cuda")
    if there:
        assert usable_device("auto") == "cuda"
        assert usable_device("cuda", worth_it=False) == "cuda"
    else:
        with pytest.raises(InputError, match="no usable GPU"):
            usable_device("cuda")


def denormal() -> bool:
    """Whether numbers below 1e-38 count as zero."""
    return float(torch.tensor(1e-30) * torch.tensor(1e-15)) == 0


@pytest.mark.parametrize("context", [one_thread, repeatable])
def test_one_thread_inside_and_the_callers_afterwards(context: object) -> None:
    torch.set_num_threads(2)
    try:
        with context():  # type: ignore[operator]
            assert torch.get_num_threads() == 1
            assert denormal()
            assert all(pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas")
        assert torch.get_num_threads() == 2
        assert not denormal()
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_repeatable_sums_on_a_gpu(monkeypatch: pytest.MonkeyPatch, there: bool, before: bool) -> None:
    switched: list[bool] = []  # the switch itself would import the compiler
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: before)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", switched.append)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with repeatable():
        assert switched == ([True] if there else [])
        assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == (":4096:8" if there else None)
    assert switched == ([True, before] if there else [])


def ignores_interrupts() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_workers_leave_ctrl_c_to_the_parent_and_end_with_the_block(tmp_path: Path) -> None:
    with worker_pool(1) as pool:
        assert pool.submit(ignores_interrupts).result()
        number = pool.submit(os.getpid).result()
        assert number != os.getpid()
        running, *_, last = [pool.submit(wait_until, (tmp_path / "over").exists) for _ in range(5)]
    assert not running.done()  # the block does not wait for work that nobody will take
    (tmp_path / "over").touch()
    assert wait_until(lambda: not psutil.pid_exists(number))
    assert last.cancelled()


def test_an_error_ends_the_work_that_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Pool:
        def __init__(self, *_: object, **__: object) -> None:
            self._processes = {1: SimpleNamespace(terminate=lambda: ended.append("worker"))}

        def shutdown(self, **_: object) -> None:
            ended.append("pool")

    monkeypatch.setattr(machine, "ProcessPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt), worker_pool(1):
        raise KeyboardInterrupt
    with worker_pool(1):
        pass
    assert ended == ["worker", "pool", "pool"]


PARENT = """
import os, sys, time
from topicscope.ground import worker_pool
if __name__ == "__main__":
    with worker_pool(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
        time.sleep(600)
"""


def test_workers_do_not_outlive_a_killed_parent(tmp_path: object) -> None:
    script = f"{tmp_path}/parent.py"
    with open(script, "w", encoding="utf-8") as stream:
        stream.write(PARENT)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    number = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not psutil.pid_exists(number))
