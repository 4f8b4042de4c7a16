"""The command in this process: its exit code, and what it prints."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from topicscope.cli.main import main

TINY = [
    *("--steps", "20", "--topics", "3", "--words-per-topic", "2", "--device", "cpu"),
    *("--set", "data.documents=20", "--set", "data.dev_documents=10"),
]
"""A run of `train` that takes a moment."""


def topicscope(
    *arguments: str, code: int | tuple[int, ...] = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command; fails unless it ends with this exit code, or one of these."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or "."),
        patch.object(sys, "argv", ["topicscope", *arguments]),
    ):
        try:
            main()
        except SystemExit as end:
            ended = end.code
    assert isinstance(ended, int)
    assert ended in (code if isinstance(code, tuple) else (code,)), err.getvalue()
    return subprocess.CompletedProcess(arguments, ended, out.getvalue(), err.getvalue())


PROGRESS = re.compile(
    "topicscope: (this will take a long time|"
    "starting|reading|loading|training|pretraining|floors|writing the model|running points|short trials|"
    "drawing|counting|fitting|probing|statistics|verifying|experiments)"
)
"""How plain lines of progress begin; they come where a command takes longer than ten seconds."""


def lines_said(stderr: str) -> list[str]:
    """The lines on stderr besides progress, which a busy machine prints and another does not."""
    return [line for line in stderr.splitlines() if not PROGRESS.match(line)]


def error_line(stderr: str) -> str:
    """The one line on stderr besides progress; fails where there is none, or more."""
    [line] = lines_said(stderr)
    return line
