// Long texts in tables.

import { h } from "./dom.js";

/** Sentences in a cell of a table, which a narrow screen is not to squeeze into one word a line. */
export function sentences(...texts) {
  return texts.some(Boolean) && h("span", { class: "sentences" }, texts);
}
