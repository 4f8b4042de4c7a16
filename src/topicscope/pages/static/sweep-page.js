import { drawSweep } from "./sweep.js";
import { offerTheme } from "./theme.js";

offerTheme(document.getElementById("theme"));
drawSweep(document);
