"""Theory under sliders in a notebook: the room's own controls and parts, answered by the kernel."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

import topicscope
from tests.browser import complaints, needs_browser, window
from tests.notebooks import answer_all, inside, write_notebook
from topicscope import InputError
from topicscope.explorer import theory_room
from topicscope.theory import Setting, theorem2

PARTS = ["part"] * len(theory_room.PARTS)


def test_it_starts_at_the_settings_that_are_given() -> None:
    bench = topicscope.explore_theory(topics=6, prior="dirichlet")
    assert repr(bench) == "TheoryBench(topics=6, prior=dirichlet)"
    first = bench.answer("first", {})
    assert (first["given"]["topics"], first["defaults"]["topics"]) == (6, 10)
    assert bench.config.topic_model.topics == 6
    assert 'id="train"' not in bench.html  # no links to other rooms


def test_parts_are_those_of_the_room_and_the_config_follows() -> None:
    bench = topicscope.explore_theory()
    asked = theory_room.question({"topics": "7", "optimizer": "adam"})
    for name in theory_room.PARTS:
        html = bench.answer("part", {"part": name, "chosen": {"topics": "7", "optimizer": "adam"}})
        assert html == theory_room.part_view(name, asked).fragment()
    assert bench.question == asked
    assert (bench.config.topic_model.topics, bench.config.optimizer.name) == (7, "adam")


def test_bad_settings_are_one_line_and_change_nothing() -> None:
    with pytest.raises(InputError, match="topics = 0"):
        topicscope.explore_theory(topics=0)
    bench = topicscope.explore_theory(topics=6)
    for part, chosen, line in (("value", {"topics": "0"}, "topics = 0"), ("<b>", {}, "there is no part '<b>'")):
        with pytest.raises(InputError, match=line):
            bench.answer("part", {"part": part, "chosen": chosen})
    assert bench.question.topics == 6


def test_without_anywidget_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "topicscope.explorer.theory_bench", raising=False)
    monkeypatch.delitem(sys.modules, "topicscope.pages.notebook", raising=False)
    monkeypatch.delattr("topicscope.pages.NotebookView", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    install = r"needs anywidget, which is not installed: pip install 'topicscope\[notebook\]'"
    with pytest.raises(InputError, match=install):
        topicscope.explore_theory()


def until(browser: Chrome, what: Callable[[], Any]) -> Any:
    return WebDriverWait(browser, 120).until(lambda _: what())


def settled(browser: Chrome, bench: Any, setting: str) -> None:
    def shows() -> bool:
        answer_all(browser, bench)
        return bool(inside(browser, bench, "return root.host.dataset.setting") == setting)

    until(browser, shows)


def part_text(browser: Chrome, bench: Any, part: str) -> str:
    return str(inside(browser, bench, f"return root.querySelector('[data-part={part}]').innerText"))


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("background", ["white", "black"])
def test_the_view_follows_its_controls(tmp_path: Path, background: str) -> None:
    bench = topicscope.explore_theory(topics=6)
    write_notebook(tmp_path / "notebook.html", bench, background=background)
    with window() as browser:
        browser.get((tmp_path / "notebook.html").as_uri())
        until(browser, lambda: answer_all(browser, bench) == ["first"])
        until(browser, lambda: inside(browser, bench, "return root.getElementById('topics').value") == "6")
        settled(browser, bench, "topics=6")
        number = theorem2(Setting.of(6, 10)).numbers()["same_topic"]
        assert f"{number:.6f}" in part_text(browser, bench, "theorems")
        box = inside(browser, bench, "return root.getElementById('topics')")
        box.send_keys(Keys.CONTROL, "a", Keys.NULL, "0")
        wrong = inside(browser, bench, "return root.getElementById('wrong')")
        until(browser, lambda: [answer_all(browser, bench), wrong.is_displayed()][1])
        assert "topics = 0" in wrong.text
        box.send_keys(Keys.CONTROL, "a", Keys.NULL, "4")
        settled(browser, bench, "topics=4")
        assert not wrong.is_displayed()
        assert f"{theorem2(Setting.of(4, 10)).numbers()['same_topic']:.6f}" in part_text(browser, bench, "theorems")
        assert bench.config.topic_model.topics == 4
        assert complaints(browser) == []


@pytest.mark.browser
@needs_browser
def test_a_slow_kernel_is_asked_only_for_the_newest_setting(tmp_path: Path) -> None:
    bench = topicscope.explore_theory()
    write_notebook(tmp_path / "notebook.html", bench)
    with window() as browser:
        browser.get((tmp_path / "notebook.html").as_uri())
        until(browser, lambda: answer_all(browser, bench) == ["first"])
        settled(browser, bench, "")
        move = (
            "const done = arguments[arguments.length - 1],"
            " root = document.getElementById(arguments[0]).firstElementChild.shadowRoot,"
            " box = root.getElementById('topics'), next = (value) => requestAnimationFrame(() => {"
            " if (value > 9) { requestAnimationFrame(() => requestAnimationFrame(done)); return; }"
            " box.value = value; box.dispatchEvent(new Event('input'));"
            " requestAnimationFrame(() => next(value + 1)); });"
            " next(3)"
        )
        browser.execute_async_script(move, bench.model_id)  # seven settings, none of them answered
        assert answer_all(browser, bench) == PARTS  # topics = 3
        until(browser, lambda: answer_all(browser, bench) == PARTS)  # topics = 9, and none between
        assert bench.question.topics == 9
        settled(browser, bench, "topics=9")
        assert complaints(browser) == []
