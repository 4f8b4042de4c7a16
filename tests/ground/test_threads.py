"""One thread inside, the caller's settings afterwards; workers that do not outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch
from threadpoolctl import threadpool_info

from topicscope.ground import one_thread, repeatable, worker_pool


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


def ignores_interrupts() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_workers_leave_ctrl_c_to_the_parent_and_end_with_the_block() -> None:
    with worker_pool(1) as pool:
        assert pool.submit(ignores_interrupts).result()
        number = pool.submit(os.getpid).result()
        assert number != os.getpid()
    deadline = time.monotonic() + 30
    while psutil.pid_exists(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(number)


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
    deadline = time.monotonic() + 30
    while psutil.pid_exists(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(number)
