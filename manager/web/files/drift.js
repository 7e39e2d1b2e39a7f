// Drift of a network: what other programs had changed in the kernels of nodes, which has been repaired.

import { h } from "./dom.js";
import { nodeLink, table, time } from "./widgets.js";

const LINUX = "linux";

/** The nodes that have repaired the network; nothing where no kernel is repaired, or not by network. */
export function drift(cluster, network) {
  const reports = [...cluster.reports.values()];
  const found = reports.flatMap(({ name, report }) =>
    (report.repairedNetworks ?? [])
      .filter((each) => each.network.join() === network.fqName.join())
      .map((each) => [nodeLink(name), each.repairs, h("span", null, time(Date.parse(each.latest) / 1000), " ago")]),
  );
  const isRepaired = network.nad && reports.some(({ report }) => report.datapath === LINUX);
  if (found.length === 0 && !isRepaired) return null;
  return h(
    "section",
    null,
    h("h2", null, "Repaired drift"),
    found.length > 0
      ? table("repairs", ["Node", "Repairs since the start of its agent", "Last"], found)
      : h("p", { class: "none" }, "No node has had to repair this network."),
  );
}
