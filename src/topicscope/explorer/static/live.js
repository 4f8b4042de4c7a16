// The room of runs: start one, watch some side by side, pause and resume, look back through the kept steps.
import { replaceSections } from "/static/sections.js";
import { download, offerFiles } from "/explorer/keeping.js";
import { makeScrub } from "/explorer/scrub.js";
import { ask, isAbort, listFolders, make, post } from "/explorer/shell.js";
import { listen } from "/explorer/stream.js";

const form = document.getElementById("settings"), watchedRoot = document.getElementById("watched");
const list = document.getElementById("folders"), refused = document.getElementById("refused");
const readOnly = document.body.dataset.readOnly !== undefined;
const RESUMABLE = ["paused", "interrupted"];
const STATES = { unreadable: "cannot be read at the moment", gone: "not in this workspace" };

// One run on the page: what it says, its curves, and its matrices at the newest or at a chosen step.
const watchRun = ({ id, name }) => {
  const root = make("article", "", { class: "run", "aria-label": `Run ${name}`, "data-id": id });
  const heading = make("h2", name), state = make("p", "…", { class: "state" });
  const sentence = make("p", "", { class: "happening", role: "status" }); // read aloud where it changes
  const trouble = make("p", "", { class: "wrong", role: "alert", hidden: "" });
  const bar = make("progress", "", { max: 1, value: 0, "aria-label": `Steps done, ${name}` });
  const buttons = make("p", "", { class: "actions" });
  const complain = (text) => { trouble.textContent = text; trouble.hidden = !text; };
  const button = (text, act) => {
    const made = make("button", text, { type: "button", "aria-label": `${text} ${name}` });
    made.addEventListener("click", async () => {
      try { complain(""); await act(); } catch (error) { complain(error.message); }
    });
    buttons.append(made);
    return made;
  };
  const change = (action) => () => post(`/api/runs/${id}/${action}`);
  const pause = button("Pause", change("pause")), stop = button("Stop", change("stop"));
  const resume = button("Resume", change("resume"));
  stop.title = "Stop for good, and keep the results of the steps so far";
  for (const one of [pause, stop, resume]) one.hidden = true;
  const curves = make("div", "", { class: "curves" }), matrices = make("div", "", { class: "matrices" });
  const draw = (part, html, step) => {
    replaceSections(part, html);
    offerFiles(part, { kind: "live", query: `id=${id}${step === undefined ? "" : `&step=${step}`}` });
  };

  let shownStep;
  const scrub = makeScrub(name, async (step, signal) => {
    shownStep = step;
    try {
      draw(matrices, await (await ask(`/api/live/${id}/step/${step}`, { signal })).text(), step);
      complain("");
    } catch (error) {
      if (isAbort(error)) throw error;
      complain(error.message);
    }
  });
  const stepKept = () => (scrub.isFollowing() ? "" : `&step=${shownStep}`);
  button("Save this view", () => download(`/api/keep/live?id=${id}${stepKept()}`));
  button("Close", () => { endListening(); scrub.stop(); root.remove(); mark(); });
  root.append(heading, state, bar, sentence, trouble, buttons, curves, scrub.root, matrices);
  watchedRoot.append(root);

  const show = (news) => {
    const where = news.total ? `, step ${news.step.toLocaleString("en")} of ${news.total.toLocaleString("en")}` : "";
    state.textContent = `${STATES[news.state] ?? news.state}${where}`;
    if (news.name) heading.textContent = news.name;
    root.dataset.state = news.state;
    root.dataset.step = news.step ?? 0;
    if (news.total) bar.value = news.step / news.total;
    sentence.textContent = news.sentence ?? sentence.textContent;
    complain(news.why ?? "");
    pause.hidden = stop.hidden = readOnly || news.state !== "running";
    resume.hidden = readOnly || !RESUMABLE.includes(news.state);
    if (news.snapshots) scrub.setSteps(news.snapshots);
    if (news.curves !== undefined) {
      draw(curves, news.curves);
      root.dataset.curves = news.step; // up to which step curves are drawn
    }
    if (news.matrices !== undefined && scrub.isFollowing()) draw(matrices, news.matrices);
  };
  const endListening = listen(id, show, () => {
    root.dataset.state = "lost";
    state.textContent = "The server does not answer. The run continues without it; this page keeps trying …";
  });
};

const shownIds = () => [...watchedRoot.querySelectorAll(".run")].map((run) => run.dataset.id);
const mark = () => {
  const ids = shownIds();
  for (const button of list.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", ids.includes(button.dataset.id));
  }
  const address = new URL(location.href);
  address.search = ids.length ? `?${ids.map((id) => `id=${id}`).join("&")}` : "";
  history.replaceState(null, "", address);
};
const choose = (place) => {
  const there = [...watchedRoot.querySelectorAll(".run")].find((run) => run.dataset.id === place.id);
  if (there) there.scrollIntoView({ behavior: "smooth" });
  else watchRun(place);
  mark();
};
const refresh = async () => {
  try { await listFolders(list, ["train"], choose); mark(); } catch { /* said already; the next time may do better */ }
};

const asked = new URL(location.href).searchParams, wanted = asked.getAll("id");
const runs = await listFolders(list, ["train"], choose);
for (const id of wanted) choose(runs.find((place) => place.id === id) ?? { id, name: "a run of this link" });

const select = document.getElementById("preset");
if (select) {
  const preset = asked.get("preset");
  for (const name of ["id", "preset"]) asked.delete(name);
  const presets = await (await ask(`/api/presets?${asked}`)).json();
  const names = Object.keys(presets);
  select.append(...names.map((name) => new Option(name, name)));
  const fill = () => {
    const { what, settings } = presets[select.value], rest = { ...settings };
    document.getElementById("preset-what").textContent = what;
    const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    for (const box of form.querySelectorAll("[name]")) {
      const value = box.name in rest ? text(rest[box.name]) : "";
      box.value = value;
      if (box.value === value) delete rest[box.name]; // what a choice does not offer goes into the lines below
    }
    const lines = Object.entries(rest).map(([name, value]) => `${name}=${text(value)}`);
    form.querySelector("#more").value = lines.join("\n");
  };
  select.value = names.includes("from theory") ? "from theory" : names.includes(preset) ? preset : names[0];
  select.addEventListener("change", fill);
  fill();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const settings = {}, more = form.querySelector("#more").value, start = form.querySelector("[type=submit]");
    if (start.disabled) return; // also the Enter key
    for (const { name, value } of form.querySelectorAll("[name]")) if (value.trim()) settings[name] = value.trim();
    start.disabled = true;
    start.textContent = "starting …";
    refused.hidden = true;
    try {
      choose(await post("/api/runs", { settings, more, name: select.value }));
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
    }
    start.disabled = false;
    start.textContent = "Start";
    await refresh();
  });
}
setInterval(refresh, 10000);
