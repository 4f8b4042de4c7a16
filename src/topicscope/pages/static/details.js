// Circles of a plane that have details, such as topics and their words: click one, choose it by its name, or click its
// name in a table.
import { make, makeChoice } from "./making.js";

const offer = (plot, details) => {
  const box = make("div", "", { class: "details", role: "status" });
  const show = (place) => {
    const [, title, things] = details[place], list = make("ul");
    choice.select.value = place;
    for (const [thing, number] of things) {
      const item = make("li", "");
      item.append(make("b", thing), ` ${number}`);
      list.append(item);
    }
    box.replaceChildren(make("p", title, { class: "panel-title" }), list);
  };
  const options = details.map(([name, , things], place) =>
    [place, `${name}: ${things.slice(0, 3).map(([thing]) => thing).join(" ")}`]);
  const choice = makeChoice("words of topic", options, (place) => show(Number(place)));
  const chooser = make("p", "", { class: "chooser" });
  choice.select.value = "";
  chooser.append(choice.label);
  plot.parentElement.append(chooser, box);
  plot.addEventListener("pick", ({ detail: { text } }) => show(details.findIndex(([name]) => name === text)));
  return { show, box };
};

// Cells under a heading 'topic' become buttons, where they name a circle by its number or by its first words.
const linkTables = (root, details, { show, box }) => {
  const places = new Map(details.flatMap(([name, , things], place) =>
    [[name, place], [things.slice(0, 3).map(([thing]) => thing).join(" "), place]]));
  for (const table of root.querySelectorAll("table.data")) {
    const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "topic");
    if (column < 0) continue;
    for (const { cells } of table.tBodies[0].rows) {
      const cell = cells[column], place = places.get(cell.textContent.trim());
      if (place === undefined || cell.querySelector("button")) continue;
      const button = make("button", cell.textContent.trim(), { type: "button", class: "plain" });
      button.addEventListener("click", () => { show(place); box.scrollIntoView({ block: "center" }); });
      cell.replaceChildren(button);
    }
  }
};

export const offerDetails = (root) => {
  for (const plot of root.querySelectorAll(".plot.circles")) {
    const { details } = JSON.parse(plot.nextElementSibling.textContent);
    if (details?.length) linkTables(root, details, offer(plot, details));
  }
};
