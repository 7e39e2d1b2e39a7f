// The page: follows the manager's changes, and shows the view that the address names.

import { UNAUTHORIZED } from "./api.js";
import { Cluster, KINDS } from "./cluster.js";
import { h, patch } from "./dom.js";
import { LatestEvents } from "./events.js";
import { Remote } from "./remote.js";
import { currentRoute, link } from "./route.js";
import { Stream } from "./stream.js";
import { tokenForm } from "./token_form.js";
import { problem } from "./widgets.js";
import * as eventsView from "./views/events.js";
import * as network from "./views/network.js";
import * as networks from "./views/networks.js";
import * as node from "./views/node.js";
import * as nodes from "./views/nodes.js";
import * as overview from "./views/overview.js";
import * as pod from "./views/pod.js";
import * as pods from "./views/pods.js";
import * as topology from "./views/topology.js";
import * as waiting from "./views/waiting.js";

const LISTS = new Map(
  Object.entries({ topology, networks, pods, waiting, nodes, events: eventsView }).map(([path, view]) => [
    path,
    { view, length: 1 },
  ]),
);
const DETAILS = new Map([
  ["networks", { view: network, length: 3 }],
  ["pods", { view: pod, length: 3 }],
  ["nodes", { view: node, length: 2 }],
]);
const NAMES = {
  "": "Overview",
  topology: "Topology",
  networks: "Networks",
  pods: "Pods",
  waiting: "Waiting",
  nodes: "Nodes",
  events: "Events",
};
const PAUSE = 100; // ms between two renderings
const AGES = 10_000; // ms after which the ages that are shown are old

const main = document.getElementById("main");
const cluster = new Cluster(draw);
const events = new LatestEvents(draw);
const remote = new Remote(draw);
let status = {};
let drawing = null;
let lastDrawn = -PAUSE;
let shownPath = null;

const stream = new Stream(KINDS, {
  onMessage: (message) => cluster.take(message),
  onStatus: (changed) => {
    if (changed.live) cluster.connected();
    status = changed;
    draw();
  },
});

/** Shows the present state soon: many changes in short succession are shown at once. */
function draw() {
  drawing ??= setTimeout(render, Math.max(0, lastDrawn + PAUSE - performance.now()));
}

function render() {
  clearTimeout(drawing);
  drawing = null;
  lastDrawn = performance.now();
  const route = currentRoute();
  const view = viewOf(route);
  follow(view, route);
  patch(document.getElementById("views"), navigation(route));
  patch(document.getElementById("status"), [statusText()]);
  document.body.className = status.live ? "live" : "";
  patch(main, h("main", null, content(view, route)).children);
  remote.forgetUnused();
  showPath(view, route);
}

function content(view, route) {
  if (status.status === UNAUTHORIZED) return tokenForm(restart);
  if (!view) return [h("h1", null, "Not found"), problem("There is no such view.")];
  if (!cluster.isKnown)
    return [
      h("h1", null, view.title(route)),
      status.problem ? problem(status.problem) : h("p", { class: "hint" }, "Loading."),
    ];
  return view.render({ cluster, events, remote, route });
}

function viewOf({ path }) {
  if (path.length === 0) return overview;
  const found = path.length === 1 ? LISTS.get(path[0]) : DETAILS.get(path[0]);
  return found?.length === path.length ? found.view : null;
}

function navigation(route) {
  const current = route.path[0] ?? "";
  const items = Object.entries(NAMES).map(([path, name]) => {
    const address = link(path ? [path] : []);
    return h("li", null, h("a", { href: address, "aria-current": path === current && "page" }, name));
  });
  return [h("ul", null, items)];
}

function statusText() {
  if (status.live) return cluster.isKnown ? "Live" : "Loading";
  return status.problem ? `Not live: ${status.problem}` : "Connecting";
}

/** A view that was navigated to begins at its top, and screen readers hear its name. */
function showPath(view, route) {
  const path = route.path.join("/");
  document.title = `${view ? view.title(route) : "Not found"} - contrail-multinet`;
  if (shownPath !== null && shownPath !== path) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shownPath = path;
}

/** Watches what is shown, and nothing while nobody looks. */
function follow(view, route) {
  if (document.hidden) {
    stream.stop();
    events.stop();
    return;
  }
  stream.start();
  if (view?.watchedEvents && cluster.isKnown) events.follow(view.watchedEvents(route));
  else events.stop();
}

function restart() {
  status = {};
  stream.stop();
  render();
}

addEventListener("hashchange", render);
document.addEventListener("visibilitychange", render);
document.getElementById("skip").addEventListener("click", () => main.focus());
setInterval(() => document.hidden || draw(), AGES);
render();
