// The latest events, as they happen.

import { ofCluster } from "../deployment.js";
import { h } from "../dom.js";
import { eventTable } from "../event_table.js";
import { filters } from "../filters.js";
import { commands, contrailctl, kubectl } from "../commands.js";
import { problem } from "../widgets.js";

export const title = () => "Events";
export const watchedEvents = () => ({});

export function render(context) {
  const { events, route } = context;
  const words = (route.query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const kind = route.query.get("type");
  const found = events.newestFirst.filter((event) => {
    const text = `${event.namespace}/${event.name} ${event.reason} ${event.message}`.toLowerCase();
    return (!kind || event.type === kind) && words.every((word) => text.includes(word));
  });
  return [
    h("h1", null, "Events"),
    filters(route, [
      { name: "q", label: "Search" },
      { name: "type", label: "Type", options: ["Normal", "Warning"] },
    ]),
    problem(events.problem),
    eventTable(found, route),
    commands(contrailctl("get", "events"), ...ofCluster(context, kubectl("get", "events", "-A"))),
  ];
}
