"""Progress: plain lines where there is no terminal, named phases, never 100% while work goes on."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tests.waiting import wait_until
from topicscope.ground import duration, progress_shown, silent, watched
from topicscope.ground.results import State


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Flushed(io.StringIO):
    """Knows how much of it has been flushed, which is what a file would hold."""

    seen = ""

    def flush(self) -> None:
        self.seen = self.getvalue()


def test_plain_lines_come_while_work_says_nothing() -> None:
    stream, before = Flushed(), set(threading.enumerate())
    with progress_shown(stream, period=0.05) as progress:
        assert [thread.daemon for thread in set(threading.enumerate()) - before] == [True]
        progress("fitting topics", 30, 120, "log-likelihood -7.2")
        assert wait_until(lambda: stream.seen.count("fitting topics") >= 2)
        progress("probing [/] x", 0, None)
        assert wait_until(lambda: stream.seen.count("probing [/] x") >= 2)
    lines = stream.seen.splitlines()
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
        progress("reading", total=4)
        assert wait_until(lambda: "0%" in stream.getvalue())
        begun = stream.getvalue()
        progress("training [/]", 5000, 5000, "loss 3.4")
        assert wait_until(lambda: "loss 3.4" in stream.getvalue())
    shown = stream.getvalue()
    assert "0%" in begun
    assert "25%" not in begun
    assert shown.endswith("\x1b[2K")  # the bar is wiped off at the end
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
    state("floors", total=2)
    clock.now += 5
    assert (state.percent, state.seconds_left, state.line()) == (0, None, "floors 0%")  # no step is made yet


def test_what_is_left_needs_a_second_a_step_and_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    state = State(began=0.0)
    assert (state.line(), state.percent, state.seconds_left) == ("starting", None, None)
    clock.now = 0.9
    state("starting", 3, 12)
    assert (state.seconds_left, state.percent) == (None, 25)
    clock.now = 1.0
    assert state.seconds_left == pytest.approx(3)
    state("starting", 15, 12, "more than planned")
    assert (state.seconds_left, state.percent) == (0, 99)
    assert state.line() == "starting 99%: more than planned, about 0 s left"
    state("starting", 20, None)
    assert (state.seconds_left, state.percent) == (None, None)
    state("starting", -1, 12)
    assert (state.seconds_left, state.percent) == (None, 0)


def test_without_a_caller_only_a_notebook_is_shown_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(None) as progress:
        assert progress is silent
    shown: list[str] = []
    line = SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    def display(data: dict[str, str], **_: bool) -> SimpleNamespace:
        shown.append(data["text/plain"])
        return line

    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    shell = type("ZMQInteractiveShell", (), {})()
    module = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    with watched(None) as progress:
        progress("training", 1, 4)  # too soon to be shown
        clock.now = 0.3
        progress("training", 2, 4, "loss 3.41")
    assert shown == ["starting", "training 50%: loss 3.41", ""]
    mine = State()
    with watched(mine) as progress:
        assert progress is mine


def test_durations_in_words() -> None:
    assert [duration(x) for x in (89, 90, 5399, 5400, 3.6e6)] == ["89 s", "2 min", "90 min", "1.5 h", "1000.0 h"]
