// Filters of a list, kept in the URL.

import { h } from "./dom.js";
import { replaceRoute, withFilters } from "./route.js";

/** A form of inputs. Each is `{name, label}`, with `options` if it is a choice. */
export function filters(route, inputs) {
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    inputs.map((input) => h("label", null, input.label, input.options ? choice(route, input) : text(route, input))),
  );
}

function text(route, { name }) {
  return h("input", {
    type: "search",
    name,
    value: route.query.get(name) ?? "",
    oninput: (event) => change(name, event, route),
    autocomplete: "off",
  });
}

function choice(route, { name, options }) {
  const chosen = route.query.get(name) ?? "";
  const all = chosen && !options.includes(chosen) ? [chosen, ...options] : options;
  return h(
    "select",
    { name, value: chosen, onchange: (event) => change(name, event, route) },
    h("option", { value: "", key: "" }, "all"),
    all.map((option) => h("option", { value: option, key: option }, option)),
  );
}

function change(name, event, route) {
  replaceRoute(withFilters(route, { [name]: event.currentTarget.value, rows: "" }));
}

/** Returns the pods that the filters of a route leave. */
export function filteredPods(cluster, { query }) {
  const [namespace, node, podState, network] = ["namespace", "node", "state", "network"].map((name) => query.get(name));
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const searched = networksLike(cluster, query.get("in") ?? "");
  return cluster.pods.filter(
    (pod) =>
      (!namespace || pod.namespace === namespace) &&
      (!node || pod.node === node) &&
      (!podState || pod.state === podState) &&
      (!network || isIn(pod.networks ?? [], network.split(","), query.has("exact"))) &&
      (!searched || (pod.networks ?? []).some((uuid) => searched.has(uuid))) &&
      words.every((word) => `${pod.namespace}/${pod.name}`.toLowerCase().includes(word)),
  );
}

/** The uuids of the networks whose names contain a text; null if there is none. */
function networksLike(cluster, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const found = cluster.networks.filter((view) => cluster.label(view).toLowerCase().includes(wanted));
  return new Set(found.map(({ network }) => network.uuid));
}

/** Whether a pod with these networks is in all that are wanted; with `isExact` in no other. */
function isIn(networks, wanted, isExact) {
  return (
    wanted.every((uuid) => networks.includes(uuid)) && !(isExact && networks.some((uuid) => !wanted.includes(uuid)))
  );
}
