"""Faults: nothing is lost, the page says in plain words what has happened, and goes on by itself where it can."""

import os
import resource
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser import ONLY_HERE, browsing, needs_browser, script
from tests.explorer.in_browser import drawn_folder, every, find, folder_id, go, until
from tests.explorer.pretended import Line, pretended_run
from tests.explorer.serving import LONG, Served, begin, events, explorer, state
from tests.waiting import wait_until
from topicscope.ground import METRICS
from topicscope.training import RunConfig, train

pytestmark = [pytest.mark.process, pytest.mark.browser, needs_browser, pytest.mark.usefixtures("no_run_left")]


def shown(browser: Chrome, what: str = "state") -> str:
    return str(script(browser, "return document.querySelector('.run')?.dataset[arguments[0]]", what))


def said(browser: Chrome, part: str) -> str:
    return str(script(browser, "return document.querySelector(arguments[0])?.innerText ?? ''", f".run {part}"))


def reached(browser: Chrome, step: int) -> bool:
    return shown(browser, "step") == str(step)


def press(browser: Chrome, name: str) -> None:
    buttons = every(browser, ".run .actions button")
    next(button for button in buttons if button.text == name).click()


def watch(browser: Chrome, served: Served, identity: str) -> None:
    go(browser, served, f"/live?id={identity}")
    until(browser, lambda: shown(browser) == "running")


def pid_of(folder: Path) -> int:
    """The process that writes a run, by its command line."""
    mark = os.fsencode(folder)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in words and b"topicscope" in words:
                return int(entry.name)
    raise AssertionError(f"nothing writes {folder}")


def whole_lines(path: Path) -> bytes:
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def test_the_server_is_killed_in_mid_run(browser: Chrome, served: Served) -> None:
    with pretended_run(served.workspace / "lonely") as run:
        with explorer(served.workspace) as other:
            browser.get(other.url)
            watch(browser, other, folder_id(other, "lonely"))
            other.process.send_signal(signal.SIGKILL)
            other.process.wait()
            until(browser, lambda: shown(browser) == "lost")
            assert "does not answer. The run continues without it" in said(browser, ".state")
        run.write(90)
        browser.get(served.url)
        watch(browser, served, folder_id(served, "lonely"))  # a server that knows nothing of the other finds it
        until(browser, lambda: shown(browser, "step") == "99")


def test_the_run_is_killed_in_mid_stream(browser: Chrome, served: Served) -> None:
    identity = begin(served, LONG, "killed")
    folder = served.workspace / "killed-1"
    watch(browser, served, identity)
    until(browser, lambda: int(shown(browser, "step")) > 1000)
    os.kill(pid_of(folder), signal.SIGKILL)
    until(browser, lambda: shown(browser) == "interrupted")
    assert "it was killed, or the machine went down" in said(browser, ".wrong")
    written, step = whole_lines(folder / METRICS), int(shown(browser, "step"))
    press(browser, "Resume")
    until(browser, lambda: shown(browser) == "running" and int(shown(browser, "step")) > step)
    assert said(browser, ".wrong") == ""
    press(browser, "Stop")
    until(browser, lambda: shown(browser) == "stopped")
    assert (folder / METRICS).read_bytes().startswith(written)  # all that was seen before, to the byte


def test_the_disk_is_full(browser: Chrome, served: Served) -> None:
    """Files cannot grow beyond a size: what a full disk says, said of one file. Later there is room again."""
    _, most = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (400_000, most))
    identity = begin(served, LONG, "full")
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (most, most))
    go(browser, served, f"/live?id={identity}")
    until(browser, lambda: shown(browser) == "interrupted")
    assert "free some space, then continue" in said(browser, ".wrong")
    written, step = whole_lines(served.workspace / "full-1" / METRICS), int(shown(browser, "step"))
    assert step > 100
    press(browser, "Resume")
    until(browser, lambda: shown(browser) == "running" and int(shown(browser, "step")) > step)
    assert whole_lines(served.workspace / "full-1" / METRICS).startswith(written)


def test_a_folder_is_deleted_while_it_is_watched(browser: Chrome, served: Served) -> None:
    with pretended_run(served.workspace / "brief") as run:
        watch(browser, served, folder_id(served, "brief"))
        shutil.rmtree(run.folder)
        until(browser, lambda: shown(browser) == "gone")
    assert said(browser, ".wrong") == "Its folder was removed or renamed."
    assert said(browser, ".actions button:not([hidden])")  # it can be closed


def test_a_folder_is_deleted_while_it_is_looked_at(browser: Chrome, served: Served) -> None:
    small = RunConfig.of(steps=5, topic_model={"topics": 2, "words_per_topic": 2}, snapshots=[0, 5], floors=False)
    for name in ("stays", "goes"):
        train(small.changed({"data.documents": 20, "data.dev_documents": 5}), served.workspace / name)
    identity = folder_id(served, "goes")
    go(browser, served, f"/time?id={identity}")
    drawn_folder(browser, identity)
    shutil.rmtree(served.workspace / "goes")
    script(
        browser, "const s = document.querySelector('.scrub input'); s.value = 0; s.dispatchEvent(new Event('input'))"
    )
    until(browser, lambda: "no such folder any more" in find(browser, "#view .wrong").text)
    until(browser, lambda: "goes" not in find(browser, "#folders").text)
    left = every(browser, "#folders button")
    next(button for button in left if "stays" in button.text).click()
    drawn_folder(browser, folder_id(served, "stays"))


def test_two_browsers_watch_one_run(browser: Chrome, served: Served, tmp_path: Path) -> None:
    with browsing(tmp_path / "profile", ONLY_HERE) as second, pretended_run(served.workspace / "both") as run:
        identity = folder_id(served, "both")
        second.get(served.url)
        for one in (browser, second):
            watch(one, served, identity)
        run.write(40)
        for one in (browser, second):
            until(one, partial(reached, one, 49))
        press(second, "Pause")
        assert wait_until(lambda: (run.folder / "pause").exists())
        (run.folder / "pause").unlink()
        go(second, served, "/theory")  # one leaves, the other goes on
        run.write(10)
        until(browser, lambda: shown(browser, "step") == "59")
    until(browser, lambda: shown(browser) == "interrupted")
    assert len(list(events(served, identity, most=1))) == 1


def test_a_browser_that_was_asleep_catches_up(browser: Chrome, served: Served) -> None:
    """Its connections are dropped, as those of a closed laptop are; meanwhile the run goes on."""
    line = Line(served.port)
    try:
        with pretended_run(served.workspace / "long") as run:
            browser.get(served.url.replace(f":{served.port}/", f":{line.port}/"))
            browser.get(f"http://127.0.0.1:{line.port}/live?id={folder_id(served, 'long')}")
            until(browser, lambda: shown(browser, "step") == "9")
            line.cut()
            until(browser, lambda: shown(browser) == "lost")
            run.write(500)
            line.mend()
            until(browser, lambda: shown(browser, "step") == "509")
            assert shown(browser) == "running"
            points = "const [trace] = document.querySelector('.run .plot.lines').data; return trace.x.at(-1)"
            assert script(browser, points) == 509
            assert said(browser, ".state") == "running, step 509 of 1,000"
    finally:
        line.close()
        browser.get(served.url)


def test_a_page_that_nobody_looks_at_holds_no_connection(browser: Chrome, served: Served) -> None:
    """Six windows in the background would leave none for the one in front."""

    def show(is_shown: bool) -> None:
        script(
            browser,
            "Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true });"
            "document.dispatchEvent(new Event('visibilitychange'))",
            not is_shown,
        )

    with pretended_run(served.workspace / "behind") as run:
        identity = folder_id(served, "behind")
        watch(browser, served, identity)
        show(False)
        run.write(20)
        assert next(events(served, identity))["step"] == 29
        assert shown(browser, "step") == "9"
        show(True)
        until(browser, lambda: shown(browser, "step") == "29")


def test_a_page_that_was_frozen_catches_up(browser: Chrome, served: Served) -> None:
    """The browser tells it that it is hidden, and never that it is seen again: the last test of this page."""
    with pretended_run(served.workspace / "frozen") as run:
        watch(browser, served, folder_id(served, "frozen"))
        browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "frozen"})
        run.write(300)
        assert wait_until(lambda: next(events(served, folder_id(served, "frozen")))["step"] == 309)
        browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "active"})
        until(browser, lambda: shown(browser, "step") == "309")
    assert state(served, folder_id(served, "frozen")) == "interrupted"
