// A room that shows folders of some kinds: choose one, see it.
import { offerClicks } from "/static/clicks.js";
import { replaceSections } from "/static/sections.js";
import { offerFiles } from "/explorer/keeping.js";
import { isAbort, latest, listFolders, make } from "/explorer/shell.js";

// Sections with all that can be clicked in them, and links to save their figures; `source` is their kind and query.
export const showSections = async (view, html, source) => {
  await replaceSections(view, html);
  offerClicks(view);
  offerFiles(view, source);
};

export const addressWith = (changes) => {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
  history.replaceState(null, "", address);
};

export const askedFor = (name) => new URL(location.href).searchParams.get(name);

// `open` shows a folder in `view`; it gets a request of which only the latest counts. `none` is shown without folders.
export const openRoom = async (kinds, open, none = () => {}) => {
  const list = document.getElementById("folders"), view = document.getElementById("view"), fetchView = latest();
  const choose = async (place) => {
    for (const button of list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", button.dataset.id === place.id);
    }
    addressWith({ id: place.id });
    view.replaceChildren(make("p", `Reading ${place.name} …`));
    delete document.body.dataset.drawn;
    const began = performance.now();
    try {
      await open(view, place, fetchView);
      document.body.dataset.milliseconds = (performance.now() - began).toFixed(0);
      document.body.dataset.drawn = place.id;
    } catch (error) {
      if (!isAbort(error)) view.replaceChildren(make("p", error.message, { class: "wrong", role: "alert" }));
    }
  };
  // What the server does not have any more is not offered any longer.
  document.addEventListener("gone", async () => {
    try { await listFolders(list, kinds, choose); } catch { /* said already */ }
  });
  const refresh = async () => {
    const shown = await listFolders(list, kinds, choose), asked = askedFor("id");
    const first = shown.find(({ id }) => id === asked) ?? shown[0];
    if (first) await choose(first);
    else none(view);
    return shown;
  };
  return { refresh, choose, folders: await refresh() };
};
