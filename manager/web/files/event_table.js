// Events as a table, the newest first.

import { eventKey } from "./events.js";
import { sentences } from "./sentences.js";
import { table, time } from "./widgets.js";
import { eventSubject } from "./event_subject.js";

export function eventTable(events, route = null) {
  const newestFirst = [...events].sort((one, other) => other.lastSeen - one.lastSeen);
  const rows = newestFirst.map((event) => ({
    key: eventKey(event),
    cells: [
      time(event.lastSeen),
      event.type,
      event.reason,
      eventSubject(event),
      event.count,
      sentences(event.message),
    ],
  }));
  return table("events", ["Last seen", "Type", "Reason", "Object", "Count", "Message"], rows, route);
}
