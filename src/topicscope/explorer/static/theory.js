// The room of theory: controls on the left, and what theory says of them.
import { openBench } from "/static/bench.js";
import { download, offerFiles } from "/explorer/keeping.js";
import { ask, say } from "/explorer/shell.js";

// A browser refuses addresses that change too often: the last one of a movement is enough.
let addressSoon = null;
const keepAddress = (chosen) => {
  clearTimeout(addressSoon);
  addressSoon = setTimeout(() => history.replaceState(null, "", chosen.size ? `?${chosen}` : location.pathname), 250);
};
const train = document.getElementById("train"), actions = [...document.querySelectorAll("#controls .actions > *")];
const allow = (isAllowed) => {
  for (const action of actions) action[action === train ? "ariaDisabled" : "disabled"] = isAllowed ? null : "true";
};
// What 'Train this' starts: theory_room.py says the same.
const OPTIMIZERS = { sgd: "SGD", adam: "Adam" };
const training = (optimizer, rate) => `Train this uses ${
  optimizer === "flow" ? "SGD with learning rate 1, which approximates gradient flow (infinitely small steps)"
    : `${OPTIMIZERS[optimizer]} with learning rate ${rate}`
}, for ten half-times of W_V where theory knows them (200 to 20,000 steps).`;
const defaults = await (await ask("/api/question")).json();
const chosenNow = openBench(document, {
  defaults,
  given: Object.fromEntries(new URL(location.href).searchParams),
  ask: async (part, chosen, signal) => (await ask(`/api/view/theory/${part}?${chosen}`, { signal })).text(),
  drawing: (chosen) => {
    keepAddress(chosen);
    allow(true);
    train.href = `/live?${chosen}`;
    const [optimizer, rate] = ["optimizer", "lr"].map((name) => chosen.get(name) ?? defaults[name]);
    document.getElementById("training").textContent = training(optimizer, rate);
  },
  refused: () => {
    allow(false);
    train.removeAttribute("href");
  },
  partDrawn: (part, chosen) => offerFiles(part, { kind: "theory", query: chosen }),
  drawn: (chosen, milliseconds) => {
    document.body.dataset.milliseconds = milliseconds.toFixed(0);
    document.body.dataset.drawn = `${chosen}`;
  },
});
document.getElementById("share").addEventListener("click", async () => {
  const link = new URL(`?${chosenNow()}`, location);
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied. It contains the setting, but not the token.");
  } catch {
    say(`Copy this: ${link}`);
  }
});
document.getElementById("keep").addEventListener("click", () => download(`/api/keep/theory?${chosenNow()}`));
