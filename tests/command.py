"""The command as a user runs it, in a process of its own.

Most of a small command's time goes to imports. So a server process imports everything once, and each command is a
fork of it, with the environment, the folder and the streams that it would have as a program.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.calling import TINY as TINY, error_line as error_line, lines_said as lines_said
from tests.waiting import wait_until

server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(["tests.preloaded"])


def topicscope(
    *arguments: str, code: int | tuple[int, ...] = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command; fails unless it ends with this exit code, or one of these."""
    with TemporaryDirectory() as folder:
        streams = (os.path.join(folder, "out"), os.path.join(folder, "err"))
        process = server.Process(target=_run, args=(arguments, str(cwd or os.getcwd()), dict(os.environ), *streams))
        process.start()
        process.join()
        out, err = (Path(name).read_text() for name in streams)
    assert process.exitcode is not None
    assert process.exitcode in (code if isinstance(code, tuple) else (code,)), err
    return subprocess.CompletedProcess(arguments, process.exitcode, out, err)


class Forked:
    """A command that goes on beside the test: a fork like the others, with the methods of `subprocess.Popen`."""

    def __init__(self, *arguments: str) -> None:
        self.folder = TemporaryDirectory()
        self.out, err = (os.path.join(self.folder.name, name) for name in ("out", "err"))
        given = (arguments, os.getcwd(), dict(os.environ), self.out, err)
        self.process = server.Process(target=_run, args=given, daemon=True)
        self.process.start()
        assert self.process.pid is not None
        self.pid = self.process.pid

    def first_line(self) -> str:
        """What it prints first."""
        assert wait_until(lambda: self.poll() is not None or "\n" in self._printed())
        return self._printed().partition("\n")[0]

    def _printed(self) -> str:
        return Path(self.out).read_text() if os.path.exists(self.out) else ""

    def poll(self) -> int | None:
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.process.kill()

    def wait(self, seconds: float | None = None) -> int:
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"still there after {seconds} s"
        self.folder.cleanup()
        return self.process.exitcode


def redirect(out: str, err: str) -> None:
    """Standard output and standard error of this process go to files."""
    for number, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)


@contextmanager
def as_a_program() -> Iterator[None]:
    """Ends as a program does: pools of processes are told to end before processes are waited for.

    A process of `multiprocessing` does it the other way round, and waits forever for a pool that was not shut down.
    """
    try:
        yield
    finally:
        threading._shutdown()  # type: ignore[attr-defined]


def _run(arguments: tuple[str, ...], cwd: str, environment: dict[str, str], out: str, err: str) -> None:
    """In the fork: what `python -m topicscope` does."""
    import torch

    from topicscope.__main__ import run

    # a fork has no threads: PyTorch makes its pool anew here, before two threads do so at once
    torch.set_num_threads(1)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    redirect(out, err)
    sys.argv = ["topicscope", *arguments]
    with as_a_program():
        run()


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start the command. Ctrl-C stops it, also where these tests ignore it: under nohup, or as a script's job."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process inherits that a signal is ignored
    try:
        return subprocess.Popen([sys.executable, "-m", "topicscope", *arguments], text=True, **options)
    finally:
        signal.signal(signal.SIGINT, before)
