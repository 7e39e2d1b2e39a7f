// One pod: its interfaces in order, its default routes, why it waits, and what happened when.

import { list } from "../api.js";
import { h } from "../dom.js";
import { commands, contrailctl, contrailctlOfAgent, kubectl } from "../commands.js";
import { sentences } from "../sentences.js";
import { networkLink } from "../network_links.js";
import { facts, nodeLink, problem, state, table } from "../widgets.js";
import { cure } from "../advice.js";
import { hasAgents, isCluster, ofCluster } from "../deployment.js";
import { eventTable } from "../event_table.js";
import { hasOpenStep, readTrace, traceTable } from "../trace.js";
import { ports } from "../ports.js";
import { timeLine } from "../time_line.js";

const LASTING = 10_000; // ms after which a time line with a step that lasts is read again

export const title = ({ path }) => `Pod ${path[1]}/${path[2]}`;
export const watchedEvents = ({ path }) => ({ namespace: path[1], name: path[2] });

export function render(context) {
  const { cluster, events: watched, remote, route } = context;
  const [, namespace, name] = route.path;
  const known = cluster.pod(namespace, name);
  const heading = h("h1", null, `Pod ${namespace}/${name}`);
  if (!known) return [heading, problem(`There is no pod ${namespace}/${name}.`)];
  const filter = { namespace, name };
  const pod = remote.get(`pod ${namespace}/${name}`, [known], () => list("v1/pods", filter));
  const events = remote.get(`events of pod ${namespace}/${name}`, [known, watched.revision], () =>
    list("v1/events", filter),
  );
  const trace = remote.get(
    `trace of ${namespace}/${name}`,
    [known, watched.revision],
    () => readTrace(namespace, name),
    {
      maxAge: (value) => (hasOpenStep(value) ? LASTING : Infinity),
    },
  );
  const ofPod = (events.value?.items ?? []).filter((event) => event.kind === "Pod");
  return [
    heading,
    facts([
      ["State", state(known.state)],
      ["Reason", known.reason],
      ["Message", known.message],
      ["What to do", cure(context, known.reason)],
      ["Node", nodeLink(known.node)],
      ["UID", pod.value?.items[0]?.uid],
    ]),
    problem(pod.problem),
    pod.value?.items[0] && interfaces(cluster, pod.value.items[0]),
    refusals(cluster, pod.value?.items[0]),
    known.networks && ports(context, known, [known, watched.revision]),
    h(
      "section",
      null,
      h("h2", null, "Time line"),
      problem(trace.problem),
      trace.value ? traceTable(trace.value) : events.value && timeLine(ofPod),
    ),
    h(
      "section",
      null,
      h("h2", null, "Events"),
      problem(events.problem || watched.problem),
      events.value && eventTable(ofPod),
    ),
    commands(
      contrailctl("describe", "pod", `${namespace}/${name}`),
      ...ofCluster(context, kubectl("describe", "pod", name, "-n", namespace)),
      ...ofNode(context, known, trace.value),
    ),
  ];
}

/** Commands that show what only the pod's node knows. */
function ofNode(context, { namespace, name, node, networks }, trace) {
  const pod = `${namespace}/${name}`;
  const hasPorts = node && networks && hasAgents(context);
  return [
    ...(trace ? [`contrailctl trace ${pod}`] : []),
    ...(hasPorts ? [contrailctlOfAgent(node, isCluster(context), "describe", "pod", pod)] : []),
  ];
}

/** What the pod's node reports of the networks of the pod. */
function refusals(cluster, pod) {
  const networks = new Set((pod?.machine?.interfaces ?? []).map((each) => each.network.join()));
  const reported = cluster.reports.get(pod?.node)?.report.refused ?? [];
  const found = reported.filter((each) => networks.has(each.network.join()));
  const rows = found.map((each) => [each.network.at(-1), each.reason, sentences(each.message)]);
  return (
    found.length > 0 &&
    h(
      "section",
      null,
      h("h2", null, "What its node does not connect or route"),
      table("refusals", ["Network", "Reason", "Message"], rows),
    )
  );
}

function interfaces(cluster, pod) {
  const all = pod.machine?.interfaces ?? [];
  const routes = (pod.defaultRoutes ?? []).map(
    (route) => `IPv${route.family} via ${route.gateway} dev ${pod.names[route.index]}`,
  );
  const rows = all.map((each, index) => [
    index,
    pod.names[index],
    networkOf(cluster, each),
    (each.addresses ?? []).map((address) => `${address.address}/${address.prefixLength}`).join(", "),
    each.mac,
    each.mtu ?? 1500,
    (each.routes ?? []).map((route) => (route.gw ? `${route.dst} via ${route.gw}` : route.dst)).join(", "),
  ]);
  return [
    h(
      "section",
      null,
      h("h2", null, "Interfaces"),
      table("interfaces", ["Index", "Name", "Network", "Addresses", "MAC", "MTU", "Routes"], rows),
    ),
    h(
      "section",
      null,
      h("h2", null, "Default routes"),
      routes.length
        ? h(
            "ul",
            null,
            routes.map((text) => h("li", null, text)),
          )
        : h("p", { class: "none" }, "None."),
    ),
  ];
}

/** The network of an interface, and the NAD that chose it, which may be another than the one that defines it. */
function networkOf(cluster, { nad, network, networkUuid }) {
  const view = cluster.network(networkUuid);
  if (!view) return `${network.join(":")} (deleted)`;
  return [networkLink(cluster, view), nad && nad !== view.network.nad && ` by NAD ${nad}`];
}
