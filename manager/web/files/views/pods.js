// All pods, or those that the filters leave.

import { h } from "../dom.js";
import { filteredPods, filters } from "../filters.js";
import { ofCluster } from "../deployment.js";
import { link, withFilters } from "../route.js";
import { commands, contrailctl, kubectl } from "../commands.js";
import { nodeLink, podLink, podNetworks, state, table } from "../widgets.js";

export const title = () => "Pods";

const STATES = ["Ready", "Waiting", "Refused", "HostNetwork", "Excluded"];

export function render(context) {
  const { cluster, route } = context;
  const found = filteredPods(cluster, route);
  const rows = found.map((pod) => [
    podLink(pod),
    state(pod.state),
    h("span", null, podNetworks(cluster, pod)),
    nodeLink(pod.node),
    pod.reason ?? "",
  ]);
  const namespace = route.query.get("namespace");
  return [
    h("h1", null, "Pods"),
    podFilters(cluster, route),
    h(
      "p",
      { role: "status" },
      `${found.length} of ${cluster.pods.length} pods. `,
      h("a", { href: link(["topology"], Object.fromEntries(route.query)) }, "See them in the topology"),
    ),
    table("pods", ["Pod", "State", "Networks", "Node", "Reason"], rows, route),
    commands(
      contrailctl("get", "pods", ...(namespace ? ["-n", namespace] : [])),
      ...ofCluster(context, kubectl("get", "pods", ...(namespace ? ["-n", namespace] : ["-A"]), "-o", "wide")),
    ),
  ];
}

/** The filters that all views of pods share. */
export function podFilters(cluster, route) {
  const network = route.query.get("network");
  return [
    filters(route, [
      { name: "q", label: "Search" },
      { name: "in", label: "Network" },
      { name: "namespace", label: "Namespace", options: cluster.namespaces.slice(0, 500) },
      { name: "state", label: "State", options: STATES },
      { name: "node", label: "Node", options: cluster.nodeNames.slice(0, 500) },
    ]),
    network &&
      h(
        "p",
        null,
        `Only pods in ${labelsOf(cluster, network)}${route.query.has("exact") ? " alone" : ""}. `,
        h("a", { href: withFilters(route, { network: "", exact: "" }) }, "In any network"),
      ),
  ];
}

function labelsOf(cluster, uuids) {
  const views = uuids.split(",").map((uuid) => [uuid, cluster.network(uuid)]);
  return views.map(([uuid, view]) => (view ? cluster.label(view) : uuid)).join(" and ");
}
