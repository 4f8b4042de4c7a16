// New sections in place of old ones. What is the same stays where it is, and so do plots, which only change.
import { arrange, draw, drawPlots } from "./plots.js";

const plotsIn = (part) => [...part.querySelectorAll(".plot")];
const holdsPlot = (node) => node.nodeType === Node.ELEMENT_NODE
  && (node.matches(".plot") || node.querySelector(".plot") !== null);
const clear = (from, to) => { while (from !== to) { const next = from.nextSibling; from.remove(); from = next; } };
const copyAttributes = (old, fresh) => {
  for (const { name, value } of fresh.attributes) {
    const isPlotlys = name === "class" && old.matches(".plot");
    if (!isPlotlys && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
};

// Whether the plots stand in the same places of both trees.
const isAlike = (old, fresh) => {
  if (fresh.matches?.(".plot")) return old.matches(".plot") && old.className.startsWith(fresh.className);
  const [mine, theirs] = [old, fresh].map((part) => [...part.children].filter(holdsPlot));
  return mine.length === theirs.length
    && mine.every((part, i) => part.tagName === theirs[i].tagName && isAlike(part, theirs[i]));
};

// Makes `old` what `fresh` is. Parts that hold plots stay; so do all others that are the same.
const patch = (old, fresh) => {
  const staying = [...old.children].filter(holdsPlot);
  let at = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    if (holdsPlot(node)) {
      const part = staying.shift();
      clear(at, part);
      copyAttributes(part, node);
      if (!part.matches(".plot")) patch(part, node);
      at = part.nextSibling;
    } else if (at && !holdsPlot(at)) {
      const old = at;
      at = at.nextSibling;
      if (!old.isEqualNode(node)) old.replaceWith(node);
    } else {
      old.insertBefore(node, at);
    }
  }
  clear(at, null);
};

const isInView = (plot) => {
  const { top, bottom, width } = plot.getBoundingClientRect();
  return width > 0 && bottom > 0 && top < innerHeight;
};

// Plots that nobody sees now are drawn one per frame; of each only its newest numbers.
const waiting = new Set();
let finished = null;
const frame = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
const drawWaiting = async () => {
  try {
    while (waiting.size) {
      await (document.hidden ? null : frame()); // no frames come while the page is not looked at
      const [plot] = waiting;
      waiting.delete(plot);
      if (plot?.isConnected) draw(plot);
    }
  } finally {
    finished = null;
  }
};

// Plots in view are drawn when this returns; the promise is of the others.
export const replaceSections = (root, html) => {
  const template = document.createElement("template"), fresh = template.content;
  template.innerHTML = html; // made by the server's templates, which escape all text
  const folds = [...root.querySelectorAll("details")].map((fold) => fold.open);
  [...fresh.querySelectorAll("details")].forEach((fold, i) => { if (i in folds) fold.open = folds[i]; });
  if (!plotsIn(root).length || !isAlike(root, fresh)) {
    root.replaceChildren(fresh);
    drawPlots(root);
    return Promise.resolve();
  }
  patch(root, fresh);
  arrange(root);
  const plots = plotsIn(root), seen = plots.filter(isInView);
  for (const plot of plots) if (!seen.includes(plot)) waiting.add(plot);
  for (const plot of seen) { waiting.delete(plot); draw(plot); }
  if (seen.length) performance.mark("in-view");
  if (waiting.size) finished ??= drawWaiting();
  return finished ?? Promise.resolve();
};
