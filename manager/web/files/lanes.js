// The picture of the topology: a lane for each network, a column for each pod or group, and a dot where it is attached.
// The names of the lanes are a picture of their own, which stays where it is while the lanes are scrolled sideways.

import { h } from "./dom.js";
import { link } from "./route.js";
import { compare } from "./cluster.js";
import { networkAddress } from "./network_links.js";

const LANE = 26;
const COLUMN = 30;
const LABEL = 190;
const HEAD = 130;
const LETTERS = 24;
const FONT_SIZE = 12; // pixels, as in pictures.css
const LONGEST_LABEL = LABEL - 20; // names of wide letters are squeezed into it
const LETTERS_ABOVE = 15;
const LONGEST_ABOVE = 125; // of names above columns, which rise by 60 degrees
const pen = document.createElement("canvas").getContext("2d"); // measures texts

/** Returns the picture of groups; `cluster` knows the names of networks. */
export function lanes(cluster, groups, route) {
  const networks = orderedNetworks(cluster, groups);
  const laneOf = new Map(networks.map(({ uuid, label }, index) => [uuid, { label, height: y(index) }]));
  const width = groups.length * COLUMN + roomOfLast(groups);
  const height = HEAD + networks.length * LANE + 10;
  return h(
    "div",
    { class: "scroll picture", role: "region", tabindex: "0", "aria-label": "Picture of networks and pods" },
    h(
      "svg",
      {
        class: "names",
        width: LABEL,
        height,
        viewBox: `0 0 ${LABEL} ${height}`,
        preserveAspectRatio: "xMaxYMin slice", // a narrow screen has the ends of the names, which differ most
      },
      networks.map((network, index) => laneName(network, y(index))),
    ),
    h(
      "svg",
      { class: "lanes", width, height, viewBox: `0 0 ${width} ${height}` },
      networks.map(({ uuid }, index) => lane(uuid, y(index), width)),
      nodeBands(groups, height),
      groups.map((group, index) => column(group, index * COLUMN + COLUMN / 2, laneOf, route)),
    ),
  );
}

function orderedNetworks(cluster, groups) {
  const uuids = new Set(groups.flatMap((group) => group.networks));
  return [...uuids]
    .map((uuid) => namedLane(cluster, uuid))
    .sort(
      (one, other) =>
        compare(Boolean(one.view?.network.nad), Boolean(other.view?.network.nad)) ||
        compare(one.label, other.label),
    );
}

function namedLane(cluster, uuid) {
  const view = cluster.network(uuid);
  return { uuid, view, label: view ? cluster.label(view) : uuid };
}

function y(index) {
  return HEAD + index * LANE + LANE / 2;
}

function lane(uuid, height, width) {
  return h("g", { class: "lane", key: uuid }, h("line", { x1: 0, x2: width, y1: height, y2: height }));
}

function laneName({ uuid, label, view }, height) {
  return h(
    "g",
    { class: "lane", key: uuid },
    h("line", { x1: LABEL - 6, x2: LABEL, y1: height, y2: height }),
    h(
      "a",
      view ? { href: networkAddress(view) } : {},
      h(
        "text",
        { x: LABEL - 12, y: height + 4, "text-anchor": "end", ...squeezed(cut(label), LONGEST_LABEL) },
        cut(label),
        h("title", null, label),
      ),
    ),
  );
}

function nodeBands(groups, height) {
  const bands = [];
  groups.forEach((group, index) => {
    if (bands.at(-1)?.node === group.node) bands.at(-1).size += 1;
    else bands.push({ node: group.node, first: index, size: 1 });
  });
  return bands.map(({ node, first, size }, index) => {
    const x = first * COLUMN;
    return h(
      "g",
      { class: index % 2 ? "band odd" : "band" },
      h("rect", { x, y: 0, width: size * COLUMN, height }),
      node &&
        h(
          "a",
          { href: link(["nodes", node]) },
          h(
            "text",
            { x: x + 4, y: 14 },
            cut(node, Math.max(4, Math.floor((size * COLUMN) / 7.5))),
            h("title", null, node),
          ),
        ),
    );
  });
}

function column(group, x, laneOf, route) {
  const joined = group.networks.map((uuid) => laneOf.get(uuid));
  const places = joined.map(({ height }) => height).sort((one, other) => one - other);
  const address = addressOf(group, route);
  const text = `${described(group)} in ${joined.map(({ label }) => label).join(", ")}`;
  return h(
    "a",
    { class: `column ${stateOf(group)}`, href: address, "aria-label": text, key: address },
    h("title", null, text),
    nameAbove(cut(shortName(group), LETTERS_ABOVE), x),
    places.length > 1 && h("line", { x1: x, x2: x, y1: places[0], y2: places.at(-1) }),
    places.map((place) => h("circle", { cx: x, cy: place, r: group.pods.length > 1 ? 8 : 6 })),
  );
}

function nameAbove(text, x) {
  const transform = `rotate(-60 ${x} ${HEAD - 8})`;
  return h("text", { x, y: HEAD - 8, transform, ...squeezed(text, LONGEST_ABOVE) }, text);
}

function addressOf({ node, networks, pods }, route) {
  const [{ namespace, name }] = pods;
  if (pods.length === 1) return link(["pods", namespace, name]);
  return link(["pods"], {
    ...Object.fromEntries(route.query),
    network: networks.join(","),
    exact: "yes", // else those with further networks, too
    ...(node ? { node } : {}),
    rows: "",
  });
}

function described({ pods }) {
  const [{ namespace, name, state }] = pods;
  return pods.length === 1 ? `${namespace}/${name}: ${state}` : `${pods.length} pods such as ${namespace}/${name}`;
}

function shortName({ pods }) {
  return pods.length === 1 ? pods[0].name : `${pods.length} pods`;
}

function stateOf(group) {
  return group.pods.every((pod) => pod.state === "Ready") ? "ready" : "waiting";
}

/** Pixels right of the last column, so that the names above the last ones are not cut. */
function roomOfLast(groups) {
  const ends = groups.slice(-4).map((group, index, last) => {
    const length = Math.min(LONGEST_ABOVE, widthOf(cut(shortName(group), LETTERS_ABOVE)));
    return length / 2 - (last.length - index - 0.5) * COLUMN; // half of it: the cosine of 60 degrees
  });
  return Math.max(20, ...ends.map((end) => end + FONT_SIZE));
}

function squeezed(text, longest) {
  return widthOf(text) <= longest ? {} : { textLength: longest, lengthAdjust: "spacingAndGlyphs" };
}

function widthOf(text) {
  pen.font = `${FONT_SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

function cut(text, letters = LETTERS) {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
