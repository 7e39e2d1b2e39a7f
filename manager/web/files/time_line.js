// What happened to a pod, in order, as far as the manager's events say it.

import { h } from "./dom.js";
import { fullTime } from "./time.js";

/** The time line of a pod's events; each step says how long after the one before it was first seen. */
export function timeLine(events) {
  const steps = [...events].sort((one, other) => one.firstSeen - other.firstSeen);
  if (steps.length === 0) return h("p", { class: "none" }, "No events are kept of this pod.");
  return [
    h(
      "ol",
      { class: "time-line" },
      steps.map((event, index) =>
        h(
          "li",
          { class: event.type === "Warning" ? "warning" : "normal" },
          h("time", { datetime: new Date(event.firstSeen * 1000).toISOString() }, fullTime(event.firstSeen)),
          index > 0 && ` (${delta(event.firstSeen - steps[index - 1].firstSeen)} later)`,
          h("br"),
          h("strong", null, meaning(event)),
          event.count > 1 && ` (${event.count} times)`,
        ),
      ),
    ),
    h("p", { class: "hint" }, "These are the manager's steps. It does not know what the node has done."),
  ];
}

function meaning({ reason, type }) {
  if (reason === "InterfacesAssigned") return "Interface list written";
  return type === "Warning" ? `Problem: ${reason}` : reason;
}

function delta(seconds) {
  return seconds < 10 ? `${seconds.toFixed(2)} s` : `${Math.round(seconds)} s`;
}
