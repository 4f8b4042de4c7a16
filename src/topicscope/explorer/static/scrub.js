// A slider over steps, with a button that plays them. More steps may come while it is there.
import { make, newest } from "/explorer/shell.js";

const PACE = 350; // milliseconds from step to step

// `show` gets the place of a step and a signal that ends it; of many moves only the newest is shown, and playing waits
// until a step is there. `atEnd`: what the last step is called while more are to come.
export const makeScrub = (name, show, atEnd = "") => {
  const root = make("div", "", { class: "scrub" }), at = make("output");
  const play = make("button", "Play", { type: "button" });
  const label = `Step shown, ${name}`;
  const slider = make("input", "", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": label });
  let steps = [], playing = false, following = true;
  const showNewest = newest(show), last = () => steps.length - 1;
  const mark = (place) => {
    slider.value = place;
    at.textContent = following && atEnd ? atEnd : `step ${steps[place].toLocaleString("en")}`;
    slider.setAttribute("aria-valuetext", at.textContent);
  };
  const go = (place) => {
    following = place >= last() && !playing;
    mark(place);
    return showNewest(place);
  };
  const setSteps = (all) => {
    steps = all;
    slider.max = Math.max(0, last());
    root.hidden = steps.length < 2;
    if (following && steps.length) mark(last());
  };
  const stop = () => { playing = false; play.textContent = "Play"; };
  play.addEventListener("click", async () => {
    if (playing) { stop(); return; }
    playing = true;
    play.textContent = "Stop";
    let place = Number(slider.value) >= last() ? 0 : Number(slider.value);
    while (playing && root.isConnected && place <= last()) {
      const rest = new Promise((done) => { setTimeout(done, PACE); });
      await go(place);
      await rest;
      place += 1;
    }
    stop();
    following = Number(slider.value) >= last();
  });
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  root.append(play, slider, at);
  root.hidden = true;
  return { root, go, stop, setSteps, isFollowing: () => following };
};
