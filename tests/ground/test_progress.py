"""Progress: plain lines where there is no terminal, named phases, never 100% while work goes on."""

from __future__ import annotations

import io
import sys
import time
from types import SimpleNamespace

import pytest

from topicscope.ground import duration, progress_shown, silent, watched
from topicscope.ground.progress import State


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_come_while_work_says_nothing() -> None:
    stream = io.StringIO()
    with progress_shown(stream, period=0.05) as progress:
        progress("fitting topics", 30, 120, "log-likelihood -7.2")
        time.sleep(0.3)
        progress("probing [/] x", 0, None)
        time.sleep(0.3)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "topicscope: fitting topics 25%: log-likelihood -7.2"
    assert lines[-1] == "topicscope: probing [/] x"
    assert len(lines) >= 4
    after = stream.getvalue()
    time.sleep(0.2)
    assert stream.getvalue() == after  # nothing is printed once the work is done


def test_short_work_prints_nothing() -> None:
    stream = io.StringIO()
    with progress_shown(stream) as progress:
        progress("training", 1, 2)
    assert stream.getvalue() == ""


def test_a_bar_in_a_terminal() -> None:
    stream = Terminal()
    with progress_shown(stream) as progress:
        progress("training [/]", 5000, 5000, "loss 3.4")
        time.sleep(0.2)
    shown = stream.getvalue()
    assert "training [/]" in shown
    assert "loss 3.4" in shown
    assert "99%" in shown
    assert "100%" not in shown


def test_what_is_left_counts_from_where_a_resumed_run_began(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    state = State()
    state("training", 500, 1000)
    assert state.seconds_left is None
    clock.now += 10
    state("training", 600, 1000)
    assert state.seconds_left == pytest.approx(40)  # a hundred in ten seconds, four hundred to go
    assert state.line() == "training 60%: about 40 s left"
    state("floors", 0, 2)
    assert (state.percent, state.seconds_left) == (0, None)


def test_without_a_caller_only_a_notebook_is_shown_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(None) as progress:
        assert progress is silent
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with watched(None) as progress:
        assert progress is not silent
    mine = State()
    with watched(mine) as progress:
        assert progress is mine


def test_durations_in_words() -> None:
    assert [duration(x) for x in (89, 91, 5399, 5401)] == ["89 s", "2 min", "90 min", "1.5 h"]
