// What all rooms share: the theme, messages, requests, and the list of folders.
import { make } from "/static/making.js";
import { newest } from "/static/newest.js";
import { offerTheme } from "/static/theme.js";

export { make, newest };

offerTheme(document.getElementById("theme"));

// The token came with the address and is a cookie now; it need not stay in the history.
const address = new URL(location.href);
if (address.searchParams.has("token")) {
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

const NO_ANSWER = "The server does not answer. Runs continue without it. If it has ended, start 'topicscope explore' "
  + "again and open the address that it prints.";
const ASKER = "x-topicscope"; // as in app.py
const GONE = "there is no such folder any more"; // what workspace.py says
const message = document.getElementById("message");
export const say = (text) => { message.textContent = text; message.hidden = !text; };

// An answer of the server. What it refuses is an Error that says why; a server that is gone is waited for. A page asks
// for refusals with status 200, marked by a header: browsers write every other status to the console.
export const ask = async (path, options = {}) => {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options.headers, [ASKER]: "page" } });
  } catch (error) {
    if (error.name !== "AbortError") say(NO_ANSWER);
    throw error;
  }
  say("");
  const isRefused = response.headers.get(ASKER) === "refused";
  if (response.ok && !isRefused) return response;
  const text = await response.text();
  let why = text;
  try { why = JSON.parse(text).error ?? text; } catch { /* plain text */ }
  if (why.startsWith(GONE)) document.dispatchEvent(new Event("gone"));
  throw Object.assign(new Error(why), { status: isRefused ? 400 : response.status });
};

export const post = async (path, body = {}) => (await ask(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
})).json();

// Requests of which only the latest counts: a new one ends the one before.
export const latest = () => {
  let running = null;
  return async (path) => {
    running?.abort();
    running = new AbortController();
    return ask(path, { signal: running.signal });
  };
};

export const isAbort = (error) => error.name === "AbortError";

// The folders of some kinds as a list of buttons. A list that has not changed stays as it is, and so does the focus.
const listed = new WeakMap();
export const listFolders = async (parent, kinds, choose) => {
  const places = await (await ask("/api/folders")).json();
  const shown = places.filter(({ kind, several }) => (!kinds || kinds.includes(kind)) && !several);
  const said = JSON.stringify(shown);
  if (listed.get(parent) === said) return shown;
  listed.set(parent, said);
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  const list = make("ul", "", { class: "folders" });
  for (const place of shown) {
    const item = make("li"), button = make("button", "", { type: "button", "data-id": place.id });
    button.append(make("strong", place.name), make("span", `${place.kind}, ${place.state}`, { class: "soft" }));
    button.addEventListener("click", () => choose(place, button));
    item.append(button);
    list.append(item);
  }
  const none = make("p", "Nothing yet. Folders that topicscope writes to the workspace appear here.");
  if (parent.dataset.command) none.append(" This command writes one: ", make("code", parent.dataset.command));
  parent.replaceChildren(shown.length ? list : none);
  if (focused) parent.querySelector(`[data-id="${focused}"]`)?.focus();
  return shown;
};
