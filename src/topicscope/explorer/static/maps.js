// The room of maps: a sweep, any measure over any two axes; the curves of clicked points come when they are asked for.
import { drawSweep } from "/static/sweep.js";
import { addressWith, openRoom, sayIgnored } from "/explorer/folders.js";
import { offerFiles, saveButton } from "/explorer/keeping.js";
import { ask, make } from "/explorer/shell.js";

const AT_ONCE = 100; // points of a sweep whose prediction is worked out without being asked for
const PACE = 500; // milliseconds between two questions how far it is
const MOST_CHOSEN = 200; // points that the address names
const CHOICES = ["measure", "across", "up"];

// The phases that the laws of learning predict, beside the measured ones. It may take minutes: it says how far it is.
const offerPrediction = (id, view, map, points, whenThere) => {
  const box = make("span", "", { class: "predicted" }), said = make("span", "", { class: "soft", role: "status" });
  const button = make("button", "Predict the map", { type: "button" });
  const predict = async () => {
    button.hidden = true;
    try {
      for (;;) {
        const { done, of, rows, words, note } = await (await ask(`/api/maps/${id}/predicted`)).json();
        if (!box.isConnected) return; // another folder is shown
        if (rows) {
          map.addMeasures(rows, { predicted_phase: words });
          const there = "The predicted map is shown beside the measured one (phase and separation).";
          said.textContent = `${there} ${note}`;
          whenThere();
          return;
        }
        said.textContent = `Predicting: ${done} of ${of} points …`;
        await new Promise((next) => { setTimeout(next, PACE); });
      }
    } catch (error) {
      said.textContent = `No prediction: ${error.message}`;
      button.hidden = false; // it can be tried again
    }
  };
  button.addEventListener("click", predict);
  box.append(button, said);
  if (points <= AT_ONCE) setTimeout(predict, 0);
  return box;
};

let shownFolder = null;
openRoom(["sweep"], async (view, { id }, fetchView) => {
  if (shownFolder && shownFolder !== id) addressWith({ points: null });
  view.innerHTML = await (await fetchView(`/api/maps/${id}${location.search}`)).text(); // templates escape all text
  const tools = document.getElementById("tools");
  let chosen = [], isPredicted = false, selects = [];
  const keep = () => {
    const query = new URLSearchParams([["id", id], ...selects.map((select) => [select.id, select.value])]);
    if (isPredicted) query.set("predicted", "yes");
    if (chosen.length) query.set("points", chosen.join(","));
    const source = { kind: "maps", query };
    view.querySelector("#map figure").dataset.name = "map";
    for (const old of view.querySelectorAll("#map .keep")) old.remove();
    offerFiles(view, source);
    tools.querySelector(".save")?.replaceWith(saveButton(source));
  };
  const fetchCurves = async (rows) => (await ask(`/api/maps/${id}/curves?rows=${rows.join(",")}`)).json();
  const map = drawSweep(view, fetchCurves, (group) => {
    chosen = group.slice(0, MOST_CHOSEN);
    addressWith({ points: chosen.join(",") });
    keep();
  });
  if (map.ignored.length) {
    if (!shownFolder) sayIgnored(view, `This sweep has no such ${map.ignored.join(", ")} as the link says; ignored.`);
    addressWith({ ...Object.fromEntries(map.ignored.map((name) => [name, null])), points: chosen.join(",") });
  }
  shownFolder = id;
  selects = CHOICES.map((name) => view.querySelector(`#${name}`));
  for (const select of selects) {
    select.addEventListener("change", () => { addressWith({ [select.id]: select.value }); keep(); });
  }
  const points = view.querySelector("#point").options.length - 1;
  tools.replaceChildren(make("button", "", { class: "save" }),
    offerPrediction(id, view, map, points, () => { isPredicted = true; keep(); }));
  keep();
});
