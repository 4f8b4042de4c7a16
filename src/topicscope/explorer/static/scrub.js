// A slider over steps, with a button that plays them. There may come more steps while it is used.
import { make } from "/explorer/shell.js";

const PACE = 350; // milliseconds from step to step

// `show` gets a step, and whether it is the last one; playing waits until it has shown one.
export const makeScrub = (name, show) => {
  const root = make("div", "", { class: "scrub" }), at = make("output", "", { "aria-live": "off" });
  const play = make("button", "Play", { type: "button", "aria-label": `Play the steps, ${name}` });
  const slider = make("input", "", { type: "range", min: 0, max: 0, step: 1, "aria-label": `Step shown, ${name}` });
  let steps = [], playing = false;
  const last = () => steps.length - 1;
  const mark = (place) => {
    slider.value = place;
    at.textContent = `step ${steps[place]?.toLocaleString("en") ?? "-"}`;
    slider.setAttribute("aria-valuetext", at.textContent);
  };
  const go = (place) => { mark(place); return show(steps[place], place === last() && !playing); };
  const set = (isPlaying) => {
    playing = isPlaying;
    play.textContent = playing ? "Pause" : "Play";
    play.setAttribute("aria-label", `${playing ? "Pause" : "Play the steps"}, ${name}`);
  };
  play.addEventListener("click", async () => {
    if (playing) { set(false); return; }
    set(true);
    let place = Number(slider.value) >= last() ? 0 : Number(slider.value);
    while (playing && root.isConnected && place <= last()) {
      const rest = new Promise((done) => { setTimeout(done, PACE); });
      await go(place);
      await rest;
      place += 1;
    }
    set(false);
  });
  slider.addEventListener("input", () => { set(false); go(Number(slider.value)); });
  root.append(play, slider, at);
  return {
    root,
    go,
    stop: () => set(false),
    // All steps that there are by now; with `follow` the last one is marked.
    setSteps: (known, follow = false) => {
      steps = known;
      slider.max = Math.max(0, last());
      root.hidden = steps.length < 2;
      if (follow && steps.length) mark(last());
    },
  };
};
