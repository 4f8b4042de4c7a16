// The room of maps: a sweep, any measure over any two axes; the curves of clicked points come when they are asked for.
import { drawSweep } from "/static/sweep.js";
import { openRoom } from "/explorer/folders.js";
import { saveButton } from "/explorer/keeping.js";
import { ask } from "/explorer/shell.js";

openRoom(["sweep"], async (view, { id }, fetchView) => {
  view.innerHTML = await (await fetchView(`/api/maps/${id}`)).text(); // made by templates, which escape all text
  drawSweep(view, async (rows) => (await ask(`/api/maps/${id}/curves?rows=${rows.join(",")}`)).json());
  document.getElementById("tools").replaceChildren(saveButton({ kind: "folder", query: `id=${id}` }));
});
