// The room of theory: controls on the left; at every move the parts that change are drawn anew.
import { replaceSections } from "/static/sections.js";
import { download, offerFiles } from "/explorer/keeping.js";
import { ask, newest, say } from "/explorer/shell.js";

const form = document.getElementById("controls"), wrong = document.getElementById("wrong");
const boxes = [...form.querySelectorAll("[name]")];
const defaults = await (await ask("/api/question")).json();

// A slider runs from 0 to 1000 in place, by steps or by factors; its box has the number.
const places = 1000;
const sliderOf = (box) => box.parentElement.querySelector("[type=range]");
const toNumber = ({ dataset }, place) => {
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
  const slider = sliderOf(box), value = Number(box.value);
  if (!slider || !Number.isFinite(value)) return;
  slider.value = toPlace(slider, value);
  slider.setAttribute("aria-valuetext", box.value);
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
    control.hidden = form.elements[name].value !== value;
  }
};

const parts = [...document.querySelectorAll("[data-part]")].map((root) => {
  const part = { html: "", rest: null };
  part.draw = newest(async (chosen, signal) => {
    const html = await (await ask(`/api/view/theory/${root.dataset.part}?${chosen}`, { signal })).text();
    if (html === part.html) return;
    part.html = html;
    part.rest = replaceSections(root, html); // what is in view is drawn now
    offerFiles(root, { kind: "theory", query: chosen });
  });
  return part;
});

// A browser refuses addresses that change too often: the last one of a movement is enough.
let addressSoon = null;
const keepAddress = (chosen) => {
  clearTimeout(addressSoon);
  addressSoon = setTimeout(() => history.replaceState(null, "", chosen ? `?${chosen}` : location.pathname), 250);
};
const draw = async () => {
  const chosen = `${query()}`, began = performance.now();
  showControls();
  keepAddress(chosen);
  document.getElementById("train").href = `/live?${chosen}`;
  try {
    const done = await Promise.all(parts.map((part) => part.draw(chosen)));
    if (done.includes(false)) return;
    wrong.hidden = true;
    await Promise.all(parts.map((part) => part.rest));
    document.body.dataset.milliseconds = (performance.now() - began).toFixed(0);
    document.body.dataset.drawn = chosen;
  } catch (error) {
    wrong.textContent = error.message;
    wrong.hidden = false;
  }
};

const given = new URL(location.href).searchParams;
for (const box of boxes) {
  box.value = given.get(box.name) ?? defaults[box.name] ?? "";
  const slider = sliderOf(box);
  if (slider) {
    Object.assign(slider, { min: 0, max: places, step: 1 });
    slider.addEventListener("input", () => { box.value = toNumber(slider, Number(slider.value)); draw(); });
  }
  box.addEventListener("input", () => { showSlider(box); draw(); });
  showSlider(box);
}
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("share").addEventListener("click", async () => {
  const link = new URL(`?${query()}`, location);
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied. It has the setting, not the token.");
  } catch {
    say(`Copy this: ${link}`);
  }
});
document.getElementById("keep").addEventListener("click", () => download(`/api/keep/theory?${query()}`));
draw();
