"""The room of models: heads, topics, words and documents of a probe, as a person clicks through them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.browser import complaints, opened, script
from tests.explorer.in_browser import IN_BROWSER, click_point, drawn_folder, every, find, folder_id, go, until
from tests.explorer.serving import Served
from tests.language.samples import THETA, corpus_file, model_folder
from topicscope.explorer.workspace import Workspace
from topicscope.language import Probe, ProbeConfig, ShownDocument, Topics, probe, read_probe
from topicscope.language.probe_rows import decoded_links

pytestmark = [*IN_BROWSER, pytest.mark.model]

SMALL: dict[str, Any] = {
    "thresholds": [THETA],
    "topics": 4,
    "iterations": 40,
    "documents": 40,
    "bootstrap": 20,
    "shuffles": 20,
    "show_documents": 4,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A probe of two models with the same tokenizer, of one of them, and one whose documents keep hardly a head."""
    home = tmp_path_factory.mktemp("data")
    one, two = (home / name for name in ("one", "two"))
    for folder in (one, two):
        folder.mkdir()
    first, second = model_folder(one).rename(one / "left"), model_folder(two).rename(two / "right")
    corpus = str(corpus_file(home))
    probe(ProbeConfig([str(first), str(second)], corpus, **SMALL), home / "runs" / "both")
    probe(ProbeConfig(str(first), corpus, **SMALL), home / "runs" / "single")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topicscope.language.documents.MOST_BYTES", 1)
        probe(ProbeConfig(str(first), corpus, **SMALL), home / "runs" / "few-heads")
    return home / "runs"


def open_probe(browser: Chrome, served: Served, name: str, more: str = "") -> None:
    identity = folder_id(served, name)
    go(browser, served, f"/models?id={identity}{more}")
    drawn_folder(browser, identity)


def inside_topic(document: ShownDocument, layer: int, head: int) -> tuple[float, float]:
    """In Python: the share of kept attention that stays in the topic, and without preference."""
    (links,) = (one.links for one in document.heads if (one.layer, one.head) == (layer, head))
    order, weights = decoded_links(links, len(document.pieces), document.keys)
    topics = [piece.topic for piece in document.pieces]
    words = [piece.text.lower() for piece in document.pieces]
    known = [i for i, topic in enumerate(topics) if topic is not None]
    kept = inside = expected = 0.0
    for i in known:
        others = [j for j in known if words[j] != words[i]]
        alike = sum(topics[j] == topics[i] for j in others)
        for j, weight in zip(order[i].tolist(), weights[i].tolist(), strict=True):
            if j in others:
                kept += weight
                inside += weight * (topics[j] == topics[i])
                expected += weight * alike / len(others)
    return inside / kept, expected / kept


def stored(space: Path, name: str) -> Probe:
    return read_probe(space / name)


def test_what_the_room_shows_first(browser: Chrome, served: Served) -> None:
    open_probe(browser, served, "single")
    names = [str(one.get_attribute("data-name")) for one in every(browser, "figure")]
    first = ["probe-forest-1", "probe-heads-1", "probe-states-1", "topic-map", "probe-documents"]
    assert [name for name in names if name in first] == first
    assert names[: len(first)] == first
    assert "What am I looking at?" in find(browser, ".looking-at summary").text


def test_a_head_that_is_clicked_is_shown_in_the_documents(browser: Chrome, served: Served, space: Path) -> None:
    open_probe(browser, served, "single")
    probed = stored(space, "single")
    click_point(browser, ".plot[data-shown-in]", 1, 1)
    said = find(browser, ".head-choice [role=status]")
    until(browser, lambda: "Layer 1, head 1" in said.text)
    (row,) = (row for row in probed.heads if (row.layer, row.head) == (1, 1))
    assert f"difference {float(f'{row.effect.difference:.3g}'):g}" in said.text
    chosen = script(
        browser,
        "return [...document.querySelectorAll('.marked')].map(text =>"
        " [...text.querySelectorAll('select')].map(select => select.value))",
    )
    assert len(chosen) == len(probed.shown) == 4
    assert all(layer == "1" and head.split(" ")[0] == "1" for layer, head in chosen)
    listed = [item.text for item in every(browser, ".head-texts li")]
    works = sorted((inside_topic(one, 1, 1) for one in probed.shown), key=lambda pair: pair[1] - pair[0])
    for item, (share, expected) in zip(listed, works, strict=True):
        assert item.endswith(f" {100 * share:.1f}% ({100 * expected:.1f}%)")


def test_a_head_that_is_not_kept_is_said(browser: Chrome, served: Served) -> None:
    open_probe(browser, served, "few-heads")
    click_point(browser, ".plot[data-shown-in]", 0, 1)
    said = find(browser, ".head-choice [role=status]")
    until(browser, lambda: "Layer 1, head 0" in said.text)
    assert "not kept in the documents below" in said.text
    assert every(browser, ".head-texts li") == []


def test_a_head_can_be_chosen_by_keys(browser: Chrome, served: Served) -> None:
    open_probe(browser, served, "single")
    layer, head = every(browser, ".head-choice select")
    layer.send_keys("0")
    head.send_keys("1")
    assert "Layer 0, head 1" in find(browser, ".head-choice [role=status]").text
    browser.refresh()  # the address has it
    until(browser, lambda: script(browser, "return document.querySelector('.head-choice [role=status]')"))
    until(browser, lambda: "Layer 0, head 1" in said_of_head(browser))


def said_of_head(browser: Chrome) -> str:
    return str(script(browser, "return document.querySelector('.head-choice [role=status]').textContent"))


def test_a_topic_that_is_clicked_shows_its_words(browser: Chrome, served: Served, space: Path) -> None:
    open_probe(browser, served, "single")
    topics = Topics.load(space / "single" / "topics-1")
    x, y, name = script(
        browser,
        "const [trace] = JSON.parse(document.querySelector('.plot.circles').nextElementSibling.textContent).data;"
        "return [trace.x[0], trace.y[0], trace.text[0]]",
    )
    click_point(browser, ".plot.circles", x, y)
    until(browser, lambda: every(browser, ".details li"))
    number = int(name)
    read = [item.text for item in every(browser, ".details li")]
    assert read[:5] == [
        f"{word} {100 * topics.probability[number, topics.words.index(word)]:.2f}%"
        for word in topics.top_words(number, 5)
    ]
    other = (number + 1) % len(topics)
    title = " ".join(topics.top_words(other, 3))
    button = next(one for one in every(browser, "td button.plain") if one.text == title)
    script(browser, "arguments[0].click()", button)
    assert find(browser, ".details li b").text == topics.top_words(other, 1)[0]


def test_search_names_topics_and_marks_documents(browser: Chrome, served: Served, space: Path) -> None:
    open_probe(browser, served, "single")
    topics, probed = Topics.load(space / "single" / "topics-1"), stored(space, "single")
    box = find(browser, ".search input")
    box.send_keys("harbour", Keys.ENTER)
    until(browser, lambda: "Topics of 'harbour'" in find(browser, ".answer").text)
    answer = find(browser, ".answer").text
    joint = topics.shares * topics.probability[:, topics.words.index("harbour")]
    best = int(joint.argmax())
    assert f"topic {best} ({' '.join(topics.top_words(best, 3))}): {100 * joint[best] / joint.sum():.1f}%" in answer
    assert answer.count("topic's words") == int((joint > 0.01 * joint.sum()).sum())
    counts = [sum(piece.text == "harbour" for piece in one.pieces) for one in probed.shown]
    assert len(every(browser, ".pieces .found")) == sum(counts)
    assert answer.count(" times") == np.count_nonzero(counts)
    script(browser, "arguments[0].value = ''", box)
    box.send_keys("<img src=x onerror=window.hacked=1>", Keys.ENTER)
    until(browser, lambda: "is not in the topics'" in find(browser, ".answer").text)
    assert script(browser, "return document.querySelectorAll('.answer img').length") == 0


def test_two_models_stand_side_by_side(browser: Chrome, served: Served, space: Path) -> None:
    both = folder_id(served, "both")
    open_probe(browser, served, "both")
    choice = find(browser, ".pane select")
    assert choice.text.split() == ["all", "left", "right"]
    choice.send_keys("left")
    until(browser, lambda: len(every(browser, ".pane [data-name^=probe-heads]")) == 1)
    find(browser, "#tools select").send_keys("both")
    until(browser, lambda: script(browser, "return document.body.dataset.beside") == both)
    second = every(browser, ".pane")[1]
    find(second, "select").send_keys("right")
    until(browser, lambda: len(every(second, "[data-name^=probe-heads]")) == 1)
    titles = [one.text for one in every(browser, ".pane [data-name^=probe-heads] h3")]
    assert [title.split(":")[0] for title in titles] == ["left", "right"]
    ids = script(browser, "return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    left, right = (pane.rect for pane in every(browser, ".pane"))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


def test_a_saved_view_has_the_same_clicks(served: Served, space: Path, tmp_path: Path) -> None:
    identity = folder_id(served, "single")
    status, page, headers = served.ask("/api/keep/models", {"id": identity})
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    (tmp_path / "kept.html").write_bytes(page)
    plots = page.count(b'<div class="plot ')
    with opened(tmp_path / "kept.html", plots) as browser:
        click_point(browser, ".plot[data-shown-in]", 0, 1)
        until(browser, lambda: "Layer 1, head 0" in find(browser, ".head-choice").text)
        assert complaints(browser) == []


@pytest.mark.parametrize(
    ("path", "query", "why"),
    [
        ("/api/models/{id}", {"model": "7"}, "no such model"),
        ("/api/models/{id}", {"model": "-1"}, "whole number"),
        ("/api/models/{id}/word", {"word": " "}, "type a word"),
        ("/api/models/../../etc/word", {"word": "x"}, ""),
        ("/api/models/0000000000000000", {}, "no such folder"),
    ],
)
def test_bad_questions_get_one_line(served: Served, path: str, query: dict[str, Any], why: str) -> None:
    status, content, _ = served.ask(path.format(id=folder_id(served, "single")), query)
    assert status in (400, 404)
    assert why in content.decode()


def test_topics_that_are_a_link_to_elsewhere_are_not_read(space: Path, tmp_path: Path) -> None:
    import shutil

    from topicscope.explorer.results_rooms import fitted

    shutil.copytree(space / "single", tmp_path / "runs" / "single")
    (place,) = Workspace(tmp_path / "runs").places()
    assert len(fitted(place)) == 1
    (tmp_path / "runs" / "single" / "topics-1").rename(tmp_path / "elsewhere")
    (tmp_path / "runs" / "single" / "topics-1").symlink_to(tmp_path / "elsewhere")
    assert fitted(place) == []
