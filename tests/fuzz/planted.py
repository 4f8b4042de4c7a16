"""Faults planted in the command, to see that the kit finds them: each runs in a fork in place of the command."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.fuzz import oracle, runner
from tests.fuzz.cases import Case, Expect, Finding
from tests.fuzz.runner import Raw

MEGABYTE = 2**20


def _say(code: int, *lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr)
    sys.exit(code)


def raises() -> None:
    raise RuntimeError("planted")


def last_resort() -> None:
    _say(1, "topicscope: RuntimeError: planted; this is a bug in topicscope, please report it")


def refuses() -> None:
    _say(2, "topicscope: planted")


def reports_progress() -> None:
    _say(2, "topicscope: training 50%", "topicscope: planted")


def refuses_at_length() -> None:
    _say(2, "Warning: planted", "topicscope: planted")


def refuses_in_silence() -> None:
    sys.exit(2)


def fails_in_silence() -> None:
    sys.exit(1)


def unknown_code() -> None:
    _say(3, "topicscope: planted")


def works() -> None:
    sys.exit(0)


def waits() -> None:
    time.sleep(60)


def works_for_ever() -> None:
    while True:
        pass


def takes_memory() -> None:
    np.ones(400 * MEGABYTE, dtype=np.uint8)
    sys.exit(0)


def takes_too_much() -> None:
    """Beyond the limit of address space: fails at once, and leaves the machine alone."""
    np.ones(64 * 1024 * MEGABYTE, dtype=np.uint8)


def leaves_a_folder() -> None:
    Path("out").mkdir()
    Path("out/about.json").write_text("{}")
    refuses()


def leaves_a_parent() -> None:
    Path("a").mkdir()
    refuses()


def leaves_a_temporary_file() -> None:
    Path("x.json.tmp").write_text("{}")
    works()


def run(plant: Callable[[], None], out: str = "out", limit: float = 30.0) -> Raw:
    """In a server: how a command with a planted fault ends."""
    with tempfile.TemporaryDirectory() as home:
        before = runner.paths(Path(home))
        raw = runner.run_command(("list", "--out", out), Path(home), limit, before=plant)
        new = tuple(sorted(runner.paths(Path(home)) - before))
        return Raw(raw.code, raw.stdout, raw.stderr, raw.seconds, raw.peak, new)


def judged(plant: Callable[[], None], expect: Expect = Expect.EITHER, out: str = "out", limit: float = 30.0) -> Finding:
    """In a server: the verdict on a planted fault."""
    return oracle.judge(Case("planted", "planted", ("list", "--out", out), expect), run(plant, out, limit))
