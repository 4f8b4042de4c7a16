// A slider over steps, with a button that plays them.
import { make } from "/explorer/shell.js";

const PACE = 350; // milliseconds from step to step

// `show` gets the place of a step among `steps`; playing waits until it has shown one.
export const makeScrub = (steps, name, show) => {
  const root = make("div", "", { class: "scrub" }), at = make("output"), play = make("button", "Play", { type: "button" });
  const last = steps.length - 1;
  const slider = make("input", "", { type: "range", min: 0, max: last, step: 1, value: last, "aria-label": `Step shown, ${name}` });
  let playing = false;
  const go = (place) => {
    slider.value = place;
    at.textContent = `step ${steps[place].toLocaleString("en")}`;
    slider.setAttribute("aria-valuetext", at.textContent);
    return show(place);
  };
  const stop = () => { playing = false; play.textContent = "Play"; };
  play.addEventListener("click", async () => {
    if (playing) { stop(); return; }
    playing = true;
    play.textContent = "Stop";
    let place = Number(slider.value) >= last ? 0 : Number(slider.value);
    while (playing && root.isConnected && place <= last) {
      const rest = new Promise((done) => { setTimeout(done, PACE); });
      await go(place);
      await rest;
      place += 1;
    }
    stop();
  });
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  root.append(play, slider, at);
  return { root, go, stop };
};
