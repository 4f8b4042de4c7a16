// The room of runs: start one, watch some side by side, pause and resume, look back through the kept steps.
import { replaceSections } from "/static/sections.js";
import { makeScrub } from "/explorer/scrub.js";
import { ask, isAbort, listFolders, make } from "/explorer/shell.js";

const form = document.getElementById("settings"), watchedRoot = document.getElementById("watched");
const list = document.getElementById("folders"), refused = document.getElementById("refused");
const post = (path, body = {}) => ask(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});
const ENDED = ["done", "stopped", "diverged", "gone", "refused"];

// One run on the page: what it says, its curves, and its matrices at the newest or at a chosen step.
const watchRun = ({ id, name }) => {
  const root = make("article", "", { class: "run", "aria-label": `Run ${name}`, "data-id": id });
  const heading = make("h2", name), state = make("p", "…", { class: "state", role: "status" });
  const sentence = make("p", "", { class: "happening" }), bar = make("progress", "", { max: 1, value: 0 });
  const buttons = make("p", "", { class: "actions" });
  const button = (text, act) => {
    const made = make("button", text, { type: "button" });
    made.addEventListener("click", async () => {
      try { await act(); } catch (error) { state.textContent = error.message; }
    });
    buttons.append(made);
    return made;
  };
  const pause = button("Pause", () => post(`/api/runs/${id}/pause`));
  const resume = button("Resume", () => post(`/api/runs/${id}/resume`));
  const curves = make("div", "", { class: "curves" }), matrices = make("div", "", { class: "matrices" });

  let steps = [];
  const scrub = makeScrub(name, async (place, signal) => {
    try {
      replaceSections(matrices, await (await ask(`/api/live/${id}/step/${steps[place]}`, { signal })).text());
    } catch (error) {
      if (isAbort(error)) throw error;
      state.textContent = error.message;
    }
  }, "newest");
  const close = button("Close", () => { source.close(); scrub.stop(); root.remove(); mark(); });
  close.setAttribute("aria-label", `Close ${name}`);
  root.append(heading, state, bar, sentence, buttons, curves, scrub.root, matrices);
  watchedRoot.append(root);

  let source;
  const listen = () => {
    source = new EventSource(`/api/live/${id}/events`);
    source.addEventListener("message", ({ data }) => show(JSON.parse(data)));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
      else state.textContent = "The server does not answer; trying again …";
    });
  };
  const show = (news) => {
    if (ENDED.includes(news.state)) source.close();
    const where = news.total ? `, step ${news.step.toLocaleString("en")} of ${news.total.toLocaleString("en")}` : "";
    state.textContent = `${news.state}${where}${news.why ? `. ${news.why}` : ""}`;
    root.dataset.state = news.state;
    root.dataset.step = news.step ?? 0;
    if (news.total) bar.value = news.step / news.total;
    sentence.textContent = news.sentence ?? sentence.textContent;
    pause.hidden = news.state !== "running";
    resume.hidden = news.state !== "interrupted";
    if (news.snapshots) {
      steps = news.snapshots;
      scrub.setSteps(steps);
    }
    if (news.curves !== undefined) {
      replaceSections(curves, news.curves);
      root.dataset.curves = news.step; // up to which step curves are drawn
    }
    if (news.matrices !== undefined && scrub.isFollowing()) replaceSections(matrices, news.matrices);
  };
  listen();
};

const shownIds = () => [...watchedRoot.children].map((run) => run.dataset.id);
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
  const there = [...watchedRoot.children].find((run) => run.dataset.id === place.id);
  if (there) there.scrollIntoView({ behavior: "smooth" });
  else watchRun(place);
  mark();
};
const refresh = async () => { const shown = await listFolders(list, ["train"], choose); mark(); return shown; };

const asked = new URL(location.href).searchParams, wanted = asked.getAll("id");
const runs = await listFolders(list, ["train"], choose);
for (const place of runs.filter(({ id }) => wanted.includes(id))) choose(place);

const select = document.getElementById("preset");
if (select) {
  asked.delete("id");
  const presets = await (await ask(`/api/presets?${asked}`)).json();
  const names = Object.keys(presets);
  select.append(...names.map((name) => new Option(name, name)));
  const fill = () => {
    const { what, settings } = presets[select.value], rest = { ...settings };
    document.getElementById("preset-what").textContent = what;
    for (const box of form.querySelectorAll("[name]")) {
      box.value = rest[box.name] ?? "";
      delete rest[box.name];
    }
    const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    const lines = Object.entries(rest).map(([name, value]) => `${name}=${text(value)}`);
    form.querySelector("#more").value = lines.join("\n");
  };
  select.value = names.includes("from theory") ? "from theory" : names[0];
  select.addEventListener("change", fill);
  fill();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const settings = {};
    for (const { name, value } of form.querySelectorAll("[name]")) if (value.trim()) settings[name] = value.trim();
    for (const line of form.querySelector("#more").value.split("\n").filter((line) => line.trim())) {
      const [name, ...value] = line.split("=");
      settings[name.trim()] = value.join("=").trim();
    }
    try {
      const started = await (await post("/api/runs", { settings, name: select.value })).json();
      refused.hidden = true;
      choose(started);
      await refresh();
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
    }
  });
}
setInterval(refresh, 10000);
