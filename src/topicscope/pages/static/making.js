// An element with a text and attributes. The text is text, never markup.
export const make = (tag, text = "", attributes = {}) => {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// A choice with a name before it; `act` gets the value that was chosen.
export const makeChoice = (name, options, act) => {
  const label = make("label", `${name} `), select = make("select");
  select.append(...options.map(([value, text]) => new Option(text, value)));
  select.addEventListener("change", () => act(select.value));
  label.append(select);
  return { label, select };
};
