// What all rooms share: the theme, messages, requests, and the list of folders.
import { make } from "/static/making.js";
import { offerTheme } from "/static/theme.js";

export { make };

offerTheme(document.getElementById("theme"));

// The token came with the address and is a cookie now; it need not stay in the history.
const address = new URL(location.href);
if (address.searchParams.has("token")) {
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

const message = document.getElementById("message");
export const say = (text) => { message.textContent = text; message.hidden = !text; };

// An answer of the server. What it refuses is an Error that says why; a server that is gone is waited for.
export const ask = async (path, options = {}) => {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer. Start 'topicscope explore' again.");
    throw error;
  }
  say("");
  if (response.ok) return response;
  const text = await response.text();
  let why = text;
  try { why = JSON.parse(text).error ?? text; } catch { /* plain text */ }
  throw Object.assign(new Error(why), { status: response.status });
};

// Requests of which only the latest counts: a new one ends the one before.
export const latest = () => {
  let running = null;
  return async (path) => {
    running?.abort();
    running = new AbortController();
    return ask(path, { signal: running.signal });
  };
};

// Work of which only the newest matters, one at a time: of what is asked for meanwhile, only the last comes next, and
// what takes longer than that can wait is ended. True: it was done; false: something newer took its place.
const PATIENCE = 400; // milliseconds
export const newest = (work) => {
  let running = null, next = null;
  const go = async () => {
    while (next) {
      const { what, done, fail } = next;
      [running, next] = [new AbortController(), null];
      try {
        await work(what, running.signal);
        done(true);
      } catch (error) {
        if (isAbort(error)) done(false);
        else fail(error);
      }
    }
    running = null;
  };
  return (what) => new Promise((done, fail) => {
    next?.done(false);
    next = { what, done, fail };
    const late = running;
    if (late) setTimeout(() => late.abort(), PATIENCE);
    else go();
  });
};

export const isAbort = (error) => error.name === "AbortError";

// The folders of some kinds as a list of buttons.
export const listFolders = async (parent, kinds, choose) => {
  const places = await (await ask("/api/folders")).json();
  const shown = places.filter(({ kind }) => !kinds || kinds.includes(kind));
  const list = make("ul", "", { class: "folders" });
  for (const place of shown) {
    const item = make("li"), button = make("button", "", { type: "button", "data-id": place.id });
    button.append(make("strong", place.name), make("span", `${place.kind}, ${place.state}`, { class: "soft" }));
    button.addEventListener("click", () => choose(place, button));
    item.append(button);
    list.append(item);
  }
  const none = make("p", "Nothing yet. Folders that topicscope writes into the workspace turn up here.");
  parent.replaceChildren(shown.length ? list : none);
  return shown;
};
