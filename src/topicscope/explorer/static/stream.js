// What the server says of runs as they go on: one stream for all runs of a page. A browser opens six connections to a
// server at most, over all its windows, and a stream holds one; a page that nobody looks at gives its own back.
const ENDED = ["done", "stopped", "diverged", "damaged", "gone"];
const AGAIN = 3000; // milliseconds until the next try

// `show` of a run gets its news, `lost` is called where the server does not answer.
const shows = new Map();
let source = null, waiting = null;
const close = () => {
  source?.close();
  source = null;
  clearTimeout(waiting);
};
const openSoon = (milliseconds = 0) => {
  close();
  if (shows.size) waiting = setTimeout(open, milliseconds);
};
const open = () => {
  const opened = source = new EventSource(`/api/live/events?${[...shows.keys()].map((id) => `id=${id}`).join("&")}`);
  opened.addEventListener("message", ({ data }) => {
    const { id, ...news } = JSON.parse(data), { show } = shows.get(id) ?? {};
    if (ENDED.includes(news.state)) shows.delete(id);
    if (news.state === "refused") openSoon(AGAIN);
    else if (!shows.size) close();
    show?.(news);
  });
  opened.addEventListener("error", () => {
    for (const { lost } of shows.values()) lost();
    if (opened.readyState === EventSource.CLOSED) openSoon(AGAIN);
  });
};
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else openSoon(); });
document.addEventListener("resume", () => openSoon()); // of a page that was frozen

// Listens to a run; what is returned ends it.
export const listen = (id, show, lost) => {
  shows.set(id, { show, lost });
  if (!document.hidden) openSoon();
  return () => { if (shows.delete(id)) openSoon(); };
};
