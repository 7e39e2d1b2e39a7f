// The start of a pod as a time line, which the manager of a cluster knows; a single machine's does not.

import { ApiError, NOT_FOUND, request } from "./api.js";
import { h } from "./dom.js";
import { table } from "./widgets.js";

const NO_CLUSTER = "NoCluster";
let isKnown = true; // until a manager says that it has none of any pod

/** Reads the time line of a pod; null if there is none. */
export async function readTrace(namespace, name) {
  if (!isKnown) return null;
  try {
    return await (await request(`v1/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/trace`)).json();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_FOUND) throw error;
    isKnown = error.reason !== NO_CLUSTER;
    return null;
  }
}

/** The steps in order; `~` is before durations of which Kubernetes keeps whole seconds only. */
export function traceTable({ steps, longest }) {
  const first = Date.parse(steps[0]?.began);
  const rows = steps.map((step) => [
    clock(step.began),
    `${seconds(Date.parse(step.began) - first)} s`,
    took(step),
    step.by,
    step.name,
    step.detail,
  ]);
  return [
    table("steps", ["Began", "After", "Took", "By", "Step", "Detail"], rows),
    longest && h("p", null, `Longest step: ${longest.name} (${longest.by}), ${took(longest)}.`),
  ];
}

/** Returns whether a step of a time line, which may be null, lasts. */
export function hasOpenStep(trace) {
  return Boolean(trace?.steps.some((step) => step.ended === null));
}

function clock(time) {
  return h("time", { datetime: time }, new Date(time).toLocaleTimeString());
}

function took({ began, ended, exact }) {
  if (ended === null) return `${seconds(Date.now() - Date.parse(began))} s so far`;
  return `${exact ? "" : "~"}${seconds(Date.parse(ended) - Date.parse(began))} s`;
}

function seconds(milliseconds) {
  return Math.max(0, Math.round(milliseconds) / 1000);
}
