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

// What of the address could not be followed: one line before all else, until another folder is shown.
export const sayIgnored = (view, text) => view.prepend(make("p", text, { class: "wrong ignored", role: "alert" }));

export const askedFor = (name) => new URL(location.href).searchParams.get(name);

const missing = (id, others) => `The folder of this link (${id.slice(0, 40)}) is not here: it was removed, or this is `
  + `another workspace or another room.${others ? " Choose one of the list above." : ""}`;

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
    const first = asked ? shown.find(({ id }) => id === asked) : shown[0];
    if (first) await choose(first);
    else if (!shown.length) await none(view);
    if (asked && !first) sayIgnored(view, missing(asked, shown.length));
    return shown;
  };
  return { refresh, choose, folders: await refresh() };
};
