"""The command as a user runs it."""

from __future__ import annotations

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
