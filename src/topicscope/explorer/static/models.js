// The room of models: a probe, topics or words; one of a probe's models alone; a second folder or model beside it.
import { makeChoice } from "/static/making.js";
import { addressWith, askedFor, openRoom, sayIgnored, showSections } from "/explorer/folders.js";
import { saveButton } from "/explorer/keeping.js";
import { offerSearch } from "/explorer/search.js";
import { ask, isAbort, latest, make } from "/explorer/shell.js";

const KINDS = ["probe", "topics", "words"];
const fetchBeside = latest(), fetchMain = latest();

// The head that is chosen in a map is kept in the address, as MAP:LAYER.HEAD.
const keepHead = (sections) => {
  const [, map, layer, head] = /^(.*):(\d+)\.(\d+)$/.exec(askedFor("head") ?? "") ?? [];
  const plot = [...sections.querySelectorAll(".plot[data-shown-in]")].find((one) => one.dataset.shownIn === map);
  plot?.dispatchEvent(new CustomEvent("pick", { detail: { x: Number(head), y: Number(layer) } }));
  sections.addEventListener("head", ({ detail }) => {
    addressWith({ head: `${detail.map}:${detail.layer}.${detail.head}` });
  });
};

// One folder, or one model of it, as a column of the page. `side`: '' or 'beside'.
const showPane = async (pane, place, model, side, fetchView) => {
  const query = [`model=${model}`, ...(side ? [side] : [])].join("&");
  const { html, intro, models } = await (await fetchView(`/api/models/${place.id}?${query}`)).json();
  const source = { kind: "models", query: `id=${place.id}&model=${model}` };
  const sections = make("div"), tools = make("div", "", { class: "actions" });
  const paragraphs = intro.map((text) => make("p", text, { class: "prose" }));
  pane.replaceChildren(make("h2", place.name), tools, ...paragraphs, sections);
  if (models.length > 1) {
    const options = [["", "all"], ...models.map((name, number) => [number, name])];
    const choice = makeChoice("model", options, async (number) => {
      addressWith({ [side ? "besideModel" : "model"]: number });
      try {
        await showPane(pane, place, number, side, side ? fetchBeside : fetchMain);
      } catch (error) {
        if (!isAbort(error)) sections.replaceChildren(make("p", error.message, { class: "wrong", role: "alert" }));
      }
    });
    choice.select.value = model;
    tools.append(choice.label);
  }
  tools.append(saveButton(source));
  await showSections(sections, html, source);
  if (!side) keepHead(sections);
  offerSearch(tools, sections, place, model);
};

const panes = (view) => {
  const main = make("div", "", { class: "pane" }), beside = make("div", "", { class: "pane", hidden: "" });
  const both = make("div", "", { class: "panes" });
  both.append(main, beside);
  view.replaceChildren(both);
  return { main, beside };
};

const showBeside = async (pane, place) => {
  addressWith({ beside: place?.id ?? null });
  pane.hidden = !place;
  delete document.body.dataset.beside;
  if (!place) { pane.replaceChildren(); addressWith({ besideModel: null }); return; }
  pane.replaceChildren(make("p", `Reading ${place.name} …`));
  try {
    await showPane(pane, place, askedFor("besideModel") ?? "", "beside", fetchBeside);
    document.body.dataset.beside = place.id;
  } catch (error) {
    if (!isAbort(error)) pane.replaceChildren(make("p", error.message, { class: "wrong", role: "alert" }));
  }
};

let chosen = null;
openRoom(KINDS, async (view, place, fetchView) => {
  if (chosen && chosen !== place.id) addressWith({ model: null, head: null });
  chosen = place.id;
  const { main, beside } = panes(view);
  main.append(make("p", `Reading ${place.name} …`));
  const others = (await (await ask("/api/folders")).json()).filter(({ kind }) => KINDS.includes(kind));
  const compare = makeChoice("Compare with", [["", "nothing"], ...others.map(({ id, name }) => [id, name])], (id) =>
    showBeside(beside, others.find((other) => other.id === id)));
  const asked = others.find(({ id }) => id === askedFor("beside"));
  compare.select.value = asked?.id ?? "";
  document.getElementById("tools").replaceChildren(compare.label);
  try {
    await showPane(main, place, askedFor("model") ?? "", "", fetchView);
  } catch (error) {
    if (isAbort(error) || !askedFor("model")) throw error;
    await showPane(main, place, "", "", fetchView);
    sayIgnored(view, "The model of this link is not in this folder; all models are shown.");
    addressWith({ model: null });
  }
  if (asked) await showBeside(beside, asked);
  else if (askedFor("beside")) {
    addressWith({ beside: null, besideModel: null });
    sayIgnored(view, "The folder to compare with is not here; choose another one.");
  }
});
