// Slices of a network in a cluster: what each node tells the others, and whether the API server has it.

import { list } from "./api.js";
import { h } from "./dom.js";
import { nodeLink, problem, table } from "./widgets.js";

const HEADERS = ["Node", "On the server", "Tunnel", "Pods", "Blocks", "Single addresses"];
const CURRENT = "Current";

/** The slices of a network; nothing on a single machine, which has none. */
export function slices({ remote, route }, view, { namespace, name, interval }) {
  const read = remote.get(`slices ${view.network.uuid}`, [view], () => list("v1/network-slices", { namespace, name }), {
    interval,
    maxAge: () => 6 * interval,
  });
  const found = read.value?.items.filter((each) => each.networkUuid === view.network.uuid) ?? [];
  if (found.length === 0 && (read.value || !read.problem)) return null;
  return h(
    "section",
    null,
    h("h2", null, "Slices"),
    problem(read.problem),
    read.value && [
      h("p", { role: "status" }, summary(found)),
      table("slices", HEADERS, [...found].sort(driftedFirst).map(row), route),
    ],
  );
}

function summary(found) {
  const drifted = found.filter((each) => each.state !== CURRENT).length;
  const nodes = found.length === 1 ? "1 node" : `${found.length} nodes`;
  return drifted ? `${drifted} of ${nodes} drifted: the manager corrects them.` : `${nodes}, no drift.`;
}

function driftedFirst(one, other) {
  return (one.state === CURRENT) - (other.state === CURRENT);
}

function row({ node, state, tunnel = [], endpoints = 0, blocks = [], borrowed = [] }) {
  const onServer = h("span", { class: state === CURRENT ? "state ready" : "state refused" }, state);
  return [nodeLink(node), onServer, tunnel.join(", "), endpoints, blocks.join(", "), borrowed.join(", ")];
}
