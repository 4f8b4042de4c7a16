// Settings under sliders and boxes; at every move the parts that change are drawn anew. Explorer and notebooks use it.
import { newest } from "./newest.js";
import { replaceSections } from "./sections.js";

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

// `given` has settings that differ from `defaults`. `ask` brings the HTML of a part, by its name and the settings that
// were chosen, until its signal ends it. `drawing` is told what is drawn, `partDrawn` and `drawn` what is there.
// Returns the settings that were chosen, as a function.
export const openBench = (root, { defaults, given, ask, drawing, partDrawn, drawn }) => {
  const form = root.getElementById("controls"), wrong = root.getElementById("wrong");
  const boxes = [...form.querySelectorAll("[name]")];
  const chosenNow = () => {
    const chosen = new URLSearchParams();
    for (const { name, value } of boxes) {
      if (value.trim() !== "" && value.trim() !== String(defaults[name] ?? "")) chosen.set(name, value.trim());
    }
    return chosen;
  };
  const showControls = () => {
    for (const control of form.querySelectorAll("[data-only]")) {
      const [name, values] = control.dataset.only.split("=");
      const held = form.elements[name].value;
      control.hidden = values === undefined ? !Number(held) : !values.split("|").includes(held);
    }
  };

  const parts = [...root.querySelectorAll("[data-part]")].map((view) => {
    const part = { html: "", rest: null };
    part.draw = newest(async (chosen, signal) => {
      const html = await ask(view.dataset.part, chosen, signal);
      if (html === part.html) return;
      part.html = html;
      part.rest = replaceSections(view, html); // what is in view is drawn now
      partDrawn?.(view, chosen);
    });
    return part;
  });
  const draw = async () => {
    const chosen = chosenNow(), began = performance.now();
    showControls();
    drawing?.(chosen);
    try {
      const done = await Promise.all(parts.map((part) => part.draw(chosen)));
      if (done.includes(false)) return;
      wrong.hidden = true;
      await Promise.all(parts.map((part) => part.rest));
      drawn(chosen, performance.now() - began);
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
    }
  };

  for (const box of boxes) {
    box.value = given[box.name] ?? defaults[box.name] ?? "";
    const slider = sliderOf(box);
    if (slider) {
      Object.assign(slider, { min: 0, max: places, step: 1 });
      slider.addEventListener("input", () => {
        box.value = toNumber(slider, Number(slider.value));
        slider.setAttribute("aria-valuetext", box.value);
        draw();
      });
    }
    box.addEventListener("input", () => { showSlider(box); draw(); });
    showSlider(box);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  draw();
  return chosenNow;
};
