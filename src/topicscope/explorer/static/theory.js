// The room of theory: controls on the left; at every move the parts that change are drawn anew.
import { replaceSections } from "/static/plots.js";
import { download, offerFiles } from "/explorer/keeping.js";
import { ask, isAbort, latest, say } from "/explorer/shell.js";

const form = document.getElementById("controls"), wrong = document.getElementById("wrong");
const boxes = [...form.querySelectorAll("[name]")];
const defaults = await (await ask("/api/question")).json();

// A slider runs from 0 to 1000 in place, by steps or by factors; its box has the number.
const places = 1000;
const sliderOf = (box) => box.parentElement.querySelector("[type=range]");
const toNumber = ({ dataset }, place) => {
  if (place === places && dataset.top) return dataset.top;
  const low = Number(dataset.low), high = Number(dataset.high), share = place / places;
  const value = "log" in dataset ? low * (high / low) ** share : low + (high - low) * share;
  return "whole" in dataset ? Math.round(value) : Number(value.toPrecision(3));
};
const toPlace = ({ dataset }, value) => {
  const low = Number(dataset.low), high = Number(dataset.high);
  const share = "log" in dataset ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.round(places * Math.min(1, Math.max(0, share)));
};
const showSlider = (box) => {
  const slider = sliderOf(box);
  if (!slider) return;
  const text = box.value.trim(), value = text && text === slider.dataset.top ? Infinity : Number(text);
  if (!Number.isNaN(value)) slider.value = toPlace(slider, value);
  slider.setAttribute("aria-valuetext", text || "empty");
};

const query = () => {
  const chosen = new URLSearchParams();
  for (const { name, value } of boxes) {
    if (value.trim() !== "" && value.trim() !== String(defaults[name] ?? "")) chosen.set(name, value.trim());
  }
  return chosen;
};
const showControls = () => {
  for (const control of form.querySelectorAll("[data-only]")) {
    const [name, value] = control.dataset.only.split("=");
    const given = form.elements[name].value;
    control.hidden = value === undefined ? !Number(given) : given !== value;
  }
};

const parts = [...document.querySelectorAll("[data-part]")].map((root) => ({ root, fetch: latest(), html: "" }));
const drawPart = async (part, chosen) => {
  const response = await part.fetch(`/api/view/theory/${part.root.dataset.part}?${chosen}`);
  const html = await response.text();
  if (html === part.html) return;
  part.html = html;
  await replaceSections(part.root, html);
  offerFiles(part.root, { kind: "theory", query: chosen });
};
const draw = async () => {
  const chosen = query(), began = performance.now();
  showControls();
  history.replaceState(null, "", chosen.size ? `?${chosen}` : location.pathname);
  document.getElementById("train").href = `/live?${chosen}`;
  try {
    await Promise.all(parts.map((part) => drawPart(part, chosen)));
    wrong.hidden = true;
    document.body.dataset.milliseconds = (performance.now() - began).toFixed(0);
    document.body.dataset.drawn = `${chosen}`;
  } catch (error) {
    if (isAbort(error)) return;
    wrong.textContent = error.message;
    wrong.hidden = false;
  }
};

// At most one drawing per frame, however fast a slider moves.
let asked = false;
const drawSoon = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
};

const given = new URL(location.href).searchParams;
for (const box of boxes) {
  box.value = given.get(box.name) ?? defaults[box.name] ?? "";
  const slider = sliderOf(box);
  if (slider) {
    Object.assign(slider, { min: 0, max: places, step: 1 });
    slider.addEventListener("input", () => {
      box.value = toNumber(slider, Number(slider.value));
      slider.setAttribute("aria-valuetext", box.value);
      drawSoon();
    });
  }
  box.addEventListener("input", () => { showSlider(box); drawSoon(); });
  showSlider(box);
}
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("share").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied. It has the setting, not the token.");
  } catch {
    say(`Copy this: ${location.href}`);
  }
});
document.getElementById("keep").addEventListener("click", () => download(`/api/keep/theory?${query()}`));
draw();
