// All nodes that have reported or have pods.

import { h } from "../dom.js";
import { countBy } from "../cluster.js";
import { isCluster, ofCustomResources } from "../deployment.js";
import { filters } from "../filters.js";
import { commands, contrailctlStatus, kubectl } from "../commands.js";
import { problemsOf, reportAge } from "../node_health.js";
import { nodeLink, table } from "../widgets.js";

export const title = () => "Nodes";

export function render(context) {
  const { cluster, route } = context;
  const pods = countBy(cluster.pods, (pod) => pod.node);
  const waiting = countBy(
    cluster.pods.filter((pod) => pod.state === "Waiting" || pod.state === "Refused"),
    (pod) => pod.node,
  );
  const words = (route.query.get("q") ?? "").toLowerCase();
  const rows = cluster.nodeNames
    .filter((name) => name.toLowerCase().includes(words))
    .map((name) => {
      const report = cluster.reports.get(name)?.report;
      return [
        nodeLink(name),
        pods.get(name) ?? 0,
        waiting.get(name) ?? 0,
        report ? reportAge(report) : "none",
        Object.values(report?.versions ?? {}).join(", "),
        problemsOf(cluster, name),
      ];
    });
  return [
    h("h1", null, "Nodes"),
    filters(route, [{ name: "q", label: "Search" }]),
    table("nodes", ["Node", "Pods", "Waiting", "Last report", "Version", "Problems"], rows, route),
    commands(
      contrailctlStatus(isCluster(context)),
      ...ofCustomResources(context, kubectl("get", "contrailnodes"), "contrailctl check connectivity"),
    ),
  ];
}
