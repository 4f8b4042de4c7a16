// A setting's box and its slider: what a box may hold, and how mouse and keys move a slider.

// A slider runs from 0 to 1000 in place, by steps or by factors; its box has the number.
const places = 1000;
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

// Calls `moved` when the slider has given its box another number.
export const followSlider = (box, slider, moved) => {
  Object.assign(slider, { min: 0, max: places, step: 1 });
  slider.addEventListener("input", () => {
    box.value = toNumber(slider, Number(slider.value));
    slider.setAttribute("aria-valuetext", box.value);
    moved();
  });
};

// Why a box's text is no setting, or "". The limits are the server's, so that what passes here passes there.
const WHOLE = /^(?:0|[1-9]\d*)$/, REAL = /^(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
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
