// One node: what its agent reports, and its pods.

import { h } from "../dom.js";
import { compare, countBy } from "../cluster.js";
import { isCluster } from "../deployment.js";
import { link } from "../route.js";
import { commands, contrailctlOfAgent, kubectl } from "../commands.js";
import { facts, podLink, podNetworks, problem, state, table, time } from "../widgets.js";

export const title = ({ path }) => `Node ${path[1]}`;

export function render(context) {
  const { cluster, route } = context;
  const name = route.path[1];
  const report = cluster.reports.get(name)?.report;
  const pods = cluster.pods.filter((pod) => pod.node === name);
  const heading = h("h1", null, `Node ${name}`);
  if (!report && pods.length === 0) return [heading, problem(`Nothing is known of a node ${name}.`)];
  return [
    heading,
    report ? reported(report) : h("p", { class: "none" }, "Its agent has not reported."),
    podsOf(cluster, pods, route),
    commandsOf(context, name),
  ];
}

function commandsOf(context, name) {
  const inCluster = isCluster(context);
  const ofCluster = [kubectl("get", "contrailnode", name, "-o", "yaml"), kubectl("describe", "node", name)];
  return commands(...(inCluster ? ofCluster : []), contrailctlOfAgent(name, inCluster, "get", "datapath"));
}

/** When the agent reported, by the clock of its node. */
export function reportAge(report) {
  const reported = time(Date.parse(report.reportedAt) / 1000);
  return typeof reported === "string" ? reported : h("span", null, reported, " ago");
}

/** How many problems of which kind a report has, as text. */
export function problemsOf({
  conflicts = [],
  lastErrors = [],
  refused = [],
  missingModules = [],
  notReady = [],
  pendingDeletes = 0,
}) {
  const numbers = [
    [notReady.length, "reasons why it is not ready"],
    [missingModules.length, "missing modules"],
    [conflicts.length, "conflicts"],
    [lastErrors.length, "errors"],
    [refused.length, "refusals"],
    [pendingDeletes, "pending deletes"],
  ];
  return numbers
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${number} ${what}`)
    .join(", ");
}

function reported(report) {
  const versions = Object.entries(report.versions ?? {}).sort(([one], [other]) => compare(one, other));
  return [
    facts([
      ["Last report", reportAge(report)],
      ["Instance", report.instance],
      ...versions.map(([component, version]) => [`Version of ${component}`, version]),
      ["Missing kernel modules", (report.missingModules ?? []).join(", ")],
      ["Version of daemon", versions.some(([component]) => component === "daemon") ? "" : "not reported"],
      ["Datapath", report.datapath],
      ["Longest packet in tunnels", report.tunnelMtu ? `${report.tunnelMtu} bytes` : ""],
      ["Repaired drift", repaired(report.repairs)],
      [
        "Pending deletes",
        report.pendingDeletes ? `${report.pendingDeletes} ports are plugged though their pods were deleted` : "",
      ],
    ]),
    texts("Not ready", report.notReady),
    texts("Conflicts", report.conflicts),
    texts("Last errors", report.lastErrors),
    texts(
      "Networks not connected or routed",
      (report.refused ?? []).map((each) => each.message),
    ),
  ];
}

/** How often the datapath repaired what other programs had changed, by kind. */
function repaired(repairs = {}) {
  const kinds = Object.entries(repairs).sort(([one], [other]) => compare(one, other));
  return kinds.map(([kind, number]) => `${number} ${kind}`).join(", ");
}

function texts(name, all = []) {
  return (
    all.length > 0 &&
    h(
      "section",
      null,
      h("h2", null, name),
      h(
        "ul",
        null,
        all.map((text) => h("li", null, text)),
      ),
    )
  );
}

function podsOf(cluster, pods, route) {
  const states = [...countBy(pods, (pod) => pod.state)].map(([name, number]) => `${number} ${name}`).join(", ");
  return h(
    "section",
    null,
    h("h2", null, "Pods"),
    h(
      "p",
      null,
      states || "None",
      ". ",
      h("a", { href: link(["topology"], { node: route.path[1] }) }, "See them in the topology"),
    ),
    table(
      "pods",
      ["Pod", "State", "Networks"],
      pods.map((pod) => [podLink(pod), state(pod.state), h("span", null, podNetworks(cluster, pod))]),
      route,
    ),
  );
}
