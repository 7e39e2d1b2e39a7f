// Whether a node is well, as far as its agent says it, or says nothing any more.

import { h } from "./dom.js";
import { age } from "./time.js";
import { time } from "./widgets.js";

const OLD = 15 * 60; // s; an agent reports every 5 minutes, and clocks differ: as in `contrailctl status`
const SERVED = new Set(["Ready", "Waiting", "Refused"]); // states of pods that need an agent on their node

/** When the agent reported, by the clock of its node. */
export function reportAge(report) {
  const reported = time(Date.parse(report.reportedAt) / 1000);
  return typeof reported === "string" ? reported : h("span", null, reported, " ago");
}

/** What is wrong with a node as text, empty if nothing is known to be. */
export function problemsOf(cluster, name) {
  const report = cluster.reports.get(name)?.report;
  return report ? [silence(report), numbers(report)].filter(Boolean).join(", ") : missing(cluster, name);
}

/** Names of the nodes with which something is wrong. */
export function unwellNodes(cluster) {
  return cluster.nodeNames.filter((name) => problemsOf(cluster, name));
}

/** That the agent has not reported for long, empty if it has. */
export function silence({ reportedAt }) {
  const seconds = (Date.now() - Date.parse(reportedAt)) / 1000;
  return seconds > OLD ? `no report for ${age(seconds)}` : "";
}

/** A node without a report, though its pods need an agent. Where no agent reports, none does. */
function missing(cluster, name) {
  return cluster.reports.size > 0 && nodesToServe(cluster).has(name) ? "no report" : "";
}

function nodesToServe(cluster) {
  return cluster.derive("nodesToServe", () => {
    const pods = cluster.pods.filter(({ state }) => SERVED.has(state));
    return new Set(pods.map(({ node }) => node));
  });
}

/** How many problems of which kind a report has. */
function numbers({
  conflicts = [],
  lastErrors = [],
  refused = [],
  missingModules = [],
  notReady = [],
  pendingDeletes = 0,
}) {
  const counts = [
    [notReady.length, "reasons why it is not ready"],
    [missingModules.length, "missing modules"],
    [conflicts.length, "conflicts"],
    [lastErrors.length, "errors"],
    [refused.length, "refusals"],
    [pendingDeletes, "pending deletes"],
  ];
  return counts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${number} ${what}`)
    .join(", ");
}
