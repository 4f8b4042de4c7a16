"""How the command ends: one line and an exit code, whatever stops it."""

import errno
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.calling import TINY, error_line, topicscope
from tests.command import started
from tests.waiting import wait_until
from topicscope.cli import main
from topicscope.ground import EngineError, InputError, Interrupted

RESUMES = "'train' or 'pretrain' with --resume"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("topics = 0: expected\nmore"), 2, "topicscope: topics = 0: expected more"),
        (EngineError("workers died"), 1, "topicscope: workers died"),
        (KeyboardInterrupt(), 130, RESUMES),
        (Interrupted("3 of 5 points are done"), 130, "topicscope: 3 of 5 points are done"),
        (MemoryError(), 2, "not enough memory"),
        (FileNotFoundError(2, "No such file", "x.txt"), 1, "topicscope: No such file (x.txt)"),
        (OSError("disk full"), 1, "topicscope: disk full"),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/x/results.json"),
            1,
            "(runs/x/results.json); free some space",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "x[/]"),
            2,
            "topicscope: Permission denied (x[/]); remove what",
        ),
        (ZeroDivisionError("division by zero"), 1, "this is a bug in topicscope: ZeroDivisionError: "),
    ],
)
def test_every_end_has_one_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    def fails(**_: Any) -> int:
        raise error

    monkeypatch.setattr(main, "application", lambda: fails)
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == code
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("topicscope: ")
    assert said in line
    if isinstance(error, ZeroDivisionError):
        monkeypatch.setenv("TOPICSCOPE_TRACEBACK", "1")
        with pytest.raises(SystemExit):
            main.main()
        assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_goes_on_to_the_same_bytes(tmp_path: Path, stop: signal.Signals) -> None:
    settings = [*TINY, "--steps", "3000", "--set", "checkpoint_every=50", "--no-floors"]
    topicscope("train", *settings, "--out", str(tmp_path / "whole"))
    process = started("train", *settings, "--out", str(tmp_path / "run"), stderr=subprocess.PIPE)
    wait_until(lambda: (tmp_path / "run" / "checkpoint.safetensors").exists())
    process.send_signal(stop)
    _, said = process.communicate()
    if process.returncode == 0:
        pytest.skip("the run was over before it could be stopped")
    assert process.returncode == 130
    assert RESUMES in error_line(said)
    assert json.loads((tmp_path / "run" / "about.json").read_text())["status"] == "running"
    topicscope("train", "--resume", "--out", str(tmp_path / "run"))
    for name in ("results.json", "metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("out", ["/dev/null/x", "a" * 300, "file.txt/x", "file.txt", "loop"])
@pytest.mark.parametrize(
    "command",
    [
        *("train", "sweep none.yaml", "topics none.txt --tokenizer none", "probe none --corpus none.txt"),
        *("timeline none --corpus none.txt", "words none frog toad", "pretrain --corpus none.txt"),
        *("reproduce theorem1", "theory landscape"),
    ],
)
def test_out_is_checked_before_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, out: str
) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["topicscope", *command.split(), "--out", out])
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "cannot be made or written to" in line or "is a file" in line
    assert {path.name for path in tmp_path.iterdir()} == {"file.txt", "loop"}
