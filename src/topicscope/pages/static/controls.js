// A setting's box and its slider: what a box may hold, and how mouse and keys move a slider.

// A slider runs from 0 to 1000 in place, by steps or by factors; its box has the number.
const places = 1000, WHOLE = /^(?:0|[1-9]\d*)$/;
export const sliderOf = (box) => box.parentElement.querySelector("[type=range]");
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
export const showSlider = (box) => {
  const slider = sliderOf(box);
  if (!slider) return;
  const text = box.value.trim(), value = text && text === slider.dataset.top ? Infinity : Number(text);
  if (!Number.isNaN(value)) slider.value = toPlace(slider, value);
  slider.setAttribute("aria-valuetext", text || "empty");
};

// How far a key moves a whole number: an arrow by one, a page by a quarter or by a tenth of the slider.
const ARROWS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }, PAGES = { PageUp: 1, PageDown: -1 };
const keyStep = ({ dataset }, key, value) => {
  if (key in ARROWS) return ARROWS[key];
  const part = "log" in dataset ? value / 4 : (dataset.high - dataset.low) / 10;
  return (PAGES[key] ?? 0) * Math.max(2, Math.round(part));
};
const numberByKey = (box, slider, key) => {
  const { low, high, top } = slider.dataset, text = box.value.trim(), most = Number(high);
  if (top && text === top) return keyStep(slider, key, most) < 0 ? most : top;
  const value = WHOLE.test(text) ? Number(text) : toNumber(slider, Number(slider.value));
  const next = value + keyStep(slider, key, value);
  if (top && next > most && next > value) return top;
  return Math.max(Number(low), Math.min(next, Math.max(most, value)));
};

// Calls `moved` when the slider has given its box another number.
export const followSlider = (box, slider, moved) => {
  Object.assign(slider, { min: 0, max: places, step: 1 });
  slider.addEventListener("input", () => {
    box.value = toNumber(slider, Number(slider.value));
    slider.setAttribute("aria-valuetext", box.value);
    moved();
  });
  slider.addEventListener("keydown", (event) => {
    const { key, altKey, ctrlKey, metaKey } = event;
    if (!("whole" in slider.dataset) || !(key in ARROWS || key in PAGES) || altKey || ctrlKey || metaKey) return;
    event.preventDefault();
    box.value = numberByKey(box, slider, key);
    showSlider(box);
    moved();
  });
};

// Why a box's text is no setting, or "". The limits are the server's, so that what passes here passes there.
const REAL = /^(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const isWithin = (limits, text) => {
  const value = (limits.type === "integer" ? WHOLE : REAL).test(text) ? Number(text) : NaN;
  return value >= (limits.minimum ?? -Infinity) && value <= (limits.maximum ?? Infinity)
    && value > (limits.exclusiveMinimum ?? -Infinity) && value < (limits.exclusiveMaximum ?? Infinity);
};
const isRange = (limits, ends) => ends.length === 2 && ends.every((end) => isWithin(limits, end))
  && Number(ends[0]) < Number(ends[1]);
export const problemOf = (box) => {
  const text = box.value.trim(), limits = JSON.parse(box.dataset.limits ?? "null");
  if (!text || !limits || isWithin(limits, text)) return "";
  if (limits.word && (text === limits.word || isRange(limits, text.split("-").map((end) => end.trim())))) return "";
  return `${box.name} = ${text}: expected ${limits.expected}`;
};
