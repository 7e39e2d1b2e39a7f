// The latest events, of everything or of one object, watched while a view shows them.

import { Stream } from "./stream.js";

const KEPT = 1000;

/** Minutes of which the numbers of events are known. */
export const MINUTES = 30;

/** What an event is, whenever and however often it happens. */
export function eventKey({ kind, namespace, name, uid, type, reason, message }) {
  return JSON.stringify([kind, namespace, name, uid, type, reason, message]);
}

export class LatestEvents {
  constructor(onChange) {
    this.onChange = onChange;
    this.choose({});
  }

  /** Watches the events of the objects that the filters name, until it is stopped. Idempotent. */
  follow(filters) {
    if (JSON.stringify(filters) !== JSON.stringify(this.filters)) {
      this.stop();
      this.choose(filters);
    }
    this.stream.start();
  }

  stop() {
    this.stream.stop();
  }

  choose(filters) {
    this.filters = filters;
    this.isKnown = false;
    this.problem = "";
    this.revision = 0; // another one after each change
    this.events = new Map();
    this.minutes = new Map();
    this.stream = new Stream(["events"], {
      filters,
      onMessage: (message) => this.take(message),
      onStatus: (status) => {
        this.problem = status.live ? "" : status.problem;
        this.onChange();
      },
    });
  }

  /** All that are kept, newest first. */
  get newestFirst() {
    return [...this.events.values()].sort((one, other) => other.lastSeen - one.lastSeen);
  }

  /** The number of events last seen in a minute since the epoch, also of those that are not kept. */
  numberIn(minute) {
    return this.minutes.get(minute) ?? 0;
  }

  take(message) {
    if (message.type === "RESET") {
      this.events.clear();
      this.minutes.clear();
    }
    if (message.type === "SYNCED") this.isKnown = true;
    if (message.type === "APPLIED") this.apply(message.object);
    if (!this.isKnown) return;
    this.revision += 1;
    this.onChange();
  }

  apply(event) {
    const key = eventKey(event);
    const before = this.events.get(key);
    if (before) this.count(before, -1); // one that is repeated after it was pruned counts twice
    this.count(event, 1);
    this.events.set(key, event);
    if (this.events.size > 2 * KEPT) this.prune();
  }

  count({ lastSeen }, change) {
    const minute = Math.floor(lastSeen / 60);
    this.minutes.set(minute, this.numberIn(minute) + change);
  }

  prune() {
    const newest = [...this.events].sort(([, one], [, other]) => other.lastSeen - one.lastSeen);
    this.events = new Map(newest.slice(0, KEPT));
    const oldest = Date.now() / 60_000 - MINUTES;
    for (const minute of this.minutes.keys()) if (minute < oldest) this.minutes.delete(minute);
  }
}
