// All networks.

import { h } from "../dom.js";
import { filters } from "../filters.js";
import { commands, contrailctl } from "../commands.js";
import { networkLink } from "../network_links.js";
import { table, usage } from "../widgets.js";

export const title = () => "Networks";

export function render({ cluster, route }) {
  const words = (route.query.get("q") ?? "").toLowerCase();
  const found = cluster.networks.filter((view) => cluster.label(view).toLowerCase().includes(words));
  const rows = found.map((view) => [
    networkLink(cluster, view),
    (view.network.subnets ?? []).map((subnet) => subnet.cidr).join(", "),
    view.network.vni ?? "",
    view.network.mtu ?? "auto",
    view.interfaces,
    usage(view.interfaces, view.ipv4Capacity),
  ]);
  return [
    h("h1", null, "Networks"),
    filters(route, [{ name: "q", label: "Search" }]),
    table("networks", ["Network", "Subnets", "VNI", "MTU", "Interfaces", "IPv4 addresses"], rows, route),
    commands(contrailctl("get", "networks")),
  ];
}
