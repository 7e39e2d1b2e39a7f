// One network: its subnets with a map of their addresses, its pods and nodes, its events, and what nodes refuse of it.

import { list } from "../api.js";
import { h } from "../dom.js";
import { familyOf, numberOf } from "../addresses.js";
import { addressMap } from "../address_map.js";
import { compare, countBy, networkName } from "../cluster.js";
import { ofCluster, ofCustomResources } from "../deployment.js";
import { drift } from "../drift.js";
import { link } from "../route.js";
import { eventTable } from "../event_table.js";
import { slices } from "../slices.js";
import { commands, contrailctl, kubectl } from "../commands.js";
import { sentences } from "../sentences.js";
import { facts, nodeLink, podLink, problem, state, table, usage } from "../widgets.js";

const INTERVAL = 5_000; // ms: the addresses of a large network are many requests
const AFTER_HOLD = 2_000; // ms after the end of a hold, for clocks that differ a little

export const title = ({ path }) => `Network ${named(path)}`;

export function render(context) {
  const { cluster, route } = context;
  const view = viewOf(cluster, route.path);
  const heading = h("h1", null, `Network ${named(route.path)}`);
  if (!view) return [heading, ...ofNadAlone(context)];
  const { network } = view;
  const { namespace, name } = networkName(view);
  return [
    heading,
    facts([
      ["Network", network.fqName.join(":")],
      ["NAD", network.nad],
      ["VNI", network.vni],
      ["MTU", network.mtu ?? "auto"],
      ["Forwarding mode", network.forwardingMode ?? "l2_l3"],
      ["Name servers", (network.dns ?? []).join(", ")],
      [
        "Routes",
        (network.routes ?? []).map((route) => (route.gw ? `${route.dst} via ${route.gw}` : route.dst)).join(", "),
      ],
      ["Interfaces", view.interfaces],
      ["Retired", network.retired ? "its NAD was deleted; it takes no new pods" : ""],
    ]),
    addresses(context, view, namespace, name),
    slices(context, view, { namespace, name, interval: INTERVAL }),
    drift(cluster, network),
    refusals(cluster, network),
    pods(context, network),
    network.nad && events(context, view, namespace, name),
    commands(
      contrailctl("get", "networks", name, ...(namespace ? ["-n", namespace] : [])),
      ...ofCluster(context, ...(network.nad ? [nadCommand(namespace, name)] : [])),
      ...ofCustomResources(
        context,
        kubectl("get", "cvn", network.uuid, "-o", "yaml"),
        kubectl("get", "cns", "-A", "-l", `opencontrail.org/network=${network.uuid}`),
      ),
    ),
  ];
}

/** What there is of a NAD that defines no network: it is invalid, names another network, or does not exist. */
function ofNadAlone(context) {
  const [, namespace, name] = context.route.path;
  const missing = problem(`There is no network ${named(context.route.path)}.`);
  if (namespace === "-") return [missing];
  return [
    missing,
    h("p", null, "If a NAD of this name exists, it is invalid, as its events say, or names another network."),
    events(context, null, namespace, name),
    commands(
      contrailctl("get", "events", "-n", namespace),
      ...ofCluster(context, nadCommand(namespace, name)),
    ),
  ];
}

function nadCommand(namespace, name) {
  return kubectl("get", "network-attachment-definitions.k8s.cni.cncf.io", name, "-n", namespace, "-o", "yaml");
}

function addresses({ remote }, view, namespace, name) {
  const read = remote.get(`addresses ${view.network.uuid}`, [view], () => list("v1/addresses", { namespace, name }), {
    interval: INTERVAL,
    maxAge: untilFirstIsFree,
  });
  const found = read.value?.items.filter((each) => each.networkUuid === view.network.uuid) ?? [];
  return h(
    "section",
    null,
    h("h2", null, "Subnets"),
    problem(read.problem),
    read.value?.isCut && problem(`Only the first ${found.length} addresses are in these maps.`),
    (view.network.subnets ?? []).map((subnet) =>
      h(
        "div",
        { class: "subnet", key: subnet.cidr },
        h("h3", null, subnet.cidr, subnet.gateway ? ` (gateway ${subnet.gateway})` : ""),
        read.value && addressMap(subnet, found),
      ),
    ),
    facts([
      ["IPv4 addresses", usage(view.interfaces, view.ipv4Capacity)],
      ["IPv6 addresses", view.ipv6Capacity ? `${view.interfaces} used` : ""],
    ]),
    read.value && addressTable(found),
  );
}

function addressTable(found) {
  return h(
    "details",
    null,
    h("summary", null, `Addresses in use (${found.length})`),
    table(
      "addresses",
      ["Address", "State", "Pod", "Until"],
      inOrder(found).map((each) => [
        each.address,
        each.state,
        each.pod ? podLink({ namespace: each.namespace, name: each.pod }) : "",
        each.until ? h("span", null, "in ", duration(each.until)) : "",
      ]),
    ),
  );
}

function inOrder(found) {
  const numbered = found.map((each) => [familyOf(each.address), numberOf(each.address), each]);
  const order = ([oneFamily, one], [otherFamily, other]) => compare(oneFamily, otherFamily) || compare(one, other);
  return numbered.sort(order).map(([, , each]) => each);
}

/** Milliseconds until the first held address is free: no message says that a hold has ended. */
function untilFirstIsFree({ items }) {
  const end = items.reduce((first, { until }) => Math.min(first, until ?? Infinity), Infinity);
  return Math.max(2 * INTERVAL, end * 1000 - Date.now() + AFTER_HOLD);
}

function duration(until) {
  return `${Math.max(0, Math.round(until - Date.now() / 1000))} s`;
}

function refusals(cluster, network) {
  const found = [...cluster.reports.values()].flatMap(({ name, report }) =>
    (report.refused ?? [])
      .filter((each) => each.network.join() === network.fqName.join())
      .map((each) => [nodeLink(name), each.reason, sentences(each.message)]),
  );
  return (
    found.length > 0 &&
    h(
      "section",
      null,
      h("h2", null, "What nodes do not connect or route"),
      table("refusals", ["Node", "Reason", "Message"], found),
    )
  );
}

function pods({ cluster, route }, network) {
  const found = cluster.pods.filter((pod) => (pod.networks ?? []).includes(network.uuid));
  const nodes = [...countBy(found, (pod) => pod.node)].sort(([one], [other]) => compare(one, other));
  return h(
    "section",
    null,
    h("h2", null, "Pods"),
    h(
      "p",
      null,
      nodes.map(([node, number], index) => [index ? ", " : "", nodeLink(node), ` ${number}`]),
    ),
    h(
      "p",
      null,
      h("a", { href: link(["pods"], { network: network.uuid }) }, "Search them"),
      ", or ",
      h("a", { href: link(["topology"], { network: network.uuid }) }, "see them in the topology"),
      ".",
    ),
    table(
      "pods",
      ["Pod", "State", "Node", "Interfaces here"],
      found.map((pod) => [
        podLink(pod),
        state(pod.state),
        nodeLink(pod.node),
        pod.networks.filter((uuid) => uuid === network.uuid).length,
      ]),
      route,
    ),
  );
}

function events({ remote }, view, namespace, name) {
  const read = remote.get(`events ${namespace}/${name}`, [view], () => list("v1/events", { namespace, name }), {
    interval: INTERVAL,
  });
  const found = (read.value?.items ?? []).filter((event) => event.kind !== "Pod");
  return h("section", null, h("h2", null, "Events"), problem(read.problem), read.value && eventTable(found));
}

/** Returns the network of an address (`networkAddress`). */
function viewOf(cluster, [, namespace, name]) {
  if (namespace !== "-") return cluster.networkOfNad(`${namespace}/${name}`);
  return cluster.networks.find(({ network }) => !network.nad && network.fqName.join(":") === name);
}

function named([, namespace, name]) {
  return namespace === "-" ? name : `${namespace}/${name}`;
}
