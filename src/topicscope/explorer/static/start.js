import { listFolders } from "/explorer/shell.js";

const ROOM = { train: "live", probe: "models", topics: "models", words: "models", sweep: "maps", reproduce: "paper" };
const roomOf = (kind) => ROOM[kind] ?? "time";
await listFolders(document.getElementById("folders"), null, ({ id, kind }) => {
  location.href = `/${roomOf(kind)}?id=${id}`;
});
