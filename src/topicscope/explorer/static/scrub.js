// A slider over steps, with a button that plays them. More steps may come while it is there.
import { make, newest } from "/explorer/shell.js";

const PACE = 350; // milliseconds from step to step

// `show` gets a step and a signal that ends it; of many moves only the newest is shown, and playing waits until a step
// is there. It follows the last step until another one is chosen.
export const makeScrub = (name, show) => {
  const root = make("div", "", { class: "scrub", hidden: "" }), at = make("output", "", { "aria-live": "off" });
  const play = make("button", "Play", { type: "button", "aria-label": `Play the steps, ${name}` });
  const label = `Step shown, ${name}`;
  const slider = make("input", "", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": label });
  let steps = [], playing = false, following = true;
  const showNewest = newest(show), last = () => steps.length - 1;
  const mark = (place) => {
    slider.value = place;
    at.textContent = `step ${steps[place]?.toLocaleString("en") ?? "-"}`;
    slider.setAttribute("aria-valuetext", at.textContent);
  };
  const go = (place) => {
    following = place >= last() && !playing;
    mark(place);
    return showNewest(steps[place]);
  };
  const setSteps = (known) => { // all that there are by now
    steps = known;
    slider.max = Math.max(0, last());
    root.hidden = steps.length < 2;
    if (following && steps.length) mark(last());
  };
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
    following = Number(slider.value) >= last();
  });
  slider.addEventListener("input", () => { set(false); go(Number(slider.value)); });
  root.append(play, slider, at);
  return { root, go, setSteps, stop: () => set(false), isFollowing: () => following };
};
