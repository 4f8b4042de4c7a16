// Settings under sliders and boxes; at every move the parts that change are drawn anew. Explorer and notebooks use it.
import { followSlider, problemOf, showSlider, sliderOf } from "./controls.js";
import { newest } from "./newest.js";
import { replaceSections } from "./sections.js";

const MOST_SHOWN = 300; // signs of what a link has

// `given` has settings that differ from `defaults`. `ask` brings the HTML of a part, by its name and the settings that
// were chosen, until its signal ends it. `drawing` is told what is drawn, `partDrawn` and `drawn` what is there,
// `refused` that a box holds no setting: what is drawn stays then. Returns the chosen settings, as a function.
export const openBench = (root, { defaults, given, ask, drawing, partDrawn, drawn, refused }) => {
  const form = root.getElementById("controls"), wrong = root.getElementById("wrong");
  const views = root.getElementById("parts");
  const boxes = [...form.querySelectorAll("[name]")];
  const chosenNow = () => {
    const chosen = new URLSearchParams();
    for (const box of boxes) {
      const text = box.value.trim();
      if (text !== "" && text !== String(defaults[box.name] ?? "") && !problemOf(box)) chosen.set(box.name, text);
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
  const complain = (text) => {
    wrong.textContent = `${text}.${views.querySelector("section") ? " Below is the last valid setting." : ""}`;
    wrong.hidden = false;
    views.dataset.stale = "";
  };
  const problemsNow = () => boxes.map((box) => {
    const problem = box.parentElement.hidden ? "" : problemOf(box); // one that is hidden is not asked for
    for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", wrong.id]]) {
      if (problem) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
    return problem;
  }).filter(Boolean);

  let moves = 0;
  const draw = async () => {
    const move = moves += 1, began = performance.now();
    showControls();
    const problems = problemsNow();
    if (problems.length) {
      complain(problems.join("; "));
      refused?.();
      return;
    }
    const chosen = chosenNow();
    drawing?.(chosen);
    try {
      const done = await Promise.all(parts.map((part) => part.draw(chosen)));
      if (done.includes(false)) return;
      if (move === moves) { // a later move may have gone wrong
        wrong.hidden = true;
        delete views.dataset.stale;
      }
      await Promise.all(parts.map((part) => part.rest));
      drawn(chosen, performance.now() - began);
    } catch (error) {
      if (move === moves) complain(error.message);
    }
  };

  const names = boxes.map(({ name }) => name);
  const ignored = Object.keys(given).filter((name) => !names.includes(name)).map((name) => `${name} (no such setting)`);
  for (const box of boxes) {
    box.value = given[box.name] ?? defaults[box.name] ?? "";
    if (box.options && box.selectedIndex < 0) {
      const choices = [...box.options].map(({ value }) => value).join(", ");
      ignored.push(`${box.name} = ${given[box.name].slice(0, MOST_SHOWN)} (expected one of: ${choices})`);
      box.value = defaults[box.name];
    }
    box.placeholder = defaults[box.name] ?? ""; // what an empty box means
    const slider = sliderOf(box);
    if (slider) followSlider(box, slider, draw);
    box.addEventListener("input", () => { showSlider(box); draw(); });
    showSlider(box);
  }
  const told = root.getElementById("ignored");
  told.textContent = `Ignored from the link: ${ignored.join("; ").slice(0, MOST_SHOWN)}.`;
  told.hidden = !ignored.length;
  form.addEventListener("submit", (event) => event.preventDefault());
  draw();
  return chosenNow;
};
