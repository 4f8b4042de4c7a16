import { offerClicks } from "./clicks.js";
import { drawPlots, scaleInPrint } from "./plots.js";
import { offerTheme } from "./theme.js";

offerTheme(document.getElementById("theme"));
drawPlots(document);
scaleInPrint();
offerClicks(document);
