// All that can be clicked in sections: words of texts, heads, topics. The same in pages, the explorer and notebooks.
import { offerDetails } from "./details.js";
import { linkHeads } from "./heads.js";
import { prepareTexts } from "./texts.js";

export const offerClicks = (root) => {
  prepareTexts(root);
  linkHeads(root);
  offerDetails(root);
};
