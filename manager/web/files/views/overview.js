// Numbers of everything, what needs attention, and what happens now.

import { h } from "../dom.js";
import { link } from "../route.js";
import { commands, contrailctl, contrailctlStatus } from "../commands.js";
import { isCluster } from "../deployment.js";
import { networkLink } from "../network_links.js";
import { nodeLink, podLink, state, time, usage, problem } from "../widgets.js";
import { problemsOf, unwellNodes } from "../node_health.js";
import { eventSubject } from "../event_subject.js";
import { eventsByMinute } from "../events_by_minute.js";

export const title = () => "Overview";
export const watchedEvents = () => ({});

const STATES = ["Ready", "Waiting", "Refused", "HostNetwork", "Excluded"];
const SHOWN = 5;

export function render(context) {
  const { cluster, events } = context;
  return [
    h("h1", null, "Overview"),
    numbers(cluster),
    attention(cluster),
    now(events),
    commands(contrailctlStatus(isCluster(context)), contrailctl("get", "pods")),
  ];
}

function numbers(cluster) {
  const cards = [
    ["Networks", cluster.networks.length, link(["networks"])],
    ["Nodes", cluster.nodeNames.length, link(["nodes"])],
    ["Pods", cluster.pods.length, link(["pods"])],
    ...STATES.map((name) => [name, cluster.podStates.get(name) ?? 0, link(["pods"], { state: name })]),
  ];
  return h(
    "ul",
    { class: "cards" },
    cards.map(([name, number, address]) =>
      h("li", null, h("a", { href: address }, h("strong", null, number), " ", name)),
    ),
  );
}

function attention(cluster) {
  return h("div", { class: "columns" }, waiting(cluster), fullest(cluster), unwell(cluster));
}

function waiting(cluster) {
  const pods = cluster.pods.filter((pod) => pod.state === "Waiting" || pod.state === "Refused");
  return section(
    "Waiting pods",
    pods,
    (pod) => [podLink(pod), " ", state(pod.state), " ", pod.reason ?? ""],
    link(["waiting"]),
  );
}

function fullest(cluster) {
  const used = cluster.networks
    .filter((view) => view.ipv4Capacity > 0 && view.interfaces > 0)
    .sort((one, other) => other.interfaces / other.ipv4Capacity - one.interfaces / one.ipv4Capacity);
  return section(
    "Fullest networks (IPv4)",
    used,
    (view) => [networkLink(cluster, view), " ", usage(view.interfaces, view.ipv4Capacity)],
    link(["networks"]),
  );
}

function unwell(cluster) {
  return section(
    "Nodes with problems",
    unwellNodes(cluster),
    (name) => [nodeLink(name), " ", problemsOf(cluster, name)],
    link(["nodes"]),
  );
}

function section(name, items, describe, address) {
  const rest = items.length - SHOWN;
  return h(
    "section",
    null,
    h("h2", null, name),
    items.length === 0
      ? h("p", { class: "none" }, "None.")
      : h(
          "ul",
          null,
          items.slice(0, SHOWN).map((item) => h("li", null, describe(item))),
        ),
    rest > 0 && h("p", null, h("a", { href: address }, `${rest} more`)),
  );
}

function now(events) {
  const latest = events.newestFirst;
  return h(
    "section",
    null,
    h("h2", null, "Events"),
    problem(events.problem),
    eventsByMinute(events),
    h(
      "ul",
      { class: "log" },
      latest
        .slice(0, SHOWN)
        .map((event) =>
          h(
            "li",
            null,
            time(event.lastSeen),
            " ago ",
            h("strong", null, event.reason),
            " ",
            eventSubject(event),
          ),
        ),
    ),
    h("p", null, h("a", { href: link(["events"]) }, "All events")),
  );
}
