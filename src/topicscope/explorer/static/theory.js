// The room of theory: controls on the left, and what theory says of them.
import { openBench } from "/static/bench.js";
import { download, offerFiles } from "/explorer/keeping.js";
import { ask, latest, say } from "/explorer/shell.js";

const chosenNow = openBench(document, {
  defaults: await (await ask("/api/question")).json(),
  given: Object.fromEntries(new URL(location.href).searchParams),
  asker: () => {
    const fetchPart = latest();
    return async (part, chosen) => (await fetchPart(`/api/view/theory/${part}?${chosen}`)).text();
  },
  drawing: (chosen) => {
    history.replaceState(null, "", chosen.size ? `?${chosen}` : location.pathname);
    document.getElementById("train").href = `/live?${chosen}`;
  },
  partDrawn: (part, chosen) => offerFiles(part, { kind: "theory", query: chosen }),
  drawn: (chosen, milliseconds) => {
    document.body.dataset.milliseconds = milliseconds.toFixed(0);
    document.body.dataset.drawn = `${chosen}`;
  },
});
document.getElementById("share").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied. It has the setting, not the token.");
  } catch {
    say(`Copy this: ${location.href}`);
  }
});
document.getElementById("keep").addEventListener("click", () => download(`/api/keep/theory?${chosenNow()}`));
