"""The command as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys

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


PROGRESS = re.compile(
    "topicscope: (starting|reading|training|pretraining|writing the model|running points|short trials|drawing)"
)
"""How plain lines of progress begin; they come where a command takes longer than ten seconds."""


def error_line(stderr: str) -> str:
    """The one line on stderr besides progress; fails where there is none, or more."""
    [line] = [line for line in stderr.splitlines() if not PROGRESS.match(line)]
    return line
