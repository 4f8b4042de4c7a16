"""Widgets in a page without Jupyter: a model and an element for `render`, as anywidget's specification has them."""

import base64
import json
from pathlib import Path
from typing import Any

from selenium import webdriver

from tests.browser import script

PAGE = """<!doctype html><meta charset="utf-8"><title>A notebook</title><link rel="icon" href="data:,">
<style>body {{ background: {background} }} div.cell {{ padding: 10px }}</style>
<body>{cells}</body>
<script type="application/json" id="states">{states}</script>
<script type="module">
const states = JSON.parse(document.getElementById("states").textContent), models = {{}};
window.sent = [];
window.asked = []; // models that others look up
for (const [id, state] of Object.entries(states)) {{
  if (state.script) state.script = new DataView(Uint8Array.from(atob(state.script), c => c.charCodeAt(0)).buffer);
  const listeners = [];
  models[id] = {{
    get: (name) => state[name],
    on: (name, act) => {{ if (name === "msg:custom") listeners.push(act); }},
    off: () => {{}},
    send: (message) => window.sent.push([id, message]),
    receive: (message) => listeners.forEach((act) => act(message)),
    widget_manager: {{ get_model: async (name) => {{ window.asked.push(name); return models[name]; }} }},
  }};
}}
window.models = models;
for (const cell of document.querySelectorAll(".cell")) {{
  const code = new Blob([states[cell.id]._esm], {{ type: "text/javascript" }});
  const {{ default: widget }} = await import(URL.createObjectURL(code));
  cell.end = await widget.render({{ model: models[cell.id], el: cell }});
}}
</script>"""


def write_notebook(path: Path, *views: Any, background: str = "white") -> None:
    """A page with one cell per view, named by the view's model."""
    from topicscope.pages.notebook import library

    states = {view.model_id: view.get_state() for view in views}
    states[library().model_id] = {"script": base64.b64encode(library().script).decode()}
    cells = "".join(f'<div class="cell" id="{view.model_id}"></div>' for view in views)
    text = json.dumps(states, default=str).replace("<", "\\u003c")
    path.write_text(PAGE.format(background=background, cells=cells, states=text), encoding="utf-8")


def inside(browser: webdriver.Chrome, view: Any, code: str, *arguments: Any) -> Any:
    """What JavaScript returns that has the shadow root of a view as `root`; arguments follow it."""
    find = "const root = document.getElementById(arguments[0]).firstElementChild.shadowRoot;"
    return script(browser, find + code, view.model_id, *arguments)


def answer_all(browser: webdriver.Chrome, view: Any) -> list[str]:
    """Let the view's Python side answer what was asked since the last call; the names of the questions."""
    asked = [message for _, message in script(browser, "return window.sent.splice(0)")]
    answers: list[Any] = []
    view.send = answers.append
    for message in asked:
        view._handle_custom_msg(message, [])
    for answer in answers:
        script(browser, "window.models[arguments[0]].receive(arguments[1])", view.model_id, answer)
    return [message["question"] for message in asked]
