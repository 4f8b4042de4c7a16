// A view in a notebook, as anywidget asks for it. It has a shadow root: styles and ids of the notebook and of other
// results do not meet its own, and the modules of pages and explorer work in it as they do in a document.
import { openBench } from "./bench.js";
import { offerClicks } from "./clicks.js";
import { havePlotly, kernelOf, plotlyStyle } from "./kernel.js";
import { make } from "./making.js";
import { drawPlots } from "./plots.js";
import { drawSweep } from "./sweep.js";

// Dark where what is behind the view is dark: notebooks name their themes in different ways.
const isDark = (element) => {
  const [red, green, blue, alpha = 1] = (getComputedStyle(element).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
  if (alpha > 0.5) return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
  return element.parentElement ? isDark(element.parentElement) : matchMedia("(prefers-color-scheme: dark)").matches;
};
const followTheme = (host) => {
  const show = () => { host.dataset.theme = isDark(host) ? "dark" : "light"; };
  const observer = new MutationObserver(() => setTimeout(show, 100)); // the notebook loads its styles first
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true, attributeFilter: ["class", "data-jp-theme-light", "data-theme"] });
  }
  show();
  return () => observer.disconnect();
};

// `first` is called once, as soon as the view has a width; then plots follow its width.
const followWidth = (host, root, first) => {
  let width = 0;
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || contentRect.width === width) return;
    if (!width) first();
    else for (const plot of root.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(plot);
    ({ width } = contentRect);
  });
  observer.observe(host);
  return () => observer.disconnect();
};

// A link to a section of the view: no address leads into a shadow root.
const leadToSections = (root) => root.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (!link) return;
  event.preventDefault();
  root.getElementById(link.getAttribute("href").slice(1))?.scrollIntoView({ block: "start" });
});

const VIEWS = {
  sections: (root) => { drawPlots(root); offerClicks(root); },
  sweep: (root, model) => {
    const ask = kernelOf(model);
    drawSweep(root, (rows) => ask("curves", { rows }));
  },
  bench: async (root, model) => {
    const ask = kernelOf(model);
    openBench(root, {
      ...await ask("first"),
      ask: (part, chosen) => ask("part", { part, chosen: Object.fromEntries(chosen) }),
      drawn: (chosen) => { root.host.dataset.setting = `${chosen}`; },
    });
  },
};

const draw = async (root, model) => {
  try {
    await havePlotly(model);
    root.prepend(make("style", plotlyStyle()));
    await VIEWS[model.get("view")](root, model);
    root.host.dataset.drawn = "";
  } catch (error) {
    const why = `The figures cannot be drawn: ${error.message ?? error}. Run the cell again.`;
    root.querySelector(".notebook").prepend(make("p", why, { class: "wrong", role: "alert" }));
  }
};

// Nothing is awaited here: the notebook puts the view into its page only when this is done.
export const render = ({ model, el }) => {
  const host = make("div", "", { "data-lm-suppress-shortcuts": "true" }); // keys are for the view, not for JupyterLab
  const root = host.attachShadow({ mode: "open" }), content = document.createElement("template");
  content.innerHTML = model.get("html"); // made by templates, which escape all text
  root.append(make("style", model.get("style_sheet")), content.content);
  el.append(host);
  leadToSections(root);
  const ends = [followWidth(host, root, () => { ends.push(followTheme(host)); draw(root, model); })];
  return () => ends.forEach((end) => end());
};
