// The room of the paper: verdicts of a reproduction, and the claims that it lacks, each with a button that runs it.
import { addressWith, openRoom, showSections } from "/explorer/folders.js";
import { saveButton } from "/explorer/keeping.js";
import { ask, make, post } from "/explorer/shell.js";

const PACE = 1000; // milliseconds between two looks at a claim that is run
const canRun = document.body.dataset.readOnly === undefined;
let room = null;

// What the process says now. A server that does not answer is asked again: the process goes on without it.
const look = async (id) => {
  try {
    return await (await ask(`/api/paper/run/${id}`)).json();
  } catch (error) {
    if (error.status) throw error;
    return { running: true, said: "the server does not answer" };
  }
};

// Until the process has ended; then all is shown anew.
const follow = async (id, state) => {
  for (;;) {
    const { running, said } = await look(id);
    state.textContent = running ? `Running: ${said || "starting"} …` : said;
    if (!running) break;
    await new Promise((done) => { setTimeout(done, PACE); });
  }
  const last = state.textContent;
  addressWith({ id });
  await room.refresh();
  const after = document.querySelector(".missing .state");
  if (after) after.textContent = `Done: ${last}`;
};

const runIt = async (name, id, box) => {
  const state = box.querySelector(".state");
  for (const button of box.querySelectorAll("button")) button.disabled = true;
  try {
    const started = await post("/api/paper/run", { name, id });
    await follow(started.id, state);
  } catch (error) {
    state.textContent = error.message;
    for (const button of box.querySelectorAll("button")) button.disabled = false;
  }
};

const missingList = (missing, id) => {
  const box = make("section", "", { class: "missing" }), state = make("p", "", { class: "state", role: "status" });
  const table = make("table", "", { class: "data" }), body = make("tbody");
  box.append(make("h2", id ? "Not in this folder" : "Nothing has been measured yet"), state);
  for (const { id: name, claim, seconds } of missing) {
    const row = make("tr"), cell = make("td");
    if (canRun) {
      const button = make("button", "Run it", { type: "button", "aria-label": `Run ${name}` });
      button.addEventListener("click", () => runIt(name, id, box));
      cell.append(button);
    }
    row.append(make("th", name, { scope: "row" }), make("td", claim), make("td", `about ${seconds} s`), cell);
    body.append(row);
  }
  table.append(body);
  box.append(table);
  return box;
};

const show = async (view, id, fetchView) => {
  const { html, intro, missing, running } = await (await fetchView(`/api/paper?id=${id}`)).json();
  const sections = make("div"), source = { kind: "paper", query: `id=${id}` };
  const list = missing.length ? [missingList(missing, id)] : [];
  view.replaceChildren(...intro.map((text) => make("p", text)), sections, ...list);
  document.getElementById("tools").replaceChildren(...(id ? [saveButton(source)] : []));
  await showSections(sections, html, source);
  const verdicts = sections.querySelector("#verdicts");
  if (verdicts && list.length) verdicts.after(list[0]); // before the long sections
  if (running && list.length) {
    for (const button of list[0].querySelectorAll("button")) button.disabled = true;
    const state = list[0].querySelector(".state");
    follow(id, state).catch((error) => { state.textContent = error.message; });
  }
};

room = await openRoom(["reproduce"], (view, { id }, fetchView) => show(view, id, fetchView),
  (view) => show(view, "", ask));
