import { offerDetails } from "./details.js";
import { linkHeads } from "./heads.js";
import { drawPlots, scaleInPrint } from "./plots.js";
import { prepareTexts } from "./texts.js";
import { offerTheme } from "./theme.js";

offerTheme(document.getElementById("theme"));
drawPlots(document);
scaleInPrint();
prepareTexts(document);
linkHeads(document);
offerDetails(document);
