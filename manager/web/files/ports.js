// Ports of a pod, as the agent of its node knows them. In a cluster the manager asks that agent, which takes a moment.

import { ApiError, NO_AGENT, NOT_FOUND, list } from "./api.js";
import { hasAgents, isCluster } from "./deployment.js";
import { h } from "./dom.js";
import { problem, table } from "./widgets.js";

const REFRESHED = 10_000; // ms after which the counters are read again
const CONNECTED = "Connected";
const COMMAND = "the last of the commands below shows them.";
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
  return h("section", null, h("h2", null, "Ports"), shown(context, pod, versions, elsewhere));
}

function shown(context, pod, versions, elsewhere) {
  if (!pod.node) return hint("The pod has no node yet.");
  if (!hasAgents(context)) return hint(`The vrouter agent of ${pod.node} knows them: see its introspection.`);
  return known(context, pod, versions, elsewhere);
}

function hint(text) {
  return h("p", { class: "hint" }, text);
}

function known({ remote }, { namespace, name, node }, versions, elsewhere) {
  const read = remote.get(`ports of ${namespace}/${name}`, versions, () => readPorts(namespace, name), {
    maxAge: (value) => (value.items ? REFRESHED : Infinity),
  });
  const isUnknown = elsewhere && (read.problem || (read.value && !read.value.items));
  const isAsked = elsewhere && !read.problem && !read.value;
  return [
    problem(read.problem),
    isAsked && hint(`Asking the agent of ${node}.`),
    isUnknown && hint(`The agent of ${node} knows ports and their counters: ${COMMAND}`),
    read.value?.items && table("ports", HEADERS, read.value.items.map(row)),
    counted(read.value?.items?.[0]?.countedAt),
  ];
}

/** Reads the ports of a pod; without items if the manager knows none and cannot ask for them. */
async function readPorts(namespace, name) {
  try {
    return await list("v1/ports", { namespace, name });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_FOUND || error.reason !== NO_AGENT) throw error;
    return {};
  }
}

function counted(time) {
  return time && h("p", null, "Counted at ", h("time", { datetime: time }, new Date(time).toLocaleTimeString()), ".");
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
