// Causes and cures of the reasons why pods wait, from the documentation.

import { request } from "./api.js";
import { h } from "./dom.js";

/** What to do about a reason; nothing if there is none, or the documentation has no advice. */
export function cure({ remote }, reason) {
  const known = adviceOn(remote, reason);
  return known && [known.cause, ". ", h("strong", null, known.cure), "."];
}

function adviceOn(remote, reason) {
  if (!reason) return null;
  const { value } = remote.get("advice", [], async () => (await request("web/advice.json")).json());
  return value?.[reason] ?? null;
}
