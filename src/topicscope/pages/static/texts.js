import { bytesOf } from "./decoding.js";

// Two tables, one after the other: numbers of pieces (two bytes each) and weights (one byte, 255 times the root).
const decoded = (data, rows, keys) => {
  const bytes = bytesOf(data), size = rows * keys;
  return (row) => Array.from({ length: keys }, (_, key) => row * keys + key)
    .map((at) => [bytes[2 * at] + 256 * bytes[2 * at + 1], (bytes[2 * size + at] / 255) ** 2])
    .filter(([, weight]) => weight > 0);
};

const prepare = (text) => {
  const { keys, first, links } = JSON.parse(text.querySelector("script").textContent);
  const box = text.querySelector(".pieces"), pieces = [...box.children], said = text.querySelector("output");
  const [outer, inner] = text.querySelectorAll("select");
  let chosen = null, pinned = false, linksOf = null, filled = [];
  const kept = (layer, head) => links.find(([first, second]) =>
    first === `${layer}` && (second === `${head}` || second.startsWith(`${head} `)));
  const nameInner = () => inner.replaceChildren(
    ...links.filter(([name]) => name === outer.value).map(([, name]) => new Option(name)));
  const read = () => {
    const [, , data] = links.find(([first, second]) => first === outer.value && second === inner.value);
    linksOf = decoded(data, pieces.length, keys);
  };
  const show = () => {
    for (const piece of filled) piece.style.removeProperty("--fill");
    for (const piece of box.querySelectorAll(".chosen")) piece.classList.remove("chosen");
    filled = [];
    if (chosen === null) { said.textContent = "Choose a word."; return; }
    if (!linksOf) read();
    const found = linksOf(chosen), largest = Math.max(...found.map(([, weight]) => weight));
    pieces[chosen].classList.add("chosen");
    for (const [number, weight] of found) {
      pieces[number].style.setProperty("--fill", `${Math.max(8, 100 * weight / largest)}%`);
      filled.push(pieces[number]);
    }
    const named = found.slice(0, 5).map(([number, weight]) =>
      `${pieces[number].textContent} ${(100 * weight).toFixed(1)}%`);
    said.textContent = `${pieces[chosen].textContent} → ${named.join(", ")}`;
  };
  const choose = (number) => { chosen = number; show(); };
  const numberOf = (event) => pieces.indexOf(event.target);
  box.addEventListener("pointerover", (event) => {
    if (!pinned && numberOf(event) >= 0) choose(numberOf(event));
  });
  box.addEventListener("click", (event) => {
    const number = numberOf(event);
    pinned = number >= 0 && !(pinned && number === chosen);
    if (number >= 0) choose(number);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { pinned = false; choose(null); return; }
    if (!step) return;
    event.preventDefault();
    pinned = true;
    choose(chosen === null ? 0 : Math.min(pieces.length - 1, Math.max(0, chosen + step)));
    pieces[chosen].scrollIntoView({ block: "nearest" });
  });
  outer.addEventListener("change", () => { nameInner(); linksOf = null; show(); });
  inner.addEventListener("change", () => { linksOf = null; show(); });
  outer.value = links[first][0];
  nameInner();
  inner.value = links[first][1];
  show();
  text.querySelector(".chooser").hidden = false;
  return {
    // Show a layer and head; whether it is kept.
    showHead: (layer, head) => {
      const found = kept(layer, head);
      if (!found) return false;
      [outer.value] = found;
      nameInner();
      [, inner.value] = found;
      linksOf = null;
      show();
      return true;
    },
    // Of a layer and head the share of attention that stays in the topic, and what it is without preference.
    insideTopic: (layer, head) => {
      const found = kept(layer, head);
      return found ? insideTopic(decoded(found[2], pieces.length, keys), pieces) : null;
    },
  };
};

// Of the kept weights from words of topics to other words of topics. A word elsewhere in the text counts for nothing.
const insideTopic = (linksOf, pieces) => {
  const topics = pieces.map((piece) => piece.dataset.n), words = pieces.map((piece) => piece.textContent.toLowerCase());
  const count = (keys) => keys.reduce((counts, key) => counts.set(key, (counts.get(key) ?? 0) + 1), new Map());
  const places = [...pieces.keys()].filter((i) => topics[i] !== undefined);
  const ofTopic = count(places.map((i) => topics[i])), ofWord = count(places.map((i) => words[i]));
  const ofBoth = count(places.map((i) => `${topics[i]} ${words[i]}`));
  let all = 0, inside = 0, expected = 0;
  for (const i of places) {
    const others = places.length - ofWord.get(words[i]);
    for (const [j, weight] of linksOf(i)) {
      if (topics[j] === undefined || words[j] === words[i]) continue;
      all += weight;
      if (topics[j] === topics[i]) inside += weight;
      expected += weight * (ofTopic.get(topics[i]) - ofBoth.get(`${topics[i]} ${words[i]}`)) / others;
    }
  }
  return all > 0 ? { share: inside / all, expected: expected / all } : null;
};

const prepared = new WeakMap();
// What can be done with a text that has links; null of one that has none.
export const textControls = (text) => {
  if (!text.querySelector("script")) return null;
  if (!prepared.has(text)) prepared.set(text, prepare(text));
  return prepared.get(text);
};

// A folded text is prepared when it is opened first.
export const prepareTexts = (root) => {
  for (const text of root.querySelectorAll(".marked")) {
    if (text.open) textControls(text);
    else text.addEventListener("toggle", () => textControls(text), { once: true });
  }
};
