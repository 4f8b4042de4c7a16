// 'Save this view': the whole as one page, and each figure as a picture or as numbers.
import { make } from "/explorer/shell.js";

const FORMS = [["png", "PNG"], ["svg", "SVG"], ["csv", "CSV"]];

export const download = (path) => {
  const link = make("a", "", { href: path, download: "" });
  document.body.append(link);
  link.click();
  link.remove();
};

// A button that saves a view as one page; `source` is its kind and query.
export const saveButton = ({ kind, query }, name = "Save this view") => {
  const button = make("button", name, { type: "button", class: "save" });
  button.addEventListener("click", () => download(`/api/keep/${kind}?${query}`));
  return button;
};

// Links under every figure of a view.
export const offerFiles = (root, source) => {
  for (const figure of root.querySelectorAll("figure[data-name]")) {
    const line = make("p", "Save: ", { class: "soft keep" });
    for (const [form, name] of FORMS) {
      const path = `/api/keep/${source.kind}/${figure.dataset.name}.${form}?${source.query}`;
      line.append(make("a", name, { href: path, download: "" }), " ");
    }
    figure.append(line);
  }
};
