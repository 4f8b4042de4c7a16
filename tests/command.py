"""The command as a user runs it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from typing import Any

TINY = [
    "--steps",
    "20",
    "--topics",
    "3",
    "--words-per-topic",
    "2",
    "--set",
    "data.documents=20",
    "--set",
    "data.dev_documents=10",
    "--device",
    "cpu",
]
"""A run of `train` that takes a moment."""


def topicscope(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command; fails unless it ends with this exit code."""
    result = subprocess.run([sys.executable, "-m", "topicscope", *arguments], capture_output=True, text=True)
    assert result.returncode == code, result.stderr
    return result


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start the command. Ctrl-C stops it, also where these tests ignore it: under nohup, or as a script's job."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process inherits that a signal is ignored
    try:
        return subprocess.Popen([sys.executable, "-m", "topicscope", *arguments], text=True, **options)
    finally:
        signal.signal(signal.SIGINT, before)


PROGRESS = re.compile(
    "topicscope: (this will take long|"
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
