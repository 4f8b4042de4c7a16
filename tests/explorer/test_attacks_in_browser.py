"""Names and texts that are markup: in folders, models, corpora and topics. Everywhere they are text.

An element that came of them would ask for /x, which the console reports; a script would leave `window.hacked`.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.browser import complaints, opened, script
from tests.explorer.in_browser import IN_BROWSER, drawn_folder, every, find, go, until
from tests.explorer.serving import Served
from tests.explorer.test_models_in_browser import SMALL
from tests.language.samples import model_folder, texts
from topicscope.language import ProbeConfig, Topics, probe
from topicscope.paper import Context, chosen, reproduce
from topicscope.training import RunConfig, train

pytestmark = [*IN_BROWSER, pytest.mark.model]

NAME = "<img src=x onerror=window.hacked=1>"
TEXT = f"</script>{NAME}<script>window.hacked=1</script><!--"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hostile")
    runs, corpus = home / "runs", home / "corpus.jsonl"
    lines = [{"text": f"{NAME} {text} {TEXT}", "title": TEXT} for text in texts(120)]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = model_folder(home).rename(home / NAME)
    probed = probe(ProbeConfig(str(model), str(corpus), **SMALL | {"show_documents": 2}), runs / f"probe {NAME}")
    assert NAME in " ".join(probed.models.values())
    topics = Topics.load(runs / f"probe {NAME}" / "topics-1")
    words = tuple(f"{NAME}{number}" for number in range(len(topics.words)))
    dataclasses.replace(topics, words=words).save(runs / f"topics {NAME}")
    config = RunConfig.of(steps=5, topic_model={"topics": 2, "words_per_topic": 2}, snapshots=[0, 5], floors=False)
    train(config.changed({"data.documents": 20, "data.dev_documents": 5}), runs / f"train {NAME}")
    reproduce(chosen(["figure7"]), Context("quick", 0), runs / f"reproduce {NAME}")
    return runs


def place(served: Served, kind: str) -> dict[str, Any]:
    return next(one for one in served.json("/api/folders") if one["kind"] == kind)


@pytest.mark.parametrize(
    ("room", "kind"), [("models", "probe"), ("models", "topics"), ("time", "train"), ("paper", "reproduce")]
)
def test_names_and_texts_stay_text(browser: Chrome, served: Served, room: str, kind: str) -> None:
    one = place(served, kind)
    assert NAME in one["name"]
    go(browser, served, f"/{room}?id={one['id']}")
    drawn_folder(browser, one["id"])
    seen = find(browser, "body").text
    assert NAME in seen
    if kind == "probe":
        for fold in every(browser, ".marked:not([open]) summary"):
            fold.click()
        assert "<img" in str(script(browser, "return document.querySelector('.pieces').textContent"))
        box = find(browser, ".search input")
        box.send_keys(NAME, Keys.ENTER)
        until(browser, lambda: "is not in the topics'" in find(browser, ".answer").text)
    if kind == "topics":
        choice = find(browser, ".chooser select")
        choice.send_keys("1")
        until(browser, lambda: NAME in find(browser, ".details li").text)
    assert script(browser, "return document.querySelectorAll('img[src=x]').length") == 0
    assert script(browser, "return window.hacked === undefined")


def test_the_list_and_the_live_room_show_names_as_text(browser: Chrome, served: Served) -> None:
    go(browser, served, "/")
    until(browser, lambda: find(browser, "#folders").text.count(NAME) == 4)
    go(browser, served, f"/live?id={place(served, 'train')['id']}")
    until(browser, lambda: script(browser, "return document.querySelector('.run')?.dataset.state") == "done")
    assert find(browser, ".run h2").text == f"train {NAME}"
    assert script(browser, "return document.querySelectorAll('img').length") == 0
    assert script(browser, "return window.hacked === undefined")


@pytest.mark.parametrize("kind", ["probe", "topics"])
def test_saved_views_keep_them_as_text(served: Served, kind: str, tmp_path: Path) -> None:
    """From disk there is no server's policy: only the escaping counts."""
    status, page, _ = served.ask("/api/keep/models", {"id": place(served, kind)["id"]})
    assert status == 200
    (tmp_path / "kept.html").write_bytes(page)
    with opened(tmp_path / "kept.html", page.count(b'<div class="plot ')) as browser:
        assert NAME in find(browser, "body").text
        assert script(browser, "return window.hacked === undefined")
        assert script(browser, "return document.querySelectorAll('img[src=x]').length") == 0
        assert complaints(browser) == []
