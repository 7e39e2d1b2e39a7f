// Ports of a pod, as the agent of a single machine knows them; in a cluster the agents of the nodes are asked.

import { list } from "./api.js";
import { isCluster } from "./deployment.js";
import { h } from "./dom.js";
import { problem, table } from "./widgets.js";

const REFRESHED = 10_000; // ms after which the counters are read again
const CONNECTED = "Connected";
const HEADERS = [
  "Index",
  "Name",
  "Host end",
  "Container",
  "State",
  "Sent",
  "Received",
  "Spoofed packets dropped",
  "Dropped in its network",
];

/** The ports of a pod with their counters, or who knows them. */
export function ports(context, pod, versions) {
  const elsewhere = isCluster(context);
  if (elsewhere === null) return null;
  return h("section", null, h("h2", null, "Ports"), elsewhere ? hint(pod) : known(context, pod, versions));
}

function hint({ node }) {
  const text = node ? `The agent of ${node} knows ports and their counters: ` : "The pod has no node yet.";
  return h("p", { class: "hint" }, text, node && "the last of the commands below shows them.");
}

function known({ remote }, { namespace, name }, versions) {
  const read = remote.get(`ports of ${namespace}/${name}`, versions, () => list("v1/ports", { namespace, name }), {
    maxAge: () => REFRESHED,
  });
  return [problem(read.problem), read.value && table("ports", HEADERS, read.value.items.map(row))];
}

function row({ index, name, link, linkNamespace, container, condition, reason, counters, drops }) {
  return [
    index,
    name,
    linkNamespace ? `${link} in ${linkNamespace}` : (link ?? ""),
    (container ?? "").slice(0, 12),
    reason ? `${condition}: ${reason}` : condition,
    counters ? traffic(counters.sentPackets, counters.sentBytes) : uncounted(condition),
    counters ? traffic(counters.receivedPackets, counters.receivedBytes) : uncounted(condition),
    drops?.spoofing ?? "",
    drops ? ofNetwork(drops) : "",
  ];
}

/** A port is counted with the next look of the datapath at all, every 30 s. */
function uncounted(condition) {
  return condition === CONNECTED ? "not counted yet" : "";
}

function traffic(packets, bytes) {
  return `${packets} packets, ${bytes} bytes`;
}

function ofNetwork({ networkSpoofing, networkBroadcast, networkTunnel, networkMtu }) {
  const last = networkTunnel === undefined ? `${networkMtu} too large` : `${networkTunnel} from unknown nodes`;
  return `${networkSpoofing} spoofed, ${networkBroadcast} broadcast, ${last}`;
}
