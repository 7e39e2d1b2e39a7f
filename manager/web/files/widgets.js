// What several views show: tables, states, facts, usage.

import { h } from "./dom.js";
import { networkLink } from "./network_links.js";
import { link, withFilters } from "./route.js";
import { ageOf, fullTime } from "./time.js";

const ROWS = 100;
const MOST_ROWS = 10_000;

/**
 * A table of the first rows, with a link to more. `rows` are arrays of cells, one per header. Those whose first cell is
 * no link are `{key, cells}` if they can move: by its key, or address, a row stays the same while others come and go.
 */
export function table(name, headers, rows, route = null) {
  if (rows.length === 0) return h("p", { class: "none" }, `No ${name}.`);
  const limit = limitOf(route);
  const body = rows.slice(0, limit).map(keyed).map(({ key, cells }) =>
    h(
      "tr",
      key === undefined ? {} : { key },
      cells.map((cell) => h("td", null, cell)),
    ),
  );
  return h(
    "div",
    null,
    h(
      "div",
      { class: "scroll", role: "region", tabindex: "0", "aria-label": `Table of ${name}` },
      h(
        "table",
        null,
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            headers.map((each) => h("th", { scope: "col" }, each)),
          ),
        ),
        h("tbody", null, body),
      ),
    ),
    rows.length > limit &&
      h(
        "p",
        null,
        `${limit} of ${rows.length} are shown. `,
        route && h("a", { href: withFilters(route, { rows: String(limit + 4 * ROWS) }) }, "Show more"),
      ),
  );
}

function keyed(row) {
  return Array.isArray(row) ? { key: row[0]?.props?.href, cells: row } : row;
}

/** The number of rows that the address asks for, as the link to more does. */
function limitOf(route) {
  const asked = Number(route?.query.get("rows"));
  return Number.isInteger(asked) && asked > ROWS ? Math.min(asked, MOST_ROWS) : ROWS;
}

/** A state of a pod, told by its text and not only by its colour. */
export function state(text) {
  return h("span", { class: `state ${text.toLowerCase()}` }, text);
}

export function podLink({ namespace, name }) {
  return h("a", { href: link(["pods", namespace, name]) }, `${namespace}/${name}`);
}

export function nodeLink(name) {
  return name ? h("a", { href: link(["nodes", name]) }, name) : "";
}

/** Links to the networks of a pod, in the order of its interfaces. */
export function podNetworks(cluster, pod) {
  return (pod.networks ?? []).map((uuid, index) => {
    const view = cluster.network(uuid);
    return [index ? ", " : "", view ? networkLink(cluster, view) : "(deleted)"];
  });
}

/** A point in time as its age; "unknown" if it is none, since nodes and tenants may write anything. */
export function time(seconds) {
  if (Number.isNaN(new Date(seconds * 1000).getTime())) return "unknown";
  return h("time", { datetime: new Date(seconds * 1000).toISOString(), title: fullTime(seconds) }, ageOf(seconds));
}

/** Terms and what they mean here. Those without a value are left out. */
export function facts(entries) {
  const known = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    known.map(([term, value]) => h("div", null, h("dt", null, term), h("dd", null, value))),
  );
}

/** How much of something is used: a bar, and the numbers as text, which say the same. */
export function usage(used, capacity) {
  if (!capacity) return "";
  return [
    h("meter", {
      min: "0",
      max: "1",
      high: "0.8",
      value: String(Math.min(1, used / capacity)),
      "aria-label": "Addresses in use",
    }),
    ` ${used} of ${capacity}`,
  ];
}

/** Why something cannot be shown. */
export function problem(text) {
  return text && h("p", { class: "problem", role: "alert" }, text);
}
