// Networks as lanes, and pods as columns that join the lanes of their networks, by node.

import { commands, contrailctl } from "../commands.js";
import { h } from "../dom.js";
import { filteredPods } from "../filters.js";
import { groupsOf } from "../grouping.js";
import { lanes } from "../lanes.js";
import { link } from "../route.js";
import { nodeLink, podLink, podNetworks, table } from "../widgets.js";
import { podFilters } from "./pods.js";

export const title = () => "Topology";

const TEXTS = {
  pod: "Each column is a pod.",
  "node and networks": "Each column is the pods of a node that have the same networks.",
  networks: "Each column is the pods that have the same networks, on any node.",
};

export function render({ cluster, route }) {
  const pods = filteredPods(cluster, route);
  const { groups, by, rest } = groupsOf(pods);
  const shown = groups.reduce((sum, group) => sum + group.pods.length, 0);
  return [
    h("h1", null, "Topology"),
    podFilters(cluster, route),
    h(
      "p",
      { role: "status", id: "summary" },
      `${shown} of ${pods.length} pods. ${TEXTS[by]} `,
      others(pods, shown, rest, route),
    ),
    groups.length > 0 && lanes(cluster, groups, route),
    h("details", null, h("summary", null, "The same as a table"), groupTable(cluster, groups, route)),
    commands(contrailctl("get", "networks"), contrailctl("get", "pods")),
  ];
}

function others(pods, shown, rest, route) {
  const left = rest.reduce((sum, group) => sum + group.pods.length, 0);
  const without = pods.length - shown - left;
  return [
    left > 0 && `${left} pods with ${rest.length} other sets of networks are not shown: search for them. `,
    without > 0 && h("a", { href: link(["pods"], Object.fromEntries(route.query)) }, `${without} have no interfaces.`),
  ];
}

function groupTable(cluster, groups, route) {
  const rows = groups.map((group) => [
    group.pods.length,
    podLink(group.pods[0]),
    h("span", null, podNetworks(cluster, { networks: group.networks })),
    nodeLink(group.node),
  ]);
  return table("groups", ["Pods", "First pod", "Networks", "Node"], rows, route);
}
