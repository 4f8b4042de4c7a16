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

// The kernel answers one question after the other. So one is asked at a time, and of those that come meanwhile only
// the newest; the others end as a request does that was given up.
export const newestOf = (ask) => {
  let running = false, next = null;
  const start = async ({ details, resolve, reject }) => {
    running = true;
    await ask(...details).then(resolve, reject);
    running = false;
    if (next) { const following = next; next = null; start(following); }
  };
  return (...details) => new Promise((resolve, reject) => {
    next?.reject(new DOMException("A newer question came.", "AbortError"));
    next = { details, resolve, reject };
    if (!running) { const first = next; next = null; start(first); }
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
