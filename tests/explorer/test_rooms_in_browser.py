"""The rooms, as a person uses them in a browser that can reach nothing but the server."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import complaints, needs_browser, script
from tests.explorer.in_browser import go, until
from tests.explorer.serving import Served
from topicscope.explorer.theory_room import question
from topicscope.theory import Setting, ValueMatrix, dynamics, optimum, second_stage, theorem2
from topicscope.training import RunConfig, train

pytestmark = [pytest.mark.process, pytest.mark.browser, needs_browser]


def theory_drawn(browser: webdriver.Chrome, query: str) -> None:
    """Until all parts of the room of theory show the setting of this query."""
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") == query)


def set_box(browser: webdriver.Chrome, name: str, text: str) -> None:
    box = browser.find_element(By.ID, name)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(text)


def part_text(browser: webdriver.Chrome, part: str) -> str:
    return str(script(browser, f"return document.querySelector('[data-part={part}]').innerText"))


def test_the_first_page_offers_three_things(browser: webdriver.Chrome, served: Served) -> None:
    assert browser.current_url == f"http://127.0.0.1:{served.port}/"  # the token is gone from the address
    links = [link.get_attribute("href") for link in browser.find_elements(By.CSS_SELECTOR, ".things a")]
    assert [urlsplit(str(link)).path for link in links] == ["/theory", "/live", "/paper"]
    until(browser, lambda: "Nothing yet" in browser.find_element(By.ID, "folders").text)
    assert complaints(browser) == []


def test_theory_follows_its_controls(browser: webdriver.Chrome, served: Served) -> None:
    go(browser, served, "/theory")
    theory_drawn(browser, "")
    assert f"{theorem2(Setting.of(10, 10)).numbers()['same_topic']:.5f}" in part_text(browser, "theorems")
    set_box(browser, "topics", "6")
    theory_drawn(browser, "topics=6")
    setting = Setting.of(6, 10)
    assert f"{theorem2(setting).numbers()['same_topic']:.5f}" in part_text(browser, "theorems")
    half = dynamics(setting).value.half_time
    assert f"{half:.5g}" in part_text(browser, "dynamics")
    until(browser, lambda: browser.current_url.endswith("/theory?topics=6"))
    shown = script(browser, "return document.querySelector('[data-part=value] .plot').data[0].z.length")
    assert shown == 61
    go(browser, served, "/theory?topics=6")  # the link keeps the setting
    theory_drawn(browser, "topics=6")
    assert browser.find_element(By.ID, "topics").get_attribute("value") == "6"
    assert complaints(browser) == []


def test_a_slider_moves_by_keys_and_draws_anew(browser: webdriver.Chrome, served: Served) -> None:
    go(browser, served, "/theory")
    theory_drawn(browser, "")
    slider = browser.find_element(By.CSS_SELECTOR, "[data-name=p_mask] [type=range]")
    before = browser.find_element(By.ID, "p_mask").get_attribute("value")
    slider.send_keys(Keys.PAGE_UP)
    value = browser.find_element(By.ID, "p_mask").get_attribute("value")
    assert float(str(value)) > float(str(before))
    theory_drawn(browser, f"p_mask={value}")
    number = theorem2(Setting.of(p_mask=float(str(value)))).numbers()["same_topic"]
    assert f"{number:.5f}" in part_text(browser, "theorems")


def test_documents_become_infinite_at_the_end_of_their_slider(browser: webdriver.Chrome, served: Served) -> None:
    go(browser, served, "/theory?topics=4&words_per_topic=3&topics_per_document=2")
    theory_drawn(browser, "topics=4&words_per_topic=3&topics_per_document=2")
    slider = browser.find_element(By.CSS_SELECTOR, "[data-name=length] [type=range]")
    slider.send_keys(Keys.END)
    assert browser.find_element(By.ID, "length").get_attribute("value") == "infinite"
    assert slider.get_attribute("aria-valuetext") == "infinite"
    theory_drawn(browser, "topics=4&words_per_topic=3&topics_per_document=2&length=infinite")
    slider.send_keys(Keys.HOME)
    assert browser.find_element(By.ID, "length").get_attribute("value") == "2"
    width = browser.find_element(By.CSS_SELECTOR, "[data-name=attention_dim] [type=range]")
    width.send_keys(Keys.PAGE_UP)
    value = browser.find_element(By.ID, "attention_dim").get_attribute("value")
    theory_drawn(browser, f"topics=4&words_per_topic=3&topics_per_document=2&length=2&attention_dim={value}")


@pytest.mark.parametrize(("value_matrix", "bounded"), [("blocks", "gamma"), ("diagonal", "beta")])
def test_the_landscape_has_its_minimum_and_the_ends_of_the_interval(
    browser: webdriver.Chrome, served: Served, value_matrix: ValueMatrix, bounded: str
) -> None:
    query = f"topics=20&topics_per_document=5{'' if value_matrix == 'blocks' else '&value_matrix=diagonal'}"
    go(browser, served, f"/theory?{query}")
    theory_drawn(browser, query)
    setting = Setting.of(20, 10, 5)
    stage = second_stage(setting, value_matrix)
    assert stage.theorem is not None
    landscape = "document.querySelector('[data-part=attention] .plot').data"
    until(browser, lambda: script(browser, f"return {landscape} !== undefined"))  # below the others: drawn after them
    marks = script(
        browser,
        f"return {landscape}.slice(1)"
        ".flatMap(({x, y, text, type}) => type === 'scatter' ? x.map((_, i) => [x[i], y[i], [].concat(text)[i]]) : [])",
    )
    places = {text: (beta, alpha) for beta, alpha, text in marks}
    for end in stage.theorem.bounds[bounded]:
        beta, alpha = next(at for name, at in places.items() if name.endswith(f" {end:.3g}"))
        assert (setting.gamma(alpha, beta) if bounded == "gamma" else beta) == pytest.approx(end, rel=1e-5)
    lowest = places["lowest" if value_matrix == "blocks" else "lowest, beyond the edge"]  # there alpha goes to 0
    assert lowest[0] == pytest.approx(stage.optimum.beta, rel=1e-3)


@pytest.mark.parametrize(
    "query",
    [
        "prior=dirichlet&alpha=0.5",
        "prior=groups&groups=2&rho=0.8",
        "prior=logistic-normal&covariance=2",
        "zipf=1",
        "overlap=0.25",
        "common_words=3&common_share=0.2",
    ],
)
def test_other_worlds_have_their_optimum(browser: webdriver.Chrome, served: Served, query: str) -> None:
    small = "topics=4&words_per_topic=4&topics_per_document=2"
    go(browser, served, f"/theory?{small}&{query}")
    until(browser, lambda: script(browser, "return document.body.dataset.drawn") is not None)
    asked = question(dict(part.split("=") for part in f"{small}&{query}".split("&")))
    best = optimum(RunConfig.of(asked.world))
    assert f"{best.loss:.6g}" in part_text(browser, "value")
    shown = script(browser, "return document.querySelector('[data-part=value] .plot').data[0].z.length")
    assert shown == best.vocabulary
    assert RunConfig.of(asked.run).topic_model.topics == 4  # 'train this' would start it
    assert complaints(browser) == []


def test_what_theory_does_not_cover_is_said(browser: webdriver.Chrome, served: Served) -> None:
    go(browser, served, "/theory?overlap=0.2")
    theory_drawn(browser, "overlap=0.2")
    assert "Not covered" in part_text(browser, "theorems")
    assert "W*" in part_text(browser, "value")
    set_box(browser, "topics", "0")
    wrong = browser.find_element(By.ID, "wrong")
    until(browser, wrong.is_displayed)
    assert "topics = 0" in wrong.text
    set_box(browser, "topics", "5")
    until(browser, lambda: not wrong.is_displayed())
    assert complaints(browser) == []


def test_a_run_is_started_watched_and_looked_back_at(browser: webdriver.Chrome, served: Served) -> None:
    go(browser, served, "/theory?topics=3&words_per_topic=2&topics_per_document=2&length=infinite")
    theory_drawn(browser, "topics=3&words_per_topic=2&topics_per_document=2&length=infinite")
    script(browser, "document.getElementById('train').click()")
    until(browser, lambda: script(browser, "return document.getElementById('preset')?.value") == "from theory")
    assert browser.find_element(By.ID, "topic_model.topics").get_attribute("value") == "3"
    set_box(browser, "steps", "600")
    set_box(browser, "more", "data.documents=50\ndata.dev_documents=20\nfloors=false\nmodel.prediction_bias=none")
    browser.find_element(By.CSS_SELECTOR, "#settings [type=submit]").click()
    until(browser, lambda: script(browser, "return document.querySelector('.run')?.dataset.state") == "done")
    run = browser.find_element(By.CSS_SELECTOR, ".run")
    assert "step 600 of 600" in run.find_element(By.CSS_SELECTOR, ".state").text
    assert run.find_element(By.CSS_SELECTOR, ".happening").text
    until(browser, lambda: script(browser, "return document.querySelectorAll('.run .plot svg.main-svg').length") >= 5)
    slider = run.find_element(By.CSS_SELECTOR, ".scrub input")
    slider.send_keys(Keys.HOME)
    until(browser, lambda: "at step 0" in run.find_element(By.CSS_SELECTOR, ".matrices").text)
    slider.send_keys(Keys.END)
    until(browser, lambda: "at step 600" in run.find_element(By.CSS_SELECTOR, ".matrices").text)
    assert re.search(r"\?id=[0-9a-f]{16}$", browser.current_url)
    assert complaints(browser) == []


@pytest.mark.parametrize("room", ["", "theory", "live", "models", "maps", "time", "paper"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800])
def test_rooms_fit_and_say_nothing_on_the_console(
    browser: webdriver.Chrome, served: Served, room: str, theme: str, width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    go(browser, served, f"/{room}")
    script(browser, "document.documentElement.dataset.theme = arguments[0]", theme)
    until(browser, lambda: script(browser, "return document.readyState") == "complete")
    assert script(browser, "return document.documentElement.scrollWidth") <= width
    if room in ("models", "maps"):  # of which nothing is there
        until(browser, lambda: " --out " in browser.find_element(By.CSS_SELECTOR, "#folders code").text)
    unnamed = script(
        browser,
        "return [...document.querySelectorAll('input, select, button, textarea')].filter(e => !e.labels?.length"
        " && !e.getAttribute('aria-label') && !e.textContent.trim()).map(e => e.outerHTML)",
    )
    assert unnamed == []
    assert complaints(browser) == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_corpora_and_names_are_text(served: Served, browser: webdriver.Chrome, tmp_path: Path) -> None:
    """A folder whose name is markup, in a list that scripts make."""
    name = "<img src=x onerror=window.hacked=1>"
    config = RunConfig.of(steps=3, topic_model={"topics": 2, "words_per_topic": 2}, floors=False)
    train(config.changed({"data.documents": 20, "data.dev_documents": 5}), served.workspace / name)
    go(browser, served, "/live")
    until(browser, lambda: name in browser.find_element(By.ID, "folders").text)
    assert script(browser, "return document.querySelectorAll('#folders img').length") == 0
    assert script(browser, "return window.hacked === undefined")
