// The room of time: a slider over the steps of a run or of a timeline.
import { addressWith, askedFor, openRoom, sayIgnored, showSections } from "/explorer/folders.js";
import { saveButton } from "/explorer/keeping.js";
import { makeScrub } from "/explorer/scrub.js";
import { ask, isAbort, make } from "/explorer/shell.js";

let shownFolder = null;
openRoom(["timeline", "pretrain", "train"], async (view, { id, name }, fetchView) => {
  const { steps, note } = await (await fetchView(`/api/time/${id}`)).json();
  if (shownFolder && shownFolder !== id) addressWith({ step: null });
  shownFolder = id;
  const moment = make("div", "", { class: "moment" }), tools = document.getElementById("tools");
  const show = async (step, signal) => {
    const began = performance.now(), source = { kind: "time", query: `id=${id}&step=${step}` };
    addressWith({ step });
    tools.replaceChildren(saveButton(source));
    try {
      await showSections(moment, await (await ask(`/api/time/${id}/step/${step}`, { signal })).text(), source);
      document.body.dataset.step = step;
      document.body.dataset.stepMilliseconds = (performance.now() - began).toFixed(0);
    } catch (error) {
      if (isAbort(error)) throw error;
      moment.replaceChildren(make("p", error.message, { class: "wrong", role: "alert" }));
    }
  };
  const scrub = makeScrub(name, show);
  scrub.setSteps(steps);
  view.replaceChildren(...(note ? [make("p", note, { class: "soft" })] : []), scrub.root, moment);
  const step = askedFor("step"), asked = steps.indexOf(Number(step ?? NaN));
  if (step !== null && asked < 0) sayIgnored(view, "Nothing is kept of the step of this link; the last one is shown.");
  await scrub.go(asked < 0 ? steps.length - 1 : asked);
});
