// A map of layers by heads and the texts below it: a cell that is clicked, or chosen by its numbers, is shown in all of
// them, and they are listed by how much the head works there.
import { make, makeChoice } from "./making.js";
import { textControls } from "./texts.js";

const ABOUT = "Numbers for single heads are kept only for the documents shown below. Share: of the attention that "
  + "words of topics give to other words of topics (their largest weights), how much goes to words of the same topic; "
  + "in brackets, the share of such words, which a head without preference would give.";
const percent = (share) => `${(100 * share).toFixed(1)}%`;

// The texts in which a head works most come first.
const listTexts = (list, found) => {
  const excess = ({ work }) => (work ? work.share - work.expected : -Infinity);
  list.replaceChildren(...found.sort((one, other) => excess(other) - excess(one)).map(({ text, work }) => {
    const item = make("li"), button = make("button", text.querySelector("summary").textContent, { type: "button" });
    button.addEventListener("click", () => { text.open = true; text.scrollIntoView({ block: "start" }); });
    const numbers = work ? `${percent(work.share)} (${percent(work.expected)})` : "no words of topics to compare";
    item.append(button, ` ${numbers}`);
    return item;
  }));
};

const linkMap = (plot, texts) => {
  const { z } = JSON.parse(plot.nextElementSibling.textContent).data[0];
  const said = make("p", "Click a cell, or choose a head here, to see it in the documents below.", { role: "status" });
  const list = make("ol", "", { class: "head-texts" }), about = make("p", ABOUT, { class: "soft" });
  const choose = (layer, head) => {
    [layers.select.value, heads.select.value] = [layer, head];
    const outline = { type: "rect", x0: head - 0.5, x1: head + 0.5, y0: layer - 0.5, y1: layer + 0.5 };
    if (plot.data) Plotly.relayout(plot, { shapes: [{ ...outline, line: { color: "#d55e00", width: 3 } }] });
    const all = texts.map((text) => ({ text, controls: textControls(text) })).filter(({ controls }) => controls);
    const kept = all.filter(({ controls }) => controls.showHead(layer, head));
    const difference = z[layer]?.[head];
    const measured = difference == null ? "" : `, difference ${Number(difference.toPrecision(3))}`;
    const shown = kept.length === all.length ? "The documents below show it now"
      : kept.length ? `${kept.length} of the ${all.length} documents below show it now; for the others it is not kept`
        : "Its attention is not kept in the documents below: too many heads for a page";
    said.textContent = `Layer ${layer}, head ${head}${measured}. ${shown}.`;
    about.hidden = !kept.length;
    const detail = { map: plot.dataset.shownIn, layer, head };
    plot.dispatchEvent(new CustomEvent("head", { detail, bubbles: true })); // who shows the page may keep it
    listTexts(list, kept.map(({ text, controls }) => ({ text, work: controls.insideTopic(layer, head) })));
  };
  const numbers = (count) => [...Array(count).keys()].map((i) => [i, `${i}`]);
  const chosen = () => choose(Number(layers.select.value), Number(heads.select.value));
  const layers = makeChoice("layer", numbers(z.length), chosen);
  const heads = makeChoice("head", numbers(z[0].length), chosen);
  const chooser = make("p", "", { class: "chooser" }), box = make("div", "", { class: "head-choice" });
  layers.select.value = heads.select.value = "";
  chooser.append(layers.label, heads.label);
  about.hidden = true;
  box.append(chooser, said, list, about);
  plot.parentElement.append(box);
  plot.addEventListener("pick", ({ detail: { x, y } }) => choose(y, x));
};

// In all of `root`: its texts are those that the maps are about.
export const linkHeads = (root) => {
  const texts = [...root.querySelectorAll(".marked[data-map]")];
  for (const plot of root.querySelectorAll(".plot[data-shown-in]")) {
    const mine = texts.filter((text) => text.dataset.map === plot.dataset.shownIn);
    if (mine.length) linkMap(plot, mine);
  }
};
