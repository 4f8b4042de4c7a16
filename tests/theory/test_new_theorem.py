"""A theorem from outside, in one file: it gets a command, and a place in the explorer's theory room."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

USE = """
import json, sys
from tests.theory import outside_theorem
from topicscope.cli.main import application
from topicscope.explorer import theory_room
from typer.testing import CliRunner

def printed(*command):
    return CliRunner().invoke(application(), ["theory", *command], env={"COLUMNS": "120"}).output

asked = ["theorem9", "--topics", "2", "--words-per-topic", "2"]
print(json.dumps({
    "listed": printed("--help"),
    "help": printed("theorem9", "--help"),
    "lines": printed(*asked),
    "json": json.loads(printed(*asked, "--matrix", sys.argv[1], "--json")),
    "room": [section.title for section in theory_room.theorem_part(theory_room.question({}))],
}))
"""


def test_a_theorem_of_one_file_has_a_command(tmp_path: Path) -> None:
    np.save(tmp_path / "matrix.npy", np.full((5, 5), 0.25))
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path / "matrix.npy")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "theorem9" in found["listed"]
    assert "predicting nothing costs 1, in any world" in found["help"]
    assert "--topics-per-document" not in found["help"]  # theorems of the first stage do not depend on tau
    assert "Theorem 9: predicting nothing costs 1." in found["lines"]
    assert found["json"]["settings"]["words_per_topic"] == 2
    assert (found["json"]["loss"], found["json"]["comparison"]) == (1.0, {"largest": 0.25})
    assert "Theorem 9" in found["room"]
