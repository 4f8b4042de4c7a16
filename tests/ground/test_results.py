"""Results and several runs as one; the configs to resume; and progress, never 100% while work goes on."""

import io
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from tests.refusals import refused
from tests.waiting import wait_until
from topicscope.ground import (
    Config,
    InputError,
    Kind,
    Result,
    SeveralRuns,
    arrow_table,
    configs_to_resume,
    duration,
    folders,
    open_folder,
    progress_shown,
    read_finished,
    section,
    silent,
    watched,
)
from topicscope.ground.results import State
from topicscope.pages import Figure, Lines, Section, Series

NOTE = Kind("note", 1, resumes="always")


@dataclass(frozen=True, repr=False)
class Note(Result):
    kind: ClassVar[str] = "note"
    parts: list[Any]

    def summary(self) -> list[str]:
        return ["A note."]

    def table(self) -> Any:
        return arrow_table([{"a": 1}, {"b": 2.5, "a": 3}])

    def sections(self) -> list[Any]:
        return self.parts

    def _about(self) -> str:
        return f"{len(self.parts)} parts"


def part(*titles: str) -> Section:
    panels = [Lines("", [Series("curve", [0, 1], [1, 2])])]
    return Section("Part", figures=[Figure("name", title, "", panels) for title in titles])


def test_plot_draws_the_first_figure_of_all_sections() -> None:
    drawn = Note([part(), part("first", "second")]).plot()
    assert drawn.get_suptitle() == "first"
    with pytest.raises(InputError, match=r"Note\(1 parts\) has no figure; \.table\(\) has its numbers"):
        Note([part()]).plot()


def test_a_table_has_all_keys_in_the_order_in_which_they_turn_up() -> None:
    assert Note([]).table().to_pydict() == {"a": [1, 3], "b": [None, 2.5]}


def test_damaged_results_are_refused_in_one_line(tmp_path: Path) -> None:
    with open_folder(tmp_path / "x", NOTE) as folder:
        refused("is not finished; to continue: ", read_finished, tmp_path / "x", NOTE, len)
        with pytest.raises(InputError, match=f"to continue: topicscope note --resume --out {tmp_path / 'x'}"):
            read_finished(tmp_path / "x", replace(NOTE, resumes="asked"), len)
        folder.finish({"words": [1, 2]})
    assert read_finished(tmp_path / "x", NOTE, lambda stored: stored["words"]) == [1, 2]
    with pytest.raises(InputError, match=r"^results\.json in .* is damaged \(KeyError: 'lines'\); run the command"):
        read_finished(tmp_path / "x", NOTE, lambda stored: stored["lines"])
    refused(r"holds a note folder, not a poem folder$", read_finished, tmp_path / "x", Kind("poem", 1), len)
    with pytest.raises(InputError, match=r"holds a note folder of format 1, this topicscope reads 2; make"):
        read_finished(tmp_path / "x", Kind("note", 2), len)
    (tmp_path / "x" / "results.json").write_text("{")
    with pytest.raises(InputError, match=r"results\.json is damaged: it is not what topicscope wrote; make"):
        read_finished(tmp_path / "x", NOTE, len)
    (tmp_path / "x" / "results.json").unlink()
    refused(r"results\.json is missing; make ", read_finished, tmp_path / "x", NOTE, len)


KIND = Kind("made", 1, resumes="asked")


@section
class Settings(Config):
    seed: int = 0
    size: int = 3


@dataclass
class Run:
    config: Settings

    def summary(self) -> list[str]:
        return [f"Seed {self.config.seed}.", "It ended."]

    def facts(self) -> dict[str, Any]:
        return {"loss": self.config.seed / 2} | ({"late": True} if self.config.seed > 4 else {})


class Runs(SeveralRuns[Run]):
    kind: ClassVar[str] = KIND.name

    def _about(self) -> str:
        return f"{len(self)} runs"


def test_several_runs_are_a_list_with_their_sentences_and_a_row_each() -> None:
    runs = Runs((Run(Settings(seed)) for seed in (4, 5)), Path("out"))
    assert [run.config.seed for run in runs] == [4, 5]
    assert runs.folder == Path("out")
    assert Runs([]).folder is None
    assert runs.summary() == ["Seed 4.", "It ended.", "Seed 5.", "It ended."]
    assert runs.table().to_pylist() == [{"seed": 4, "loss": 2.0, "late": None}, {"seed": 5, "loss": 2.5, "late": True}]
    assert repr(runs) == "Runs(2 runs)"


def test_configs_to_resume_are_those_that_the_folder_was_opened_for(tmp_path: Path) -> None:
    one, two = Settings(size=7), Settings(seed=1)
    with folders.open_folder(tmp_path / "one", KIND, one.as_dict()) as folder:
        assert configs_to_resume(tmp_path / "one", KIND, Settings) == one
        folder.mark("starting")
        with pytest.raises(InputError, match=r"no run to resume; leave resume \(--resume\) out to start one there"):
            configs_to_resume(tmp_path / "one", KIND, Settings)
        folder.finish({})
    assert configs_to_resume(str(tmp_path / "one"), KIND, Settings) == one
    with folders.open_folder(tmp_path / "two", KIND, {"runs": [one.as_dict(), two.as_dict()]}, runs=2):
        assert configs_to_resume(tmp_path / "two", KIND, Settings) == [one, two]
    for path in (tmp_path / "none", tmp_path):
        refused("holds no made-up run to resume", configs_to_resume, path, KIND, Settings, "made-up run")
    made = f"was made by 'topicscope {KIND.name}', not by 'topicscope other'; continue with 'topicscope {KIND.name}'"
    refused(made, configs_to_resume, tmp_path / "one", Kind("other", 1), Settings)


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
