// What a view in a notebook gets from its kernel: answers to questions, and plotly.js.

// A question to the kernel: a promise of its answer. Others may look at the same widget, so names of questions differ.
export const kernelOf = (model) => {
  const mine = Math.random().toString(36).slice(2), waiting = new Map();
  let count = 0;
  model.on("msg:custom", ({ id, answer, error }) => {
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error) reject?.(new Error(error));
    else resolve?.(answer);
  });
  return (question, details = {}) => new Promise((resolve, reject) => {
    const id = `${mine}-${count += 1}`;
    waiting.set(id, { resolve, reject });
    model.send({ id, question, details });
  });
};

// plotly.js, gzipped, is in a model that all results of a kernel share. A browser runs it once for all of them.
const run = async (model) => {
  const library = await model.widget_manager.get_model(model.get("library"));
  const unpacked = new Blob([library.get("script")]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = new Blob([await new Response(unpacked).text()], { type: "text/javascript" });
  const address = URL.createObjectURL(script);
  try { await import(address); } finally { URL.revokeObjectURL(address); }
};
export const havePlotly = async (model) => {
  if (globalThis.Plotly) return;
  globalThis.topicscopePlotly ??= run(model).finally(() => { delete globalThis.topicscopePlotly; });
  await globalThis.topicscopePlotly;
};

// What plotly needs of styles is in the document's head, which does not reach into a shadow root.
export const plotlyStyle = () => {
  const { sheet } = document.getElementById("plotly.js-style-global") ?? {};
  return [...(sheet?.cssRules ?? [])].map(({ cssText }) => cssText).join("\n");
};
