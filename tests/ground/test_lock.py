"""One process at a time in a folder, however many want it, and while others make and remove it."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from topicscope import InputError
from topicscope.ground import Kind, folders, open_folder

PROCESSES, LOCKED, OPENED = 8, 2500, 60
NOTE = Kind("note", 1, resumes="asked")
ON_PURPOSE, BUSY = "on purpose", "another process is writing"


def inside(shared: Any) -> None:
    """Leave a mark, now and then let others run, and see whether it is still there.

    `shared`: who is inside, overlaps, and visits.
    """
    shared[1] += shared[0] != 0
    shared[0] = os.getpid()
    shared[2] += 1
    if shared[2] % 20 == 0:
        os.sched_yield()
    shared[1] += shared[0] != os.getpid()
    shared[0] = 0


def lock(path: Path, shared: Any) -> bool:
    try:
        with folders.lock(path):
            inside(shared)
    except InputError as error:
        if BUSY not in str(error):
            raise
        return False
    return True


def open_and_fail(path: Path, shared: Any) -> bool:
    """A folder that did not exist, or that another process has just made, or removes just now."""
    try:
        with open_folder(path, NOTE, {"a": 1}):
            inside(shared)
            raise InputError(ON_PURPOSE)
    except InputError as error:
        if str(error) != ON_PURPOSE and BUSY not in str(error):
            raise
        return str(error) == ON_PURPOSE


def no_lock(_: Path, shared: Any) -> bool:
    with nullcontext():
        inside(shared)
    return True


def repeat(work: Callable[[Path, Any], bool], path: Path, times: int, shared: Any, start: Any) -> None:
    """So many successes: how long they take depends on the machine, whether they overlap does not."""
    start.wait()
    while times:
        if work(path, shared):
            times -= 1
        else:
            time.sleep(0.002)


def overlaps(work: Callable[[Path, Any], bool], path: Path, times: int) -> int:
    context = multiprocessing.get_context("fork")
    shared, start = context.RawArray("q", 3), context.Barrier(PROCESSES)
    arguments = (work, path, times, shared, start)
    processes = [context.Process(target=repeat, args=arguments) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    return int(shared[1])


@pytest.mark.slow
def test_twenty_thousand_holders_never_overlap(tmp_path: Path) -> None:
    assert overlaps(lock, tmp_path, LOCKED) == 0
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.slow
def test_a_folder_that_failing_processes_make_and_remove_has_one_holder(tmp_path: Path) -> None:
    assert overlaps(open_and_fail, tmp_path / "a" / "b", OPENED) == 0


def test_without_the_lock_holders_do_overlap(tmp_path: Path) -> None:
    assert overlaps(no_lock, tmp_path, LOCKED) > 0
