// Plots: each `.plot` is followed by what plotly draws in it, as JSON. The same code serves pages and explorer.
import { floatsOf } from "./decoding.js";

// The rows of a matrix that came as base64.
const unpacked = ({ float32, columns }) => {
  const all = floatsOf(float32);
  return Array.from({ length: all.length / columns }, (_, row) => all.subarray(row * columns, (row + 1) * columns));
};
const axisName = (index, isWords, perTopic) =>
  !isWords ? `${index + 1}` : index === 0 ? "[MASK]" : `word ${index} (topic ${Math.ceil(index / perTopic)})`;
const nameCells = ({ data: [heat], words }) => {
  const columns = Array.from(heat.z[0], (_, i) => axisName(i, words.axes.includes("x"), words.perTopic));
  heat.text = heat.z.map((row, i) => {
    const name = axisName(i, words.axes.includes("y"), words.perTopic);
    return columns.map((column) => `${name} × ${column}`);
  });
};
const contourLines = ({ data: [{ x, y, z }], contours }) => ({
  type: "contour", x, y, z, ncontours: contours, autocontour: true, showscale: false, hoverinfo: "skip",
  contours: { coloring: "none" }, line: { color: "rgba(255,255,255,0.5)", width: 0.8 },
});

const config = { responsive: true, displayModeBar: false };
const shown = new WeakMap(); // plots that are drawn, and what they were drawn from

// What plotly draws, from the JSON after a plot.
const specOf = (text) => {
  const spec = JSON.parse(text);
  for (const trace of spec.data) if (trace.z?.float32) trace.z = unpacked(trace.z);
  if (spec.words) nameCells(spec);
  if (spec.contours) spec.data.splice(1, 0, contourLines(spec));
  if (matchMedia("(pointer: coarse)").matches) spec.layout.dragmode = false; // a finger scrolls the page
  return spec;
};
// Where a plot changes its width, plotly's legend is one layout behind: drawn once more, it is where it should be.
const widths = new WeakMap(), redraws = new WeakMap();
const settle = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const before = widths.get(target), now = target.clientWidth;
    widths.set(target, now);
    if (before === undefined || before === now || !now) continue;
    clearTimeout(redraws.get(target));
    redraws.set(target, setTimeout(() => Plotly.redraw(target), 250));
  }
});
// Draws a plot, or draws it anew where its numbers have changed.
export const draw = (plot) => {
  const text = plot.nextElementSibling.textContent, before = shown.get(plot);
  if (text === before) return;
  shown.set(plot, text);
  const { data, layout } = specOf(text);
  if (before !== undefined) { Plotly.react(plot, data, layout, config); return; }
  Plotly.newPlot(plot, data, layout, config);
  settle.observe(plot);
  plot.on("plotly_click", ({ points: [{ x, y, text }] }) =>
    plot.dispatchEvent(new CustomEvent("pick", { detail: { x, y, text } })));
};

// Sizes that depend on the data: set here, since a strict content security policy forbids style attributes.
export const arrange = (root) => {
  for (const panels of root.querySelectorAll(".panels[data-columns]")) {
    panels.style.setProperty("--columns", panels.dataset.columns);
  }
  for (const plot of root.querySelectorAll(".plot[data-height]")) plot.style.height = `${plot.dataset.height}px`;
};

// Those in view first, the others one after the other while the reader reads.
export const drawPlots = (root) => {
  arrange(root);
  const plots = [...root.querySelectorAll(".plot")];
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) { observer.unobserve(target); draw(target); }
    }
  }, { rootMargin: "300px" });
  plots.forEach((plot) => observer.observe(plot));
  const waiting = plots.slice();
  const drawNext = () => { if (waiting.length) { draw(waiting.shift()); setTimeout(drawNext, 15); } };
  setTimeout(drawNext, 200);
};

// Paper is narrower than the screen: let the drawings scale, which needs their size as a view box.
export const scaleInPrint = () => {
  const drawings = (parent) => parent.querySelectorAll("svg.main-svg");
  addEventListener("beforeprint", () => {
    for (const plot of document.querySelectorAll(".plot")) {
      draw(plot);
      plot.style.setProperty("--aspect", plot.clientWidth / plot.clientHeight);
      for (const svg of drawings(plot)) {
        svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
      }
    }
  });
  addEventListener("afterprint", () => drawings(document).forEach((svg) => svg.removeAttribute("viewBox")));
};
