// Plots: each `.plot` is followed by what plotly draws in it, as JSON. The same code serves pages and explorer.
const axisName = (index, isWords, perTopic) =>
  !isWords ? `${index + 1}` : index === 0 ? "[MASK]" : `word ${index} (topic ${Math.ceil(index / perTopic)})`;
const nameCells = ({ data: [heat], words }) => {
  const columns = heat.z[0].map((_, i) => axisName(i, words.axes.includes("x"), words.perTopic));
  heat.text = heat.z.map((row, i) => {
    const name = axisName(i, words.axes.includes("y"), words.perTopic);
    return row.map((_, j) => `${name} × ${columns[j]}`);
  });
};
const contourLines = ({ data: [{ x, y, z }], contours }) => ({
  type: "contour", x, y, z, ncontours: contours, autocontour: true, showscale: false, hoverinfo: "skip",
  contours: { coloring: "none" }, line: { color: "rgba(255,255,255,0.5)", width: 0.8 },
});

const config = { responsive: true, displayModeBar: false };
const drawn = new WeakSet();

// What plotly draws, from the JSON after a plot.
const specOf = (data) => {
  const spec = JSON.parse(data.textContent);
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
const draw = (plot) => {
  if (drawn.has(plot)) return;
  drawn.add(plot);
  const spec = specOf(plot.nextElementSibling);
  Plotly.newPlot(plot, spec.data, spec.layout, config);
  settle.observe(plot);
  plot.on("plotly_click", ({ points: [{ x, y, text }] }) =>
    plot.dispatchEvent(new CustomEvent("pick", { detail: { x, y, text } })));
};

// Sizes that depend on the data: set here, since a strict content security policy forbids style attributes.
const arrange = (root) => {
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

// New sections in place of old ones. Where as many plots of the same kinds are there, they stay and only change.
export const replaceSections = (root, html) => {
  const fresh = document.createElement("template");
  fresh.innerHTML = html; // made by the server's templates, which escape all text
  const [before, after] = [root, fresh.content].map((part) => [...part.querySelectorAll(".plot")]);
  const kept = before.length === after.length && before.every((plot, i) => plot.className.startsWith(after[i].className));
  const folds = [...root.querySelectorAll("details")].map((fold) => fold.open);
  [...fresh.content.querySelectorAll("details")].forEach((fold, i) => { if (i in folds) fold.open = folds[i]; });
  if (kept) after.forEach((plot, i) => plot.replaceWith(before[i]));
  root.replaceChildren(fresh.content);
  arrange(root);
  if (!kept) { drawPlots(root); return Promise.resolve(); }
  return Promise.all(before.map((plot) => {
    if (!drawn.has(plot)) { draw(plot); return null; }
    const spec = specOf(plot.nextElementSibling);
    return Plotly.react(plot, spec.data, spec.layout, config);
  }));
};
