// One node: what its agent reports, and its pods.

import { h } from "../dom.js";
import { compare, countBy } from "../cluster.js";
import { hasAgents, isCluster, ofCluster, ofCustomResources } from "../deployment.js";
import { reportAge, silence } from "../node_health.js";
import { link } from "../route.js";
import { commands, contrailctlOfAgent, kubectl } from "../commands.js";
import { facts, podLink, podNetworks, problem, state, table } from "../widgets.js";

export const title = ({ path }) => `Node ${path[1]}`;

export function render(context) {
  const { cluster, route } = context;
  const name = route.path[1];
  const report = cluster.reports.get(name)?.report;
  const pods = cluster.pods.filter((pod) => pod.node === name);
  const hasDatapath = hasAgents(context) && report?.datapath !== "none";
  const heading = h("h1", null, `Node ${name}`);
  if (!report && pods.length === 0) return [heading, problem(`Nothing is known of a node ${name}.`)];
  return [
    heading,
    report ? reported(report) : h("p", { class: "none" }, "Its agent has not reported."),
    podsOf(cluster, pods, route),
    commands(
      ...ofCustomResources(context, kubectl("get", "contrailnode", name, "-o", "yaml")),
      ...ofCluster(context, kubectl("describe", "node", name)),
      ...(hasDatapath ? [contrailctlOfAgent(name, isCluster(context), "get", "datapath")] : []),
    ),
  ];
}

function reported(report) {
  const versions = Object.entries(report.versions ?? {}).sort(([one], [other]) => compare(one, other));
  return [
    problem(silence(report) && "Its agent has not reported for over 15 minutes: what follows may be outdated."),
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
