// Search for a word: its topics, and the shown documents that have it, in which it is marked.
import { ask, make } from "/explorer/shell.js";

const percent = (share) => `${(100 * share).toFixed(share < 0.001 ? 3 : 1)}%`;

const markIn = (root, word) => {
  for (const piece of root.querySelectorAll(".pieces .found")) piece.classList.remove("found");
  const found = [];
  for (const text of word ? root.querySelectorAll(".marked") : []) {
    const pieces = [...text.querySelectorAll(".pieces > span")].filter(
      (piece) => piece.textContent.toLowerCase() === word.toLowerCase());
    for (const piece of pieces) piece.classList.add("found");
    if (pieces.length) found.push([text, pieces]);
  }
  return found;
};

// One answer per tokenizer of the models; `models` is empty where the folder has no models.
const topicLines = ({ word: asked, answers }) => {
  if (!answers.length) return [make("p", `This folder has no fitted topics in which '${asked}' could be looked up.`)];
  return answers.flatMap(({ models, word, topics }) => {
    const start = models ? `${models}: ` : "";
    if (!topics.length) return [make("p", `${start}The word '${word}' is not in the topics' vocabulary.`)];
    const list = make("ul");
    for (const { topic, name, share, probability, place } of topics) {
      list.append(make("li", `topic ${topic} (${name}): ${percent(share)} of its occurrences; `
        + `${percent(probability)} of the topic's words, rank ${place}`));
    }
    return [make("p", `${start}Topics of '${word}', by the fitted model:`), list];
  });
};

const documentLines = (word, found) => {
  if (!found.length) return [make("p", `None of the documents shown contains '${word}'.`)];
  const list = make("ul");
  for (const [text, pieces] of found) {
    const item = make("li"), title = text.querySelector("summary").textContent;
    const button = make("button", title, { type: "button", class: "plain" });
    button.addEventListener("click", () => { text.open = true; pieces[0].scrollIntoView({ block: "center" }); });
    item.append(button, ` ${pieces.length} times`);
    list.append(item);
  }
  return [make("p", `Documents shown that contain '${word}':`), list];
};

// A box in `tools`, and the answer right below; documents are looked for in `sections`. `model`: the number of one of a
// probe's models, or ''.
export const offerSearch = (tools, sections, place, model) => {
  const form = make("form", "", { class: "search", role: "search" }), label = make("label", "word ");
  const box = make("input", "", { type: "search", maxlength: 100, autocomplete: "off" });
  const answer = make("div", "", { class: "answer", role: "status" });
  label.append(box);
  form.append(label, make("button", "Search", { type: "submit" }));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const word = box.value.trim(), found = markIn(sections, word);
    if (!word) { answer.replaceChildren(); return; }
    try {
      const query = new URLSearchParams({ word, model });
      const topics = await (await ask(`/api/models/${place.id}/word?${query}`)).json();
      const documents = sections.querySelector(".marked") ? documentLines(word, found) : [];
      answer.replaceChildren(...topicLines(topics), ...documents);
    } catch (error) {
      answer.replaceChildren(make("p", error.message, { class: "wrong", role: "alert" }));
    }
  });
  tools.append(form);
  tools.after(answer);
};
